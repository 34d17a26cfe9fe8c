-- JSON both ways: by riskscreen.core; where it is not compiled, by riskscreen.decoder or riskscreen.json.strict_cjson.
local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local json = core or optional "riskscreen.decoder" or require "riskscreen.json.strict_cjson"
local empty_array_mt = json.empty_array_mt

local M = { null = json.null, decode = json.decode, decoder = json.decoder }

text.names[M.null] = "null"

---The JSON text of a value. A table is a list if its keys are whole numbers above 0. Its holes become null, but a list
---with great gaps is refused. Every other table is an object, also an empty one that `empty_array` has not made.
---The second result tells why a value cannot be written: NaN, infinity, a function, a list with great gaps, or more
---than 100 tables within each other.
---@type fun(value: any): string|nil, string|nil
M.encode = json.encode

---Marks a list, so that it is encoded as `[]` also where it is empty; any other empty table is an object.
---@generic T: table
---@param list T
---@return T
function M.array(list)
  return setmetatable(list, empty_array_mt)
end

---A new empty list that is encoded as `[]`.
---@return table
function M.empty_array()
  return M.array {}
end

---Whether a decoded table was an array: one with elements, or an empty one that the decoder or `empty_array` marked.
---@param value table
---@return boolean
function M.is_array(value)
  return value[1] ~= nil or (next(value) == nil and getmetatable(value) == empty_array_mt)
end

---The kind of a decoded JSON value, for messages: "a string", "an array", "an object", "null", "nothing".
---@param value any
---@return string
function M.kind(value)
  if type(value) == "table" then
    return M.is_array(value) and "an array" or "an object"
  end
  return text.kind(value)
end

---The JSON text of a value with the members of each object in one order, so that equal values have one text. A value
---that cannot be written is null.
---@param value any
---@param order? string[] the first members of the outermost object; all others follow by name
---@return string
function M.ordered(value, order)
  if type(value) ~= "table" then
    return json.encode(value) or "null"
  end
  local parts = {}
  if M.is_array(value) then
    for index, item in ipairs(value) do
      parts[index] = M.ordered(item)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  local is_written = {}
  for _, name in ipairs(tables.concat(order or {}, tables.sorted_keys(value))) do
    if value[name] ~= nil and not is_written[name] then
      is_written[name] = true
      parts[#parts + 1] = json.encode(name) .. ":" .. M.ordered(value[name])
    end
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

---The JSON text of a number that reads as the same number; nil for NaN and infinity.
---@param value number
---@return string|nil
function M.number(value)
  return (json.encode(value))
end

return M
