-- RFC 8259 text into Lua values, in Lua: what the compiled core's decoder gives and refuses, with the same message and
-- the same byte. It is exact rather than fast, and asks lua-cjson only for numbers that a Lua may misread.
local cjson = require("cjson").new()

local byte, char, find, sub = string.byte, string.char, string.find, string.sub

local SURELY_READ = 30 -- bytes; tonumber is right about a number of so few in every Lua
local PLAIN = "^[ !#-[%]^-\127]*" -- what a string holds as it stands: neither quote, backslash, control nor UTF-8
local LITERALS = "one of true, false and null"

local ESCAPES = {
  ['"'] = '"',
  ["\\"] = "\\",
  ["/"] = "/",
  b = "\b",
  f = "\f",
  n = "\n",
  r = "\r",
  t = "\t",
}

-- The values of hexadecimal digits, by byte.
local HEX_DIGITS = {}
for value = 0, 15 do
  HEX_DIGITS[byte(("%x"):format(value))] = value
  HEX_DIGITS[byte(("%X"):format(value))] = value
end

---@class riskscreen.json.Reading one text being read
---@field text string
---@field depth integer containers that are open
---@field max_depth integer
---@field values_left integer how many values the text may still have
---@field keep_null boolean
---@field null any
---@field empty_array_mt table

---@class riskscreen.json.Fault
---@field message string
---@field position integer

local M = {}

local function fail(at, message)
  error({ message = ("%s at byte %d"):format(message, at), position = at }, 0)
end

local function expected(reading, at, what)
  local found = byte(reading.text, at)
  if not found then
    fail(at, "expected " .. what .. ", got the end of the text")
  elseif found > 0x20 and found < 0x7F then
    fail(at, "expected " .. what .. ", got '" .. char(found) .. "'")
  end
  fail(at, ("expected %s, got 0x%02X"):format(what, found))
end

local function skip_space(text, at)
  local found = byte(text, at)
  while found == 0x20 or found == 0x0A or found == 0x0D or found == 0x09 do
    at = at + 1
    found = byte(text, at)
  end
  return at, found
end

-- How many bytes a UTF-8 sequence has, from its first one, and the range its second one must be in.
local function utf8_shape(lead)
  if lead < 0xC2 or lead > 0xF4 then
    return 0, 0, 0
  elseif lead < 0xE0 then
    return 2, 0x80, 0xBF
  elseif lead < 0xF0 then
    return 3, lead == 0xE0 and 0xA0 or 0x80, lead == 0xED and 0x9F or 0xBF
  end
  return 4, lead == 0xF0 and 0x90 or 0x80, lead == 0xF4 and 0x8F or 0xBF
end

-- Moves over one sequence of UTF-8 that begins with `lead`.
local function skip_sequence(reading, at, lead)
  local size, low, high = utf8_shape(lead)
  if size == 0 then
    expected(reading, at, "well-formed UTF-8")
  end
  for place = at + 1, at + size - 1 do
    local follower = byte(reading.text, place)
    if not follower or follower < low or follower > high then
      expected(reading, place, "well-formed UTF-8")
    end
    low, high = 0x80, 0xBF
  end
  return at + size
end

-- Moves to the quote or the backslash that ends a run, and says which it is.
local function skip_run(reading, at)
  local text = reading.text
  while true do
    local found = byte(text, at)
    if found ~= 0x22 and found ~= 0x5C then
      local _, last = find(text, PLAIN, at)
      at = last + 1
      found = byte(text, at)
    end
    if found == 0x22 or found == 0x5C then
      return at, found
    elseif not found then
      expected(reading, at, "the closing quote of a string")
    elseif found < 0x20 then
      expected(reading, at, "an escape in place of a control character")
    end
    at = skip_sequence(reading, at, found)
  end
end

-- The value of the four hexadecimal digits at `at`. A low surrogate is welcome only where `low_expected`, and then
-- nothing else is.
local function read_unit(reading, at, low_expected)
  local unit = 0
  for place = at, at + 3 do
    local digit = HEX_DIGITS[byte(reading.text, place) or 0]
    if not digit then
      expected(reading, place, "a hexadecimal digit")
    end
    unit = unit * 16 + digit
    local known = place - at + 1
    if low_expected and ((known == 1 and unit ~= 0xD) or (known == 2 and unit < 0xDC)) then
      expected(reading, place, "a low surrogate")
    elseif not low_expected and known == 2 and unit >= 0xDC and unit <= 0xDF then
      fail(place, "a low surrogate without a high one")
    end
  end
  return unit
