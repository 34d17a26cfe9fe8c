-- JSON where riskscreen.core is not compiled: lua-cjson with the checks of RFC 8259 that lua-cjson leaves out. Tables
-- and numbers are written here. The module refuses every text that the core refuses. Its messages differ, and it gives
-- no position.
local cjson = assert(require "riskscreen.util.optional" "cjson")
local is_utf8 = require("riskscreen.util.text").is_utf8
local tables = require "riskscreen.util.tables"

local LIMITS = { max_depth = 512, max_size = 2 ^ 26, max_values = 2 ^ 22 }
local MAX_EXACT = 2 ^ 53 -- above this, doubles skip integers
local MAX_NESTING = 100 -- tables within each other, when encoding
local FEW = 10 -- elements of a list that may have any gaps

-- OpenResty's lua-cjson reads every integer beyond 64 bits as the largest or the smallest one.
local CLAMPED = 2 ^ 63
local clamps = cjson.new().decode("[99999999999999999999]")[1] + 0.0 == CLAMPED

local to_integer = math.tointeger -- luacheck: ignore 143
local math_type = math.type -- luacheck: ignore 143
  or function(value)
    return type(value) == "number" and "float" or nil
  end

-- A private lua-cjson: another user's settings do not change it.
local writer = cjson.new()

local M = { null = cjson.null, empty_array_mt = {} }

-- The result of a function of lua-cjson. Called by pcall it puts no file and line before its messages.
local function plainly(fn, value)
  local ok, result = pcall(fn, value)
  if not ok then
    error(result, 0)
  end
  return result
end

