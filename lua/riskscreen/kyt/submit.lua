-- Submits a transaction. A submission that may have taken effect is never repeated.

local addresses = require "riskscreen.address"
local awaiting = require "riskscreen.kyt.await"
local calls = require "riskscreen.call"
local errors = require "riskscreen.errors"
local submissions = require "riskscreen.kyt.submission"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local CLOCK_SKEW = 60 -- seconds by which the clocks of two programs may differ

local known = submissions.known

local M = {}

---The identity of a client's service and account.
---@type fun(state: riskscreen.State): string
M.account_of = tables.memoize(calls.identity.account)

local function protocol_error(state, message)
  return errors.new("protocol", text.printable(state.hide_key(message), 200), { sent = true })
end

---The result that the answer to a submission carries; false if it comes later. With a requestId an answer is a result
---only under a final status, and without one it needs no status.
---@param state riskscreen.State
---@param submission riskscreen.Submission
---@param answer any
---@return table|false|nil result
---@return riskscreen.Error|nil err the answer can be neither used nor waited for
function M.result_of(state, submission, answer)
  local owned, message = submissions.owns(submission, answer, "submission")
  if not owned then
    return nil, protocol_error(state, message)
  end
  local request_id, standing = known(answer.requestId), submissions.standing(state.settings, answer)
  local is_decidable = known(answer.risks) ~= nil or known(answer.maxScore) ~= nil
  if is_decidable and (standing == "final" or not request_id and standing == "missing") then
    return answer
  elseif request_id then
    return false
  elseif not is_decidable then
    return nil, protocol_error(state, "data.requestId is empty")
  elseif standing == "unknown" then
    return nil, awaiting.ended(state.hide_key, "the transaction", answer)
  end
  message = ("data.status is %s, which is pending, and there is no requestId"):format(tostring(answer.status))
  return nil, protocol_error(state, message)
end

---The error of a transaction whose receiving address a local deny list has; or nil. Nothing is sent then.
---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@return riskscreen.Error|nil
function M.denial(state, operation, parameters)
  local address, network = parameters.outputAddress, parameters.network
  if not state.lists or type(address) ~= "string" or type(network) ~= "string" then
    return nil
  end
  local canonical = addresses.normalize(address, addresses.alike(network, state.settings.extend))
  local decision = state.lists:decide(canonical, network)
  if not decision or decision.action == "allow" then
    return nil
  elseif decision.error then
    decision.error.operation = operation.name
    return decision.error
  end
  decision.address, decision.network = address, network
  local fields = { operation = operation.name, decision = decision, sent = false, attempts = 0, elapsed = 0 }
  return errors.new("list", decision.reasons[1].message, fields)
end

---The record of a transaction that is about to be submitted.
---@param state riskscreen.State
---@param kind riskscreen.TransactionKind
---@param parameters table
---@return riskscreen.Submission|nil
---@return riskscreen.Error|nil err
function M.record(state, kind, parameters)
  local inbox = state.settings.inbox
  -- Another program's inbox has another clock, and this one's may be ahead.
  local at = inbox and inbox.waiters:mark() or state.clock() - CLOCK_SKEW
  return submissions.new(kind, parameters, at, M.account_of(state))
end

---The ticket of a submission without an answer, or nil: by the caller's own identifier an inbox may still receive the
---result.
---@param state riskscreen.State
---@param submission riskscreen.Submission
---@return string|nil
function M.ticket_before(state, submission)
  local inbox = state.settings.inbox
  return submission.customId and inbox and inbox.waiters.by_custom_id and submissions.encode(submission) or nil
end

---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param submission riskscreen.Submission gets the requestId
---@param parameters table checked
---@param options table checked
---@return table|false|nil result false if it comes later
---@return riskscreen.Response|riskscreen.Error
function M.submit(state, operation, submission, parameters, options)
  local answer, other = calls.make(state, operation, parameters, options)
  if answer ~= nil then
    local result, err = M.result_of(state, submission, answer)
    if not err then
      submission.requestId = known(answer.requestId)
      return result, other
    end
    err.operation, err.uncertain, err.last = operation.name, true, answer
    other = err
  end
  if errors.is_uncertain(other) then
    other.uncertain = true
    other.ticket = M.ticket_before(state, submission)
  end
  return nil, other
end

return M
