-- What tells all workers that what each of them remembers by itself may be out of date: a number in the shared dict.

local KEY = "riskscreen:epoch"

local M = {}

---@param dict table an ngx.shared dict
---@return any epoch another one after each advance
function M.current(dict)
  return (dict:get(KEY))
end

---Tells all workers to forget what each of them remembers by itself.
---@param dict table an ngx.shared dict
---@param now number Unix seconds: an epoch that the dict has lost is not used again
---@return boolean|nil ok
---@return string|nil message
function M.advance(dict, now)
  local epoch, message = dict:incr(KEY, 1, math.floor(now * 1000))
  return epoch and true, message
end

return M