local function blank(quoted)
  return ("s"):rep(#quoted)
end

-- The text with its strings replaced. A string with a control character, or without an end, keeps a quote.
local function replace_strings(text, replacement)
  local unescaped = text:find("\\", 1, true) and text:gsub("\\.", "ss") or text
  return (unescaped:gsub('"[^"\1-\31]*"', replacement))
end

local function has_bare_point(outline)
  return outline:find(".", 1, true) and (outline:find "%.%D" or outline:find "%D%." or outline:find "%.$")
end

-- lua-cjson decodes {} and [] to the same table. The null member is dropped later, so that only [] stays empty.
local function mark_empty_objects(text)
  local pieces, from = {}, 1
  for first, after in replace_strings(text, blank):gmatch "(){[ \t\n\r]*}()" do
    pieces[#pieces + 1] = text:sub(from, first - 1)
    from = after
  end
  pieces[#pieces + 1] = text:sub(from)
  return table.concat(pieces, '{"":null}')
end

local function settle_number(value)
  local magnitude = math.abs(value + 0.0)
  if magnitude == math.huge or (clamps and magnitude == CLAMPED) then
    error("a number is out of range", 0)
  end
  local is_whole = to_integer and magnitude < MAX_EXACT and 1 / value ~= -math.huge -- no integer is -0
  return is_whole and to_integer(value) or value
end

-- Drops null members unless they are kept, marks empty arrays, makes integers of whole numbers. Counts the members of
-- objects in `count.members`.
local function settle(value, keep_null, count)
  if type(value) == "number" then
    return settle_number(value)
  elseif type(value) ~= "table" then
    return value
  elseif next(value) == nil then
    return setmetatable(value, M.empty_array_mt)
  end
  for key, member in pairs(value) do
    local is_member = type(key) == "string"
    count.members = count.members + (is_member and 1 or 0)
    if member ~= cjson.null then
      value[key] = settle(member, keep_null, count)
    elseif is_member and (key == "" or not keep_null) then
      value[key] = nil
    end
  end
  return value
end

-- Values: the outermost one, one behind each comma, and the first one of each array or object that is not empty.
local function has_too_many(outline, limit)
  local _, signs = outline:gsub("[,%[{]", "")
  return signs >= limit and 1 + signs - select(2, outline:gsub("[%[{][ \t\n\r]*[%]}]", "")) > limit
end

---The message about a text that is refused before lua-cjson reads it.
---@param text string
---@param outline string the text with its strings replaced
---@param limits riskscreen.json.DecoderOptions
---@return string|nil
local function message_of(text, outline, limits)
  if not is_utf8(text) then
    return "the text is not well-formed UTF-8"
  elseif text:find("\0", 1, true) or outline:find('"', 1, true) then
    return "a string has no end, or a control character stands without an escape"
  elseif has_bare_point(outline) then
    return "a number needs digits on both sides of its point"
  elseif #text > limits.max_values and has_too_many(outline, limits.max_values) then
    return "too many values"
  end
end

---@class riskscreen.json.DecoderOptions
---@field null? "drop"|"keep" null members of objects; by default they are dropped
---@field duplicates? "keep"|"refuse" a name that occurs twice in an object; by default the last value is kept
---@field max_depth? integer arrays and objects within each other
---@field max_size? integer bytes of text
---@field max_values? integer values in a text, arrays and objects included

---@class riskscreen.json.Decoder
---@field decode fun(self: riskscreen.json.Decoder, text: string): any, string|nil, integer|nil
---@field reader? fun(self: riskscreen.json.Decoder, nodes: table[]): (fun(text: string): ...)|nil see reader.h

---A decoder with its own limits.
---@param options? riskscreen.json.DecoderOptions
---@return riskscreen.json.Decoder
function M.decoder(options)
  local limits = tables.merge(LIMITS, options)
  local parser = cjson.new()
  parser.decode_max_depth(limits.max_depth)
  parser.decode_invalid_numbers(false)

  local function parse(text, outline)
    local members, count = select(2, outline:gsub(":", "")), { members = 0 }
    if outline:find "{[ \t\n\r]*}" then
      members = members + select(2, outline:gsub("{[ \t\n\r]*}", ""))
      text = mark_empty_objects(text)
    end
    local value = settle(plainly(parser.decode, text), limits.null == "keep", count)
    -- lua-cjson keeps the last of two members with one name.
    if limits.duplicates == "refuse" and count.members ~= members then
      error("duplicate name", 0)
    end
    return value
  end

  local decoder = {}

  function decoder:decode(text)
    if self ~= decoder or type(text) ~= "string" then
      error("call it as decoder:decode(text) with a string", 2)
    elseif #text > limits.max_size then
      return nil, ("the text is longer than %d bytes"):format(limits.max_size)
    end
    local outline = replace_strings(text, "s")
    local message = message_of(text, outline, limits)
    if message then
      return nil, message
    end
    local ok, value = pcall(parse, text, outline)
    if ok then
      return value
    end
    return nil, value
  end

  return decoder
end

local function number_text(value)
  if math_type(value) == "integer" then
    return ("%d"):format(value)
  elseif value ~= value or value == math.huge or value == -math.huge then
    error("a number is NaN or infinite", 0)
  end
  local short = ("%.14g"):format(value)
  local written = tonumber(short) == value and short or ("%.17g"):format(value)
  -- A locale may put a comma in place of the point.
  return (written:gsub(",", "."))
end

-- The length of a list; nil for a table that is none.
local function length_of(value)
  local count, last = 0, 0
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or key % 1 ~= 0 then
      return nil
    end
    count, last = count + 1, math.max(last, key)
  end
  if last > FEW and last > 2 * count then
    error("a list has great gaps", 0)
  end
  return (count > 0 or getmetatable(value) == M.empty_array_mt) and last or nil
end

local function encode(value, depth)
  if type(value) == "number" then
    return number_text(value)
  elseif type(value) ~= "table" then
    return plainly(writer.encode, value)
  elseif depth > MAX_NESTING then
    error("tables are nested deeper than " .. MAX_NESTING .. " (or one contains itself)", 0)
  end
  local parts, length = {}, length_of(value)
  if length then
    for index = 1, length do
      parts[index] = encode(value[index], depth + 1)
    end
    return "[" .. table.concat(parts, ",") .. "]"
  end
  for key, member in pairs(value) do
    local name = type(key) == "number" and number_text(key) or key
    if type(name) ~= "string" then
      error("a key is a " .. type(key), 0)
    end
    parts[#parts + 1] = plainly(writer.encode, name) .. ":" .. encode(member, depth + 1)
  end
  return "{" .. table.concat(parts, ",") .. "}"
end

---The JSON text of a value, as in riskscreen.json.
---@param value any
---@return string|nil text
---@return string|nil message
function M.encode(value)
  local ok, text = pcall(encode, value, 1)
  if ok then
    return text
  end
  return nil, text
end

local default = M.decoder()

---The value of a JSON text, within the default limits.
---@param text string
---@return any value
---@return string|nil message
function M.decode(text)
  return default:decode(text)
end

return M
