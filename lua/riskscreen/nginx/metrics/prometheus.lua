-- Writes metrics in the text format of Prometheus, version 0.0.4. Pure.

---@class riskscreen.nginx.Sample
---@field labels table<string, string>
---@field value? number of a counter or a gauge
---@field buckets? integer[] of a histogram: the count of each bucket, and of one beyond the last bound
---@field sum? number of a histogram

---@class riskscreen.nginx.MetricSamples
---@field name string
---@field type "counter"|"gauge"|"histogram"
---@field doc string
---@field bounds? number[] of a histogram
---@field samples riskscreen.nginx.Sample[]

local escapes = { ["\\"] = "\\\\", ['"'] = '\\"', ["\n"] = "\\n" }

local function number(value)
  if value ~= value then
    return "NaN"
  elseif value == math.huge or value == -math.huge then
    return value > 0 and "+Inf" or "-Inf"
  elseif value == math.floor(value) and math.abs(value) < 2 ^ 53 then
    return ("%.0f"):format(value)
  end
  local short = ("%.15g"):format(value)
  return tonumber(short) == value and short or ("%.17g"):format(value)
end

-- `bound` is the upper limit of a histogram's bucket.
local function label_text(labels, bound)
  local names, parts = {}, {}
  for name in pairs(labels) do
    names[#names + 1] = name
  end
  table.sort(names)
  for index, name in ipairs(names) do
    parts[index] = ('%s="%s"'):format(name, labels[name]:gsub('[\\"\n]', escapes))
  end
  if bound then
    parts[#parts + 1] = ('le="%s"'):format(bound)
  end
  return parts[1] and "{" .. table.concat(parts, ",") .. "}" or ""
end

local function write_histogram(lines, family, sample)
  local seen = 0
  for index, count in ipairs(sample.buckets) do
    seen = seen + count
    local bound = number(family.bounds[index] or math.huge)
    lines[#lines + 1] = ("%s_bucket%s %s"):format(family.name, label_text(sample.labels, bound), number(seen))
  end
  local labels = label_text(sample.labels)
  lines[#lines + 1] = ("%s_sum%s %s"):format(family.name, labels, number(sample.sum))
  lines[#lines + 1] = ("%s_count%s %s"):format(family.name, labels, number(seen))
end

local M = {
  CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8",
}

---@param families riskscreen.nginx.MetricSamples[]
---@return string
function M.text(families)
  local lines = {}
  for _, family in ipairs(families) do
    if family.samples[1] then
      lines[#lines + 1] = ("# HELP %s %s"):format(family.name, family.doc:gsub("[\\\n]", escapes))
      lines[#lines + 1] = ("# TYPE %s %s"):format(family.name, family.type)
    end
    for _, sample in ipairs(family.samples) do
      if family.type == "histogram" then
        write_histogram(lines, family, sample)
      else
        lines[#lines + 1] = ("%s%s %s"):format(family.name, label_text(sample.labels), number(sample.value))
      end
    end
  end
  lines[#lines + 1] = ""
  return table.concat(lines, "\n")
end

return M
