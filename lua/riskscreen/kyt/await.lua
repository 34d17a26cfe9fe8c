-- Awaits the result of one transaction: by polling, by the events of an inbox, or both, whichever brings it first. The
-- result is kept, so that every later wait returns the same one.

local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SHORTEST_POLL = 0.001 -- seconds
local SLACK = 1 -- seconds beyond its timeout after which a poll under way is taken for dead

---@class riskscreen.Pending: riskscreen.Awaited
---@field settings table the client's
---@field private runtime table the client's
---@field private fetch? fun(options: table): table|nil, table asks the service once; absent where only events bring it
---@field private waiters? riskscreen.webhook.Waiters|riskscreen.nginx.Waiters of the inbox
---@field private outcome? { result: table, source: "poll"|"webhook"|"submission", response?: table, event?: table }
---@field private last? table the latest result whose status was not final
---@field private problem? riskscreen.Error the failure of the latest poll
---@field private failure? riskscreen.Error the failure that ended the polling
---@field private ended? riskscreen.Error the status that ended the wait
---@field private subject? { hash?: string, network?: string } the transaction submitted, where it is known
---@field private polls integer
---@field private next_at number when to poll next
---@field private not_before number until then the service asked not to be polled
---@field private poller? { task: riskscreen.Task, ends: number } the poll under way and the end of its time
---@field private hold? table keeps the waiters offering events
local Pending = {}
Pending.__index = Pending

-- An inbox holds the pending ones, and no field of an inbox leads to the key.
local without_key = tables.memoize(function(settings)
  return tables.without(settings, "access_key")
end)

local M = {}

---The time before a poll.
---@param polling riskscreen.Polling
---@param number integer the poll's number, from 1
---@param random fun(): number at least 0, less than 1
---@return number seconds
function M.interval(polling, number, random)
  -- The power may be infinite; the ceiling holds then, too.
  local interval = math.min(polling.first * polling.growth ^ (number - 1), polling.ceiling)
  return interval * (1 - polling.jitter * random())
end

---A value of an answer; nil for null and for the empty text.
---@param value any
---@return any
function M.known(value)
  if value ~= json.null and value ~= "" then
    return value
  end
end

local known = M.known

-- Hexadecimal hashes are the same in any case; others are not.
local function canonical_hash(hash)
  return type(hash) == "string" and hash:find "^0?[xX]?%x+$" and hash:lower() or hash
end

---The message about a result that names another transaction than the one submitted, or nil.
---@param subject { hash?: string, network?: string }|nil of the submission, where it is known
---@param result table
---@return string|nil
function M.subject_problem(subject, result)
  local hash, network = known(result.hash), known(result.network)
  if not subject then
    return nil
  elseif hash and subject.hash and canonical_hash(hash) ~= canonical_hash(subject.hash) then
    return ("data.hash must be '%s', the one submitted (got %s)"):format(subject.hash, text.show(hash))
  elseif
    network
    and subject.network
    and enums.canonical_network(network) ~= enums.canonical_network(subject.network)
  then
    return ("data.network must be '%s', the one submitted (got %s)"):format(subject.network, text.show(network))
  end
end

local function ended_error(self, status)
  local message = "the status of %s is %s, which is neither final nor pending: the task may have failed. "
    .. "If you know better, set final_statuses or pending_statuses"
  local name = text.printable(self.hide_key(self.request_id or self.custom_id))
  return errors.new("api", self.hide_key(message:format(name, text.show(status))), {
    request_id = self.request_id,
    last = self.last,
    sent = true,
  })
end

-- Keeps a result if its status is final. The first one stays. A status that is neither final nor pending ends the wait,
-- because the task may have failed.
local function take(self, result, outcome)
  local status = known(result.status)
  if self.outcome then
    return
  elseif self.is_final[status or ""] then
    outcome.result = result
    self.outcome = outcome
  else
    self.last = result
    self.ended = status and not self.is_pending[status] and ended_error(self, status) or nil
  end
  self.signal:notify()
end

-- Whether an event is about this transaction and no other.
local function owns(self, data)
  local request_id, custom_id = known(data.requestId), known(data.customId)
  if self.request_id and request_id and self.request_id ~= request_id then
    return false
  elseif self.custom_id and custom_id and self.custom_id ~= custom_id then
    return false
  end
  return (self.request_id ~= nil and self.request_id == request_id)
    or (self.custom_id ~= nil and self.custom_id == custom_id)
end

---Takes an event of the inbox if it belongs to this transaction.
---@param event riskscreen.WebhookEvent
function Pending:offer(event)
  local problem = owns(self, event.data) and M.subject_problem(self.subject, event.data)
  if problem then
    self.problem = errors.new("protocol", text.printable(self.hide_key(problem), 200), { sent = true })
  elseif owns(self, event.data) and not shape.check(records.transaction_result, event.data, "data") then
    take(self, event.data, { source = "webhook", event = event })
  end
end

-- The fault of a polled result. A result of another request must never be used.
local function problem_of(self, result)
  local message = shape.check(records.transaction_result, result, "data")
  if message then
    return message
  elseif known(result.requestId) ~= self.request_id then
    return ("data.requestId must be '%s', the one polled for (got %s)"):format(
      self.request_id,
      text.show(result.requestId)
    )
  elseif self.custom_id and known(result.customId) and result.customId ~= self.custom_id then
    return ("data.customId must be '%s' (got %s)"):format(self.custom_id, text.show(result.customId))
  end
  return M.subject_problem(self.subject, result)
