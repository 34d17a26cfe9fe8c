-- Risk assessments for the specs of policies.

local M = {}

---A risk assessment.
---@param risks table[]|nil
---@param extra? table more fields
function M.record(risks, extra)
  local result = { address = "0xab", network = "eth", whitelist = false, risks = risks }
  for name, value in pairs(extra or {}) do
    result[name] = value
  end
  return result
end

---One risk.
---@param level any
---@param type any
---@param source any "Provider" by default
function M.risk(level, type, source)
  return { riskLevel = level, riskType = type, riskSource = source or "Provider" }
end

return M
