-- The access key: reads it from the client's option, and redacts text that comes back. The key is removed as it is, in
-- base64 and in hexadecimal. Each character may be spelled as URLs, JSON or HTML do, or by one after the other.
local errors = require "riskscreen.errors"
local http = require "riskscreen.options.http"
local tables = require "riskscreen.util.tables"
local texts = require "riskscreen.util.text"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local REDACTED = "[redacted]"
local LONGEST_TEXT = 4096 -- bytes; messages show less of a foreign text
local MAX_DEPTH = 8 -- encodings of one character; a "/" of JSON within JSON within JSON has seven
local MAX_STEPS = 200000 -- of reading one text; a text that repeats the key's beginning and needs more is removed
local MAX_KEYS = 8 -- keys of a client that are removed: those used last, since their calls may be under way
local SHORTEST_PIECE = 4 -- bytes of the key that are removed where a text was cut

local escapes = { ["/"] = "/", ["\\"] = "\\", ['"'] = '"', ["'"] = "'" }
local entities = { amp = "&", lt = "<", gt = ">", quot = '"', apos = "'", sol = "/", plus = " ", equals = "=" }

-- A form encoding writes "+" for a space.
local function fold(text)
  return (texts.lower(text):gsub("+", " "))
end

-- The encodings by their sign: a pattern of what follows it, and the base of its digits or its meanings.
local encodings = {
  ["%"] = { { "^(%x%x)()", 16 } },
  ["\\"] = { { "^u00(%x%x)()", 16 }, { "^x(%x%x)()", 16 }, { "^([/\\\"'])()", escapes } },
  ["&"] = { { "^#[xX](%x+);?()", 16 }, { "^#(%d+);?()", 10 }, { "^(%l+);()", entities } },
}

local function character_of(code, meaning)
  if type(meaning) == "table" then
    return meaning[code]
  end
  local number = #code <= 8 and tonumber(code, meaning)
  return number and number < 256 and fold(string.char(number))
end

-- Adds a character that a text may spell, with the place after it. A sign may begin another one.
local function add_characters(found, text, character, place, depth)
  found[character] = found[character] or {}
  table.insert(found[character], place)
  for _, spelling in ipairs(depth < MAX_DEPTH and encodings[character] or {}) do
    local code, past = text:match(spelling[1], place)
    local another = code and character_of(code, spelling[2])
    if another then
      add_characters(found, text, another, past, depth + 1)
    end
  end
end

