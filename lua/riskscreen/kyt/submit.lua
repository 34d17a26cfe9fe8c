-- Submits a transaction. A submission that may have taken effect is never repeated.

local awaiting = require "riskscreen.kyt.await"
local errors = require "riskscreen.errors"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local tickets = require "riskscreen.kyt.tickets"

local M = {}

-- The statuses under which a result at once is none.
local function is_pending(settings, status)
  local is_final = tables.set(settings.final_statuses)
  return not is_final[status] and tables.set(settings.pending_statuses)[status] == true
end

-- Whether the answer carries the result itself. With a requestId it must say that it is final.
local function has_result(settings, answer)
  local status = awaiting.known(answer.status)
  if awaiting.known(answer.requestId) then
    return (answer.risks ~= nil or answer.maxScore ~= nil) and tables.set(settings.final_statuses)[status or ""] == true
  end
  return answer.risks ~= nil or answer.maxScore ~= nil
end

-- The fault of an answer to a submission, or nil.
local function problem_of(settings, answer, subject)
  local message = shape.check(records.submission, answer, "data")
  if message then
    return message
  elseif awaiting.known(answer.requestId) == nil and not has_result(settings, answer) then
    return "data.requestId is empty"
  elseif has_result(settings, answer) and is_pending(settings, answer.status) then
    return ("data.status is %s, which is pending, and there is no requestId"):format(tostring(answer.status))
  end
  return awaiting.subject_problem(subject, answer)
end

---@class riskscreen.Submitted
---@field request_id? string
---@field result? table the result, if the service answered with it at once

---@param access riskscreen.Access
---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@param options table checked
---@param kind? riskscreen.TransactionKind for the ticket, where it is not the usual one
---@return riskscreen.Submitted|nil submitted
---@return riskscreen.Response|riskscreen.Error
function M.submit(access, state, operation, parameters, options, kind)
  local answer, other = access.perform(state, operation, parameters, options)
  local message = answer ~= nil and problem_of(state.settings, answer, parameters)
  if message then
    answer = nil
    other = errors.new("protocol", text.printable(message, 200), { operation = operation.name, sent = true })
  end
  if answer then
    local result = has_result(state.settings, answer) and answer or nil
    return { request_id = awaiting.known(answer.requestId), result = result }, other
  elseif errors.is_uncertain(other) then
    other.uncertain = true
    -- By the caller's own identifier an inbox may still receive the result.
    local inbox = state.settings.inbox
    if parameters.customId and inbox and inbox.waiters.by_custom_id then
      other.ticket = tickets.encode { customId = parameters.customId, kind = kind }
    end
  end
  return nil, other
end

return M
