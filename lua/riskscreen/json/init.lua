-- JSON both ways: riskscreen.core decodes, or where it is not compiled riskscreen.json.cjson_decoder; a private
-- lua-cjson encodes. What lua-cjson cannot write (an empty array, a number of more than 14 digits) is written here.
local kind_of = require("riskscreen.util.text").kind

local cjson = require("cjson").new()

-- A core that is there but made for another Lua is as good as none.
local has_core, core = pcall(require, "riskscreen.core")
local decoding = has_core and core or require "riskscreen.json.cjson_decoder"
local empty_array_mt = decoding.empty_array_mt

local MAX_DEPTH = 100 -- tables inside tables

local math_type = math.type -- luacheck: ignore 143
  or function(value)
    return type(value) == "number" and "float" or nil
  end

local M = {
  null = decoding.null,
  decode = decoding.decode,
  decoder = decoding.decoder,
}

---A new empty table that is encoded as `[]`; without it an empty table is an object.
---@return table
function M.empty_array()
  return setmetatable({}, empty_array_mt)
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
  if value == M.null then
    return "null"
  elseif type(value) == "table" then
    return M.is_array(value) and "an array" or "an object"
  end
  return kind_of(value)
end

-- The JSON text of a value that lua-cjson would write wrongly, or nil. It prints 14 significant digits.
local function own_text(value)
  if type(value) == "table" then
    return next(value) == nil and getmetatable(value) == empty_array_mt and "[]" or nil
  elseif math_type(value) == "integer" then
    return (value >= 1e14 or value <= -1e14) and ("%d"):format(value) or nil
  elseif type(value) == "number" and value == value and value ~= math.huge and value ~= -math.huge then
    local short = ("%.14g"):format(value)
    -- A locale may put a comma where JSON has a point.
    return tonumber(short) ~= value and ("%.17g"):format(value):gsub(",", ".") or nil
  end
end

local function copy_of(members)
  local copy = {}
  for key, member in pairs(members) do
    copy[key] = member
  end
  return copy
end

-- `value`, or where there is such a value in it a copy, in which that is a string "\1<tag>:<text>\1". Counts them in
-- `count[1]`.
local function mark(value, tag, count, depth)
  if type(value) == "string" then
    return value
  elseif depth > MAX_DEPTH then
    error("tables are nested deeper than " .. MAX_DEPTH .. " (or one contains itself)", 0)
  end
  local text = own_text(value)
  if text then
    count[1] = count[1] + 1
    return "\1" .. tag .. ":" .. text .. "\1"
  elseif type(value) ~= "table" then
    return value
  end
  local copy
  for key, member in pairs(value) do
    local marked = mark(member, tag, count, depth + 1)
    if marked ~= member then
      copy = copy or copy_of(value)
      copy[key] = marked
    end
  end
  return copy or value
end

-- A string of the data may look like a mark. Each mark of ours is one match and no match overlaps another (a quote
-- inside a string is always escaped), so when the numbers agree every match is ours; otherwise another tag is tried.
local function encode(value)
  local tag = 0
  while true do
    local count = { 0 }
    local ok, text = pcall(cjson.encode, mark(value, tag, count, 1))
    if not ok then
      error(text, 0)
    elseif count[1] == 0 then
      return text
    end
    local result, matches = text:gsub('"\\u0001' .. tag .. ':([^"\\]*)\\u0001"', "%1")
    if matches == count[1] then
      return result
    end
    tag = tag + 1
  end
end

---The JSON text of a value.
---@param value any
---@return string|nil text
---@return string|nil message why it cannot be written: NaN, infinity, a function, a table with holes, too deep
function M.encode(value)
  local ok, text = pcall(encode, value)
  if ok then
    return text
  end
  return nil, text
end

return M
