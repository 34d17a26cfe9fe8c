-- Awaits the result of one transaction: by polling, by the events of an inbox, or both, whichever brings it first. The
-- result is kept, so that every later wait returns the same one.

local errors = require "riskscreen.errors"
local is_forked = require "riskscreen.util.forked"
local reliability = require "riskscreen.options.reliability"
local submissions = require "riskscreen.kyt.submission"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SHORTEST_POLL = 0.001 -- seconds
local SLACK = 1 -- seconds beyond its timeout after which a poll under way is taken for dead

---@class riskscreen.Pending
---@field submission riskscreen.Submission
---@field settings table the client's
---@field private runtime table the client's
---@field private fetch? fun(options: table): table|nil, table asks the service once; absent where only events bring it
---@field private is_sandbox? boolean the sandbox in this process answers
---@field private waiters? riskscreen.webhook.Waiters of the inbox
---@field private outcome? { result: table, source: "poll"|"webhook"|"submission", response?: table, event?: table }
---@field private last? table the latest result whose status was not final
---@field private err? riskscreen.Error the failure of the latest poll
---@field private stop? { error: riskscreen.Error, ends_wait: boolean } what ended the polling, and
---perhaps the wait: a failure, or a status
---@field private told? table the `stop` that a wait has returned: the next one goes on
---@field private polls integer
---@field private next_at number when to poll next
---@field private not_before number until then the service asked not to be polled
---@field private poller? { task: riskscreen.Task, ends: number } the poll under way and the end of its time
---@field private awaited riskscreen.Awaited what the inbox knows of it: no field that leads to the settings and the key
---@field private hold? table keeps the waiters offering events
local Pending = {}
Pending.__index = Pending

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

local function name_of(self)
  return text.printable(self.hide_key(self.submission.requestId or self.submission.customId))
end

---The error of an answer that is not about its submission, or cannot be used.
---@param holder { hide_key: fun(foreign: string, answers?: table): string } a client's state, or a pending result
---@param message string
---@param answer? table that the message quotes
---@param status? integer
---@return riskscreen.Error
function M.malformed(holder, message, answer, status)
  local shown = text.printable(holder.hide_key(message, { answer }), 200)
  return errors.new("protocol", shown, { status = status, sent = true })
end

---The error of a result whose status is neither final nor pending.
---@param hide_key fun(foreign: string, answers?: table): string
---@param name string of the transaction
---@param result table
---@return riskscreen.Error
function M.ended(hide_key, name, result)
  local message = "the status of %s is %s, which is neither final nor pending: the task may have failed. "
    .. "If you know better, set final_statuses or pending_statuses"
  message = message:format(name, text.show(result.status))
  return errors.new("api", hide_key(message, { result }), { last = result, sent = true })
end

-- Keeps a result if its status is final. The first one stays. A status that is neither final nor pending ends the wait,
-- because the task may have failed.
local function take(self, result, outcome)
  local progress = submissions.progress(self.settings, result)
  if self.outcome then
    return
  elseif progress == "final" then
    outcome.result = result
    self.outcome = outcome
  else
    self.last = result
    self.stop = nil
    if progress == "unknown" then
      self.stop = { error = M.ended(self.hide_key, name_of(self), result), ends_wait = true }
    end
  end
  self.signal:notify()
end

---Takes an event of the inbox if it belongs to this transaction.
---@param event riskscreen.WebhookEvent
function Pending:offer(event)
  local owned, message = submissions.matches(self.submission, event.data, "webhook")
  if owned then
    take(self, event.data, { source = "webhook", event = event })
  elseif message then
    self.err = M.malformed(self, message)
  end
end

local function poll(self, options)
  self.polls = self.polls + 1
  local result, other = self.fetch(options)
  self.poller = nil
  local err = other
  if result ~= nil then
    local owned, message = submissions.matches(self.submission, result, "poll")
    err = not owned and M.malformed(self, message, result, other.status) or nil
  end
  self.err = err
  if not err then
    take(self, result, { source = "poll", response = other })
  elseif not err.retryable then
    self.stop = { error = err, ends_wait = not self.waiters }
  end
  local now = self.runtime.now()
  self.not_before = now + reliability.asked_pause(self.settings, err, options.retry)
  self.next_at =
    math.max(now + M.interval(self.settings.polling, self.polls + 1, self.settings.random), self.not_before)
  self.signal:notify()
end

---Polls as soon as the service allows it: the caller has reason to think that the result exists.
function Pending:poll_now()
  self.next_at = math.min(self.next_at, math.max(self.runtime.now(), self.not_before))
end

-- The `stop` that no wait has returned before this one began. It may have come before this one.
local function new_stop(self, told)
  return self.stop ~= told and self.stop or nil
end

-- Seconds until the next poll is due.
local function due_in(self, now, told)
  if not self.fetch or new_stop(self, told) then
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

