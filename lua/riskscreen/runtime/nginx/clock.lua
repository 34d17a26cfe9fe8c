-- nginx's time.
local ngx_now = _G.ngx.now

local M = {}

---Unix seconds. ngx.now ends in a tail call of a built-in function, which LuaJIT compiles only as part of a caller.
---After many calls from code that is not compiled, it never compiles again. So all calls go through this function
---(`./dev bench nginx`).
---@return number
function M.now()
  local time = ngx_now()
  return time
end

return M
