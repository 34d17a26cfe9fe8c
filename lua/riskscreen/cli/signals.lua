-- How a verb ends in good order. The first SIGINT or SIGTERM is only noted, and a second one ends the program at once.
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"

local LOOK_EVERY = 0.1 -- seconds between two looks for a signal

local M = {}

---Only notes the first signal, of which `system.ending` tells. A verb that an assistant runs ends with its server.
---@param context riskscreen.cli.Context
---@param stop? fun() called once after the signal
---@return fun() forget ends this
function M.catch(context, stop)
  local finished = context.ends_at ~= nil
  assert(finished or system.catch_end())
  riskscreen.defer(function()
    while not finished do
      riskscreen.sleep(LOOK_EVERY)
      if not finished and system.ending() then
        finished = true
        context:tell "stopping: calls under way are finished; a second signal ends at once"
        local _ = stop and stop()
      end
    end
  end)
  return function()
    finished = true
  end
end

---The status of a verb that has ended in good order.
---@param code? integer without a signal
---@return integer
function M.status(code)
  return system.ending() and status.interrupted or code or status.done
end

return M
