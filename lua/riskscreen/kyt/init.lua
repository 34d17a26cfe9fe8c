-- Transaction screening (`client.kyt`): submit a transaction, and await its result here or in another process.
-- policy/score.lua decides from a result.

local addresses = require "riskscreen.address"
local awaiting = require "riskscreen.kyt.await"
local build = require "riskscreen.options.build"
local calls = require "riskscreen.call"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local request = require "riskscreen.interface.request"
local submissions = require "riskscreen.kyt.submission"
local submission_store = require "riskscreen.kyt.submission_store"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local ttl_queue = require "riskscreen.util.ttl_queue"

---@alias riskscreen.TransactionKind "transaction"|"custom_score"

-- The operations of each kind of request: the submission, and the result with its stand-in.
local kinds = {
  transaction = {
    submit = operations.by_name.screenTransaction,
    results = { operations.by_name.getAsynchronousResult },
  },
  custom_score = {
    submit = operations.by_name.getCustomRiskScore,
    results = { operations.by_name.getCustomRiskScoreResult, operations.by_name.getAsynchronousResult },
  },
}
local CLOCK_SKEW = 60 -- seconds by which the clocks of two programs may differ
local LONGEST_WAIT = 30 * 86400 -- seconds
local MAX_REMEMBERED = 4096 -- submissions of a client whose hash and network `await` still knows

local wait_options = {
  build.seconds("timeout", nil, "How long to wait; by default `polling.deadline`.", 0, LONGEST_WAIT),
}

local kind_options = {
  build.choice("kind", { "transaction", "custom_score" }, "transaction", "The kind of the request."),
}

local await_options = tables.concat(wait_options, kind_options)

---@class riskscreen.Transaction a submitted transaction
---@field requestId? string absent when the outcome of the submission is uncertain
---@field customId? string
local Transaction = {}
Transaction.__index = Transaction
Transaction.__name = "riskscreen.Transaction"

-- The pending result of each transaction, and its entry in the store. They are no fields of it, because the client's
-- settings hold the access key.
---@type table<riskscreen.Transaction, { pending: riskscreen.Pending, entry?: riskscreen.kyt.Entry }>
local hidden = setmetatable({}, { __mode = "k" })

-- The operation by which results of a kind are polled, or nil.
local function result_operation(kind, settings)
  for _, operation in ipairs(kinds[kind].results) do
    if request.endpoint(operation, settings) then
      return operation
    end
  end
end

-- The error of a wait that can never end, or nil.
local function no_source(settings, request_id, kind)
  local inbox, message = settings.inbox, nil
  if inbox and (request_id or inbox.waiters.by_custom_id) then
    return nil
  elseif not result_operation(kind, settings) then
    local how = "the interface does not publish how results are asked for; set endpoints.%s = { method = …, path = … } "
      .. "to poll, or inbox = riskscreen.webhook.inbox { … } to receive webhooks, or immediate_results = true "
      .. "if the answer to a submission is the result"
    message = how:format(operations.endpoint_key(kinds[kind].results[1]))
  elseif not request_id then
    message = "without a requestId a result cannot be polled; by customId it comes by webhook: set inbox"
  end
  local facts = { operation = kinds[kind].results[1].name, sent = false }
  return message and errors.new("unsupported", message, facts) or nil
end

-- The submissions and the pending results of a client, by the name of the submission.
local function known_of(state)
  if not state.pendings then
    local remembered = ttl_queue.new(MAX_REMEMBERED, LONGEST_WAIT, state.runtime.now)
    state.pendings = { submissions = remembered, by_name = setmetatable({}, { __mode = "v" }) }
  end
  return state.pendings
end

-- A new pending result, which later transactions of its requestId share.
local function new_pending(state, submission, delay)
  local operation = submission.requestId and result_operation(submission.kind, state.settings)
  local fetch = operation
      and function(call_options)
        return calls.perform(state, operation, { requestId = submission.requestId }, call_options)
      end
    or nil
  local pending = awaiting.new(state, submission, fetch, delay)
  if submission.requestId then
    local name, known = submissions.name(submission), known_of(state)
    known.by_name[name] = pending
    known.submissions:put(name, submission)
  end
  return pending
end

-- The pending result of a record, which is polled at once. A record of a requestId alone is that of this client's
-- latest submission with it.
local function pending_of(state, wanted)
  local name, known = submissions.name(wanted), known_of(state)
  local found = known.by_name[name]
  if found and submissions.covers(found.submission, wanted) then
    found:poll_now()
    return found
  end
  local earlier = wanted.requestId and known.submissions:get(name)
  return new_pending(state, earlier and submissions.covers(earlier, wanted) and earlier or wanted, 0)
