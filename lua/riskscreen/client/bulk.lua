-- Calls over lists longer than one request may carry. A lookup asks for each address once and aligns the records with
-- its input. An addition reports what happened to each item, and never sends an item again that may have been added.

local canonical_address = require("riskscreen.address").normalize
local errors = require "riskscreen.errors"
local maps = require "riskscreen.client.map"
local tables = require "riskscreen.util.tables"
local validate = require "riskscreen.interface.validate"

local EMPTY_RISK_TYPE = 3016 -- the service's code for an item that it finds invalid
local MAX_REFUSALS = 16 -- requests refused in a row after which no more halves are tried: the items are not the reason

---@class riskscreen.bulk.Call one call, and all its requests so far
---@field runtime table the client's
---@field send fun(parameters: table): any, riskscreen.Response|riskscreen.Error one request
---@field concurrency integer requests at a time
---@field list string the parameter that is split
---@field limit integer items of one request
---@field parameters table checked
---@field requests integer
---@field attempts integer
---@field elapsed number seconds
---@field response? riskscreen.Response the first

---@class riskscreen.Fate of one item that was not added
---@field index integer its position in the list
---@field item table as it was given
---@field error riskscreen.Error the reason

---@class riskscreen.Additions every item of the list is in exactly one of these
---@field added integer[] positions of the items that the service has taken
---@field refused riskscreen.Fate[] the service has refused them
---@field uncertain riskscreen.Fate[] sent, and no answer tells whether it was taken: it is not sent again
---@field unsent riskscreen.Fate[] never sent

-- Sends one request for some of the items.
local function send(call, items)
  local value, other = call.send(tables.merge(call.parameters, { [call.list] = items }))
  call.requests = call.requests + 1
  call.attempts = call.attempts + (other.attempts or 0)
  if value ~= nil then
    call.response = call.response or other
  end
  return value, other
end

local function in_parts(list, size)
  local parts = {}
  for index, item in ipairs(list) do
    local number = math.floor((index - 1) / size) + 1
    parts[number] = parts[number] or {}
    table.insert(parts[number], item)
  end
  return parts
end

-- Calls send_part(part, number) for each part of a list, several at a time.
local function send_parts(call, list, send_part)
  local runtime, parts = call.runtime, in_parts(list, call.limit)
  local started = runtime.now()
  if #parts == 1 or runtime.refusal() then
    -- One part needs no task. Where nothing can wait each request fails and says so.
    for number, part in ipairs(parts) do
      send_part(part, number)
    end
  else
    local run = assert(maps.new(runtime, parts, send_part, { concurrency = call.concurrency, ordered = false }))
    while maps.next(run) do -- luacheck: ignore 542
    end
  end
  call.elapsed = call.elapsed + runtime.now() - started
  return #parts
end

local function response_of(call)
  return tables.merge(call.response, { attempts = call.attempts, elapsed = call.elapsed })
end

-- The error of a call that failed in part: its first failure, with the results of the whole call.
local function failure_of(call, first, summary, fields)
  local all = tables.merge(first, fields)
  all.kind, all.message = nil, nil
  all.attempts, all.elapsed = call.attempts, call.elapsed
  local message = call.requests > 1 and summary .. "; the first: " .. first.message or first.message
  return errors.new(first.kind, message, all)
end

-- Lookups

---@class riskscreen.bulk.Lookup
---@field call riskscreen.bulk.Call
---@field addresses string[] the different ones
---@field positions integer[] for each input the number of its address among them
---@field found table<integer, table|false> the records by that number; absent until answered

