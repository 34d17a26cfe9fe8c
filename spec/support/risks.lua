-- Risk assessments for the specs of policies.

local tables = require "riskscreen.util.tables"

local M = {}

---A risk assessment.
---@param risks table[]|nil
---@param extra? table more fields
function M.record(risks, extra)
  return tables.merge({ address = "0xab", network = "eth", whitelist = false, risks = risks }, extra)
end

---One risk.
---@param level any
---@param type any
---@param source any "Provider" by default
function M.risk(level, type, source)
  return { riskLevel = level, riskType = type, riskSource = source or "Provider" }
end

return M
