-- Checks a decoded answer against its shape in records.lua. Unknown fields and unseen values of an enumeration pass;
-- the policy gives them a meaning.
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

local MAX_EXACT = 2 ^ 53 -- above this, doubles skip integers

local null = json.null

local math_type = math.type -- luacheck: ignore 143
  or function()
    return "float"
  end

local function is_object(value)
  return type(value) == "table" and value[1] == nil and (next(value) ~= nil or not json.is_array(value))
end

-- A whole number, which may arrive as 1.0. A double that may have been rounded is none.
local function is_integer(value)
  return type(value) == "number"
    and value == math.floor(value)
    and (math_type(value) == "integer" or value < MAX_EXACT and value > -MAX_EXACT)
end

local wanted = {
  string = "a string",
  boolean = "a boolean",
  number = "a number",
  integer = "an integer",
  object = "an object",
  array = "an array",
  map = "an object",
}

local function has_type(kind, value)
  if kind == "object" then
    return is_object(value)
  elseif kind == "array" then
    return type(value) == "table" and json.is_array(value)
  elseif kind == "map" then
    return type(value) == "table" and value[1] == nil -- some writers make an array of an empty map
  end
  return type(value) == (kind == "integer" and "number" or kind)
end

-- The message about a value that is not of a shape, or nil. It begins with the place: ".risks[3] must be an object".
---@type fun(shape: riskscreen.Shape, value: any): string|nil
local check

local function has_one(value, names)
  for _, name in ipairs(names) do
    if value[name] ~= nil and value[name] ~= null then
      return true
    end
  end
  return false
end

-- The checks of a table's contents. A null member of an object counts as absent, whether or not the decoder has dropped
-- it.
---@type table<string, fun(shape: riskscreen.Shape, value: table): string|nil>
local contents = {}

function contents.object(shape, value)
  for _, field in ipairs(shape.fields) do
    local member = value[field.name]
    if member ~= nil and member ~= null then
      local message = check(field, member)
      if message then
        return "." .. field.name .. message
      end
    elseif field.required then
      return "." .. field.name .. " is missing"
    end
  end
  if shape.any_of and not has_one(value, shape.any_of) then
    return " must have one of " .. table.concat(shape.any_of, ", ")
  end
end

function contents.array(shape, value)
  for index = 1, #value do
    local message = check(shape.items, value[index])
    if message then
      return "[" .. index .. "]" .. message
    end
  end
end

function contents.map(shape, value)
  for name, member in pairs(value) do
    local message = member ~= null and check(shape.items, member)
    if message then
      return "." .. name .. message
    end
  end
end

function check(shape, value)
  local kind = shape.type
  if not has_type(kind, value) then
    return (" must be %s (got %s)"):format(wanted[kind], json.kind(value))
  elseif contents[kind] then
    return contents[kind](shape, value)
  elseif kind == "integer" and not is_integer(value) then
    return (" must be an integer (got %s)"):format(tostring(value))
  elseif shape.minimum and value < shape.minimum then
    return (" must be at least %d (got %s)"):format(shape.minimum, tostring(value))
  end
  local message = shape.decimal and select(2, require("riskscreen.util.decimal").check(value))
  return message and " " .. message or nil
end

local M = { is_object = is_object, is_integer = is_integer }

---Checks a value against a shape.
---@param shape riskscreen.Shape
---@param value any
---@param path string of the value, such as "data"
---@return string|nil message such as "data.risks[3] must be an object"; nil for a good value
function M.check(shape, value, path)
  local message = check(shape, value)
  return message and path .. message
end

local NO_SHAPE = { fields = {} }

local function shape_of(shape, name)
  for _, field in ipairs(shape.fields or NO_SHAPE.fields) do
    if field.name == name then
      return field
    end
  end
  return shape.items or NO_SHAPE
end

---Removes the null members of a value whose decoder kept them, as other decoders do. A map keeps them: there a null is
---an entry without content, and not a field that may be absent.
---@param shape? riskscreen.Shape
---@param value any changed in place
---@return any value nil for null
function M.drop_nulls(shape, value)
  shape = shape or NO_SHAPE
  if value == null then
    return nil
  elseif type(value) == "table" then
    for name, member in pairs(value) do
      if member ~= null then
        value[name] = M.drop_nulls(shape_of(shape, name), member)
      elseif type(name) == "string" and shape.type ~= "map" then
        value[name] = nil
      end
    end
  end
  return value
end

---A shape for the core's reader: a list of the shapes within it. These have no shapes of their own. Each names the
---places of its fields, or of the shape of its elements, which stand in a row. Nil for a shape that the reader does not
---know.
---@param shape riskscreen.Shape
---@return table[]|nil
function M.nodes(shape)
  local nodes, index = { shape }, 1
  while nodes[index] do
    local node = nodes[index]
    if node.decimal or node.any_of then
      return nil
    end
    local children = node.fields or { node.items }
    nodes[index] = tables.merge(node, { first = #nodes, count = #children })
    for _, child in ipairs(children) do
      nodes[#nodes + 1] = child
    end
    index = index + 1
  end
  return nodes
end

return M
