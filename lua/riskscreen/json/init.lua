-- JSON both ways. riskscreen.core decodes; where it is not compiled, riskscreen.decoder or riskscreen.json.strict_cjson
-- does. A private lua-cjson encodes, loaded at first use, with corrections for empty arrays and for numbers.
local core = require "riskscreen.util.core"
local tables = require "riskscreen.util.tables"
local kind_of = require("riskscreen.util.text").kind

local function decoder_alone()
  local found, decoder = pcall(require, "riskscreen.decoder")
  return found and decoder
end

local decoding = core or decoder_alone() or require "riskscreen.json.strict_cjson"
local empty_array_mt = decoding.empty_array_mt

local MAX_DEPTH = 100 -- tables inside tables
local MAX_WRITTEN = 1e14 -- lua-cjson writes 14 digits of a number
local NO_CJSON = "encoding JSON needs lua-cjson: apt install lua-cjson, or luarocks install lua-cjson"

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

---The shortest JSON text of a number; nil for NaN and infinity.
---@param value number
---@return string|nil
function M.number(value)
  if math_type(value) == "integer" then
    return ("%d"):format(value)
  elseif value ~= value or value == math.huge or value == -math.huge then
    return nil
  end
  local short = ("%.14g"):format(value)
  local written = tonumber(short) == value and short or ("%.17g"):format(value)
  -- A locale may put a comma in place of the point.
  return (written:gsub(",", "."))
end

-- The JSON text of a value that lua-cjson would write wrongly, or nil.
local function correction(value)
  if type(value) == "table" then
    return next(value) == nil and getmetatable(value) == empty_array_mt and "[]" or nil
  elseif type(value) == "number" and (value % 1 ~= 0 or math.abs(value) >= MAX_WRITTEN) then
    return M.number(value)
  end
end

-- The value with every corrected value in it replaced by the string "\1<tag>:<text>\1". Tables are copied only where
-- something in them is replaced. Counts the replacements in `count[1]`.
local function mark(value, tag, count, depth)
  if type(value) == "string" then
    return value
  elseif depth > MAX_DEPTH then
    error("tables are nested deeper than " .. MAX_DEPTH .. " (or one contains itself)", 0)
  end
  local text = correction(value)
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
      copy = copy or tables.copy(value)
      copy[key] = marked
    end
  end
  return copy or value
end

local cjson_encode

-- A string of the data may look like a mark. Matches cannot overlap, because a quote inside a string is escaped. So
-- every match is a mark when the numbers agree; otherwise the next tag is tried.
local function encode(value)
  cjson_encode = cjson_encode or require("cjson").new().encode
  local tag = 0
  while true do
    local count = { 0 }
    local text = cjson_encode(mark(value, tag, count, 1))
    if count[1] == 0 then
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
---@return riskscreen.ErrorKind|nil kind "unsupported" where lua-cjson is not installed
function M.encode(value)
  if not cjson_encode and not pcall(require, "cjson") then
    return nil, NO_CJSON, "unsupported"
  end
  local ok, text = pcall(encode, value)
  if ok then
    return text
  end
  return nil, text
end

return M