end

local function new_transaction(pending, entry)
  local submission = pending.submission
  local transaction = setmetatable({ requestId = submission.requestId, customId = submission.customId }, Transaction)
  hidden[transaction] = { pending = pending, entry = entry }
  return transaction
end

local function await(transaction, seconds, call_options)
  local pending = hidden[transaction].pending
  local err = not pending.outcome and no_source(pending.settings, transaction.requestId, pending.submission.kind)
  if err then
    return nil, err
  end
  return pending:await(seconds or pending.settings.polling.deadline, call_options)
end

-- The result and the entry of a transaction. Misuse raises at the caller of the transaction's method.
local function inside(transaction, method)
  return hidden[transaction] or error("call it with a colon: transaction:" .. method, 3)
end

---Waits for the result. Every wait returns the same result.
---@param given? { timeout?: number } by default `polling.deadline`
---@return table|nil result as the interface spells it
---@return table|riskscreen.Error other on success `source` ("submission", "poll" or "webhook"), `event`, `elapsed`,
---`attempts`
function Transaction:await(given)
  inside(self, "await(…)")
  if given ~= nil and type(given) ~= "table" then
    error("await: options must be a table such as { timeout = 5 } (got " .. text.kind(given) .. ")", 2)
  end
  return await(self, check.arguments("await", wait_options, given or {}).timeout)
end

---A text with which any process can resume the transaction: `client.kyt:resume(ticket)`. A transaction that finished at
---once may have no requestId, and then nothing can be resumed.
---@return string|nil
---@return riskscreen.Error|nil
function Transaction:ticket()
  local pending = inside(self, "ticket()").pending
  if not (self.requestId or self.customId) then
    local message = "the transaction is finished and has no requestId: keep the result that await returns"
    return nil, errors.new("unsupported", message, { sent = false })
  end
  return submissions.encode(pending.submission)
end

---Removes the transaction from the client's store: its result is handled. Until then it is not submitted again.
---Without a store it does nothing.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Transaction:forget()
  local entry = inside(self, "forget()").entry
  if entry then
    return entry:forget()
  end
  return true
end

-- The methods of `client.kyt` that are more than a call.
local methods = {}

-- The result that the answer to a submission carries; false if it comes later. With a requestId an answer is a result
-- only under a final status, and without one it needs no status.
local function result_of(state, submission, answer)
  local owned, message = submissions.matches(submission, answer, "submission")
  if not owned then
    return nil, awaiting.malformed(state, message, answer)
  end
  local request_id, progress = submissions.known(answer.requestId), submissions.progress(state.settings, answer)
  local is_decidable = submissions.known(answer.risks) ~= nil or submissions.known(answer.maxScore) ~= nil
  if is_decidable and (progress == "final" or not request_id and progress == "missing") then
    return answer
  elseif request_id then
    return false
  elseif not is_decidable then
    return nil, awaiting.malformed(state, "data.requestId is empty")
  elseif progress == "unknown" then
    return nil, awaiting.ended(state.hide_key, "the transaction", answer)
  end
  message = ("data.status is %s, which is pending, and there is no requestId"):format(tostring(answer.status))
  return nil, awaiting.malformed(state, message)
end

-- The networks on which a deny list may have the receiving address. A custom score may name none, or another text.
local function networks_of(network, extend)
  local added = extend and extend.network and extend.network[network or false]
  if added or addresses.network_names[network or false] then
    return { network }
  end
  return tables.sorted_keys(addresses.network_names)
end

-- The error of a transaction whose receiving address a local deny list has; or nil. Nothing is sent then.
local function denial(state, operation, parameters)
  local address, extend, decision = parameters.outputAddress, state.settings.extend, nil
  if not state.lists or type(address) ~= "string" then
    return nil
  end
  for _, network in ipairs(networks_of(parameters.network, extend)) do
    local canonical = addresses.normalize(address, addresses.alike(network, extend))
    local found = state.lists:decide(canonical, network)
    decision = decision or found and found.action ~= "allow" and found or nil
  end
  if not decision then
    return nil
  elseif decision.error then
    decision.error.operation = operation.name
    return decision.error
  end
  decision.address, decision.network = address, parameters.network
  local fields = { operation = operation.name, decision = decision, sent = false, attempts = 0, elapsed = 0 }
  return errors.new("list", decision.reasons[1].message, fields)
end

-- The record of a transaction that is about to be submitted.
local function new_submission(state, kind, parameters)
  local inbox = state.settings.inbox
  -- Another program's inbox has another clock, and this one's may be ahead.
  local at = inbox and inbox.waiters:mark() or state.clock() - CLOCK_SKEW
  return submissions.new(kind, parameters, at, submissions.account_of(state))
