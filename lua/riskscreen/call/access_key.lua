-- The access key: reads it from the client's option, and redacts text that comes back. The key is removed as it is, and
-- as URLs, JSON, HTML, base64 and hexadecimal spell it. That holds in either case, and for one encoding inside another.
local errors = require "riskscreen.errors"
local http = require "riskscreen.options.http"
local texts = require "riskscreen.util.text"

local REDACTED = "[redacted]"
local LONGEST_TEXT = 4096 -- bytes; messages show less of a foreign text
local MAX_DEPTH = 3 -- encodings within each other
local SHORTEST_PIECE = 4 -- bytes of the key that are removed where a text was cut
local LONGEST_CODE = 16 -- bytes of an encoded character, and of the "..." behind a cut

local function utf8_char(code)
  if code < 0x80 then
    return string.char(code)
  elseif code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return "?"
end

-- The spellings of an encoded character: its pattern, and the base of its digits or its meanings. A number that ends
-- with the text may have been cut, so the character after it is looked at.
local spellings = {
  { "^%%(%x%x)", 16, byte = true },
  { "^\\u(%x%x%x%x)", 16 },
  { "^\\x(%x%x)", 16, byte = true },
  { "^\\([/\\\"'])", { ["/"] = "/", ["\\"] = "\\", ['"'] = '"', ["'"] = "'" } },
  { "^&#[xX](%x+);", 16 },
  { "^&#[xX](%x+)[^%x;]", 16, beyond = 1 },
  { "^&#(%d+);", 10 },
  { "^&#(%d+)[^%d;]", 10, beyond = 1 },
  { "^&(%a+);", { amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", sol = "/", plus = "+", equals = "=" } },
}

-- The first character of a text if it is encoded, and its encoded length.
local function first_character(rest)
  for _, spelling in ipairs(spellings) do
    local _, last, found = rest:find(spelling[1])
    local meaning = spelling[2]
    if last and type(meaning) == "table" then
      return meaning[found], last
    elseif last then
      local code = #found <= 8 and tonumber(found, meaning)
      return code and (spelling.byte and string.char(code) or utf8_char(code)), last - (spelling.beyond or 0)
    end
  end
end

---@class riskscreen.call.Decoded
---@field bytes string
---@field first integer[] for each byte the position of its first byte in the original text
---@field last integer[]

-- Decodes a text by one level; nil if nothing in it is encoded.
local function decode(text)
  local bytes, first, last = {}, {}, {}
  local position, changed = 1, false
  while position <= #text.bytes do
    local byte = text.bytes:sub(position, position)
    local decoded, length
    if byte:find "[%%\\&]" then
      decoded, length = first_character(text.bytes:sub(position, position + 11))
    end
    changed = changed or decoded
    length = decoded and length or 1
    for one in (decoded or byte):gmatch "." do
      bytes[#bytes + 1] = one
      first[#bytes], last[#bytes] = text.first[position], text.last[position + length - 1]
    end
    position = position + length
  end
  return changed and { bytes = table.concat(bytes), first = first, last = last } or nil
end

local function plain(text)
  local positions = {}
  for position = 1, #text do
    positions[position] = position
  end
  return { bytes = text, first = positions, last = positions }
end

-- A form encoding writes "+" for a space.
local function fold(text)
  return (text:lower():gsub("+", " "))
end

local ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"

-- The characters of base64 that depend on this text alone, if it stands `offset` bytes after a group's beginning.
local function base64_of(text, offset)
  local padded = ("\0"):rep(offset) .. text
  local characters = {}
  for position = 1, #padded - 2, 3 do
    local a, b, c = padded:byte(position, position + 2)
    local group = a * 65536 + b * 256 + c
    for shift = 3, 0, -1 do
      local index = math.floor(group / 64 ^ shift) % 64 + 1
      characters[#characters + 1] = ALPHABET:sub(index, index)
    end
  end
  return table.concat(characters):sub(offset > 0 and offset + 2 or 1)
end

local function forms_of(key)
  local forms = { { text = fold(key) }, { text = texts.hex(key) } }
  for offset = 0, 2 do
    local form = base64_of(key, offset)
    for _, spelling in ipairs { form, (form:gsub("[+/]", { ["+"] = "-", ["/"] = "_" })) } do
      forms[#forms + 1] = { text = fold(spelling), is_base64 = true }
    end
  end
  return forms
end

-- Marks the bytes of the original text that spell a form of the key.
local function mark_all(marked, text, folded, form)
  local first, last = folded:find(form.text, 1, true)
  while first do
    if form.is_base64 then
      -- The characters beside these hold some bits of the key.
      first = math.max(1, first - 2)
      last = select(2, folded:find("^[%w +/_=-]?[%w +/_=-]?[%w +/_=-]?[%w +/_=-]?", last + 1)) or last
    end
    for position = text.first[first], text.last[last] do
      marked[position] = true
    end
    first, last = folded:find(form.text, last + 1, true)
  end
end

-- Marks the beginnings of the key where a text was cut: at its end or before "...", perhaps within an encoded
-- character.
local function mark_cuts(marked, text, folded, key)
  local first = folded:find(key:sub(1, SHORTEST_PIECE), 1, true)
  while first do
    local length = SHORTEST_PIECE
    while length < #key and folded:byte(first + length) == key:byte(length + 1) do
      length = length + 1
    end
    local rest = folded:sub(first + length, first + length + LONGEST_CODE)
    for _, code in ipairs { "", "%%%x?", "\\[ux]?%x*", "&#?%w*" } do
      local cut = length < #key and (rest:match("^" .. code .. "()$") or rest:match("^" .. code .. "()%.%.%."))
      for position = cut and text.first[first] or 1, cut and text.last[first + length + cut - 2] or 0 do
        marked[position] = true
      end
    end
    first = folded:find(key:sub(1, SHORTEST_PIECE), first + 1, true)
  end
end

local function replace_marked(text, marked)
  local pieces, position = {}, 1
  while position <= #text do
    local from, is_marked = position, marked[position]
    while position <= #text and marked[position] == is_marked do
      position = position + 1
    end
    pieces[#pieces + 1] = is_marked and REDACTED or text:sub(from, position - 1)
  end
  return table.concat(pieces)
end

-- Whether a text without encoded characters has the beginning of a form of the key.
local function has_beginning(folded, forms)
  for _, form in ipairs(forms) do
    if folded:find(form.text:sub(1, SHORTEST_PIECE), 1, true) then
      return true
    end
  end
  return false
end

local M = {}

---The access key of a request, or nil and an error that does not show it.
---@param given string|fun(): string the option access_key
---@return string|nil key
---@return riskscreen.Error|nil err
function M.read(given)
  if type(given) == "string" then
    return given
  end
  local ok, key = pcall(given)
  local problem
  if not ok then
    -- Its message may hold the key.
    problem = "raised an error"
  elseif type(key) ~= "string" then
    problem = "must return a string (got " .. texts.kind(key) .. ")"
  else
    problem = http.key_problem(key)
    if not problem then
      return key
    end
    problem = "returned a text that " .. problem
  end
  return nil, errors.new("unauthorized", "the access_key function " .. problem, { sent = false })
end

---Returns a function that removes a key from a text. Its result has at most the first 4096 bytes of the text.
---@param key string not empty
---@return fun(foreign: string): string
function M.redactor(key)
  local forms = forms_of(key)
  return function(foreign)
    foreign = foreign:sub(1, LONGEST_TEXT)
    if not (foreign:find "[%%\\&]" or has_beginning(fold(foreign), forms)) then
      return foreign -- nearly always: the tables below take ten times the bytes of the text
    end
    local marked = {}
    local text, depth = plain(foreign), 0
    while text and depth <= MAX_DEPTH do
      local folded = fold(text.bytes)
      for _, form in ipairs(forms) do
        mark_all(marked, text, folded, form)
      end
      mark_cuts(marked, text, folded, forms[1].text)
      text, depth = decode(text), depth + 1
    end
    return next(marked) and replace_marked(foreign, marked) or foreign
  end
end

---Removes a client's key from a text about values of the service.
---@param owner { settings: table, redact?: fun(foreign: string): string } the client's state, or a part of it
---@param foreign string
---@return string
function M.redact(owner, foreign)
  local key = owner.settings.access_key
  if not owner.redact and type(key) == "string" then
    owner.redact = M.redactor(key)
  end
  return owner.redact and owner.redact(foreign) or foreign
end

return M
