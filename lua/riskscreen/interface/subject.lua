-- Whether an answer is about what was asked: a record about another address or another chain must never be used.
local canonical_address = require("riskscreen.address").canonical
local enums = require "riskscreen.interface.enums"

local function same_text(name, left, right)
  if left == right then
    return true
  elseif name == "network" then
    return enums.canonical_network(left) == enums.canonical_network(right)
  end
  return canonical_address(left) == canonical_address(right)
end

local M = {}

local function check_one(name, parameters, record, path)
  local asked, answered = parameters[name], record[name]
  if type(answered) ~= "string" then
    return ("%s.%s is missing"):format(path, name)
  elseif not same_text(name, answered, asked) then
    return ("%s.%s must be '%s', which was asked (got '%s')"):format(path, name, asked, answered)
  end
end

---Whether a record repeats the parameters it must.
---@param names string[] of the parameters
---@param parameters table what was asked
---@param record table
---@param path string of the record
---@return string|nil message how it differs, or nil
function M.check(names, parameters, record, path)
  local message = check_one(names[1], parameters, record, path)
  for index = 2, #names do
    message = message or check_one(names[index], parameters, record, path)
  end
  return message
end

local function same(left, right)
  if type(left) ~= "table" or type(right) ~= "table" then
    return left == right
  end
  for key, value in pairs(left) do
    if not same(value, right[key]) then
      return false
    end
  end
  for key in pairs(right) do
    if left[key] == nil then
      return false
    end
  end
  return true
end

---The records in the order of the addresses asked; `false` where the service left one out.
---@param addresses string[] asked, repeats included
---@param records table[] answered, in any order
---@param path string of the records
---@return (table|false)[]|nil aligned
---@return string|nil message
function M.align(addresses, records, path)
  local asked, found = {}, {}
  for _, address in ipairs(addresses) do
    asked[canonical_address(address)] = true
  end
  for i, record in ipairs(records) do
    local key = canonical_address(record.address)
    local place = ("%s[%d].address"):format(path, i)
    if not asked[key] then
      return nil, ("%s is '%s', which was not asked"):format(place, record.address)
    elseif found[key] and not same(found[key], record) then
      return nil, ("%s is '%s' again, with other content"):format(place, record.address)
    end
    found[key] = found[key] or record
  end
  local aligned = {}
  for i, address in ipairs(addresses) do
    aligned[i] = found[canonical_address(address)] or false
  end
  return aligned
end

return M
