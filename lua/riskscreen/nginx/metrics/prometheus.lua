-- Writes metrics in the text format of Prometheus, version 0.0.4. Pure.
local stats = require "riskscreen.call.stats"
local tables = require "riskscreen.util.tables"

local escapes = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function number(value)
  if type(value) == "boolean" then
    return value and "1" or "0"
  elseif value ~= value then
    return "NaN"
  elseif value == math.huge or value == -math.huge then
    return value > 0 and "+Inf" or "-Inf"
  end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

local function label(name, value)
  return ('%s="%s"'):format(name, tostring(value):gsub('[\\"\n]', escapes))
end

-- `bound` is the upper limit of a histogram's bucket.
local function write(lines, name, labels, value, bound)
  local parts = tables.copy(labels)
  table.sort(parts)
  parts[#parts + 1] = bound and label("le", number(bound))
  local text = parts[1] and "{" .. table.concat(parts, ",") .. "}" or ""
  lines[#lines + 1] = name .. text .. " " .. number(value)
end

local function write_histogram(lines, name, labels, histogram)
  local seen = 0
  for index, count in ipairs(histogram.buckets) do
    seen = seen + count
    write(lines, name .. "_bucket", labels, seen, stats.bounds[index] or math.huge)
  end
  write(lines, name .. "_sum", labels, histogram.sum)
  write(lines, name .. "_count", labels, seen)
end

-- Writes the samples below `value`. The first `depth` of the metric's labels are known.
local function write_samples(lines, metric, value, labels, depth)
  local name = metric.labels[depth + 1]
  if value == nil then
    return
  elseif name then
    for _, key in ipairs(metric.keys or tables.sorted_keys(value)) do
      write_samples(lines, metric, value[key], tables.concat(labels, { label(name, key) }), depth + 1)
    end
  elseif metric.type == "histogram" then
    write_histogram(lines, metric.name, labels, value)
  else
    write(lines, metric.name, labels, value)
  end
end

-- Facts by the values of their labels; each fact has its own.
local function by_labels(metric, list)
  local all, first, second = {}, metric.labels[1], metric.labels[2]
  for _, facts in ipairs(list) do
    all[facts[first]] = all[facts[first]] or {}
    all[facts[first]][facts[second]] = facts[metric.fact]
  end
  return all
end

-- The value of a metric, or nil.
local function value_of(metric, snapshot)
  local value = snapshot
  for field in metric.path:gmatch "[^.]+" do
    value = value and value[field]
  end
  if value and metric.states then
    local states = {}
    for _, state in ipairs(metric.states) do
      states[state] = value == state
    end
    return states
  end
  return value and metric.fact and by_labels(metric, value) or value
end

local M = { CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8" }

---@param metrics riskscreen.nginx.Metric[]
---@param snapshot riskscreen.nginx.Snapshot
---@return string
function M.text(metrics, snapshot)
  local text, labels = {}, { label("gate", snapshot.name) }
  labels[2] = snapshot.worker and label("worker", snapshot.worker)
  for _, metric in ipairs(metrics) do
    local lines = {}
    write_samples(lines, metric, value_of(metric, snapshot), labels, 0)
    if lines[1] then
      text[#text + 1] = ("# HELP %s %s\n# TYPE %s %s\n%s\n"):format(
        metric.name,
        metric.doc:gsub("[\\\n]", escapes),
        metric.name,
        metric.type,
        table.concat(lines, "\n")
      )
    end
  end
  return table.concat(text)
end

return M