end

-- One byte of UTF-8 holds six bits but for the first; `shift` is 64 to the power of the bytes that follow it.
local function follower(code_point, shift)
  return 0x80 + math.floor(code_point / shift) % 64
end

local function utf8_of(code_point)
  if code_point < 0x80 then
    return char(code_point)
  elseif code_point < 0x800 then
    return char(0xC0 + math.floor(code_point / 64), follower(code_point, 1))
  elseif code_point < 0x10000 then
    return char(0xE0 + math.floor(code_point / 4096), follower(code_point, 64), follower(code_point, 1))
  end
  return char(
    0xF0 + math.floor(code_point / 262144),
    follower(code_point, 4096),
    follower(code_point, 64),
    follower(code_point, 1)
  )
end

-- What the digits after `\u` stand for, and the byte after them.
local function read_unicode(reading, at)
  local unit = read_unit(reading, at, false)
  at = at + 4
  if unit < 0xD800 or unit > 0xDBFF then
    return utf8_of(unit), at
  end
  for place = at, at + 1 do
    if byte(reading.text, place) ~= (place == at and 0x5C or 0x75) then
      expected(reading, place, "the low surrogate of a pair")
    end
  end
  local low = read_unit(reading, at + 2, true)
  return utf8_of(0x10000 + (unit - 0xD800) * 1024 + (low - 0xDC00)), at + 6
end

-- What the escape at `at`, a backslash, stands for, and the byte after it.
local function read_escape(reading, at)
  local letter = sub(reading.text, at + 1, at + 1)
  local meaning = ESCAPES[letter]
  if meaning then
    return meaning, at + 2
  elseif letter == "u" then
    return read_unicode(reading, at + 2)
  end
  expected(reading, at + 1, "an escape character")
end

-- The string whose first byte after the quote is at `at`, and the byte after its closing quote.
local function read_string(reading, at)
  local stop, found = skip_run(reading, at)
  if found == 0x22 then
    return sub(reading.text, at, stop - 1), stop + 1
  end
  local parts, count = {}, 0
  while found == 0x5C do
    if stop > at then
      count = count + 1
      parts[count] = sub(reading.text, at, stop - 1)
    end
    count = count + 1
    parts[count], at = read_escape(reading, stop)
    stop, found = skip_run(reading, at)
  end
  parts[count + 1] = sub(reading.text, at, stop - 1)
  return table.concat(parts), stop + 1
end

local function is_digit(found)
  return found and found >= 0x30 and found <= 0x39
end

local function skip_digits(reading, at, what)
  local text = reading.text
  if not is_digit(byte(text, at)) then
    expected(reading, at, what)
  end
  repeat
    at = at + 1
  until not is_digit(byte(text, at))
  return at
end

local function skip_whole(reading, at)
  if byte(reading.text, at) ~= 0x30 then
    return skip_digits(reading, at, "a digit")
  elseif is_digit(byte(reading.text, at + 1)) then
    expected(reading, at + 1, "no digit after a leading zero")
  end
  return at + 1
end

-- The byte after the number at `at`, and whether it has neither a fraction nor an exponent.
local function skip_number(reading, at)
  local text, whole = reading.text, true
  at = skip_whole(reading, byte(text, at) == 0x2D and at + 1 or at)
  if byte(text, at) == 0x2E then
    at, whole = skip_digits(reading, at + 1, "a digit of a fraction"), false
  end
  local mark = byte(text, at)
  if mark == 0x65 or mark == 0x45 then
    local sign = byte(text, at + 1)
    at = (sign == 0x2B or sign == 0x2D) and at + 2 or at + 1
    at, whole = skip_digits(reading, at, "a digit of an exponent"), false
  end
  return at, whole
end

