-- Checks a decoded answer against its shape in records.lua. Unknown fields and unseen values of an enumeration pass;
-- the policy gives them a meaning. The check of each shape is generated as Lua code. In `./dev bench layers` a walk
-- over the shape takes a fifth of a call on Lua 5.4, and the code takes a fifteenth.
local core = require "riskscreen.util.core"
local decimal = require "riskscreen.util.decimal"
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

local function mismatch(wanted, value)
  return ("must be %s (got %s)"):format(wanted, json.kind(value))
end

-- The faults of values that fail the generated test of their type; nil for a good value.
---@type table<string, fun(value: any, wanted?: any): string|nil>
local faults = {}

function faults.string(value)
  if type(value) ~= "string" then
    return mismatch("a string", value)
  end
  return select(2, decimal.check(value))
end

function faults.integer(value, minimum)
  if type(value) ~= "number" then
    return mismatch("an integer", value)
  elseif not is_integer(value) then
    return ("must be an integer (got %s)"):format(tostring(value))
  elseif minimum and value < minimum then
    return ("must be at least %d (got %s)"):format(minimum, tostring(value))
  end
end

local rest = { boolean = "a boolean", number = "a number", object = "an object", array = "an array", map = "an object" }
for kind, wanted in pairs(rest) do
  faults[kind] = function(value)
    return mismatch(wanted, value)
  end
end

-- The tests as Lua code; V is the value. A table without [1] is an object, unless it is an empty array.
local tests = {
  string = "type(V) == 'string'",
  boolean = "V == true or V == false",
  number = "type(V) == 'number'",
  integer = "type(V) == 'number' and V % 1 == 0 and V < 9007199254740992 and V >= MINIMUM",
  object = "type(V) == 'table' and V[1] == nil and (next(V) ~= nil or not is_array(V))",
  array = "type(V) == 'table' and (V[1] ~= nil or is_array(V))",
  -- Some writers make an array of an empty map.
  map = "type(V) == 'table' and V[1] == nil",
}

local function test_of(shape, variable)
  if shape.decimal then
    return "false"
  end
  local test = tests[shape.type]:gsub("MINIMUM", shape.minimum or "-9007199254740991")
  return (test:gsub("V", variable))
end

-- Adds a line to the code of a check.
local function add(code, line, ...)
  code[#code + 1] = line:format(...)
end

local add_check

-- The checks of a table's contents, whose variable has the next depth.
---@type table<string, fun(code: string[], shape: riskscreen.Shape, depth: integer, variable: string, place: string)>
local add_contents = {}

function add_contents.object(code, shape, depth, variable, place)
  for _, field in ipairs(shape.fields) do
    add(code, "do local v%d = %s[%q]", depth + 1, variable, field.name)
    add_check(code, field, depth + 1, ("%s .. %q"):format(place, "." .. field.name), true)
    add(code, "end")
  end
  local present = {}
  for index, name in ipairs(shape.any_of or present) do
    present[index] = ("(%s[%q] ~= nil and %s[%q] ~= null)"):format(variable, name, variable, name)
  end
  if present[1] then
    local fault = "must have one of " .. table.concat(shape.any_of, ", ")
    add(code, "if not (%s) then return %q, %s end", table.concat(present, " or "), fault, place)
  end
end

function add_contents.array(code, shape, depth, variable, place)
  add(code, "for k%d = 1, #%s do local v%d = %s[k%d]", depth, variable, depth + 1, variable, depth)
  add_check(code, shape.items, depth + 1, ("%s .. '[' .. k%d .. ']'"):format(place, depth))
  add(code, "end")
end

function add_contents.map(code, shape, depth, variable, place)
  add(code, "for k%d, v%d in pairs(%s) do if v%d ~= null then", depth, depth + 1, variable, depth + 1)
  add_check(code, shape.items, depth + 1, ("%s .. '.' .. k%d"):format(place, depth))
  add(code, "end end")
end

-- Checks the variable of a depth. `place` is an expression, computed for a fault alone. A null member of an object
-- counts as absent, whether or not the decoder has dropped it.
function add_check(code, shape, depth, place, is_member)
  local variable = "v" .. depth
  add(code, "if %s then", test_of(shape, variable))
  if add_contents[shape.type] then
    add_contents[shape.type](code, shape, depth, variable, place)
  end
  if is_member then
    add(code, "elseif %s == nil or %s == null then", variable, variable)
    add(code, shape.required and "return 'is missing', %s" or "", place)
  end
  add(code, "else local fault = faults.%s(%s, %s)", shape.type, variable, tostring(shape.minimum))
  add(code, "if fault then return fault, %s end end", place)
end

local load_text = loadstring or load -- luacheck: ignore 113

local M = { is_object = is_object, is_integer = is_integer }

-- On PUC Lua the core accepts nearly every good value, with a third of the instructions (`./dev bench layers`). LuaJIT
-- compiles the generated code, and no call of the core.
local is_good_of = core and not rawget(_G, "jit") and core.shape

---The check of a shape. It returns a fault and its place inside the value, or nothing for a good value.
---@type fun(shape: riskscreen.Shape): fun(value: any): string|nil, string|nil
M.checker = tables.memoize(function(shape)
  local is_good = is_good_of and is_good_of(shape)
  local code = { "local type, next, pairs, null, is_array, faults, is_good = ... return function(v0)" }
  add(code, is_good and "if is_good(v0) then return end" or "")
  add_check(code, shape, 0, "''")
  add(code, "end")
  local make = assert(load_text(table.concat(code, "\n"), "=shape"))
  return make(type, next, pairs, json.null, json.is_array, faults, is_good)
end)

---Checks a value against a shape.
---@param shape riskscreen.Shape
---@param value any
---@param path string of the value, such as "data"
---@return string|nil message the fault and its place, such as "data.risks[3] must be an object"; nil for a good value
function M.check(shape, value, path)
  local fault, place = M.checker(shape)(value)
  return fault and path .. place .. " " .. fault
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

return M
