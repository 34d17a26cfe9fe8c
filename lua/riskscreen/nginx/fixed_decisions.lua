-- Decisions for which nobody is asked: the caller is exempt, or there is no address.
local errors = require "riskscreen.errors"

local M = {}

---@type riskscreen.Decision
M.exempt = {
  action = "allow",
  reasons = { { action = "allow", message = "the caller is exempt" } },
  degraded = false,
  cached = false,
  stale = false,
  elapsed = 0,
}

---No address is no failure of the service: it is told from one by the error's kind.
---@param problem string
---@param address any
---@param network any
---@return riskscreen.Decision
function M.invalid(problem, address, network)
  local err = errors.new("invalid_argument", problem, { sent = false })
  return {
    action = "unknown",
    reasons = { { action = "unknown", message = tostring(err), error = err } },
    address = address,
    network = network,
    error = err,
    degraded = false,
    cached = false,
    stale = false,
    elapsed = 0,
  }
end

return M
