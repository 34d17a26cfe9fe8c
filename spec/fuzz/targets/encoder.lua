-- Any value as JSON: the core writes what lua-cjson with its corrections writes, and reads the value again. Texts that
-- are not UTF-8 are written as they are, and cannot be read.
local core = require "riskscreen.core"
local parity = require "spec.support.json_parity"
local strict_cjson = require "riskscreen.json.strict_cjson"
local values = require "spec.fuzz.values"

-- The value with its bytes outside ASCII replaced.
local function readable(value)
  if type(value) == "string" then
    return (value:gsub("[\128-\255]", "?"))
  elseif type(value) ~= "table" or value == core.null then
    return value
  end
  local copy = setmetatable({}, getmetatable(value))
  for key, member in pairs(value) do
    copy[type(key) == "string" and readable(key) or key] = readable(member)
  end
  return copy
end

return function(bytes)
  local value = values.reader(bytes):value()
  local text = core.encode(value)
  assert(text == nil or type(text) == "string")
  local difference = parity.written_difference(strict_cjson, readable(value))
  if difference then
    error(difference, 0)
  end
end
