-- Drives the raw peers of peer.lua by the native runtime, so that a blocking call and its peer share one process.
local native = require "riskscreen.runtime.native"

local M = {}

---Calls `act` whenever a descriptor is ready.
---@param fd integer
---@param events "r"|"w"
---@param act fun()
---@return table handle for `forget`
function M:on_ready(fd, events, act) -- luacheck: ignore 212
  local pollable = {
    pollfd = function()
      return fd
    end,
    events = function()
      return events
    end,
    timeout = function() end,
    step = act,
  }
  native.attach(pollable)
  return pollable
end

function M:forget(handle) -- luacheck: ignore 212
  native.detach(handle)
end

return M
