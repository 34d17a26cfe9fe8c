-- Whether a decoded answer has the shape that records.lua states. Unknown fields and unseen values of an enumeration
-- pass: what they mean is not decided here.
local decimal = require "riskscreen.decimal"
local json = require "riskscreen.json"
local text = require "riskscreen.text"

local function mismatch(path, wanted, value)
  return ("%s must be %s (got %s)"):format(path, wanted, text.json_kind(value))
end

local function is_object(value)
  return type(value) == "table" and not json.is_array(value)
end

-- A whole number, which may arrive as 1.0.
local function is_integer(value)
  return type(value) == "number" and value == math.floor(value) and value < 2 ^ 63 and value >= -2 ^ 63
end

local checkers = {}

---@param shape riskscreen.Shape
---@param value any
---@param path string of the value, such as "data.risks[3]"
---@return string|nil message what is wrong, or nil
local function check(shape, value, path)
  return checkers[shape.type](shape, value, path)
end

function checkers.string(shape, value, path)
  if type(value) ~= "string" then
    return mismatch(path, "a string", value)
  elseif shape.decimal then
    local ok, message = decimal.check(value)
    return not ok and path .. " " .. message or nil
  end
end

function checkers.boolean(_, value, path)
  return type(value) ~= "boolean" and mismatch(path, "a boolean", value) or nil
end

function checkers.number(_, value, path)
  return type(value) ~= "number" and mismatch(path, "a number", value) or nil
end

function checkers.integer(shape, value, path)
  if type(value) ~= "number" then
    return mismatch(path, "an integer", value)
  elseif not is_integer(value) then
    return ("%s must be an integer (got %s)"):format(path, tostring(value))
  elseif shape.minimum and value < shape.minimum then
    return ("%s must be at least %d (got %s)"):format(path, shape.minimum, tostring(value))
  end
end

function checkers.object(shape, value, path)
  if not is_object(value) then
    return mismatch(path, "an object", value)
  end
  for _, field in ipairs(shape.fields) do
    local member = value[field.name]
    -- A member that is null counts as absent, whether or not the decoder has dropped it.
    if member ~= nil and member ~= json.null then
      local message = check(field, member, path .. "." .. field.name)
      if message then
        return message
      end
    elseif field.required then
      return path .. "." .. field.name .. " is missing"
    end
  end
end

function checkers.array(shape, value, path)
  if type(value) ~= "table" or not json.is_array(value) then
    return mismatch(path, "an array", value)
  end
  for i = 1, #value do
    local message = check(shape.items, value[i], path .. "[" .. i .. "]")
    if message then
      return message
    end
  end
end

function checkers.map(shape, value, path)
  -- Some writers make an array of an empty map.
  if not is_object(value) and not (type(value) == "table" and next(value) == nil) then
    return mismatch(path, "an object", value)
  end
  for name, member in pairs(value) do
    if member ~= json.null then
      local message = check(shape.items, member, path .. "." .. name)
      if message then
        return message
      end
    end
  end
end

return {
  check = check,
  is_object = is_object,
  is_integer = is_integer,
}
