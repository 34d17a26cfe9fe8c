-- The value of one parameter in a query string or a form. Pure. It is refused if another program could read another
-- value from the same text. Some programs take the first of two parameters, some the last, some both as a list. Some do
-- not tell "to" from "TO", "to[]" or " to", and some split at ";".
local made_of = require("riskscreen.util.text").made_of
local unescape = require("riskscreen.util.text").unescape

local byte, find, lower, sub = string.byte, string.find, string.lower, string.sub

local AMPERSAND, EQUALS_SIGN = byte "&", byte "="
local MAX_PARAMETERS = 1000 -- some programs leave out the rest, and reading more would keep a worker busy

-- Texts without escapes, and without characters that some programs treat alike.
local is_simple = made_of "0-9A-Za-z&=_~:,/-"

local M = {}

-- The name as the most lenient programs compare it. A caller may send a name as long as a body. The time must stay in
-- proportion to that, so the pattern "%s+$" would not do.
local function folded(name)
  name = name:gsub("[%[%z].*$", ""):match "^.*%S" or ""
  return (name:gsub("^%s+", ""):gsub("[ .]", "_"):lower())
end

-- PHP reads an unclosed "[" as "_".
local function is_called(name, wanted)
  return folded(name) == wanted or (find(name, "[", 1, true) and folded((name:gsub("%[", "_"))) == wanted)
end

local function name_of(pair)
  return unescape(pair:match "^[^=]*")
end

-- The reason why the parameter may be there twice. A name that still has a "%" is another name for programs that decode
-- twice.
local function problem_of(text, wanted)
  local found, seen, is_obscure = 0, 0, false
  for pair in text:gmatch "[^&;]+" do
    seen = seen + 1
    if seen > MAX_PARAMETERS then
      return "is one of too many"
    end
    local name = name_of(pair)
    is_obscure = is_obscure or find(name, "%", 1, true) ~= nil
    if is_called(name, wanted) then
      found = found + 1
    end
  end
  if found > 1 then
    return "is repeated"
  end
  return is_obscure and "is beside a name that can be read in two ways" or nil
end

-- The value from a simple text; nil for any other text. Nearly every query is simple. There are no patterns and no
-- loops here, so that LuaJIT compiles it with its caller (`./dev bench nginx`).
local function plain_value(text, name, lower_name)
  if not is_simple(text) then
    return nil
  end
  local lower_text = lower(text)
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

local function thorough_value(text, name)
  local problem = problem_of(text, folded(name))
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
  local lower_name = find(name, "^[0-9A-Za-z_-]+$") and lower(name)
  return function(text)
    local value = text and lower_name and plain_value(text, name, lower_name)
    if value then
      return value
    end
    return thorough_value(text or "", name)
  end
end

return M
