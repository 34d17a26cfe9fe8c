-- Texts for messages (values, foreign text, suggestions for a misspelt name) and tests of characters.

local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"

local MAX_NAME = 40 -- bytes; a longer word is no misspelt name, and `distance` takes the product of the lengths

local articles = { ["nil"] = "nothing", table = "a table" }

local M = {
  ---@type table<any, string> values with a name of their own in messages; riskscreen.json has one
  names = {},
}

local function is_continuation(byte)
  return byte ~= nil and byte >= 0x80 and byte < 0xC0
end

---The length of the UTF-8 sequence at a position, and its code point; nil where the bytes are none.
---@param text string
---@param position integer of a byte beyond ASCII
---@return integer|nil length
---@return integer|nil code
function M.sequence_at(text, position)
  local a, b, c, d = text:byte(position, position + 3)
  if a >= 0xC2 and a < 0xE0 and is_continuation(b) then
    return 2, (a - 0xC0) * 64 + b - 0x80
  elseif a >= 0xE0 and a < 0xF0 and is_continuation(b) and is_continuation(c) then
    local code = ((a - 0xE0) * 64 + b - 0x80) * 64 + c - 0x80
    local is_valid = code >= 0x800 and not (code >= 0xD800 and code < 0xE000)
    return is_valid and 3 or nil, code
  elseif a >= 0xF0 and a < 0xF5 and is_continuation(b) and is_continuation(c) and is_continuation(d) then
    local code = (((a - 0xF0) * 64 + b - 0x80) * 64 + c - 0x80) * 64 + d - 0x80
    return code >= 0x10000 and code < 0x110000 and 4 or nil, code
  end
end

local hidden_ranges = {
  { 0x80, 0x9F }, -- control characters
  { 0xAD, 0xAD }, -- the soft hyphen
  { 0x61C, 0x61C }, -- a mark of direction
  { 0x200B, 0x200F }, -- without width, and marks of direction
  { 0x2028, 0x202E }, -- line ends, and embedded directions
  { 0x2060, 0x206F }, -- without width, and isolated directions
  { 0xFEFF, 0xFEFF }, -- the byte order mark
  { 0xFFF9, 0xFFFB }, -- annotations
  { 0xE0000, 0xE0FFF }, -- tags
}

---Whether a character ends a line, hides text or reorders it where it is shown.
---@param code integer beyond ASCII
---@return boolean
function M.is_hidden(code)
  for _, range in ipairs(hidden_ranges) do
    if code >= range[1] and code <= range[2] then
      return true
    end
  end
  return false
end

