-- Checks that an answer is about what was asked: a record about another address or network must never be used.
local addresses = require "riskscreen.address"
local tables = require "riskscreen.util.tables"

local canonical_address = addresses.normalize
local canonical = { address = canonical_address, network = addresses.canonical_network }

-- The message about the first of the named fields in which a record differs from the parameters.
local function differs(names, parameters, record, path)
  local network = parameters.network
  for index = 1, #names do
    local name = names[index]
    local asked, answered = parameters[name], record[name]
    if answered ~= asked then
      if type(answered) ~= "string" then
        return ("%s.%s is missing"):format(path, name)
      elseif canonical[name](answered, network) ~= canonical[name](asked, network) then
        return ("%s.%s must be '%s', which was asked (got '%s')"):format(path, name, asked, answered)
      end
    end
  end
end

local M = {}

---Checks that the records of an answer repeat the parameters they must repeat.
---@param operation riskscreen.Operation
---@param parameters table
---@param data table of the right shape
---@return string|nil message the difference, or nil
function M.check(operation, parameters, data)
  local names = operation.repeats
  if not names then
    return nil
  elseif operation.data.type ~= "array" then
    return differs(names, parameters, data, "data")
  end
  for index, record in ipairs(data) do
    local message = differs(names, parameters, record, "data[" .. index .. "]")
    if message then
      return message
    end
  end
end

---The records in the order of the addresses asked; `false` where the service left one out.
---@param wanted string[] asked, repeats included
---@param records table[] answered, in any order
---@param network? string that was asked
---@return (table|false)[]|nil aligned
---@return string|nil message
function M.align(wanted, records, network)
  local asked, found = {}, {}
  for _, address in ipairs(wanted) do
    asked[canonical_address(address, network)] = true
  end
  for index, record in ipairs(records) do
    local key = canonical_address(record.address, network)
    if not asked[key] then
      return nil, ("data[%d].address is '%s', which was not asked"):format(index, record.address)
    elseif found[key] and not tables.equal(found[key], record) then
      return nil, ("data[%d].address is '%s' again, with other content"):format(index, record.address)
    end
    found[key] = found[key] or record
  end
  local aligned = {}
  for index, address in ipairs(wanted) do
    aligned[index] = found[canonical_address(address, network)] or false
  end
  return aligned
end

return M
