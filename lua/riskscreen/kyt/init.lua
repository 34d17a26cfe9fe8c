-- Transaction screening: submitting a transaction, and awaiting its result here or in another process. How a result
-- comes is in kyt/pending.lua; what one means for a decision, in score_policy.lua.

local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local pending = require "riskscreen.kyt.await"
local request = require "riskscreen.interface.request"
local text = require "riskscreen.util.text"

local TICKET_VERSION = 1
local LONGEST_ID = 1024 -- bytes
local LONGEST_TICKET = 16384 -- bytes

local SUBMIT, RESULT = operations.by_name.screenTransaction, operations.by_name.getAsynchronousResult

---@class riskscreen.Transactions the transactions of one client
---@field private settings table the client's
---@field private perform fun(operation: riskscreen.Operation, parameters: table, call: table): any, any
---@field private runtime table the client's
---@field private pendings table<string, riskscreen.Pending> by requestId; weak
local Transactions = {}
Transactions.__index = Transactions

---@class riskscreen.Transaction a submitted transaction
---@field requestId? string absent where the submission's fate is not known
---@field customId? string
local Transaction = {}
Transaction.__index = Transaction
Transaction.__name = "riskscreen.Transaction"

-- What a transaction must not show: the client's settings hold its key.
---@type table<riskscreen.Transaction, { transactions: riskscreen.Transactions, pending: riskscreen.Pending }>
local privates = setmetatable({}, { __mode = "k" })

-- The only option of awaiting.
local await_options = {
  {
    name = "timeout",
    type = "number",
    minimum = 0,
    maximum = 30 * 86400,
    unit = "seconds",
    doc = "How long to wait; by default `polling.deadline`.",
  },
}

local function unsupported(message)
  return errors.new("unsupported", message, { operation = SUBMIT.name, sent = false })
end

-- Why no result can ever come, or nil; `identified` by a requestId or by a customId alone.
function Transactions:without_source(identified)
  local inbox = self.settings.inbox
  if inbox and (identified or inbox.waiters.by_custom_id) then
    return nil
  elseif not request.endpoint(RESULT, self.settings) then
    return unsupported(
      "the interface does not publish how results are asked for; set endpoints.kyt_result = { method = …, path = … } "
        .. "and they are polled, or inbox = riskscreen.webhook.inbox { … } and they come by webhook"
    )
  elseif not identified then
    return unsupported "without a requestId a result cannot be asked for; by customId it comes by webhook: set inbox"
  end
end

function Transactions:new_pending(request_id, custom_id, delay)
  local settings, runtime = self.settings, self.runtime
  local final = {}
  for _, status in ipairs(settings.final_statuses) do
    final[status] = true
  end
  local ask = request_id
    and request.endpoint(RESULT, settings)
    and function(timeout)
      return self.perform(RESULT, { requestId = request_id }, { timeout = timeout })
    end
  return pending.new({
    request_id = request_id,
    custom_id = custom_id,
    ask = ask or nil,
    timeout = settings.timeout,
    waiters = settings.inbox and settings.inbox.waiters,
    polling = settings.polling,
    final = final,
    random = settings.random,
    now = runtime.now,
    spawn = runtime.tasks.spawn,
    signal = runtime.tasks.signal(),
  }, delay)
end

-- The one result of a requestId, however often it is taken up. Without a delay it may be there already.
function Transactions:pending(request_id, custom_id, delay)
  local found = request_id and self.pendings[request_id]
  if not found or (custom_id and found.custom_id ~= custom_id) then
    found = self:new_pending(request_id, custom_id, delay or 0)
    if request_id then
      self.pendings[request_id] = found
    end
  elseif not delay then
    found:hasten()
  end
  return found
end

function Transactions:transaction(request_id, custom_id, delay)
  local transaction = setmetatable({ requestId = request_id, customId = custom_id }, Transaction)
  privates[transaction] = { transactions = self, pending = self:pending(request_id, custom_id, delay) }
  return transaction
end

local function ticket_of(request_id, custom_id)
  return assert(json.encode { version = TICKET_VERSION, requestId = request_id, customId = custom_id })
end

-- A submission that may have taken effect although no answer says so. It is never repeated; by the caller's own
-- identifier an inbox may still tell its result.
local function uncertain(self, err, custom_id)
  err.uncertain = true
  local inbox = self.settings.inbox
  if custom_id and inbox and inbox.waiters.by_custom_id then
    err.ticket = ticket_of(nil, custom_id)
  end
  return err
end

function Transactions:submit(parameters, call)
  local value, other = self.perform(SUBMIT, parameters, call)
  if value and value.requestId == "" then
    value, other = nil, errors.new("protocol", "data.requestId is empty", { operation = SUBMIT.name, sent = true })
  end
  if value then
    local delay = pending.interval(self.settings.polling, 1, self.settings.random)
    return self:transaction(value.requestId, parameters.customId, delay), other
  elseif errors.is_uncertain(other) then
    return nil, uncertain(self, other, parameters.customId)
  end
  return nil, other
end