local function new_lookup(call)
  local numbers, addresses, positions = {}, {}, {}
  for index, address in ipairs(call.parameters[call.list]) do
    local key = canonical_address(address, call.parameters.network)
    if not numbers[key] then
      addresses[#addresses + 1] = address
      numbers[key] = #addresses
    end
    positions[index] = numbers[key]
  end
  return { call = call, addresses = addresses, positions = positions, found = {} }
end

-- The numbers of the addresses that were not answered yet.
local function missing(lookup)
  local numbers = {}
  for number = 1, #lookup.addresses do
    if lookup.found[number] == nil then
      numbers[#numbers + 1] = number
    end
  end
  return numbers
end

-- The records in the order of the input, and the positions without one.
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

-- Asks for the missing addresses.
local function look_up(lookup)
  local call, errs = lookup.call, {}
  local parts = send_parts(call, missing(lookup), function(numbers, part)
    local addresses = {}
    for index, number in ipairs(numbers) do
      addresses[index] = lookup.addresses[number]
    end
    local records, other = send(call, addresses)
    for index, number in ipairs(records and numbers or {}) do
      lookup.found[number] = records[index]
    end
    errs[part] = not records and other or nil
    return true
  end)
  local records, failed = aligned(lookup)
  local first, retryable, sent = nil, false, false
  for part = 1, parts do
    local err = errs[part]
    if err then
      first = first or err
      retryable, sent = retryable or err.retryable, sent or err.sent ~= false
    end
  end
  if not first then
    return records, response_of(call)
  end
  local summary = ("nothing is known of %d of %d addresses"):format(#failed, #lookup.positions)
  return nil,
    failure_of(call, first, summary, {
      partial = records,
      failed = failed,
      retryable = retryable,
      sent = sent,
      retry = function()
        return look_up(lookup)
      end,
    })
end

-- Additions

---@class riskscreen.bulk.Addition
---@field call riskscreen.bulk.Call
---@field items table[]
---@field fates table<integer, { fate: string, error?: riskscreen.Error }> by the item's position
---@field refusals integer requests refused in a row

local function fate_of(err)
  if err.sent == false then
    return "unsent"
  end
  return errors.is_uncertain(err) and "uncertain" or "refused"
end

local function may_send_again(fate)
  return fate.fate == "unsent" or (fate.fate == "refused" and fate.error.retryable)
end

-- Whether to send a refused request again in halves: the service may have refused it for some of its items.
local function should_bisect(addition, positions, err)
  if not (err.kind == "bad_request" or (err.kind == "api" and err.code == EMPTY_RISK_TYPE)) then
    return false
  end
  addition.refusals = addition.refusals + 1
  return #positions > 1 and addition.refusals <= MAX_REFUSALS
end

local function add_part(addition, positions)
  local items = {}
  for index, position in ipairs(positions) do
    items[index] = addition.items[position]
  end
  local value, other = send(addition.call, items)
  local fate = { fate = "added" }
  if value ~= nil then
    addition.refusals = 0
  elseif should_bisect(addition, positions, other) then
    for _, half in ipairs(in_parts(positions, math.ceil(#positions / 2))) do
      add_part(addition, half)
    end
    return
  else
    fate = { fate = fate_of(other), error = other }
  end
  for _, position in ipairs(positions) do
    addition.fates[position] = fate
  end
end

local function report_of(addition)
  local report, failed = { added = {}, refused = {}, uncertain = {}, unsent = {} }, {}
  for position, item in ipairs(addition.items) do
    local fate = addition.fates[position]
    local list = report[fate.fate]
    if fate.error then
      list[#list + 1] = { index = position, item = item, error = fate.error }
      failed[#failed + 1] = position
    else
      list[#list + 1] = position
    end
  end
  return report, failed
end

-- Sends the items that were not sent yet, or were refused for a reason that may pass.
local function add(addition)
  local call, fates, positions = addition.call, addition.fates, {}
  for position = 1, #addition.items do
    if not fates[position] or may_send_again(fates[position]) then
      positions[#positions + 1] = position
    end
  end
  send_parts(call, positions, function(part)
    add_part(addition, part)
    return true
  end)
  local report, failed = report_of(addition)
  if not failed[1] then
    return report, response_of(call)
  end
  local retryable = false
  for _, position in ipairs(failed) do
    retryable = retryable or may_send_again(fates[position])
  end
  local summary = ("of %d items %d were added, %d refused, %d are uncertain, %d were not sent"):format(
    #addition.items,
    #report.added,
    #report.refused,
    #report.uncertain,
    #report.unsent
  )
  return nil,
    failure_of(call, fates[failed[1]].error, summary, {
      report = report,
      failed = failed,
      uncertain = #report.uncertain > 0 or nil,
      retryable = retryable,
      sent = #report.unsent < #addition.items,
      retry = function()
        return add(addition)
      end,
    })
end

-- The operation without the limit of its list, so that a list of any length is checked before anything is sent.
local function without_limit(operation, name)
  local parameters, limit = {}, nil
  for index, parameter in ipairs(operation.parameters) do
    parameters[index] = parameter
    if parameter.name == name then
      limit = parameter.max_items
      parameters[index] = tables.copy(parameter)
      parameters[index].max_items = nil
    end
  end
  return tables.merge(operation, { parameters = parameters }), limit
end

local M = {}

---The call of an operation over a list; nil for the other operations. An operation that changes something sends one
---request after another by default: a later item for the same address takes effect later.
---@param operation riskscreen.Operation
---@param perform fun(state: riskscreen.State, operation: riskscreen.Operation, parameters: table, options: table)
---@param address_check fun(state: riskscreen.State, operation: riskscreen.Operation, options: table): string|false
---@return nil|fun(state: riskscreen.State, parameters: table, options: table): any, any
function M.of(operation, perform, address_check)
  local list = operation.aligned or operation.reported
  if not list then
    return nil
  end
  local unlimited, limit = without_limit(operation, list)
  return function(state, parameters, options)
    local checked, err = validate.parameters(unlimited, parameters, address_check(state, operation, options))
    if not checked then
      err.operation, err.sent, err.attempts, err.elapsed = operation.name, false, 0, 0
      return nil, err
    end
    local checked_options = tables.merge(options, { address_check = false })
    local call = {
      runtime = state.runtime,
      send = function(part)
        return perform(state, operation, part, checked_options)
      end,
      concurrency = options.concurrency or (operation.idempotent and state.settings.concurrency or 1),
      list = list,
      limit = limit,
      parameters = checked,
      requests = 0,
      attempts = 0,
      elapsed = 0,
    }
    if operation.aligned then
      return look_up(new_lookup(call))
    end
    return add { call = call, items = checked[list], fates = {}, refusals = 0 }
  end
end

return M
