-- The one checker of options: types, limits, allowed values, nested tables, unknown names.
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local validate = require "riskscreen.interface.validate"

local M = {}

local function is_accepted(option, value)
  local wanted = option.type
  local is_integer = wanted == "integer" and type(value) == "number" and value == math.floor(value)
  return is_integer or wanted == "any" or ("|" .. wanted .. "|"):find("|" .. type(value) .. "|", 1, true) ~= nil
end

local check_option

-- The checked entries of a list, or of a table by names.
local function check_entries(option, value, path)
  if tables.inherits(value) then
    return validate.refuse(path, path .. " " .. tables.INHERITS)
  elseif option.is_list and not tables.sequence_length(value) then
    return validate.refuse(path, path .. " must be a list")
  end
  local checked = {}
  for key, entry in pairs(value) do
    local err
    if not option.is_list and type(key) ~= "string" then
      return validate.refuse(path, ("%s must map names to values (got the name %s)"):format(path, text.show(key)))
    end
    local place = ("%s[%s]"):format(path, option.hides_names and "..." or text.show(key))
    checked[key], err = check_option(option.entry, entry, place)
    if err then
      return nil, err
    end
  end
  return checked
end

---Checks the value of one option.
---@param option riskscreen.Option
---@param value any
---@param path string of the value, for messages
---@return any checked a copy
---@return riskscreen.FieldError|nil err
function check_option(option, value, path)
  if not is_accepted(option, value) then
    -- The value may be a secret in the wrong place, so the message shows only its kind.
    local wanted = option.type:gsub("|", " or a "):gsub("^integer", "whole number")
    return validate.refuse(path, ("%s must be a %s (got %s)"):format(path, wanted, text.kind(value)))
  elseif option.minimum and not (value >= option.minimum and value <= option.maximum) then
    local range = ("between %s and %s %s"):format(option.minimum, option.maximum, option.unit)
    return validate.refuse(path, ("%s must be %s (got %s)"):format(path, range, tostring(value)))
  elseif option.values and not tables.set(option.values)[value] then
    return validate.not_one_of(path, option.values, value)
  end
  local checked, err = value, nil
  if option.fields and type(value) == "table" then
    checked, err = M.options(option.fields, value, path .. ".")
  elseif option.entry then
    checked, err = check_entries(option, value, path)
  end
  if err or not option.check then
    return checked, err
  end
  local message
  checked, message = option.check(checked)
  if checked == nil then
    return validate.refuse(path, path .. " " .. message)
  end
  return checked
end

M.value = check_option

---Checks options against their entries and fills in the defaults. A wrong option is misuse: the caller of this function
---raises the message at the program's line.
---@param specs riskscreen.Option[]
---@param options any
---@param prefix? string the path of the table, for messages
---@return table|nil checked a copy
---@return riskscreen.FieldError|nil err
function M.options(specs, options, prefix)
  if type(options) ~= "table" then
    local path = prefix and prefix:gsub("%.$", "") or "options"
    return validate.refuse(path, ("%s must be a table (got %s)"):format(path, text.kind(options)))
  end
  local checked, err = validate.fields(specs, options, prefix or "", "option", check_option)
  if not checked then
    return nil, err
  end
  for _, option in ipairs(specs) do
    local default = option.default
    if checked[option.name] == nil and default ~= nil then
      local is_group = option.fields and type(default) == "table"
      checked[option.name] = is_group and M.options(option.fields, default) or default
    end
  end
  return checked
end

---The checked options of a public function. Misuse raises at the line that has called that function.
---@param what string the function's name, for the message
---@param specs riskscreen.Option[]
---@param given any
---@return table checked
function M.arguments(what, specs, given)
  local checked, err = M.options(specs, given)
  if not checked then
    error(what .. ": " .. err.message, 3)
  end
  return checked
end

return M
