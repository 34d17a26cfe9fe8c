-- Transaction screening (`client.kyt`): submit a transaction, and await its result here or in another process.
-- policy/score.lua decides from a result.

local awaiting = require "riskscreen.kyt.await"
local check = require "riskscreen.options.check"
local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local request = require "riskscreen.interface.request"
local submission = require "riskscreen.kyt.submit"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local tickets = require "riskscreen.kyt.tickets"

local RESULT = operations.by_name.getAsynchronousResult
local LONGEST_WAIT = 30 * 86400 -- seconds

local await_options = {
  build.seconds("timeout", nil, "How long to wait; by default `polling.deadline`.", 0, LONGEST_WAIT),
}

---@class riskscreen.Transaction a submitted transaction
---@field requestId? string absent when the outcome of the submission is uncertain
---@field customId? string
local Transaction = {}
Transaction.__index = Transaction
Transaction.__name = "riskscreen.Transaction"

-- Apart from the transactions, because the client's settings hold the access key.
---@type table<riskscreen.Transaction, riskscreen.Pending>
local pendings = setmetatable({}, { __mode = "k" })

-- The error of a wait that can never end, or nil.
local function no_source(settings, request_id)
  local message
  local inbox = settings.inbox
  if inbox and (request_id or inbox.waiters.by_custom_id) then
    return nil
  elseif not request.endpoint(RESULT, settings) then
    message = "the interface does not publish how results are asked for; set endpoints.kyt_result = "
      .. "{ method = …, path = … } to poll, or inbox = riskscreen.webhook.inbox { … } to receive webhooks"
  elseif not request_id then
    message = "without a requestId a result cannot be polled; by customId it comes by webhook: set inbox"
  else
    return nil
  end
  return errors.new("unsupported", message, { operation = RESULT.name, sent = false })
end

-- The one pending result of a requestId. Without a delay it is polled at once.
local function pending_of(access, state, request_id, custom_id, delay)
  state.pendings = state.pendings or setmetatable({}, { __mode = "v" })
  local found = request_id and state.pendings[request_id]
  if found and (not custom_id or found.custom_id == custom_id) then
    if not delay then
      found:poll_now()
    end
    return found
  end
  local fetch = request_id
      and request.endpoint(RESULT, state.settings)
      and function(call_options)
        return access.perform(state, RESULT, { requestId = request_id }, call_options)
      end
    or nil
  found = awaiting.new(state, { request_id = request_id, custom_id = custom_id }, fetch, delay or 0)
  if request_id then
    state.pendings[request_id] = found
  end
  return found
end

local function new_transaction(access, state, request_id, custom_id, delay)
  local transaction = setmetatable({ requestId = request_id, customId = custom_id }, Transaction)
  pendings[transaction] = pending_of(access, state, request_id, custom_id, delay)
  return transaction
end

local function await(transaction, seconds, call_options)
  local pending = pendings[transaction]
  local err = no_source(pending.settings, transaction.requestId)
  if err then
    return nil, err
  end
  return pending:await(seconds or pending.settings.polling.deadline, call_options)
end

---Waits for the result. Every wait returns the same result.
---@param given? { timeout?: number } by default `polling.deadline`
---@return table|nil result as the interface spells it
---@return table|riskscreen.Error other on success `source` ("poll" or "webhook"), `event`, `elapsed`, `attempts`
function Transaction:await(given)
  if not pendings[self] then
    error("call it with a colon: transaction:await(…)", 2)
  elseif given ~= nil and type(given) ~= "table" then
    error("await: options must be a table such as { timeout = 5 } (got " .. text.kind(given) .. ")", 2)
  end
  local checked, wrong = check.options(await_options, given or {})
  if not checked then
    error("await: " .. wrong.message, 2)
  end
  return await(self, checked.timeout)
end

---A text with which any process can resume the transaction: `client.kyt:resume(ticket)`.
---@return string
function Transaction:ticket()
  return tickets.encode(self.requestId, self.customId)
end

local M = {}

---The methods of `client.kyt` that are more than a call.
---@param access riskscreen.Access
---@return table<string, function>
function M.methods(access)
  local methods = {}

  local function submit(state, parameters, call_options)
    local request_id, other = submission.submit(access, state, parameters, call_options)
    if not request_id then
      return nil, other
    end
    local delay = awaiting.interval(state.settings.polling, 1, state.settings.random)
    return new_transaction(access, state, request_id, parameters.customId, delay), other
  end

  ---Submits a transaction. It is never submitted twice: `err.uncertain` says that it may have been submitted.
  ---@return riskscreen.Transaction|nil
  ---@return riskscreen.Response|riskscreen.Error
  function methods.submit(self, parameters, call_options)
    local state, checked = access.open(self, "client.kyt", parameters, options.call, call_options)
    if not state then
      error(checked, 2)
    end
    return submit(state, parameters or {}, checked)
  end

  ---Submits a transaction and awaits its result. Like every call it ends within `timeout`: the call's own, or else the
  ---client's. The other call options apply to the submission and to every poll. Nothing is submitted where no result
  ---could come. After a timeout `client.kyt:await(err.request_id)` goes on waiting.
  ---@return table|nil result
  ---@return table|riskscreen.Error
  function methods.screen(self, parameters, call_options)
    local state, checked = access.open(self, "client.kyt", parameters, options.call, call_options)
    if not state then
      error(checked, 2)
    end
    local settings, now = state.settings, state.runtime.now
    local err = no_source(settings, true)
    if err then
      return nil, err
    end
    local started, seconds = now(), checked.timeout or settings.timeout
    local submit_options = tables.merge(checked, { timeout = math.min(seconds, settings.timeout) })
    local transaction, other = submit(state, parameters or {}, submit_options)
    if not transaction then
      return nil, other
    end
    return await(transaction, math.max(seconds - (now() - started), 0), checked)
  end

  ---Awaits the result of a request that any process has submitted.
  ---@param request_id string
  ---@param await_options_given? { timeout?: number } by default `polling.deadline`
  ---@return table|nil result
  ---@return table|riskscreen.Error
  function methods.await(self, request_id, await_options_given)
    local state, checked = access.open(self, "client.kyt", nil, await_options, await_options_given)
    if not state then
      error(checked, 2)
    elseif not tickets.is_id(request_id) then
      local message = "requestId must be a text (got " .. text.show(request_id) .. ")"
      return nil, errors.new("invalid_argument", message, { field = "requestId", sent = false })
    end
    return await(new_transaction(access, state, request_id), checked.timeout)
  end

  ---Resumes a transaction that any process has submitted.
  ---@param ticket string
  ---@return riskscreen.Transaction|nil
  ---@return riskscreen.Error|nil
  function methods.resume(self, ticket)
    local state, wrong = access.open(self, "client.kyt")
    if not state then
      error(wrong, 2)
    end
    local content, err = tickets.decode(ticket)
    if not content then
      return nil, err
    end
    return new_transaction(access, state, content.requestId, content.customId)
  end

  return methods
end

return M
