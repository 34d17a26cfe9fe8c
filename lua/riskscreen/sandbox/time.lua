-- Time that passes only when somebody waits: the runtime of a sandbox client whose delays a test lets pass in its own
-- way. Such a client does one thing at a time.
local runtime = require "riskscreen.runtime"

local M = {}

---A runtime whose clock advances by what is slept.
---@param sleep fun(seconds: number) how a wait passes
---@return { now: (fun(): number), sleep: fun(seconds: number), tasks: table }
function M.new(sleep)
  local passed = 0
  local function pass(seconds)
    passed = passed + seconds
    sleep(seconds)
  end
  local tasks = {}
  for name, value in pairs(runtime.tasks) do
    tasks[name] = value
  end
  function tasks.signal()
    return {
      wait = function(_, seconds)
        pass(seconds or 0)
      end,
      notify = function() end,
    }
  end
  return {
    now = function()
      return passed
    end,
    sleep = pass,
    tasks = tasks,
  }
end

return M
