-- Whether a decoded answer has the shape that records.lua states. Unknown fields and unseen values of an enumeration
-- pass: what they mean is not decided here.
local decimal = require "riskscreen.util.decimal"
local json = require "riskscreen.json"

local null = json.null

-- What is wrong is said where it is found, and the place put together on the way back: a good answer, which is nearly
-- every one, needs none of that.

local function mismatch(wanted, value)
  return ("must be %s (got %s)"):format(wanted, json.kind(value)), ""
end

local function is_object(value)
  return type(value) == "table" and not json.is_array(value)
end

-- A whole number, which may arrive as 1.0.
local function is_integer(value)
  return type(value) == "number" and value == math.floor(value) and value < 2 ^ 63 and value >= -2 ^ 63
end

---@type table<string, fun(shape: riskscreen.Shape, value: any): string|nil, string|nil> what is wrong, and where in it
local checkers = {}

function checkers.string(shape, value)
  if type(value) ~= "string" then
    return mismatch("a string", value)
  elseif shape.decimal then
    local ok, message = decimal.check(value)
    if not ok then
      return message, ""
    end
  end
end

function checkers.boolean(_, value)
  if type(value) ~= "boolean" then
    return mismatch("a boolean", value)
  end
end

function checkers.number(_, value)
  if type(value) ~= "number" then
    return mismatch("a number", value)
  end
end

function checkers.integer(shape, value)
  if type(value) ~= "number" then
    return mismatch("an integer", value)
  elseif not is_integer(value) then
    return ("must be an integer (got %s)"):format(tostring(value)), ""
  elseif shape.minimum and value < shape.minimum then
    return ("must be at least %d (got %s)"):format(shape.minimum, tostring(value)), ""
  end
end

local function check_field(field, object)
  local member = object[field.name]
  -- A member that is null counts as absent, whether or not the decoder has dropped it.
  if member ~= nil and member ~= null then
    local message, place = checkers[field.type](field, member)
    if message then
      return message, "." .. field.name .. place
    end
  elseif field.required then
    return "is missing", "." .. field.name
  end
end

-- The fields of an object from one on. Five at a time, which is all that most have: LuaJIT does not compile a loop
-- together with what is around it.
local function check_fields(fields, object, from)
  local second, third, fourth, fifth = fields[from + 1], fields[from + 2], fields[from + 3], fields[from + 4]
  local message, place = check_field(fields[from], object)
  if second and not message then
    message, place = check_field(second, object)
  end
  if third and not message then
    message, place = check_field(third, object)
  end
  if fourth and not message then
    message, place = check_field(fourth, object)
  end
  if fifth and not message then
    message, place = check_field(fifth, object)
  end
  if fields[from + 5] and not message then
    return check_fields(fields, object, from + 5)
  end
  return message, place
end

function checkers.object(shape, value)
  if not is_object(value) then
    return mismatch("an object", value)
  end
  if shape.fields[1] then
    return check_fields(shape.fields, value, 1)
  end
end

function checkers.array(shape, value)
  if type(value) ~= "table" or not json.is_array(value) then
    return mismatch("an array", value)
  end
  local items, count = shape.items, #value
  local check_item = checkers[items.type]
  local message, place, index = nil, nil, 1
  if count > 0 then
    message, place = check_item(items, value[1])
  end
  while index < count and not message do
    index = index + 1
    message, place = check_item(items, value[index])
  end
  if message then
    return message, "[" .. index .. "]" .. place
  end
end

function checkers.map(shape, value)
  -- Some writers make an array of an empty map.
  if not is_object(value) and not (type(value) == "table" and next(value) == nil) then
    return mismatch("an object", value)
  end
  for name, member in pairs(value) do
    if member ~= null then
      local message, place = checkers[shape.items.type](shape.items, member)
      if message then
        return message, "." .. name .. place
      end
    end
  end
end

---@param shape riskscreen.Shape
---@param value any
---@param path string of the value, such as "data"
---@return string|nil message what is wrong and where, such as "data.risks[3] must be an object", or nil
local function check(shape, value, path)
  local message, place = checkers[shape.type](shape, value)
  return message and path .. place .. " " .. message
end

return {
  check = check,
  is_object = is_object,
  is_integer = is_integer,
}
