-- One parameter of a query string or of a form: its value, unless another program could read another value from the
-- same text. Pure. What is behind the gate may take the first of two parameters, the last, or both as a list; it may
-- not tell "to" from "TO", "to[]" or " to", and may split at ";": whatever any of these would see twice is refused.

local find, lower, sub = string.find, string.lower, string.sub

local LONGEST_KEPT = 256 -- bytes of a text of which is remembered what it says
local MOST_KEPT = 1000 -- such texts

local M = {}

---@param text string as it stands in a query string or a form
---@return string
local function unescape(text)
  return (text:gsub("%+", " "):gsub("%%(%x%x)", function(hex)
    return string.char(tonumber(hex, 16))
  end))
end

-- The name under which a careless reader files a parameter.
local function folded(name)
  return (name:gsub("[%[%z].*$", ""):gsub("^%s+", ""):gsub("%s+$", ""):gsub("[ .]", "_"):lower())
end

local function name_of(pair)
  return unescape(pair:match "^[^=]*")
end

local function count(text, wanted)
  local found = 0
  for pair in text:gmatch "[^&;]+" do
    if folded(name_of(pair)) == wanted then
      found = found + 1
    end
  end
  return found
end

-- The same as below of a text in which nothing is escaped and no name can be read in two ways but for its case. Nearly
-- every text is such, and this is quick.
local function plain_value(text, name)
  local wanted, value, found, from = lower(name), nil, 0, 1
  while from <= #text do
    local pair_end = find(text, "&", from, true) or #text + 1
    local name_end = find(text, "=", from, true) or pair_end
    name_end = name_end < pair_end and name_end or pair_end
    local own = sub(text, from, name_end - 1)
    if own == name then
      value = value or sub(text, name_end + 1, pair_end - 1)
    end
    if lower(own) == wanted then
      found = found + 1
    end
    from = pair_end + 1
  end
  if found > 1 then
    return nil, "is repeated"
  end
  return value, not value and "is missing" or nil
end

local function is_plain(name)
  return find(name, "^[0-9A-Za-z_-]+$") ~= nil
end

local function value_of(text, name, name_is_plain)
  if name_is_plain and find(text, "^[0-9A-Za-z_=&-]*$") then
    return plain_value(text, name)
  end
  if count(text, folded(name)) > 1 then
    return nil, "is repeated"
  end
  for pair in text:gmatch "[^&]+" do
    if name_of(pair) == name then
      return unescape(pair:match "^[^=]*=?(.*)$")
    end
  end
  return nil, "is missing"
end

---The value of a parameter.
---@param text string|nil
---@param name string
---@return string|nil value
---@return string|nil problem "is missing" or "is repeated"
function M.value(text, name)
  return value_of(text or "", name, is_plain(name))
end

---A function that reads one parameter, and remembers what it has read: the same texts come again.
---@param name string
---@return fun(text: string|nil): string|nil, string|nil
function M.reader(name)
  local values, kept, name_is_plain = {}, 0, is_plain(name)
  return function(text)
    local value = text and values[text]
    if value then
      return value
    end
    local problem
    value, problem = value_of(text or "", name, name_is_plain)
    if value and #text <= LONGEST_KEPT then
      if kept == MOST_KEPT then
        values, kept = {}, 0
      end
      values[text], kept = value, kept + 1
    end
    return value, problem
  end
end

return M
