-- Calls over lists longer than one request may carry. A lookup asks for each address once and aligns the records with
-- its input. An addition reports what happened to each item, and never sends an item again that may have been added.

local calls = require "riskscreen.call"
local addresses = require "riskscreen.address"
local errors = require "riskscreen.errors"
local maps = require "riskscreen.client.map"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local EMPTY_RISK_TYPE = 3016 -- the service's code for an item that it finds invalid
local MAX_REFUSALS = 16 -- requests refused in a row after which no more halves are tried: the items are not the reason

---@class riskscreen.bulk.Call one call, and all its requests so far
---@field kind riskscreen.bulk.Kind
---@field items any[] to send: the different addresses, or the items to add
---@field positions? integer[] of a lookup: for each address as it was given, its position among the items
---@field outcomes table<integer, { value?: any, error?: riskscreen.Error }> by the item's position
---@field refusals integer requests to add that were refused in a row
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

---@class riskscreen.bulk.Kind how lookups and additions differ
---@field send fun(call: riskscreen.bulk.Call, positions: integer[]) sends some items and sets their outcomes
---@field is_due fun(err: riskscreen.Error): boolean whether `retry` sends an item again
---@field may_succeed fun(err: riskscreen.Error): boolean whether that may succeed
---@field report fun(call: riskscreen.bulk.Call): any, string, table the value, the summary of a failure, and its fields

-- Sends one request for the items at some positions.
local function send(call, positions)
  local items = {}
  for index, position in ipairs(positions) do
    items[index] = call.items[position]
  end
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

-- Sends the items at some positions in requests of `limit` items, several at a time.
local function send_parts(call, positions)
  local runtime, parts = call.runtime, in_parts(positions, call.limit)
  local started = runtime.now()
  if #parts == 1 or runtime.refusal() then
    -- One part needs no task. Where nothing can wait each request fails and says so.
    for _, part in ipairs(parts) do
      call.kind.send(call, part)
    end
  else
    local run = assert(maps.new(runtime, parts, function(part)
      call.kind.send(call, part)
      return true
    end, { concurrency = call.concurrency, ordered = false }))
    while maps.next(run) do -- luacheck: ignore 542
    end
  end
  call.elapsed = call.elapsed + runtime.now() - started
end

-- The first error of the call, whether a retry may succeed, and whether anything may have reached the service.
local function failures_of(call)
  local first, retryable, sent = nil, false, false
  for position = 1, #call.items do
    local err = call.outcomes[position].error
    first = first or err
    retryable = retryable or (err and call.kind.may_succeed(err)) or false
    sent = sent or not err or err.sent ~= false
  end
  return first, retryable, sent
end

-- Whether an item has no outcome yet, or a failure that is due for a retry.
local function is_due(call, position)
  local outcome = call.outcomes[position]
  return not outcome or (outcome.error and call.kind.is_due(outcome.error))
end

