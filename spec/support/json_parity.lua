-- Compares a decoder with the core: it must refuse what the core refuses and otherwise give the core's values.
local core = require "riskscreen.core"

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

return M
