-- A result that is awaited: by asking for it, by the events of an inbox, or both; whichever brings it first. It comes
-- once, and whoever awaits it then or later gets the same. How one asks, waits and tells the time is given to it.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local text = require "riskscreen.util.text"

local LEASE = 1 -- seconds beyond its timeout for which a question counts as being asked

---@class riskscreen.Pending: riskscreen.Awaited what nobody outside may see
---@field private ask? fun(timeout: number): table|nil, table absent where events alone can bring it
---@field private waiters? riskscreen.webhook.Waiters|riskscreen.nginx.Waiters
---@field private outcome? { result: table, source: "poll"|"webhook", response?: table, event?: table }
---@field private last? table the latest that was no result yet
---@field private problem? riskscreen.Error why the latest question failed
---@field private failure? riskscreen.Error why it is not asked any more
---@field private questions integer asked so far
---@field private next_at number when to ask next
---@field private not_before number when the service is ready to be asked
---@field private asking? { task: riskscreen.Task, ends: number } who is asking, and when that must be over
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

local function known(value)
  if value ~= json.null and value ~= "" then
    return value
  end
end

function Pending:resolve(outcome)
  if not self.outcome then
    self.outcome = outcome
    self.signal:notify()
  end
end

-- Takes what may be the result. Until its status is final it is remembered, and no more.
function Pending:take(result, source, more)
  if self.outcome then
    return
  elseif not self.final[known(result.status) or ""] then
    self.last = result
    return
  end
  self:resolve { result = result, source = source, response = more.response, event = more.event }
end

---Whether an event is about this, and about nothing else.
---@param data table
---@return boolean
function Pending:owns(data)
  local request_id, custom_id = known(data.requestId), known(data.customId)
  if self.request_id and request_id and self.request_id ~= request_id then
    return false
  elseif self.custom_id and custom_id and self.custom_id ~= custom_id then
    return false
  end
  return (self.request_id ~= nil and self.request_id == request_id)
    or (self.custom_id ~= nil and self.custom_id == custom_id)
end

---Takes an event of the inbox if it is its own.
---@param event riskscreen.WebhookEvent
function Pending:offer(event)
  if self:owns(event.data) and not shape.check(records.transaction_result, event.data, "data") then
    self:take(event.data, "webhook", { event = event })
  end
end

-- What is wrong with the answer to a question: one about another request must never be used.
local function problem_of(self, result)
  local message = shape.check(records.transaction_result, result, "data")
  if message then
    return message
  elseif known(result.requestId) ~= self.request_id then
    return ("data.requestId must be '%s', which was asked (got %s)"):format(
      self.request_id,
      text.show(result.requestId)
    )
  elseif self.custom_id and known(result.customId) and result.customId ~= self.custom_id then
    return ("data.customId must be '%s' (got %s)"):format(self.custom_id, text.show(result.customId))
  end
end

function Pending:wait_before_next(at_least)
  local now, interval = self.now(), M.interval(self.polling, self.questions + 1, self.random)
  self.not_before = now + (at_least or 0)
  self.next_at = math.max(now + interval, self.not_before)
end

---Has it asked for as soon as the service is ready: somebody has reason to think that it is there.
function Pending:hasten()
  self.next_at = math.min(self.next_at, math.max(self.now(), self.not_before))
end

-- Asks once. Events may bring the result meanwhile.
function Pending:question(timeout)
  self.questions = self.questions + 1
  local result, other = self.ask(timeout)
  self.asking = nil
  local problem = other
  if result ~= nil then
    local message = problem_of(self, result)
    problem = message and errors.new("protocol", text.printable(message, 200), { status = other.status, sent = true })
  end
  self.problem = problem
  if not problem then
    self:take(result, "poll", { response = other })
  elseif not problem.retryable then
    self.failure = problem
  end
  self:wait_before_next(problem and problem.retry_after)
  self.signal:notify()
end

-- Seconds until there is something to do besides waiting for notice.
function Pending:next_wait(now)
  if not self.ask or self.failure then
    return math.huge
  end
  return math.max(self.asking and self.asking.ends or self.next_at, now) - now
end

function Pending:timed_out(seconds, started)
  local status = self.last and known(self.last.status)
  local name = self.request_id or self.custom_id
  local message = ("there is no result of %s after %g s%s"):format(
    text.printable(name),
    seconds,
    status and (", its status is " .. tostring(status)) or ""
  )
  return errors.new("timeout", message, {
    request_id = self.request_id,
    attempts = self.questions,
    elapsed = self.now() - started,
    sent = true,
    last = self.last,
    cause = self.problem,
  })
end

-- Asks in a task of its own, so that an event ends the wait while an answer is still missing.
function Pending:start_question(now, deadline)
  local timeout = math.max(math.min(self.timeout, deadline - now), 0.001)
  local task = self.spawn(function()
    self:question(timeout)
  end)
  self.asking = { task = task, ends = now + timeout + LEASE }
  return task
end

-- Whoever leaves takes the question it asked with it: another may ask then.
function Pending:leave(question)
  if question and self.asking and self.asking.task == question then
    question:cancel()
    self.asking = nil
    self.signal:notify()
  end
end

function Pending:wait(deadline)
  local question
  while not self.outcome do
    local now = self.now()
    if now >= deadline or (self.failure and not self.waiters) then
      break
    elseif self:next_wait(now) == 0 then
      question = self:start_question(now, deadline)
    end
    self.signal:wait(math.min(deadline - now, self:next_wait(now)))
  end
  self:leave(question)
end

---Waits for the result. An event of the inbox may bring it although asking has failed for good.
---@param seconds number
---@return table|nil result
---@return table|riskscreen.Error other
function Pending:await(seconds)
  local started = self.now()
  self.failure = nil
  local waiters = self.waiters
  local waiting = waiters and not self.outcome and waiters:attend(self, seconds)
  self:wait(started + seconds)
  if waiting then
    waiters:leave(waiting)
  end
  local outcome = self.outcome
  if outcome then
    local response = outcome.response or {}
    return outcome.result,
      {
        source = outcome.source,
        event = outcome.event,
        status = response.status,
        headers = response.headers,
        attempts = self.questions,
        elapsed = self.now() - started,
        cached = false,
      }
  end
  return nil, self.failure or self:timed_out(seconds, started)
end

---A result that nobody awaits yet. Events that its inbox has for it are taken at once.
---@param fields table request_id and/or custom_id, ask, timeout, inbox, polling, final, random, and of the runtime
---now, spawn and signal
---@param delay number seconds until it is asked for
---@return riskscreen.Pending
function M.new(fields, delay)
  local pending = { questions = 0, not_before = 0 }
  for name, value in pairs(fields) do
    pending[name] = value
  end
  setmetatable(pending, Pending)
  pending.next_at = pending.now() + delay
  pending.hold = pending.waiters and pending.waiters:expect(pending)
  return pending
end

return M
