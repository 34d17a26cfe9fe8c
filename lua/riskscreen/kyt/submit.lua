-- Submits a transaction. A submission that may have taken effect is never repeated.

local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local tickets = require "riskscreen.kyt.tickets"

local SUBMIT = operations.by_name.screenTransaction

local M = {}

---@param access riskscreen.Access
---@param state riskscreen.State
---@param parameters table
---@param options table checked
---@return string|nil request_id
---@return riskscreen.Response|riskscreen.Error
function M.submit(access, state, parameters, options)
  local value, other = access.perform(state, SUBMIT, parameters, options)
  if value and value.requestId == "" then
    value, other = nil, errors.new("protocol", "data.requestId is empty", { operation = SUBMIT.name, sent = true })
  end
  if value then
    return value.requestId, other
  elseif errors.is_uncertain(other) then
    other.uncertain = true
    -- By the caller's own identifier an inbox may still receive the result.
    local inbox = state.settings.inbox
    if parameters.customId and inbox and inbox.waiters.by_custom_id then
      other.ticket = tickets.encode(nil, parameters.customId)
    end
  end
  return nil, other
end

return M
