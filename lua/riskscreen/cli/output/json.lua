-- JSON for programs: the members of an object always come in the same order.

local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

local M = {}

local slashes = { ["/"] = "/" }

local function scalar(value)
  if type(value) == "number" then
    return json.number(value) or "null"
  elseif value == nil or value == json.null then
    return "null"
  elseif type(value) == "string" or type(value) == "boolean" then
    -- The encoder escapes each slash, which JSON does not ask for.
    return (assert(json.encode(value)):gsub("\\(.)", slashes))
  end
  return assert(json.encode(tostring(value)))
end

local encode

local function members(value, order)
  local names, listed = {}, {}
  for _, name in ipairs(order or {}) do
    if value[name] ~= nil and not listed[name] then
      names[#names + 1] = name
      listed[name] = true
    end
  end
  for _, name in ipairs(tables.sorted_keys(value)) do
    if not listed[name] then
      names[#names + 1] = name
    end
  end
  local list = {}
  for index, name in ipairs(names) do
    list[index] = scalar(name) .. ":" .. encode(value[name])
  end
  return list
end

---The text of a value on one line.
---@param value any
---@param order? string[] the first members of an object; the others follow by name
---@return string
function encode(value, order)
  if type(value) ~= "table" or value == json.null then
    return scalar(value)
  elseif json.is_array(value) then
    local list = {}
    for index, item in ipairs(value) do
      list[index] = encode(item)
    end
    return "[" .. table.concat(list, ",") .. "]"
  end
  return "{" .. table.concat(members(value, order), ",") .. "}"
end

M.encode = encode

return M