-- The characters of base64 that depend on this text alone, if it stands `offset` bytes after a group's beginning.
local function base64_of(text, offset)
  local bytes = ("\0"):rep(offset) .. text
  return texts.base64(bytes:sub(1, #bytes - #bytes % 3)):sub(offset > 0 and offset + 2 or 1)
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

-- The place after a cut, perhaps within an encoded character: at the end of a text, or before "...".
local function cut_at(text, place)
  local _, code = text:find("^[%%\\&][%w#;%%\\&]*", place)
  local past = code and code + 1 or place
  return (past > #text or text:find("^%.%.%.", past)) and past or nil
end

-- Adds a reading of `count` bytes of a form that began at `first`, at the places after it.
local function read_on(readings, places, count, first)
  for _, place in ipairs(places) do
    local found = readings[place] or {}
    readings[place] = found
    found[count] = math.min(found[count] or first, first)
  end
  return #places
end

-- Notes in `ends` which bytes spell a form of the key, or its beginning where a text was cut. One pass reads the form
-- from all places at once. Returns the steps that it took, of `limit` at most.
local function mark(ends, text, form, spelled, limit)
  local size, readings, steps = #form.text, {}, 0
  for place = 1, #text + 1 do
    local found, cut = readings[place] or {}, nil
    steps = steps + read_on(readings, spelled[place][form.text:sub(1, 1)] or {}, 1, place)
    for count, first in pairs(found) do
      local past = place
      local places = spelled[place][form.text:sub(count + 1, count + 1)]
      if count == size and form.is_base64 then
        -- The characters beside these hold some bits of the key.
        first = math.max(1, first - 2)
        past = select(2, text:find("^[%w +/_=-]?[%w +/_=-]?[%w +/_=-]?[%w +/_=-]?", place)) + 1
      elseif count < size and places then
        past, steps = nil, steps + read_on(readings, places, count + 1, first)
      elseif count < size then
        cut = cut or { at = cut_at(text, place) }
        past = count >= SHORTEST_PIECE and cut.at or nil
      end
      ends[first] = past and math.max(ends[first] or 0, past) or ends[first]
      steps = steps + 1
    end
    readings[place] = nil
    if steps > limit then
      break
    end
  end
  return steps
end

-- `ends` has the place after a piece by the place of its first byte.
local function replace(text, ends)
  local pieces, position = {}, 1
  while position <= #text do
    local from, past = position, ends[position]
    while position <= #text and (past and (position < past or ends[position]) or not past and not ends[position]) do
      past = past and math.max(past, ends[position] or 0)
      position = position + 1
    end
    pieces[#pieces + 1] = past and REDACTED or text:sub(from, position - 1)
  end
  return table.concat(pieces)
end

-- Whether a text has a form of the key once its encodings are undone, one after another. A sign may be encoded, and so
-- may what follows it.
local function holds_encoded(text, forms)
  local before
  for _ = 1, MAX_DEPTH do
    before = text
    for sign, spellings in pairs(encodings) do
      for _, spelling in ipairs(spellings) do
        text = text:gsub("%" .. sign .. spelling[1]:sub(2, -3), function(code)
          return character_of(code, spelling[2])
        end)
      end
    end
    text = fold(text)
    for _, form in ipairs(text ~= before and forms or {}) do
      if text:find(form.text, 1, true) then
        return true
      end
    end
  end
  return false
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
  local message
  if not ok then
    -- Its message may hold the key.
    message = "raised an error"
  elseif type(key) ~= "string" then
    message = "must return a string (got " .. texts.kind(key) .. ")"
  else
    message = http.key_message(key)
    if not message then
      return key
    end
    message = "returned a text that " .. message
  end
  return nil, errors.new("unauthorized", "the access_key function " .. message, { sent = false })
end

---Returns a function that removes keys from a text. Its result has at most the first 4096 bytes of the text.
---@param ... string keys, not empty
---@return fun(foreign: string): string
function M.redactor(...)
  local forms = {}
  for _, key in ipairs { ... } do
    forms = tables.concat(forms, forms_of(key))
  end
  return function(foreign)
    foreign = foreign:sub(1, LONGEST_TEXT)
    if not (foreign:find "[%%\\&]" or has_beginning(fold(foreign), forms)) then
      return foreign -- nearly always
    end
    local ends, spelled, steps = {}, { [#foreign + 1] = {} }, 0
    for place = 1, #foreign do
      spelled[place] = {}
      add_characters(spelled[place], foreign, fold(foreign:sub(place, place)), place + 1, 0)
    end
    for _, form in ipairs(forms) do
      steps = steps + mark(ends, foreign, form, spelled, MAX_STEPS - steps)
      if steps > MAX_STEPS then
        return REDACTED
      end
    end
    local cleaned = replace(foreign, ends)
    return cleaned:find "[%%\\&]" and holds_encoded(cleaned, forms) and REDACTED or cleaned
  end
end

-- Notes the key of a client's next request. A function may give several keys in turn.
local function note(owner, key)
  local keys, is_known = { key }, false
  for _, known in ipairs(owner.keys or {}) do
    is_known = is_known or known == key
    keys[#keys + 1] = known ~= key and #keys < MAX_KEYS and known or nil
  end
  owner.keys, owner.redacted_key = keys, key
  if not is_known then
    owner.redact = M.redactor(unpack(keys))
    owner.context = { clock = owner.clock, redact = owner.redact }
  end
end

---The access key of a client's next request, or nil and an error. It is removed from texts from then on, and so are the
---keys before it.
---@param owner riskscreen.State
---@return string|nil key
---@return riskscreen.Error|nil err
function M.of(owner)
  local key, err = M.read(owner.settings.access_key)
  if key and key ~= owner.redacted_key then
    note(owner, key)
  end
  return key, err
end

-- Removes by two functions, one after the other. LuaJIT compiles no function that makes a closure, and each miss of a
-- gate calls `hide_of`.
local function both(first, second)
  return function(foreign)
    return second(first(foreign))
  end
end

---The function that removes a client's keys from texts: those used last, and those of the requests whose answers a
---decision has. A function may have given many other keys since then.
---@param owner riskscreen.State
---@param decision? table
---@return fun(foreign: string): string
function M.hide_of(owner, decision)
  if not owner.redact then
    M.of(owner)
    owner.redact = owner.redact or tostring -- until the key can be read
  end
  local hide = owner.redact
  if not (owner.redactors and decision) then
    return hide
  end
  for _, answer in pairs(decision) do
    local own = owner.redactors[answer]
    if own and own ~= owner.redact then
      hide = both(hide, own)
    end
  end
  return hide
end

---Removes a client's keys from a text about values of the service or the caller: a key may stand in the wrong place.
---@param owner riskscreen.State
---@param foreign string
---@param decision? table
---@return string
function M.redact(owner, foreign, decision)
  return M.hide_of(owner, decision)(foreign)
end

return M
