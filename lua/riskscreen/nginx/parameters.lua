-- One parameter of a query string or of a form: its value, unless another program could read another value from the
-- same text. Pure. What is behind the gate may take the first of two parameters, the last, or both as a list; it may
-- not tell "to" from "TO", "to[]" or " to", and may split at ";": whatever any of these would see twice is refused.

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

---The value of a parameter.
---@param text string|nil
---@param name string
---@return string|nil value
---@return string|nil problem "is missing" or "is repeated"
function M.value(text, name)
  text = text or ""
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

return M