local function await(transaction, timeout)
  local private = privates[transaction]
  local settings = private.transactions.settings
  local err = private.transactions:without_source(private.pending.request_id ~= nil)
  if err then
    return nil, err
  end
  return private.pending:await(timeout or settings.polling.deadline)
end

---Waits for the result: as long as `polling.deadline` where nothing is said. Every wait for it gets the same result.
---@param timeout? number seconds
---@return table|nil result as the interface spells it
---@return table|riskscreen.Error other on success `source` ("poll" or "webhook"), `event`, `elapsed`, `attempts`
function Transaction:await(timeout)
  local _, wrong = check.options(await_options, { timeout = timeout })
  if not privates[self] then
    error("call it with a colon: transaction:await(…)", 2)
  elseif wrong then
    error("await: " .. wrong.message, 2)
  end
  return await(self, timeout)
end

---A text from which another process, or this one later, takes the transaction up: `client.kyt:resume(ticket)`.
---@return string
function Transaction:ticket()
  return ticket_of(self.requestId, self.customId)
end

local function is_id(value)
  return type(value) == "string" and value ~= "" and #value <= LONGEST_ID and not value:find "[%z\1-\31\127]"
end

local function invalid(field, message)
  return nil, errors.new("invalid_argument", message, { field = field, sent = false })
end

-- What a ticket says, or why it is none.
local function read_ticket(ticket)
  local content = type(ticket) == "string" and #ticket <= LONGEST_TICKET and json.decode(ticket)
  if type(content) ~= "table" or content.version ~= TICKET_VERSION then
    return invalid("ticket", "the ticket is none that a transaction gave (got " .. text.show(ticket) .. ")")
  end
  local request_id, custom_id = content.requestId, content.customId
  local proper = (request_id == nil or is_id(request_id)) and (custom_id == nil or is_id(custom_id))
  if not proper or (request_id == nil and custom_id == nil) then
    return invalid("ticket", "the ticket names no proper requestId or customId")
  end
  return content
end

local function new_transactions(state, perform)
  return setmetatable({
    settings = state.settings,
    runtime = state.runtime,
    perform = function(operation, parameters, call)
      return perform(state, operation, parameters, call)
    end,
    pendings = setmetatable({}, { __mode = "v" }),
  }, Transactions)
end

local M = {}

---The methods of `client.kyt` that are more than a call.
---@param access riskscreen.Access
---@return table<string, function>
function M.methods(access)
  local methods = {}

  -- The client's transactions and the checked options of a call, or nil and how the call is wrong.
  local function open(self, parameters, specs, given)
    local state, checked = access.open(self, "client.kyt", parameters, specs, given)
    if not state then
      return nil, checked
    end
    state.transactions = state.transactions or new_transactions(state, access.perform)
    return state.transactions, checked
  end

  ---Submits a transaction. It is never submitted twice: an error with `uncertain` set says that it may have been.
  ---@return riskscreen.Transaction|nil
  ---@return riskscreen.Response|riskscreen.Error
  function methods.submit(self, parameters, call_options)
    local transactions, call = open(self, parameters, options.call, call_options)
    if not transactions then
      error(call, 2)
    end
    return transactions:submit(parameters or {}, call)
  end

  ---Submits a transaction and awaits its result. Nothing is submitted where no result could come.
  ---@return table|nil result
  ---@return table|riskscreen.Error
  function methods.screen(self, parameters, call_options)
    local transactions, call = open(self, parameters, options.call, call_options)
    if not transactions then
      error(call, 2)
    end
    local err = transactions:without_source(true)
    if err then
      return nil, err
    end
    local now = transactions.runtime.now
    local seconds = call.timeout or transactions.settings.polling.deadline
    local started = now()
    local limit = math.max(math.min(seconds, transactions.settings.timeout), 0.001)
    local transaction, other = transactions:submit(parameters or {}, { timeout = limit, headers = call.headers })
    if not transaction then
      return nil, other
    end
    return await(transaction, math.max(seconds - (now() - started), 0))
  end

  ---Awaits the result of a request that was submitted anywhere.
  ---@param request_id string
  ---@param await_options_given? { timeout?: number }
  ---@return table|nil result
  ---@return table|riskscreen.Error
  function methods.await(self, request_id, await_options_given)
    local transactions, call = open(self, nil, await_options, await_options_given)
    if not transactions then
      error(call, 2)
    elseif not is_id(request_id) then
      return invalid("requestId", "requestId must be a text (got " .. text.show(request_id) .. ")")
    end
    return await(transactions:transaction(request_id), call.timeout)
  end

  ---Takes up a transaction that was submitted anywhere.
  ---@param ticket string
  ---@return riskscreen.Transaction|nil
  ---@return riskscreen.Error|nil
  function methods.resume(self, ticket)
    local transactions, wrong = open(self, nil, await_options, nil)
    if not transactions then
      error(wrong, 2)
    end
    local content, err = read_ticket(ticket)
    if not content then
      return nil, err
    end
    return transactions:transaction(content.requestId, content.customId)
  end

  return methods
end

return M