-- A function that replaces bytes that are not UTF-8, and characters that `is_bad` names.
local function replacer(replacement, is_bad)
  return function(bytes)
    local pieces, position = {}, 1
    while position <= #bytes do
      local length, code = M.sequence_at(bytes, position)
      local is_good = length and not (is_bad and is_bad(code))
      pieces[#pieces + 1] = is_good and bytes:sub(position, position + length - 1) or replacement
      position = position + (length or 1)
    end
    return table.concat(pieces)
  end
end

local show_bytes, to_utf8 = replacer("?", M.is_hidden), replacer "\239\191\189"

---The beginning of a text, without a UTF-8 sequence that the cut has divided.
---@param text string
---@param limit integer bytes
---@return string
function M.cut(text, limit)
  local cut = text:sub(1, limit)
  return is_continuation(text:byte(limit + 1)) and cut:gsub("[\192-\255][\128-\191]*$", "") or cut
end

---Foreign text for one line of a message, cut to `limit` bytes. Control characters, characters that change the order of
---what is shown, and bytes that are not UTF-8 become "?".
---@param text string
---@param limit? integer bytes, 60 by default
---@return string
function M.printable(text, limit)
  limit = limit or 60
  local short = #text > limit and M.cut(text, limit) .. "..." or text
  return (short:gsub("[%z\1-\31\127]", "?"):gsub("[\128-\255]+", show_bytes))
end

---A text with bytes that are not UTF-8 replaced by U+FFFD.
---@param text string
---@return string
function M.utf8(text)
  return (text:gsub("[\128-\255]+", to_utf8))
end

---Whether a text is UTF-8.
---@param text string
---@return boolean
function M.is_utf8(text)
  return M.utf8(text) == text
end

---A text without the white space around it, in linear time.
---@param text string
---@return string
function M.trim(text)
  return text:find "%S" and text:match "^%s*(.*%S)" or ""
end

---A function that checks whether a text has characters of a class and no others, after its beginning.
---@param class string letters, digits and ranges of them, as in the brackets of a pattern
---@param beginning? string letters and digits
---@return fun(text: string): boolean
function M.made_of(class, beginning)
  local pattern = "^" .. (beginning or "") .. "[" .. class .. "]+$"
  return function(text)
    return text:find(pattern) ~= nil
  end
end

local function characters_between(first, last)
  local list = {}
  for code = first:byte(), last:byte() do
    list[#list + 1] = string.char(code)
  end
  return table.concat(list)
end

-- LuaJIT does not compile patterns, and elsewhere they are slow. C's strspn saves a tenth of a call on LuaJIT, and the
-- core a ninth of its instructions on Lua 5.4 (spec/integration/call_instructions_spec.lua).
local ffi = rawget(_G, "jit") and optional "ffi"
if ffi then
  ffi.cdef "size_t strspn(const char *text, const char *accepted);"
  local C, cast = ffi.C, ffi.cast

  function M.made_of(class, beginning)
    local accepted, before = class:gsub("(.)%-(.)", characters_between), #(beginning or "")
    return function(text)
      local left = #text - before
      return left > 0
        and (before == 0 or text:sub(1, before) == beginning)
        and C.strspn(cast("const char *", text) + before, accepted) == left
    end
  end
elseif core then
  function M.made_of(class, beginning)
    return core.made_of(class:gsub("(.)%-(.)", characters_between), beginning or "")
  end
end

---A number as a program reads it: with a decimal point in every locale.
---@param format string of numbers
---@param ... any
---@return string
function M.number(format, ...)
  return (format:format(...):gsub("[^%w+=-]+", "."))
end

---Reads a number with a decimal point in every locale: PUC Lua 5.1 reads that of the locale.
---@param written string
---@return number|nil
function M.to_number(written)
  return tonumber(written) or tonumber((written:gsub("%.", (("%.1f"):format(0.5):sub(2, 2)))))
end

local hex_of = {} -- by the byte
for byte = 0, 255 do
  hex_of[string.char(byte)] = ("%02x"):format(byte)
end

---Bytes as hexadecimal digits in lower case.
---@param bytes string
---@return string
function M.hex(bytes)
  return (bytes:gsub(".", hex_of))
end

local BASE64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

---Bytes in base64. Its last characters are padded to a group of four by "=".
---@param bytes string
---@return string
function M.base64(bytes)
  local digits = {}
  for position = 1, #bytes, 3 do
    local a, b, c = bytes:byte(position, position + 2)
    local group = a * 65536 + (b or 0) * 256 + (c or 0)
    for place = 3, 0, -1 do
      local index = math.floor(group / 64 ^ place) % 64 + 1
      digits[#digits + 1] = BASE64:sub(index, index)
    end
  end
  local padding = -#bytes % 3
  return table.concat(digits, "", 1, #digits - padding) .. ("="):rep(padding)
end

---A name or a value of a query string or a form, decoded.
---@param escaped string
---@return string
function M.unescape(escaped)
  return (escaped:gsub("%+", " "):gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

local SMALL = {}
for code = 65, 90 do
  SMALL[string.char(code)] = string.char(code + 32)
end

---A text with small letters for A to Z, in every locale. In Turkish `string.lower` makes no "i" of an "I".
---@param value string
---@return string
function M.lower(value)
  return (value:gsub("[A-Z]", SMALL))
end

---Headers as texts, with their names in lower case. The values of one that occurs several times, in a list or in
---another case, are joined as in HTTP.
---@param headers table
---@return table<string, string>
function M.lower_names(headers)
  local lower = {}
  for name, value in pairs(headers) do
    name = M.lower(tostring(name))
    for _, one in ipairs(type(value) == "table" and value or { value }) do
      local before, own = lower[name], tostring(one)
      if before and own < before then
        before, own = own, before -- the order of a table's fields is none
      end
      lower[name] = before and before .. ", " .. own or own
    end
  end
  return lower
end

---The pattern of a header's name.
M.HEADER_NAME = "^[A-Za-z0-9!#$%%&'*+.^_`|~-]+$"

---Whether a value may be the value of a header: a text without line ends and other control characters.
---@param value any
---@return boolean
function M.is_header_value(value)
  return type(value) == "string" and not value:find "[%z\1-\8\10-\31\127]"
end

---Whether a text consists of letters and digits, as nearly every address does.
---@type fun(text: string): boolean
M.is_plain = M.made_of "0-9A-Za-z"

---Raises misuse at the line that called the caller, unless a value has a type.
---@param what string the value's name
---@param value any
---@param wanted type
---@param is_optional? boolean nil will do
function M.expect(what, value, wanted, is_optional)
  if type(value) ~= wanted and not (is_optional and value == nil) then
    error(("%s must be a %s (got %s)"):format(what, wanted, M.kind(value)), 3)
  end
end

---Raises misuse at the line that called the caller, a method that was not called with its object: `loop.step(0)`.
---@param self any
---@param class table the metatable of the objects
---@param call string such as "loop:step"
function M.expect_self(self, class, call)
  if getmetatable(self) ~= class then
    error(("call it with a colon: %s(…)"):format(call), 3)
  end
end

---The type of a Lua value with an article: "a string", "a table", "nothing", or the value's own name: "null".
---@param value any
---@return string
function M.kind(value)
  local name = type(value)
  return M.names[value] or articles[name] or ("a " .. name)
end

---A value as a message shows it: strings and numbers by their content, others by their type. Quotes in a string are
---escaped, so that it cannot end its own quotes.
---@param value any
---@return string
function M.show(value)
  if type(value) == "string" then
    return "'" .. M.printable(value):gsub("[\\']", "\\%0") .. "'"
  elseif type(value) == "number" then
    return tostring(value)
  end
  return M.kind(value)
end

-- The number of edits (insert, delete, replace, swap neighbours) that turn one word into another.
local function distance(from, to)
  local before_last, last = {}, {}
  for j = 0, #to do
    last[j] = j
  end
  for i = 1, #from do
    local row = { [0] = i }
    for j = 1, #to do
      local same = from:byte(i) == to:byte(j)
      row[j] = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (same and 0 or 1))
      if i > 1 and j > 1 and from:byte(i) == to:byte(j - 1) and from:byte(i - 1) == to:byte(j) then
        row[j] = math.min(row[j], before_last[j - 2] + 1)
      end
    end
    before_last, last = last, row
  end
  return last[#to]
end

---The candidate nearest to a misspelt word, or nil.
---@param word any
---@param candidates string[]
---@return string|nil
function M.nearest(word, candidates)
  if type(word) ~= "string" or #word > MAX_NAME then
    return nil
  end
  local best, best_distance
  for _, candidate in ipairs(candidates) do
    local edits = distance(word:lower(), candidate:lower())
    -- A word with more than a third of its letters wrong is another word.
    if edits <= math.max(1, math.floor(#candidate / 3)) and edits < #candidate then
      if not best or edits < best_distance then
        best, best_distance = candidate, edits
      end
    end
  end
  return best
end

---A number with its noun: "1 entry", "2 entries".
---@param number number
---@param noun string for one thing
---@param shown? string the number as it is shown
---@return string
function M.count(number, noun, shown)
  if number ~= 1 then
    noun = noun:gsub("([^aeiou])y$", "%1ie"):gsub("s$", "se") .. "s"
  end
  return (shown or ("%.0f"):format(number)) .. " " .. noun
end

---A number with a comma at each thousand.
---@param number integer
---@return string
function M.grouped(number)
  local digits = ("%d"):format(number)
  local count
  repeat
    digits, count = digits:gsub("^(%d+)(%d%d%d)", "%1,%2")
  until count == 0
  return digits
end

---The words of a text that spaces separate, such as a long list of names.
---@param written string
---@return string[]
function M.words(written)
  local words = {}
  for word in written:gmatch "%S+" do
    words[#words + 1] = word
  end
  return words
end

---"; did you mean 'x'?" or nothing.
---@param word any
---@param candidates string[]
---@return string
function M.did_you_mean(word, candidates)
  local candidate = M.nearest(word, candidates)
  return candidate and ("; did you mean '" .. candidate .. "'?") or ""
end

return M
