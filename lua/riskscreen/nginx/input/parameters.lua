-- The value of one parameter in a query string or a form. Pure. It is refused if another program could read another
-- value from the same text. Some programs take the first of two parameters, some the last, some both as a list. Some do
-- not tell "to" from "TO", "to[]", "[to", "a.to" or " to", and some split at ";" or at a second "?".
local made_of = require("riskscreen.util.text").made_of
local unescape = require("riskscreen.util.text").unescape

local byte, find, lower, sub = string.byte, string.find, string.lower, string.sub

local AMPERSAND, EQUALS_SIGN = byte "&", byte "="
local MAX_PARAMETERS = 1000 -- some programs leave out the rest, and reading more would keep a worker busy

-- Texts without escapes, and without characters that some programs treat alike.
local is_simple = made_of "0-9A-Za-z&=_~:,/-"

local M = {}

---Whether a text has overlong UTF-8, which some programs take for ASCII.
---@param bytes string
---@return boolean
function M.is_overlong(bytes)
  return (find(bytes, "[\192\193]") or find(bytes, "\224[\128-\159]") or find(bytes, "\240[\128-\143]")) ~= nil
end

-- Characters of a name that all programs keep. Lenient programs take any other for a separator, or drop it.
local SEPARATORS = "[^0-9a-z_-]+"

-- The name as the most lenient programs compare it, with "|" around each of its parts. They take the long s, the
-- Kelvin sign and the dotted or dotless i for ASCII letters. They drop characters at the edges, and end a name at "["
-- or NUL. They take "a.to" and "a[to]" for "to", and "_" for other separators. A name may be as long as a body, so the
-- time must stay in proportion to that.
local function folded(name)
  name = name:gsub("\197\191", "s"):gsub("\226\132\170", "k"):gsub("\196[\176\177]", "i"):lower()
  return "|" .. name:gsub(SEPARATORS, "|") .. "|"
end

-- A pattern for the folded names that some program takes for this one.
local function lookalikes(name)
  local parts = {}
  for part in folded(name):gmatch "[^|_]+" do
    parts[#parts + 1] = part:gsub("%-", "%%-")
  end
  local edge = name:find "^_" and "_*" or ""
  return "|" .. edge .. table.concat(parts, "[|_]+") .. (name:find "_$" and "_*" or "") .. "|"
end

local function name_of(pair)
  return unescape(pair:match "^[^=]*")
end

-- The reason why the parameter may be there twice. A name that still has a "%" is another name for programs that decode
-- twice, and one with overlong UTF-8 for others.
local function problem_of(text, separators, wanted)
  local found, seen, is_obscure = 0, 0, false
  for pair in text:gmatch(separators) do
    seen = seen + 1
    if seen > MAX_PARAMETERS then
      return "is one of too many"
    end
    local name = name_of(pair)
    is_obscure = is_obscure or find(name, "%", 1, true) ~= nil or M.is_overlong(name)
    if find(folded(name), wanted) then
      found = found + 1
    end
  end
  if found > 1 then
    return "is repeated"
  end
  return is_obscure and "is beside a name that can be read in two ways" or nil
end

-- The last text, and the same in lower case; false if it is not simple. A query is read once for each parameter.
local last_text, last_lower

local function simple_lower(text)
  if text ~= last_text then
    last_text, last_lower = text, is_simple(text) and lower(text)
  end
  return last_lower
end

-- The value from a simple text; nil for any other text. Nearly every query is simple. There are no patterns and no
-- loops here, so that LuaJIT compiles it with its caller (`./dev bench nginx`).
local function plain_value(text, name, lower_name)
  local lower_text = simple_lower(text)
  if not lower_text then
    return nil
  end
  local first = find(lower_text, lower_name, 1, true)
  if not first or find(lower_text, lower_name, first + 1, true) then
    return nil
  end
  local mark = first + #name
  if (first > 1 and byte(text, first - 1) ~= AMPERSAND) or byte(text, mark) ~= EQUALS_SIGN then
    return nil
  elseif sub(text, first, mark - 1) ~= name then
    return nil
  end
  return sub(text, mark + 1, (find(text, "&", mark, true) or #text + 1) - 1)
end

local function thorough_value(text, name, wanted)
  local problem = problem_of(text, "[^&;?]+", wanted)
  if problem then
    return nil, problem
  end
  for pair in text:gmatch "[^&]+" do
    if name_of(pair) == name then
      return unescape(pair:match "^[^=]*=?(.*)$")
    end
  end
  return nil, "is missing"
end

---A function that returns the value of one parameter, or nil and "is missing", "is repeated" …
---@param name string
---@return fun(text: string|nil): string|nil, string|nil
function M.reader(name)
  local lower_name, wanted = find(name, "^[0-9A-Za-z_-]+$") and lower(name), lookalikes(name)
  return function(text)
    local value = text and lower_name and plain_value(text, name, lower_name)
    if value then
      return value
    end
    return thorough_value(text or "", name, wanted)
  end
end

---A function that returns the value of one cookie from the text of the header, or nil and a problem.
---@param name string
---@return fun(text: string|nil): string|nil, string|nil
function M.cookie_reader(name)
  local wanted = lookalikes(name)
  return function(text)
    text = text or ""
    -- Some programs split at ",", "&" or white space as well.
    local problem = problem_of(text, "[^;,&%s]+", wanted)
    if problem then
      return nil, problem
    end
    for pair in text:gmatch "[^;]+" do
      local its_name, value = pair:match "^ ?([^=]*)=(.*)$"
      if its_name == name then
        return value
      end
    end
    return nil, "is missing"
  end
end

return M
