-- A lookup of any number of addresses: each asked once, in requests of the size the service takes, the answer aligned
-- with the input. A failure of a part leaves what the other parts answered.

local bulk = require "riskscreen.client.bulk"
local validate = require "riskscreen.interface.validate"
local canonical_address = require("riskscreen.address").canonical

---@class riskscreen.bulk.Lookup one call and what it has found so far
---@field call riskscreen.bulk.Call
---@field parameters table checked
---@field positions integer[] for each input the number of its address among the different ones
---@field addresses string[] the different ones
---@field found table<integer, table|false> by that number; absent until answered
---@field tally table of its requests

local function different(list)
  local numbers, addresses, positions = {}, {}, {}
  for index, address in ipairs(list) do
    local key = canonical_address(address)
    if not numbers[key] then
      addresses[#addresses + 1] = address
      numbers[key] = #addresses
    end
    positions[index] = numbers[key]
  end
  return addresses, positions
end

local function missing(lookup)
  local numbers = {}
  for number = 1, #lookup.addresses do
    if lookup.found[number] == nil then
      numbers[#numbers + 1] = number
    end
  end
  return numbers
end

-- What is found for each input, and the inputs of which nothing is known.
local function aligned(lookup)
  local records, failed = {}, {}
  for index, number in ipairs(lookup.positions) do
    records[index] = lookup.found[number]
    if records[index] == nil then
      failed[#failed + 1] = index
    end
  end
  return records, failed
end

-- One request; what it answers is kept at once.
local function ask(lookup, numbers)
  local call, addresses = lookup.call, {}
  for index, number in ipairs(numbers) do
    addresses[index] = lookup.addresses[number]
  end
  local records, other = call.send(bulk.with_fields(lookup.parameters, { [call.list] = addresses }))
  bulk.count(lookup.tally, records, other)
  for index, number in ipairs(records and numbers or {}) do
    lookup.found[number] = records[index]
  end
  return records, other
end

local attempt

local function failure(lookup, records, failed, failures)
  local retryable, sent = false, false
  for _, err in ipairs(failures) do
    retryable = retryable or err.retryable
    sent = sent or err.sent ~= false
  end
  local summary = ("nothing is known of %d of %d addresses"):format(#failed, #lookup.positions)
  return bulk.error(failures[1], lookup.tally, summary, {
    partial = records,
    failed = failed,
    retryable = retryable,
    sent = sent,
    retry = function()
      return attempt(lookup)
    end,
  })
end

-- Asks for what is not known yet.
function attempt(lookup)
  local started = lookup.call.runtime.now()
  local parts = bulk.parts(missing(lookup), lookup.call.limit)
  local values, others = bulk.each_part(lookup.call, parts, function(numbers)
    return ask(lookup, numbers)
  end)
  local failures = {}
  for number = 1, #parts do
    if not values[number] then
      failures[#failures + 1] = others[number]
    end
  end
  lookup.tally.elapsed = lookup.tally.elapsed + lookup.call.runtime.now() - started
  local records, failed = aligned(lookup)
  if failures[1] then
    return nil, failure(lookup, records, failed, failures)
  end
  return records, bulk.response(lookup.tally)
end

local M = {}

---The call of an operation whose answer is aligned with a list.
---@param operation riskscreen.Operation
---@return fun(runtime: table, parameters: table, concurrency: integer, send: function): any, any
function M.of(operation)
  local name = operation.aligned
  local unlimited, limit = bulk.unlimited(operation, name)
  return function(runtime, parameters, concurrency, send)
    local checked, err = validate.parameters(unlimited, parameters)
    if not checked then
      return nil, err
    end
    local addresses, positions = different(checked[name])
    return attempt {
      call = { runtime = runtime, list = name, limit = limit, concurrency = concurrency, send = send },
      parameters = checked,
      positions = positions,
      addresses = addresses,
      found = {},
      tally = bulk.tally(),
    }
  end
end

return M