-- Not every tonumber rounds long numbers correctly or reads exponents of any length; the C library's conversion, which
-- lua-cjson uses, does. Of a whole number lua-cjson 2.1.0.14 and later, so OpenResty's, take no more than 64 bits:
-- the exponent makes it a number like others.
local function number_of(lexeme, whole)
  if lexeme == "-0" then
    return -1 / math.huge -- a constant of -0.0 may be another zero
  elseif #lexeme <= SURELY_READ and (whole or not find(lexeme, "[eE][+-]?[0-9][0-9][0-9]")) then
    return tonumber(lexeme)
  end
  return cjson.decode("[" .. lexeme .. (whole and "e0" or "") .. "]")[1]
end

local function read_number(reading, at)
  local after, whole = skip_number(reading, at)
  local number = number_of(sub(reading.text, at, after - 1), whole)
  if not number or number == math.huge or number == -math.huge then
    fail(at, "a number is out of range")
  end
  return number, after
end

local function read_literal(reading, at, literal, value)
  for index = 1, #literal do
    if byte(reading.text, at + index - 1) ~= byte(literal, index) then
      expected(reading, at + index - 1, LITERALS)
    end
  end
  return value, at + #literal
end

local function enter(reading, at)
  if reading.depth == reading.max_depth then
    fail(at, "nested too deeply")
  end
  reading.depth = reading.depth + 1
end

local read_value

local function read_array(reading, at)
  enter(reading, at)
  local array, count = {}, 0
  local found
  at, found = skip_space(reading.text, at + 1)
  if found == 0x5D then
    reading.depth = reading.depth - 1
    return setmetatable(array, reading.empty_array_mt), at + 1
  end
  while true do
    count = count + 1
    array[count], at = read_value(reading, at)
    at, found = skip_space(reading.text, at)
    if found == 0x5D then
      reading.depth = reading.depth - 1
      return array, at + 1
    elseif found ~= 0x2C then
      expected(reading, at, "',' or ']' after an element")
    end
    at = skip_space(reading.text, at + 1)
  end
end

local function read_key(reading, at)
  if byte(reading.text, at) ~= 0x22 then
    expected(reading, at, "a member's name")
  end
  local key, found
  key, at = read_string(reading, at + 1)
  at, found = skip_space(reading.text, at)
  if found ~= 0x3A then
    expected(reading, at, "':' after a member's name")
  end
  return key, (skip_space(reading.text, at + 1))
end

local function read_object(reading, at)
  enter(reading, at)
  local object = {}
  local found
  at, found = skip_space(reading.text, at + 1)
  while found ~= 0x7D do
    local key, value
    key, at = read_key(reading, at)
    value, at = read_value(reading, at)
    if value == reading.null and not reading.keep_null then
      value = nil -- an earlier member of this name goes as well: the last one counts
    end
    object[key] = value
    at, found = skip_space(reading.text, at)
    if found == 0x2C then
      at = skip_space(reading.text, at + 1)
    elseif found ~= 0x7D then
      expected(reading, at, "',' or '}' after a member")
    end
  end
  reading.depth = reading.depth - 1
  return object, at + 1
end

-- The value at `at`, where white space was skipped already, and the byte after it.
function read_value(reading, at)
  local found = byte(reading.text, at)
  if not found then
    expected(reading, at, "a value")
  elseif reading.values_left == 0 then
    fail(at, "too many values")
  end
  reading.values_left = reading.values_left - 1
  if found == 0x22 then
    return read_string(reading, at + 1)
  elseif found == 0x7B then
    return read_object(reading, at)
  elseif found == 0x5B then
    return read_array(reading, at)
  elseif found == 0x2D or (found >= 0x30 and found <= 0x39) then
    return read_number(reading, at)
  elseif found == 0x74 then
    return read_literal(reading, at, "true", true)
  elseif found == 0x66 then
    return read_literal(reading, at, "false", false)
  elseif found == 0x6E then
    return read_literal(reading, at, "null", reading.null)
  end
  expected(reading, at, "a value")
end

local function read_text(reading)
  local value, at = read_value(reading, (skip_space(reading.text, 1)))
  at = skip_space(reading.text, at)
  if at <= #reading.text then
    expected(reading, at, "the end of the text")
  end
  return value
end

---Reads a text. The reading is used up.
---@param reading riskscreen.json.Reading
---@return any value
---@return string|nil message
---@return integer|nil position the first byte that cannot continue a valid text
function M.read(reading)
  local ok, result = pcall(read_text, reading)
  if ok then
    return result
  elseif type(result) == "table" then
    return nil, result.message, result.position
  end
  error(result, 0)
end

return M