-- Sends the items that are due. Returns the value and the response, or nil and the first failure with the results of
-- the whole call.
local function settle(call)
  local positions = {}
  for position = 1, #call.items do
    positions[#positions + 1] = is_due(call, position) and position or nil
  end
  send_parts(call, positions)
  local first, retryable, sent = failures_of(call)
  local value, summary, fields = call.kind.report(call)
  if not first then
    return value, tables.merge(call.response, { attempts = call.attempts, elapsed = call.elapsed })
  end
  local all = tables.merge(tables.merge(first, fields), {
    retryable = retryable,
    sent = sent,
    attempts = call.attempts,
    elapsed = call.elapsed,
    retry = function()
      return settle(call)
    end,
  })
  all.kind, all.message = nil, nil
  local message = call.requests > 1 and summary .. "; the first: " .. first.message or first.message
  return nil, errors.new(first.kind, message, all)
end

local lookup = {}

function lookup.send(call, positions)
  local records, other = send(call, positions)
  for index, position in ipairs(positions) do
    call.outcomes[position] = records and { value = records[index] } or { error = other }
  end
end

function lookup.is_due()
  return true
end

function lookup.may_succeed(err)
  return err.retryable
end

-- The records in the order of the input, and the positions without one.
function lookup.report(call)
  local records, failed = {}, {}
  for index, position in ipairs(call.positions) do
    local outcome = call.outcomes[position]
    records[index] = outcome.value
    if outcome.error then
      failed[#failed + 1] = index
    end
  end
  local summary = ("nothing is known of %d of %s"):format(#failed, text.count(#call.positions, "address"))
  return records, summary, { partial = records, failed = failed }
end

-- The different addresses of a list, and for each address of the list its position among them.
local function distinct(list, network)
  local position_of, different, positions = {}, {}, {}
  for index, address in ipairs(list) do
    local key = addresses.normalize(address, network)
    if not position_of[key] then
      different[#different + 1] = address
      position_of[key] = #different
    end
    positions[index] = position_of[key]
  end
  return different, positions
end

local addition = {}

local function fate_of(err)
  if not err then
    return "added"
  elseif err.sent == false then
    return "unsent"
  end
  return errors.is_uncertain(err) and "uncertain" or "refused"
end

function addition.is_due(err)
  local fate = fate_of(err)
  return fate == "unsent" or (fate == "refused" and err.retryable)
end

addition.may_succeed = addition.is_due

-- Whether to send a refused request again in halves: the service may have refused it for some of its items.
local function should_bisect(call, positions, err)
  if
    errors.is_uncertain(err) or not (err.kind == "bad_request" or (err.kind == "api" and err.code == EMPTY_RISK_TYPE))
  then
    return false
  end
  call.refusals = call.refusals + 1
  return #positions > 1 and call.refusals <= MAX_REFUSALS
end

local function add(call, positions)
  local value, other = send(call, positions)
  local outcome = { error = other }
  if value ~= nil then
    call.refusals, outcome = 0, {}
  elseif should_bisect(call, positions, other) then
    for _, half in ipairs(in_parts(positions, math.ceil(#positions / 2))) do
      add(call, half)
    end
    return
  end
  for _, position in ipairs(positions) do
    call.outcomes[position] = outcome
  end
end

-- Until its answer comes an item is uncertain: the task may be stopped, and another one may retry meanwhile.
function addition.send(call, positions)
  local due, under_way = {}, errors.new("cancelled", "no answer was awaited", { sent = true })
  for _, position in ipairs(positions) do
    if is_due(call, position) then
      due[#due + 1], call.outcomes[position] = position, { error = under_way }
    end
  end
  if due[1] then
    add(call, due)
  end
end

function addition.report(call)
  local report, failed = { added = {}, refused = {}, uncertain = {}, unsent = {} }, {}
  for position, item in ipairs(call.items) do
    local err = call.outcomes[position].error
    table.insert(report[fate_of(err)], err and { index = position, item = item, error = err } or position)
    failed[#failed + 1] = err and position
  end
  local summary = ("of %s, added: %d, refused: %d, uncertain: %d, not sent: %d"):format(
    text.count(#call.items, "item"),
    #report.added,
    #report.refused,
    #report.uncertain,
    #report.unsent
  )
  return report, summary, { report = report, failed = failed, uncertain = #report.uncertain > 0 or nil }
end

-- The operation without the limit of its list, so that a list of any length is checked before anything is sent.
local function without_limit(operation, name)
  local parameters, limit = {}, nil
  for index, parameter in ipairs(operation.parameters) do
    parameters[index] = parameter
    if parameter.name == name then
      limit = parameter.max_items
      parameters[index] = tables.without(parameter, "max_items")
    end
  end
  return tables.merge(operation, { parameters = parameters }), limit
end

local M = {}

---The call of an operation over a list; nil for the other operations. An operation that changes something sends one
---request after another by default: a later item for the same address takes effect later.
---@param operation riskscreen.Operation
---@return nil|fun(state: riskscreen.State, parameters: table, options: table): any, any
function M.of(operation)
  local list = operation.aligned or operation.reported
  if not list then
    return nil
  end
  local unlimited, limit = without_limit(operation, list)
  return function(state, parameters, options)
    local checked, err = calls.check(state, unlimited, parameters, options)
    if not checked then
      return nil, err
    end
    local call = {
      kind = operation.aligned and lookup or addition,
      items = checked[list],
      outcomes = {},
      refusals = 0,
      runtime = state.runtime,
      send = function(part)
        return calls.make(state, operation, part, options)
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
      call.items, call.positions = distinct(call.items, addresses.alike(checked.network, state.settings.extend))
    end
    return settle(call)
  end
end

return M
