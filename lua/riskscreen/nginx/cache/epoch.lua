-- A counter in the shared dict. All workers empty their LRU when it changes: after a purge or a change of a list.

local KEY = "riskscreen:epoch"

local M = {}

---@param dict table an ngx.shared dict
---@return number
function M.current(dict)
  local epoch = dict:get(KEY)
  return type(epoch) == "number" and epoch or 0
end

---@param dict table an ngx.shared dict
---@param now number seconds: if the dict has lost the counter, it goes on above every earlier number
---@return number|nil epoch the new one
---@return string|nil message
function M.advance(dict, now)
  local epoch, message = dict:incr(KEY, 1, math.floor(now * 1000))
  return epoch, message
end

return M
