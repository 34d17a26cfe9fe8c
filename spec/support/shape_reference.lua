-- The check of riskscreen.interface.shape written a second time.
local decimal = require "riskscreen.util.decimal"
local json = require "riskscreen.json"

local MAX_EXACT = 2 ^ 53 -- above this, doubles skip integers

local null = json.null

local math_type = math.type -- luacheck: ignore 143
  or function()
    return "float"
  end

local function is_object(value)
  return type(value) == "table" and not json.is_array(value)
end

-- A whole number, which may arrive as 1.0. A double that may have been rounded is none.
local function is_integer(value)
  return type(value) == "number"
    and value == math.floor(value)
    and (math_type(value) == "integer" or value < MAX_EXACT and value > -MAX_EXACT)
end

-- The checkers return nil, or a message and the place inside the value. The path is put together only then.

local function mismatch(wanted, value)
  return ("must be %s (got %s)"):format(wanted, json.kind(value)), ""
end

---@type table<string, fun(shape: riskscreen.Shape, value: any): string|nil, string|nil>
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

local function lacks_all(names, value)
  for _, name in ipairs(names) do
    if value[name] ~= nil and value[name] ~= null then
      return nil
    end
  end
  return "must have one of " .. table.concat(names, ", ")
end

function checkers.object(shape, value)
  if not is_object(value) then
    return mismatch("an object", value)
  end
  for index = 1, #shape.fields do
    local field = shape.fields[index]
    local member = value[field.name]
    -- A null member counts as absent, whether or not the decoder has dropped it.
    if member ~= nil and member ~= null then
      local message, place = checkers[field.type](field, member)
      if message then
        return message, "." .. field.name .. place
      end
    elseif field.required then
      return "is missing", "." .. field.name
    end
  end
  if shape.any_of then
    return lacks_all(shape.any_of, value), ""
  end
end

function checkers.array(shape, value)
  if type(value) ~= "table" or not json.is_array(value) then
    return mismatch("an array", value)
  end
  local items = shape.items
  local check_item = checkers[items.type]
  for index = 1, #value do
    local message, place = check_item(items, value[index])
    if message then
      return message, "[" .. index .. "]" .. place
    end
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
---@param path string
---@return string|nil message
return function(shape, value, path)
  local message, place = checkers[shape.type](shape, value)
  return message and path .. place .. " " .. message
end
