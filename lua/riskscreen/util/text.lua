-- Texts for messages (values, foreign text, suggestions for a misspelt name) and tests of characters.

local MAX_NAME = 40 -- bytes; a longer word is no misspelt name, and `distance` takes the product of the lengths

local articles = { ["nil"] = "nothing", table = "a table" }

local M = {}

---Foreign text for one line of a message: without control characters, cut to `limit` bytes.
---@param text string
---@param limit? integer bytes, 60 by default
---@return string
function M.printable(text, limit)
  limit = limit or 60
  local short = text
  if #text > limit then
    -- A UTF-8 sequence that the cut divides is dropped.
    short = text:sub(1, limit):gsub("[\192-\255][\128-\191]*$", "") .. "..."
  end
  return (short:gsub("[%z\1-\31\127]", "?"))
end

---A function that checks whether a text, from a position on, has characters of a class and no others.
---@param class string letters, digits and ranges of them, as in the brackets of a pattern
---@return fun(text: string, from?: integer): boolean
function M.made_of(class)
  local pattern = "^[" .. class .. "]+$"
  return function(text, from)
    return text:find(pattern, from) ~= nil
  end
end

-- LuaJIT does not compile patterns. strspn saves a tenth of a call in `./dev bench layers`.
local has_ffi, ffi = pcall(require, "ffi")
if has_ffi then
  ffi.cdef "size_t strspn(const char *text, const char *accepted);"

  local function characters_between(first, last)
    local list = {}
    for code = first:byte(), last:byte() do
      list[#list + 1] = string.char(code)
    end
    return table.concat(list)
  end

  function M.made_of(class)
    local accepted = class:gsub("(.)%-(.)", characters_between)
    return function(text, from)
      local before = (from or 1) - 1
      local left = #text - before
      return left > 0 and ffi.C.strspn(ffi.cast("const char *", text) + before, accepted) == left
    end
  end
end

---A name or a value of a query string or a form, decoded.
---@param escaped string
---@return string
function M.unescape(escaped)
  return (escaped:gsub("%+", " "):gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

---Headers with their names in lower case.
---@param headers table
---@return table<string, any>
function M.lower_names(headers)
  local lower = {}
  for name, value in pairs(headers) do
    lower[tostring(name):lower()] = value
  end
  return lower
end

---Whether a value may be the value of a header: a text without line ends and other control characters.
---@param value any
---@return boolean
function M.is_header_value(value)
  return type(value) == "string" and not value:find "[%z\1-\8\10-\31\127]"
end

---Whether a text consists of letters and digits, as nearly every address does.
---@type fun(text: string): boolean
M.is_plain = M.made_of "0-9A-Za-z"

---The type of a Lua value with an article: "a string", "a table", "nothing".
---@param value any
---@return string
function M.kind(value)
  local name = type(value)
  return articles[name] or ("a " .. name)
end

---A value as a message shows it: strings and numbers by their content, others by their type.
---@param value any
---@return string
function M.show(value)
  if type(value) == "string" then
    return "'" .. M.printable(value) .. "'"
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

---"; did you mean 'x'?" or nothing.
---@param word any
---@param candidates string[]
---@return string
function M.did_you_mean(word, candidates)
  local candidate = M.nearest(word, candidates)
  return candidate and ("; did you mean '" .. candidate .. "'?") or ""
end

return M