-- Looks for events that other programs have kept. A store may wait, so it is asked in a task. Its failure ends the
-- wait.
local function start_look(self, looking)
  local function run()
    local ok, failure = self.runtime.tasks.pcall(self.waiters.look, self.waiters, looking)
    looking.at = self.runtime.now() + looking.pause
    looking.failure = not ok and failure or nil
    if looking.waits then
      self.signal:notify()
    end
  end
  looking.at = math.huge
  if looking.waits then
    return self.runtime.tasks.spawn(run)
  end
  run()
end

---A wait for the result, and the poll that it has started last.
---@class riskscreen.kyt.Wait
---@field pending riskscreen.Pending
---@field task? riskscreen.Task
local Wait = {}
Wait.__index = Wait

-- Ends the poll of a wait that is over: another waiter may poll then.
local function end_poll(pending, task)
  if task and pending.poller and pending.poller.task == task then
    pending.poller = nil
    pending.signal:notify()
    return task
  end
end

---Ends the wait of a task that is stopped. Its poll ends with the task.
function Wait:abandon()
  end_poll(self.pending, self.task)
end

-- Waits until the result is there or can no longer come. A poll ends with the wait that started it.
local function wait(self, deadline, options, told)
  local now, tasks, look = self.runtime.now, self.runtime.tasks, nil
  local own = setmetatable({ pending = self, task = nil }, Wait)
  local hold = tasks.hold(own)
  local looking = self.waiters and not self.outcome and self.waiters:attend(self.awaited) or { at = math.huge }
  looking.at = looking.at or now() + looking.pause
  while not self.outcome do
    local moment, stop = now(), new_stop(self, told)
    if moment >= deadline or stop and stop.ends_wait or looking.failure ~= nil then
      break
    elseif due_in(self, moment, told) == 0 then
      own.task = start_poll(self, moment, deadline, options)
    elseif looking.at <= moment then
      look = start_look(self, looking)
    else
      self.signal:wait(math.min(deadline - moment, due_in(self, moment, told), looking.at - moment))
    end
  end
  tasks.release(own, hold)
  if look then
    look:cancel()
  end
  local task = end_poll(self, own.task)
  if task then
    task:cancel()
  end
  if looking.failure ~= nil then
    error(looking.failure, 0)
  end
end

-- What is known of a result that did not come: the failure of the latest poll, or how far the transaction is.
local function progress_of(self)
  local last = self.last and submissions.known(self.last.status)
  if self.err then
    return "; the latest failure: " .. tostring(self.err):gsub("^riskscreen: ", "")
  elseif self.last then
    return "; its status is " .. (last and tostring(last) or "missing, so it is pending")
  end
  return self.polls > 0 and "; no poll was answered in time" or ""
end

local function timed_out(self, seconds, started)
  local message = ("there is no result of %s after %g s%s%s"):format(
    name_of(self),
    seconds,
    self.fetch and " and " .. text.count(self.polls, "poll") or "",
    progress_of(self)
  )
  return errors.new("timeout", message, {
    attempts = self.polls,
    elapsed = self.runtime.now() - started,
    sent = true,
    last = self.last,
    cause = self.err,
  })
end

---Waits for the result. An event of the inbox may bring it even when polling has failed for good.
---@param seconds number
---@param options? table the options of each poll's call, except its timeout
---@return table|nil result
---@return table|riskscreen.Error other
function Pending:await(seconds, options)
  local started, told = self.runtime.now(), self.told
  if is_forked(self) then
    self.poller = nil
  end
  wait(self, started + seconds, options or {}, told)
  local outcome = self.outcome
  if not outcome then
    local stop = new_stop(self, told)
    self.told = self.stop
    local err = stop and stop.error or timed_out(self, seconds, started)
    -- The service has taken the transaction: with these the program can go on waiting.
    err.request_id, err.ticket = self.submission.requestId, submissions.encode(self.submission)
    err.is_sandbox = self.is_sandbox
    return nil, err
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
      is_sandbox = self.is_sandbox,
    }
end

---A result that nobody awaits yet. Events that the inbox has kept for it are taken at once.
---@param state riskscreen.State the client's
---@param submission riskscreen.Submission
---@param fetch? fun(options: table): table|nil, table
---@param delay? number seconds until the first poll
---@param finished? { result: table, response?: table } of a transaction whose result is there
---@return riskscreen.Pending
function M.new(state, submission, fetch, delay, finished)
  local settings, runtime = state.settings, state.runtime
  local pending = setmetatable({
    submission = submission,
    settings = settings,
    runtime = runtime,
    hide_key = state.hide_key,
    is_sandbox = state.is_sandbox,
    fetch = fetch,
    outcome = finished and tables.merge(finished, { source = "submission" }),
    waiters = not finished and settings.inbox and settings.inbox.waiters or nil,
    signal = runtime.tasks.signal(),
    polls = 0,
    next_at = runtime.now() + (delay or 0),
    not_before = 0,
  }, Pending)
  pending.awaited = {
    submission = submission,
    offer = function(_, event)
      pending:offer(event)
    end,
  }
  pending.hold = pending.waiters and pending.waiters:expect(pending.awaited)
  return pending
end

return M
