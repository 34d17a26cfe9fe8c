-- The value of one parameter in a query string or a form. Pure. It is refused if another program could read another
-- value from the same text. Some programs take the first of two parameters, some the last, some both as a list. Some do
-- not tell "to" from "TO", "t_o", "to[]", "[to", "a.to" or " to", and some split at ";" or at a second "?".
local made_of = require("riskscreen.util.text").made_of
local unescape = require("riskscreen.util.text").unescape

local byte, find, lower, sub = string.byte, string.find, string.lower, string.sub

local AMPERSAND, EQUALS_SIGN = byte "&", byte "="
local MAX_PARAMETERS = 1000 -- some programs leave out the rest, and reading more would keep a worker busy

-- Texts without escapes, and without characters that some programs treat alike; those of them that hold no character
-- which a program may drop from a name; and those of these that are folded.
local is_simple, is_plain, is_folded = made_of "0-9A-Za-z&=_~:,/-", made_of "0-9A-Za-z&=", made_of "0-9a-z&="

local M = {}

---The name without case, "_" and "-". grpc-gateway takes "to_address" for "toAddress". Programs that turn names into
---camelCase take "to-address" for it. Some programs take the long s, the Kelvin sign and the dotted or dotless i
---for ASCII letters.
---@param name string
---@return string
function M.folded(name)
  name = name:gsub("\197\191", "s"):gsub("\226\132\170", "k"):gsub("\196[\176\177]", "i"):lower()
  return (name:gsub("[_-]", ""))
end

---Whether a text has overlong UTF-8, which some programs take for ASCII.
---@param bytes string
---@return boolean
function M.is_overlong(bytes)
  return (find(bytes, "[\192\193]") or find(bytes, "\224[\128-\159]") or find(bytes, "\240[\128-\143]")) ~= nil
end

-- The name with "|" around each of its parts. Lenient programs drop characters at the edges, and end a name at "[" or
-- NUL. They take "a.to" and "a[to]" for "to". A name may be as long as a body, so the time must stay in proportion to
-- that.
local function parts_of(name)
  return "|" .. M.folded(name):gsub("[^0-9a-z]+", "|") .. "|"
end

-- A pattern for the parts of the names that some program takes for this one: "to.address" for "toAddress".
local function lookalikes(name)
  return "|" .. parts_of(name):gsub("|", ""):gsub(".", "%0|?"):gsub("|%?$", "") .. "|"
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
    if find(parts_of(name), wanted) then
      found = found + 1
    end
  end
  if found > 1 then
    return "is repeated"
  end
  return is_obscure and "is beside a name that can be read in two ways" or nil
end

-- The last text, and the same folded; false if it is not simple. A query is read once for each parameter.
local last_text, last_folded

local function simple_folded(text)
  if text ~= last_text then
    last_text, last_folded = text, false
    if is_folded(text) then
      last_folded = text
    elseif is_simple(text) then
      last_folded = lower(text)
      if not is_plain(text) then
        last_folded = last_folded:gsub("[_~:,/-]", "")
      end
    end
  end
  return last_folded
end

-- The value from a simple text in which no other name looks like this one; nil for any other text. Nearly every query
-- is simple. There are no patterns and no loops here, so that LuaJIT compiles it with its caller (`./dev bench nginx`).
local function plain_value(text, name, folded_name)
  local folded_text = simple_folded(text)
  if not folded_text then
    return nil
  end
  local at = find(folded_text, folded_name, 1, true)
  if not at or find(folded_text, folded_name, at + 1, true) then
    return nil
  end
  local first = find(text, name, 1, true)
  local mark = first and first + #name
  if not first or (first > 1 and byte(text, first - 1) ~= AMPERSAND) or byte(text, mark) ~= EQUALS_SIGN then
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
  local wanted = lookalikes(name)
  local folded_name = find(name, "^[0-9A-Za-z_-]*[0-9A-Za-z][0-9A-Za-z_-]*$") and M.folded(name)
  return function(text)
    local value = text and folded_name and plain_value(text, name, folded_name)
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
