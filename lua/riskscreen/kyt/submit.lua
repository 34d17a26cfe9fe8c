-- Submits a transaction. A submission that may have taken effect is never repeated.

local addresses = require "riskscreen.address"
local awaiting = require "riskscreen.kyt.await"
local calls = require "riskscreen.call"
local errors = require "riskscreen.errors"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local tickets = require "riskscreen.kyt.tickets"

local M = {}

local function custom_id_problem(subject, answer)
  local custom_id = awaiting.known(answer.customId)
  if subject.customId and custom_id and custom_id ~= subject.customId then
    return ("data.customId must be '%s' (got %s)"):format(subject.customId, text.show(custom_id))
  end
end

-- The requestId of an answer to a submission, the result that the answer carries, and the fault of the answer. With a
-- requestId an answer is a result only under a final status.
local function read(settings, answer, subject)
  local message = shape.check(records.submission, answer, "data")
  if message then
    return nil, nil, message
  end
  local request_id, status = awaiting.known(answer.requestId), awaiting.known(answer.status) or ""
  local is_final = tables.set(settings.final_statuses)[status]
  local has_result = (answer.risks ~= nil or answer.maxScore ~= nil) and (is_final or not request_id)
  if not request_id and not has_result then
    message = "data.requestId is empty"
  elseif has_result and not is_final and tables.set(settings.pending_statuses)[status] then
    message = ("data.status is %s, which is pending, and there is no requestId"):format(tostring(status))
  end
  message = message or custom_id_problem(subject, answer) or awaiting.subject_problem(subject, answer)
  return request_id, has_result and answer or nil, message
end

---@class riskscreen.Submitted
---@field request_id? string
---@field result? table the result, if the service answered with it at once

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
  local canonical = addresses.validate(address, network, false) or addresses.normalize(address)
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

---The ticket of a submission without an answer, or nil: by the caller's own identifier an inbox may still receive the
---result.
---@param state riskscreen.State
---@param parameters table
---@param kind? riskscreen.TransactionKind for the ticket, where it is not the usual one
---@return string|nil
function M.ticket_before(state, parameters, kind)
  local inbox = state.settings.inbox
  if not (tickets.is_id(parameters.customId) and inbox and inbox.waiters.by_custom_id) then
    return nil
  end
  return tickets.encode {
    customId = parameters.customId,
    hash = parameters.hash,
    network = parameters.network,
    kind = kind,
  }
end

---@param state riskscreen.State
---@param operation riskscreen.Operation
---@param parameters table
---@param options table checked
---@param kind? riskscreen.TransactionKind for the ticket, where it is not the usual one
---@return riskscreen.Submitted|nil submitted
---@return riskscreen.Response|riskscreen.Error
function M.submit(state, operation, parameters, options, kind)
  local denial = M.denial(state, operation, parameters)
  if denial then
    return nil, denial
  end
  local answer, other = calls.perform(state, operation, parameters, options)
  if answer ~= nil then
    local request_id, result, message = read(state.settings, answer, parameters)
    if not message then
      return { request_id = request_id, result = result }, other
    end
    local problem = text.printable(state.hide_key(message), 200)
    other = errors.new("protocol", problem, { operation = operation.name, sent = true })
  end
  if errors.is_uncertain(other) then
    other.uncertain = true
    other.ticket = M.ticket_before(state, parameters, kind)
  end
  return nil, other
end

return M