end

-- The ticket of a submission without an answer, or nil: by the caller's own identifier an inbox may still receive the
-- result.
local function ticket_before(state, submission)
  local inbox = state.settings.inbox
  return submission.customId and inbox and inbox.waiters.by_custom_id and submissions.encode(submission) or nil
end

-- The transaction that the store keeps; or nil and an error where its result is not known, and cannot be awaited.
local function kept_transaction(state, entry)
  local content, submission = entry.content, entry.content.submission
  local result, err = false, nil
  if content.state == "finished" then
    result, err = result_of(state, submission, content.result)
  elseif content.state ~= "submitted" or not submission.requestId then
    local message =
      "%s may have been submitted, and no answer is known: another program or task submits it, or was interrupted"
    local name = submission.customId or submission.hash
    local subject = "the transaction" .. (name and " " .. state.hide_key(text.show(name)) or "")
    local facts = { uncertain = true, sent = true, retryable = false, ticket = ticket_before(state, submission) }
    err = errors.new("timeout", message:format(subject), facts)
  end
  if err then
    err.submission = tables.pick(submission, { "kind", "customId", "hash", "network" })
    return nil, err
  end
  local pending = result and awaiting.new(state, submission, nil, nil, { result = result })
    or pending_of(state, submission)
  return new_transaction(pending, entry)
end

-- Sends a submission. One that may have taken effect is never repeated.
local function send(state, submission, parameters, call_options)
  local operation = kinds[submission.kind].submit
  local answer, other = calls.make(state, operation, parameters, call_options)
  local result, err = nil, other
  if answer ~= nil then
    result, err = result_of(state, submission, answer)
  end
  if err then
    if answer ~= nil then
      err.operation, err.uncertain, err.last = operation.name, true, answer
    end
    if errors.is_uncertain(err) then
      err.uncertain = true
      err.ticket = ticket_before(state, submission)
    end
    return nil, err
  end
  submission.requestId = submissions.known(answer.requestId)
  if result then
    local finished = { result = result, response = other }
    return new_transaction(awaiting.new(state, submission, nil, nil, finished)), other
  end
  local delay = awaiting.interval(state.settings.polling, 1, state.settings.random)
  return new_transaction(new_pending(state, submission, delay)), other
end

-- Submits a transaction, unless the store keeps it from before. Lists, store and service get one copy of the
-- parameters: the caller may change its own while the store or the inbox is waited for.
local function submit(state, kind, given, call_options)
  local operation = kinds[kind].submit
  local parameters, err = calls.check(state, operation, given, call_options)
  local submission
  err = err or denial(state, operation, parameters)
  if not err then
    submission, err = new_submission(state, kind, parameters)
  end
  if err then
    return nil, err
  elseif not state.settings.store then
    return send(state, submission, parameters, call_options)
  end
  local entry
  entry, err = submission_store.begin(state, submission, parameters, call_options.extra)
  if not entry then
    return nil, err
  elseif entry.content then
    local transaction
    transaction, err = kept_transaction(state, entry)
    return transaction, err or { kept = true, attempts = 0 }
  end
  local transaction, other = send(state, submission, parameters, call_options)
  if transaction then
    hidden[transaction].entry = entry
    local outcome = hidden[transaction].pending.outcome
    entry:note(outcome and "finished" or "submitted", outcome and outcome.result)
  elseif not other.uncertain then
    entry:forget()
  end
  return transaction, other
end

-- Submits and awaits the result within the call's time. Nothing is submitted where no result could come.
local function result_in_time(state, kind, parameters, call_options)
  local settings, now, operation = state.settings, state.runtime.now, kinds[kind].submit
  local subject = tables.pick(parameters, { "outputAddress", "network" }) -- the caller may change its own meanwhile
  local err = denial(state, operation, subject) or not settings.immediate_results and no_source(settings, true, kind)
  if err then
    return nil, err
  end
  local started, seconds = now(), call_options.timeout or settings.timeout
  local submit_options = tables.merge(call_options, { timeout = math.min(seconds, settings.timeout) })
  local transaction, other = submit(state, kind, parameters, submit_options)
  if not transaction then
    return nil, other
  end
  local poll_options = tables.copy(call_options)
  poll_options.extra = nil -- for the submission alone
  local result, outcome = await(transaction, math.max(seconds - (now() - started), 0), poll_options)
  if result then
    transaction:forget()
  end
  -- A deny list may have got the address while the result was awaited.
  err = result and denial(state, operation, subject)
  if err then
    err.sent, err.attempts, err.elapsed, err.last = true, outcome.attempts, outcome.elapsed, result
    return nil, err
  end
  return result, outcome
end

