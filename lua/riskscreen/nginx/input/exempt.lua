-- Callers that pass the gate without a lookup: those of some networks, and those that a function accepts. Behind a
-- proxy, nginx's realip module must find the caller's address.
local ip = require "riskscreen.util.ip"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

local M = {}

---A test whether the caller of the request is exempt. A function must return true itself; other values are a no.
---@param value table|function addresses and networks such as "192.0.2.0/24", and functions; or one function
---@return (fun(): boolean)|nil
---@return string|nil message
function M.check(value)
  local networks, tests = {}, {}
  for index, one in ipairs(type(value) == "function" and { value } or value) do
    if type(one) == "function" then
      tests[#tests + 1] = one
    else
      networks[#networks + 1] = ip.network(one)
    end
    if #networks + #tests < index then
      return nil, ("must hold functions, addresses and networks such as 192.0.2.0/24 (got %s)"):format(text.show(one))
    end
  end
  if networks[1] then
    table.insert(tests, 1, function()
      return ip.is_within(networks, ngx.var.remote_addr)
    end)
  end
  if not tests[1] then
    return nil, "must hold at least one address, network or function"
  end
  return function()
    for index = 1, #tests do
      if tests[index]() == true then
        return true
      end
    end
    return false
  end
end

return M
