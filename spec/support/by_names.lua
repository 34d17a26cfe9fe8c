-- Requests of the core's origins, by names instead of positions.
local TIMEOUT = 30 -- seconds

local M = {}

---Sends a request.
---@param origin userdata
---@param request { method?: string, target?: string, headers?: string[], body?: string, timeout?: number,
---connect_timeout?: number, fresh?: boolean, untimed?: boolean }
---@return userdata transfer
function M.send(origin, request)
  local method, target, timeout = request.method or "GET", request.target or "/", request.timeout or TIMEOUT
  local fresh, untimed = request.fresh, request.untimed
  return origin:send(method, target, request.headers, timeout, request.connect_timeout, request.body, fresh, untimed)
end

return M