-- Screens a transaction. An error names what was asked for.
local function screen(state, kind, parameters, call_options)
  local result, other = result_in_time(state, kind, parameters, call_options)
  if not result then
    other.asked = kind
  end
  return result, other
end

-- The state of the client and the checked arguments of a method. Misuse raises at the method's caller.
local function open(self, parameters, specs, given)
  local state, checked = calls.open(self, "client.kyt", parameters, specs, given, nil, 1)
  return state, parameters or {}, checked
end

-- The state of the client, and a checked request of a kind.
local function open_request(self, kind, parameters, call_options)
  local state, checked = calls.open(self, "client.kyt", parameters, options.call, call_options, nil, 1)
  return state, kind, parameters or {}, checked
end

---Submits a transaction. It is never submitted twice: `err.uncertain` says that it may have been submitted.
---@return riskscreen.Transaction|nil
---@return riskscreen.Response|riskscreen.Error
function methods.submit(self, parameters, call_options)
  return submit(open_request(self, "transaction", parameters, call_options))
end

---Submits a transaction and awaits its result. Like every call it ends within `timeout`: the call's own, or else the
---client's. The other call options apply to the submission and to every poll. Nothing is submitted where no result
---could come. After a timeout `client.kyt:await(err.request_id)` goes on waiting.
---@return table|nil result
---@return table|riskscreen.Error
function methods.screen(self, parameters, call_options)
  return screen(open_request(self, "transaction", parameters, call_options))
end

---Submits a transaction for a custom risk score, like `submit`, with the parameters that the service names for it.
---@param parameters table
---@param call_options? table
---@return riskscreen.Transaction|nil
---@return riskscreen.Response|riskscreen.Error
function methods.submit_custom_score(self, parameters, call_options)
  return submit(open_request(self, "custom_score", parameters, call_options))
end

---Submits a transaction for a custom risk score and awaits the result, like `screen`.
---@param parameters table
---@param call_options? table
---@return table|nil result
---@return table|riskscreen.Error
function methods.screen_custom_score(self, parameters, call_options)
  return screen(open_request(self, "custom_score", parameters, call_options))
end

---Awaits the result of a request that any process has submitted.
---@param request_id string
---@param await_options_given? { timeout?: number, kind?: riskscreen.TransactionKind } by default `polling.deadline`
---@return table|nil result
---@return table|riskscreen.Error
function methods.await(self, request_id, await_options_given)
  local state, _, checked = open(self, nil, await_options, await_options_given)
  if not submissions.is_id(request_id) then
    local message = "requestId must be a text (got " .. state.hide_key(text.show(request_id)) .. ")"
    return nil, errors.new("invalid_argument", message, { field = "requestId", sent = false })
  end
  local kind = checked.kind or "transaction"
  local wanted = { requestId = request_id, kind = kind, account = submissions.account_of(state) }
  return await(new_transaction(pending_of(state, wanted)), checked.timeout)
end

---Resumes a transaction that any process has submitted.
---@param ticket string
---@return riskscreen.Transaction|nil
---@return riskscreen.Error|nil
function methods.resume(self, ticket)
  local state = open(self)
  local account = submissions.account_of(state)
  local submission, err = submissions.decode(ticket, account)
  if not submission then
    err.message = state.hide_key(err.message)
    return nil, err
  end
  submission.account = account -- older tickets name none
  local entry = state.settings.store and submission_store.of_submission(state, submission) or nil
  return new_transaction(pending_of(state, submission), entry)
end

---Iterates over the transactions that the client's store keeps: submitted by any program, and not forgotten yet. Where
---it is not known whether one was submitted, the transaction is nil; the error has `uncertain` and perhaps a `ticket`.
---For an entry that is damaged the error has the kind `storage`, and the loop goes on.
---@return fun(): boolean|nil, riskscreen.Transaction|nil, riskscreen.Error|nil the first value is true for each
function methods.kept(self)
  local state = open(self)
  if not state.settings.store then
    error("kept: the client has no store", 2)
  end
  local each = submission_store.each(state)
  return function()
    local entry, err = each()
    if entry then
      return true, kept_transaction(state, entry)
    elseif err then
      return true, nil, err
    end
  end
end

---Removes a submission with these parameters from the client's store, so that it may be submitted again. Use it if the
---outcome of a submission was not known, and it did not reach the service.
---@param parameters table
---@param given? { kind?: riskscreen.TransactionKind }
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function methods.forget(self, parameters, given)
  local state, its_parameters, checked = open(self, parameters, kind_options, given)
  if not state.settings.store then
    error("forget: the client has no store", 2)
  end
  return submission_store.forget(state, checked.kind or "transaction", its_parameters)
end

return { methods = methods }
