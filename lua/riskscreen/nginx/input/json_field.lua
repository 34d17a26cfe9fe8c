-- One field of a JSON text, or several of them: the texts there, unless another program could read others from it.
-- Pure. Of a key that an object has twice some readers take the first and some the last, and some do not tell "to" from
-- "TO": such an object is refused where the path leads through it.
local json = require "riskscreen.json"

local MOST = 100 -- values that one path may lead to

local M = {}

-- What follows works on a text that the decoder has found to be JSON, so that it need not doubt anything.

local function skip_space(text, at)
  return text:find("[^ \t\r\n]", at)
end

-- The position of the closing quote.
local function end_of_string(text, at)
  local position = at + 1
  while true do
    local found = text:find('["\\]', position)
    if text:sub(found, found) == '"' then
      return found
    end
    position = found + 2
  end
end

local function end_of_container(text, at)
  local depth, position = 0, at
  while true do
    local found, _, mark = text:find('([%[%]{}"])', position)
    if mark == '"' then
      found = end_of_string(text, found)
    else
      depth = depth + ((mark == "[" or mark == "{") and 1 or -1)
    end
    if depth == 0 then
      return found
    end
    position = found + 1
  end
end

-- The last position of the value that begins there.
local function end_of_value(text, at)
  local first = text:sub(at, at)
  if first == '"' then
    return end_of_string(text, at)
  elseif first == "{" or first == "[" then
    return end_of_container(text, at)
  end
  return (text:find("[,%]} \t\r\n]", at) or #text + 1) - 1
end

local function string_at(text, at)
  local written = text:sub(at, end_of_string(text, at))
  if not written:find("\\", 1, true) then
    return written:sub(2, -2)
  end
  return json.decode("[" .. written .. "]")[1]
end

-- Calls a function with the position of each value of the container that begins there, and with its key, if any.
local function each(text, at, visit)
  local keyed = text:sub(at, at) == "{"
  at = skip_space(text, at + 1)
  while not text:find("^[%]}]", at) do
    local key
    if keyed then
      key = string_at(text, at)
      at = skip_space(text, skip_space(text, end_of_string(text, at) + 1) + 1)
    end
    local stop = visit(at, key)
    if stop then
      return stop
    end
    at = skip_space(text, end_of_value(text, at) + 1)
    if text:sub(at, at) == "," then
      at = skip_space(text, at + 1)
    end
  end
end

-- Case as the most lenient readers fold it: the long s, the Kelvin sign, and the i with a dot or without are letters of
-- theirs. For others a text ends at the first NUL.
local function folded(key)
  key = key:gsub("%z.*$", ""):gsub("\197\191", "s"):gsub("\226\132\170", "k"):gsub("\196[\176\177]", "i")
  return key:lower()
end

-- The position of the one member with this key.
local function member(text, at, wanted)
  local count, place, folded_name = 0, nil, folded(wanted)
  each(text, at, function(value_at, key)
    if folded(key) == folded_name then
      count = count + 1
      place = key == wanted and value_at or place
    end
  end)
  if count > 1 then
    return nil, "is repeated"
  end
  return place, place == nil and "is missing" or nil
end

local function collect(text, at, path, depth, values)
  local step, first = path[depth], text:sub(at, at)
  if step == nil then
    if first ~= '"' then
      return "is not a text"
    elseif #values == MOST then
      return "is there too often"
    end
    values[#values + 1] = string_at(text, at)
  elseif step == "*" and first == "[" then
    return each(text, at, function(element)
      return collect(text, element, path, depth + 1, values)
    end)
  elseif step ~= "*" and first == "{" then
    local place, problem = member(text, at, step)
    return problem or collect(text, place, path, depth + 1, values)
  else
    return "is missing"
  end
end

---The texts to which a path leads.
---@param text string
---@param path string[] keys; "*" stands for every element of an array
---@return string[]|nil values at least one
---@return string|nil problem "is missing", "is repeated" …
function M.values(text, path)
  if json.decode(text) == nil then
    return nil, "is in a body that is not JSON"
  end
  local values = {}
  local problem = collect(text, skip_space(text, 1), path, 1, values)
  if problem then
    return nil, problem
  elseif not values[1] then
    return nil, "is missing"
  end
  return values
end

return M