end

local function poll(self, options)
  self.polls = self.polls + 1
  local result, other = self.fetch(options)
  self.poller = nil
  local problem = other
  if result ~= nil then
    local message = problem_of(self, result)
    problem = message
      and errors.new("protocol", text.printable(self.hide_key(message), 200), {
        status = other.status,
        sent = true,
      })
  end
  self.problem = problem
  if not problem then
    take(self, result, { source = "poll", response = other })
  elseif not problem.retryable then
    self.failure = problem
  end
  local now = self.runtime.now()
  self.not_before = now + (problem and problem.retry_after or 0)
  self.next_at =
    math.max(now + M.interval(self.settings.polling, self.polls + 1, self.settings.random), self.not_before)
  self.signal:notify()
end

---Polls as soon as the service allows it: the caller has reason to think that the result exists.
function Pending:poll_now()
  self.next_at = math.min(self.next_at, math.max(self.runtime.now(), self.not_before))
end

-- Seconds until the next poll is due.
local function due_in(self, now)
  if not self.fetch or self.failure or self.ended then
    return math.huge
  end
  return math.max(self.poller and self.poller.ends or self.next_at, now) - now
end

-- Polls in a task of its own, so that an event ends the wait while the answer is still missing.
local function start_poll(self, now, deadline, options)
  local timeout = math.max(math.min(self.settings.timeout, deadline - now), SHORTEST_POLL)
  local task = self.runtime.tasks.spawn(poll, self, tables.merge(options, { timeout = timeout }))
  self.poller = { task = task, ends = now + timeout + SLACK }
  return task
end

-- Waits until the result is there or can no longer come. A poll ends with the wait that started it: another waiter may
-- poll then.
local function wait(self, deadline, options)
  local task
  while not self.outcome and not self.ended do
    local now = self.runtime.now()
    if now >= deadline or (self.failure and not self.waiters) then
      break
    elseif due_in(self, now) == 0 then
      task = start_poll(self, now, deadline, options)
    end
    self.signal:wait(math.min(deadline - now, due_in(self, now)))
  end
  if task and self.poller and self.poller.task == task then
    task:cancel()
    self.poller = nil
    self.signal:notify()
  end
end

local function timed_out(self, seconds, started)
  local status = self.last and known(self.last.status)
  local message = ("there is no result of %s after %g s%s"):format(
    text.printable(self.hide_key(self.request_id or self.custom_id)),
    seconds,
    status and (", its status is " .. tostring(status)) or ""
  )
  return errors.new("timeout", message, {
    request_id = self.request_id,
    attempts = self.polls,
    elapsed = self.runtime.now() - started,
    sent = true,
    last = self.last,
    cause = self.problem,
  })
end

---Waits for the result. An event of the inbox may bring it even when polling has failed for good.
---@param seconds number
---@param options? table the options of each poll's call, except its timeout
---@return table|nil result
---@return table|riskscreen.Error other
function Pending:await(seconds, options)
  local started = self.runtime.now()
  self.failure, self.ended = nil, nil
  local waiters = self.waiters
  local waiting = waiters and not self.outcome and waiters:attend(self, seconds)
  wait(self, started + seconds, options or {})
  if waiting then
    waiters:leave(waiting)
  end
  local outcome = self.outcome
  if not outcome then
    return nil, self.ended or self.failure or timed_out(self, seconds, started)
  end
  local response = outcome.response or {}
  return outcome.result,
    {
      source = outcome.source,
      event = outcome.event,
      status = response.status,
      headers = response.headers,
      attempts = self.polls,
      elapsed = self.runtime.now() - started,
      cached = false,
    }
end

---A result that nobody awaits yet. Events that the inbox has kept for it are taken at once.
---@param state { settings: table, runtime: table, hide_key: fun(foreign: string): string } the client's
---@param ids { request_id?: string, custom_id?: string }
---@param fetch? fun(options: table): table|nil, table
---@param delay number seconds until the first poll
---@param submission? { subject: table, mark?: any } of a transaction that was just submitted; `mark` is what
---the inbox gave before, so that no event for an earlier transaction is taken
---@return riskscreen.Pending
function M.new(state, ids, fetch, delay, submission)
  local settings, runtime = without_key(state.settings), state.runtime
  local pending = setmetatable({
    request_id = ids.request_id,
    custom_id = ids.custom_id,
    kind = ids.kind,
    settings = settings,
    runtime = runtime,
    hide_key = state.hide_key,
    fetch = fetch,
    waiters = settings.inbox and settings.inbox.waiters,
    is_final = tables.set(settings.final_statuses),
    is_pending = tables.set(settings.pending_statuses),
    subject = submission and submission.subject,
    signal = runtime.tasks.signal(),
    polls = 0,
    next_at = runtime.now() + delay,
    not_before = 0,
  }, Pending)
  pending.hold = pending.waiters and pending.waiters:expect(pending, submission and submission.mark)
  return pending
end

---A transaction whose result came with the answer to its submission.
---@param state { settings: table, runtime: table, hide_key: fun(foreign: string): string } the client's
---@param ids riskscreen.TransactionIds
---@param result table
---@param response riskscreen.Response
---@return riskscreen.Pending
function M.finished(state, ids, result, response)
  local settings = tables.merge(state.settings, { inbox = false }) -- no event is expected
  local pending = M.new({ settings = settings, runtime = state.runtime, hide_key = state.hide_key }, ids, nil, 0)
  pending.outcome = { result = result, source = "submission", response = response }
  return pending
end

return M
