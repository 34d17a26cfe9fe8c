-- Reads the text format 0.0.4 of Prometheus and raises at any violation. It checks names, escapes, one place for each
-- metric, one line for each series, and that histograms add up.

local NAME = "^[a-zA-Z_:][a-zA-Z0-9_:]*$"
local LABEL = "^[a-zA-Z_][a-zA-Z0-9_]*$"

local unescaped = { ["\\\\"] = "\\", ['\\"'] = '"', ["\\n"] = "\n" }
local types = { counter = true, gauge = true, histogram = true, summary = true, untyped = true }
local special = { ["+Inf"] = math.huge, ["-Inf"] = -math.huge, NaN = 0 / 0 }

local function number(text)
  local value = special[text]
  if value == nil and text:find "^[-+]?%d*%.?%d*[eE]?[-+]?%d*$" then
    value = tonumber(text)
  end
  return assert(value, "no number: " .. text)
end

-- The labels between braces, and what follows them.
local function labels_of(text)
  local labels, position = {}, 1
  while text:sub(position, position) ~= "}" do
    local name, after = text:match('^([^=]+)="()', position)
    assert(name and name:find(LABEL), "no label: " .. text:sub(position))
    assert(labels[name] == nil, "a label twice: " .. name)
    local value = {}
    position = after
    while true do
      local character = text:sub(position, position)
      assert(character ~= "", "a label without an end: " .. text)
      if character == '"' then
        break
      elseif character == "\\" then
        character = assert(unescaped[text:sub(position, position + 1)], "no such escape: " .. text)
        position = position + 1
      end
      value[#value + 1] = character
      position = position + 1
    end
    labels[name] = table.concat(value)
    position = position + 1
    if text:sub(position, position) == "," then
      position = position + 1
      assert(text:sub(position, position) ~= "}", "a comma too much: " .. text)
    else
      assert(text:sub(position, position) == "}", "labels without an end: " .. text)
    end
  end
  return labels, text:sub(position + 1)
end

-- The same for the same labels in any order.
local function identity(name, labels, without)
  local parts = {}
  for label, value in pairs(labels) do
    if label ~= without then
      parts[#parts + 1] = ("%s=%q"):format(label, value)
    end
  end
  table.sort(parts)
  return name .. "{" .. table.concat(parts, ",") .. "}"
end

local M = {}

---@class riskscreen.spec.Metrics
---@field families table<string, { type: string, help: string }>
---@field series table<string, number> by name and labels: `name{a="x",b="y"}`
---@field get fun(self, name: string, labels?: table): number|nil

local function read_comment(metrics, line, current)
  local keyword, name, rest = line:match "^# (%u+) (%S+) (.*)$"
  if keyword == "HELP" then
    assert(not metrics.families[name], "a family in two places: " .. name)
    assert(name:find(NAME), "no name: " .. name)
    assert(not rest:gsub("\\[\\n]", ""):find("\\", 1, true), "no such escape: " .. rest)
    metrics.families[name] = { help = rest }
    return name
  end
  assert(keyword == "TYPE" and types[rest], "no comment of ours: " .. line)
  assert(name == current and not metrics.families[name].type, "a type out of place: " .. line)
  metrics.families[name].type = rest
  return name
end

local suffixes = { [""] = true }
local histogram_suffixes = { _bucket = true, _sum = true, _count = true }

local function read_sample(metrics, line, current)
  local name, rest = line:match "^([^%s{]+)(.*)$"
  assert(name and name:find(NAME), "no name: " .. line)
  local labels = {}
  if rest:sub(1, 1) == "{" then
    labels, rest = labels_of(rest:sub(2))
  end
  local value = number(assert(rest:match "^ (%S+)$", "no value: " .. line))
  local family = assert(current and metrics.families[current], "a sample without a family: " .. line)
  assert(name:sub(1, #current) == current, "a sample in another's family: " .. line)
  local allowed = family.type == "histogram" and histogram_suffixes or suffixes
  assert(allowed[name:sub(#current + 1)], "no sample of a " .. family.type .. ": " .. line)
  assert(family.type ~= "counter" or (value >= 0 and value < math.huge), "no count: " .. line)
  local key = identity(name, labels)
  assert(metrics.series[key] == nil, "a series twice: " .. line)
  metrics.series[key] = value
  if family.type == "histogram" and name == current .. "_bucket" then
    local group = identity(current, labels, "le")
    metrics.buckets[group] = metrics.buckets[group] or { name = current, labels = labels }
    table.insert(metrics.buckets[group], { bound = number(assert(labels.le, "no bound: " .. line)), count = value })
  end
end

local function check_histograms(metrics)
  for _, buckets in pairs(metrics.buckets) do
    local before = { bound = -math.huge, count = 0 }
    for _, bucket in ipairs(buckets) do
      assert(bucket.bound > before.bound, "bounds out of order: " .. buckets.name)
      assert(bucket.count >= before.count, "buckets that do not add up: " .. buckets.name)
      before = bucket
    end
    assert(before.bound == math.huge, "no bucket for everything: " .. buckets.name)
    local count = metrics.series[identity(buckets.name .. "_count", buckets.labels, "le")]
    assert(count == before.count, "a count that is not that of the buckets: " .. buckets.name)
    assert(metrics.series[identity(buckets.name .. "_sum", buckets.labels, "le")], "no sum: " .. buckets.name)
  end
end

---@param text string
---@return riskscreen.spec.Metrics
function M.parse(text)
  local metrics = { families = {}, series = {}, buckets = {} }
  assert(text == "" or text:sub(-1) == "\n", "the last line has no end")
  assert(not text:find "\r", "a carriage return")
  local current
  for line in text:gmatch "(.-)\n" do
    if line:sub(1, 1) == "#" then
      current = read_comment(metrics, line, current)
    else
      read_sample(metrics, line, current)
    end
  end
  for name, family in pairs(metrics.families) do
    assert(family.type, "a family without a type: " .. name)
    assert(family.type ~= "counter" or name:find "_total$", "a counter's name must end in _total: " .. name)
  end
  check_histograms(metrics)
  function metrics.get(_, name, labels)
    return metrics.series[identity(name, labels or {})]
  end
  return metrics
end

return M
