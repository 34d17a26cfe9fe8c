-- Compares two decoders: the values they give, the texts they refuse, with which words and at which byte.
local M = {}

local math_type = rawget(math, "type") or type -- only where numbers have two types

local function same_number(a, b)
  return a == b and 1 / a == 1 / b and math_type(a) == math_type(b) -- the second tells 0.0 from -0.0
end

---A side of a comparison.
---@class riskscreen.spec.JsonSide
---@field decode fun(text: string): any, string|nil, integer|nil
---@field empty_array_mt table

local function same(a, b, left, right)
  if type(a) == "number" and type(b) == "number" then
    return same_number(a, b)
  elseif type(a) ~= "table" or type(b) ~= "table" then
    return a == b
  elseif (getmetatable(a) == left.empty_array_mt) ~= (getmetatable(b) == right.empty_array_mt) then
    return false
  end
  for key, value in pairs(a) do
    if not same(value, b[key], left, right) then
      return false
    end
  end
  for key in pairs(b) do
    if a[key] == nil then
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

---How two decoders differ about a text; nil when they do not.
---@param left riskscreen.spec.JsonSide
---@param right riskscreen.spec.JsonSide
---@param text string
---@return string|nil
function M.difference(left, right, text)
  local value, message, position = left.decode(text)
  local other_value, other_message, other_position = right.decode(text)
  if message ~= other_message or position ~= other_position then
    local told = { tostring(message), tostring(position), tostring(other_message), tostring(other_position) }
    return ("%s at %s against %s at %s: %s"):format(told[1], told[2], told[3], told[4], shown(text))
  elseif not same(value, other_value, left, right) then
    return "different values: " .. shown(text)
  end
end

---The decoders of a module with the same options, as a side of a comparison.
---@param module table riskscreen.core or what stands for it
---@param options? table
---@return riskscreen.spec.JsonSide
function M.side(module, options)
  local decoder = module.decoder(options)
  return {
    empty_array_mt = module.empty_array_mt,
    decode = function(text)
      return decoder:decode(text)
    end,
  }
end

return M
