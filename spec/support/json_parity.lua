-- Compares a module for JSON with the core: it must refuse what the core refuses and otherwise give the same.
local core = require "riskscreen.core"

local CJSON_MAX_KEY = 2 ^ 31 -- lua-cjson counts the elements of a list by an int

local M = {}

local function same(expected, value, empty_array_mt)
  if type(expected) == "number" and type(value) == "number" then
    return expected + 0.0 == value + 0.0
  elseif type(expected) ~= "table" or type(value) ~= "table" then
    return expected == value
  elseif (getmetatable(expected) == core.empty_array_mt) ~= (getmetatable(value) == empty_array_mt) then
    return false
  end
  for key, member in pairs(expected) do
    if not same(member, value[key], empty_array_mt) then
      return false
    end
  end
  for key in pairs(value) do
    if expected[key] == nil then
      return false
    end
  end
  return true
end

-- A text that a message can show.
local function shown(text)
  local part = text:sub(1, 200):gsub("[^ -~]", function(char)
    return ("<%02X>"):format(char:byte())
  end)
  return ("%s (%d bytes)"):format(part, #text)
end

---How a decoder differs from the core about a text; nil when it does not.
---@param module table riskscreen.json.strict_cjson
---@param text string
---@param options? riskscreen.json.DecoderOptions
---@return string|nil
function M.difference(module, text, options)
  local expected, refused = core.decoder(options):decode(text)
  local value, message = module.decoder(options):decode(text)
  if (refused == nil) ~= (message == nil) then
    return ("the core: %s, the other: %s: %s"):format(refused or "decoded", message or "decoded", shown(text))
  elseif not same(expected, value, module.empty_array_mt) then
    return "different values: " .. shown(text)
  end
end

-- Whether a table in the value has a number as its key that lua-cjson does not write or count exactly.
local function has_great_key(value)
  if type(value) ~= "table" then
    return false
  end
  for key, member in pairs(value) do
    if type(key) == "number" and math.abs(key) >= CJSON_MAX_KEY or has_great_key(member) then
      return true
    end
  end
  return false
end

-- Whether a decoded value is the one that was written. Null members of objects are dropped.
local function is_reading_of(read, written)
  if type(written) ~= "table" then
    return read == (written == nil and core.null or written)
  elseif type(read) ~= "table" or (getmetatable(read) == core.empty_array_mt) ~= (core.encode(written) == "[]") then
    return false
  end
  local is_list = read[1] ~= nil
  for key, member in pairs(written) do
    local name = is_list and key or type(key) == "number" and core.encode(key) or key
    if not (member == core.null and not is_list) and not is_reading_of(read[name], member) then
      return false
    end
  end
  return true
end

---The difference between the core's text of a value and that of another module, or between the values that both
---read; nil when all agree.
---@param module table riskscreen.json.strict_cjson
---@param value any
---@return string|nil
function M.written_difference(module, value)
  local text, refused = core.encode(value)
  local empty_array_mt = module.empty_array_mt
  module.empty_array_mt = core.empty_array_mt
  local other, other_refused = module.encode(value)
  module.empty_array_mt = empty_array_mt
  if has_great_key(value) then
    other, other_refused = text, refused
  end
  if (refused == nil) ~= (other_refused == nil) then
    return ("the core: %s, the other: %s"):format(refused or shown(text), other_refused or shown(other))
  elseif not text then
    return nil
  end
  local decoder = core.decoder { duplicates = "refuse" }
  local read, twice = decoder:decode(text)
  if twice and twice:find "duplicate" then
    -- A table with the keys 1 and "1".
    return nil
  elseif text ~= other and not same(read, decoder:decode(other), core.empty_array_mt) then
    -- The other module may write the members of objects in another order.
    return ("different texts: %s, %s"):format(shown(text), shown(other))
  elseif twice or not is_reading_of(read, value) then
    return "read as another value: " .. shown(text)
  end
end

return M
