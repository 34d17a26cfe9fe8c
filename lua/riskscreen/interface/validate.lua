-- Checks and copies the parameters of an operation by its entry in operations.lua. options/check.lua shares the walk
-- over the fields.
local addresses = require "riskscreen.address"
local date = require "riskscreen.util.date"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_STRING = 1024 -- bytes of one text
local MAX_INTEGER = 2 ^ 53 -- above this, doubles skip integers
local NO_SPECS = {}

local to_integer = math.tointeger -- luacheck: ignore 143
  or function(value)
    return value
  end

---@class riskscreen.FieldError the reason why one value is refused
---@field message string
---@field field string the path of the value, such as "list[2].address"
---@field allowed? any[] the valid values

---@return nil, riskscreen.FieldError
local function refuse(field, message, allowed)
  return nil, { field = field, message = message, allowed = allowed }
end

local function wrong_type(path, wanted, value)
  return refuse(path, ("%s must be %s (got %s)"):format(path, wanted, text.show(value)))
end

local function not_one_of(path, values, value)
  local allowed = tables.copy(values)
  local list, hint = table.concat(allowed, ", "), addresses.did_you_mean(value, allowed)
  return refuse(path, ("%s must be one of %s (got %s%s)"):format(path, list, text.show(value), hint), allowed)
end

local function unknown(name, specs, prefix, noun)
  local names = tables.pluck(specs, "name")
  local hint = text.did_you_mean(name, names)
  if hint == "" and #names > 0 then
    hint = "; known: " .. table.concat(names, ", ")
  end
  local place = prefix ~= "" and (" in " .. prefix:gsub("%.$", "")) or ""
  local field = prefix .. text.printable(tostring(name))
  return refuse(field, ("unknown %s %s%s%s"):format(noun, text.show(name), place, hint), names)
end

---@class riskscreen.validate.Fields
---@field by_name table<string, { spec: table, position: integer }>
---@field required { spec: table, position: integer }[]

