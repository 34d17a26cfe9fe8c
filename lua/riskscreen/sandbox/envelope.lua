-- The envelopes of the service: what wraps a payload, and what stands in for one.

-- The interface shows `status` in the answers of all operations but these.
local without_status = {
  getAddressEntity = true,
  listAddressEntities = true,
  getAddressRisk = true,
  getAddressBasic = true,
}

local M = {}

---The body of an answer.
---@param operation riskscreen.Operation
---@param data any absent where there is nothing to say but that it worked
---@param pagination? table
---@return table
function M.success(operation, data, pagination)
  if operation.envelope == "usage" then
    return { code = 200, message = "SUCCESS", data = data }
  end
  return {
    success = true,
    code = 1,
    msg = "SUCCESS",
    status = not without_status[operation.name] and "SUCCESS" or nil,
    data = data,
    pagination = pagination,
  }
end

---The body of a refusal.
---@param code integer
---@param message string
---@param timestamp? integer milliseconds; only a validation failure carries one
---@return table
function M.failure(code, message, timestamp)
  return { success = false, code = code, msg = message, status = "FAIL", timestamp = timestamp }
end

return M