---@type fun(specs: table[]): riskscreen.validate.Fields
local fields_of = tables.memoize(function(specs)
  local fields = { by_name = {}, required = {} }
  for position, spec in ipairs(specs) do
    local field = { spec = spec, position = position }
    fields.by_name[spec.name] = field
    fields.required[#fields.required + 1] = spec.required and field or nil
  end
  return fields
end)

local checkers = {}

function checkers.any(_, value, path)
  local copy, message = tables.deep_copy(value)
  if message then
    return refuse(path, path .. " " .. message)
  end
  return copy
end

---Checks every field of a table against its entry.
---@param specs table[]
---@param value table
---@param prefix string the path of the table, for messages
---@param noun? string the word for a field in messages; without it unknown fields are copied
---@param check_value fun(spec: table, value: any, path: string, extend?: table): any, riskscreen.FieldError|nil
---@param extend? table passed on to check_value
---@return table|nil checked a copy
---@return riskscreen.FieldError|nil err
local function check_fields(specs, value, prefix, noun, check_value, extend)
  if tables.inherits(value) then
    local place = prefix == "" and "the table" or prefix:gsub("%.$", "")
    return refuse(place, place .. " " .. tables.INHERITS)
  end
  local copy, fields = {}, fields_of(specs)
  local first_err, err_position = nil, math.huge
  for name, given in pairs(value) do
    local field = fields.by_name[name]
    if not field and (noun or type(name) ~= "string") then
      -- Unknown names first: "adress" is the better complaint when "address" is missing.
      return unknown(name, specs, prefix, noun or "field")
    end
    local check, position = field and check_value or checkers.any, field and field.position or 0
    local checked, err = check(field and field.spec, given, prefix == "" and name or prefix .. name, extend)
    copy[name] = checked
    if err and position < err_position then
      first_err, err_position = err, position
    end
  end
  for _, field in ipairs(fields.required) do
    local path = prefix .. field.spec.name
    if value[field.spec.name] == nil and field.position < err_position then
      return refuse(path, path .. " is required" .. (field.spec.remedy or ""))
    end
  end
  if first_err then
    return nil, first_err
  end
  return copy
end

local function check_value(spec, value, path, extend)
  return checkers[spec.type](spec, value, path, extend)
end

-- The enumerations that hold networks. A network that the operator has added may belong to each.
local network_enums = { network = true, activity_network = true, freeze_network = true }

---Whether the operator has added a value to an enumeration.
---@param extend table<string, table<string, any>>|nil the client option
---@param enum string
---@param value any
---@return boolean
local function is_added(extend, enum, value)
  local added = extend and extend[network_enums[enum] and "network" or enum]
  return added ~= nil and added[value] ~= nil
end

function checkers.string(spec, value, path, extend)
  if type(value) ~= "string" then
    return wrong_type(path, "a string", value)
  elseif spec.enum then
    if not enums.has(spec.enum, value) and not is_added(extend, spec.enum, value) then
      return not_one_of(path, enums.values[spec.enum], value)
    end
    return value
  elseif value == "" then
    return refuse(path, path .. " must not be empty")
  elseif #value > MAX_STRING then
    return refuse(path, ("%s must be at most %d bytes long (got %d)"):format(path, MAX_STRING, #value))
  elseif value:find "[%z\1-\31\127]" then
    return refuse(path, ("%s must not contain control characters (got %s)"):format(path, text.show(value)))
  elseif spec.word and value:find(" ", 1, true) then
    return refuse(path, ("%s must not contain spaces (got %s)"):format(path, text.show(value)))
  elseif spec.known and not tables.set(spec.known)[value] and text.nearest(value, spec.known) then
    return not_one_of(path, spec.known, value)
  end
  return value
end

function checkers.integer(spec, value, path)
  if type(value) ~= "number" or value ~= math.floor(value) or value >= MAX_INTEGER or value <= -MAX_INTEGER then
    return wrong_type(path, "an integer", value)
  elseif spec.minimum and value < spec.minimum then
    return refuse(path, ("%s must be at least %d (got %d)"):format(path, spec.minimum, value))
  elseif spec.maximum and value > spec.maximum then
    return refuse(path, ("%s must be at most %d (got %d)"):format(path, spec.maximum, value))
  end
  return to_integer(value)
end

function checkers.date(_, value, path)
  if type(value) ~= "string" then
    return wrong_type(path, "a date written yyyy-MM-dd", value)
  elseif not date.parse_date(value) then
    return wrong_type(path, "a day of the calendar written yyyy-MM-dd", value)
  end
  return value
end

function checkers.array(spec, value, path, extend)
  if type(value) ~= "table" then
    return wrong_type(path, "a list", value)
  end
  local count = tables.sequence_length(value)
  if not count then
    return refuse(path, path .. " must be a list: positions 1, 2, 3 … without a gap and no other keys")
  elseif count == 0 and not spec.may_be_empty then
    return refuse(path, path .. " must hold at least 1 item")
  elseif spec.max_items and count > spec.max_items then
    return refuse(path, ("%s must hold at most %s (got %d)"):format(path, text.count(spec.max_items, "item"), count))
  end
  local copy = count == 0 and json.empty_array() or {}
  for index = 1, count do
    local checked, err = check_value(spec.items, value[index], path .. "[" .. index .. "]", extend)
    if err then
      return nil, err
    end
    copy[index] = checked
  end
  return copy
end

function checkers.object(spec, value, path, extend)
  if type(value) ~= "table" then
    return wrong_type(path, "a table of named fields", value)
  end
  return check_fields(spec.fields, value, path .. ".", not spec.open and "field" or nil, check_value, extend)
end

local function check_order(specs, checked)
  for _, spec in ipairs(specs) do
    local value, other = checked[spec.name], spec.not_before and checked[spec.not_before]
    -- Dates written yyyy-MM-dd sort as text.
    if value and other and value < other then
      local message = "%s must not be before %s (got '%s' and '%s')"
      return refuse(spec.name, message:format(spec.name, spec.not_before, value, other))
    end
  end
  return checked
end

local M = { refuse = refuse, not_one_of = not_one_of, fields = check_fields }

-- The addresses among the parameters of operations whose parameters the interface does not list.
local unlisted_addresses = {
  kya = { { name = "address", is_address = true } },
  kyt = { { name = "outputAddress", is_address = true }, { name = "tokenContractAddress", is_address = "contract" } },
}

-- The error of the first text in a value that must be an address of its network and is none.
local function address_error(spec, value, network, path, level, extend)
  local message
  if spec.is_address == true or spec.is_address == "contract" and addresses.is_evm(network) then
    if network ~= nil then
      message = select(2, addresses.validate(value, network, level, extend and extend.network))
    elseif not addresses.networks_of(value, level)[1] then
      message = ("%s is not an address of any network"):format(text.show(value))
    end
    return message and { field = path, message = path == "address" and message or path .. ": " .. message }
  end
  local found
  for index, item in ipairs(spec.items and value or NO_SPECS) do
    found = found or address_error(spec.items, item, network, path .. "[" .. index .. "]", level, extend)
  end
  for _, field in ipairs(spec.fields or NO_SPECS) do
    local member, place = value[field.name], path == "" and field.name or path .. "." .. field.name
    found = found or member ~= nil and address_error(field, member, value.network or network, place, level, extend)
  end
  return found
end

-- Nearly every call is a lookup with a plain address. The copy of its parameters; nil if they are unusual or wrong. In
-- `./dev bench layers` this shortcut saves a tenth of a call on Lua 5.4 and a fifth on LuaJIT.
local function plain_lookup(networks, parameters, level)
  local address, network = parameters.address, parameters.network
  if not networks[network] or getmetatable(parameters) ~= nil then
    return nil
  end
  local second = next(parameters, (next(parameters)))
  if next(parameters, second) ~= nil then
    return nil
  elseif level then
    return addresses.validate(address, network, level) and { address = address, network = network }
  end
  local is_short = type(address) == "string" and #address <= MAX_STRING
  return is_short and text.is_plain(address) and { address = address, network = network }
end

---Checks an operation's parameters. A wrong parameter is an error object and never raises: parameters are data.
---@param operation riskscreen.Operation
---@param parameters table
---@param level? "checksum"|"format"|false how addresses are checked; by default they are not
---@param extend? table the client option: values that the operator has added to enumerations
---@return table|nil checked a copy
---@return riskscreen.Error|nil err
function M.parameters(operation, parameters, level, extend)
  local lookup = operation.lookup and plain_lookup(enums.sets[operation.lookup], parameters, level)
  if lookup then
    return lookup
  end
  local specs = operation.parameters
  -- The caller may give any parameters where the interface lists none.
  local checked, err = check_fields(specs or NO_SPECS, parameters, "", specs and "parameter", check_value, extend)
  if checked and specs then
    checked, err = check_order(specs, checked)
  end
  if checked and level then
    local fields = specs or unlisted_addresses[operation.namespace]
    err = address_error({ fields = fields }, checked, nil, "", level, extend)
  end
  if err then
    local fields = { operation = operation.name, field = err.field, allowed = err.allowed }
    return nil, errors.new("invalid_argument", err.message, fields)
  end
  return checked
end

return M
