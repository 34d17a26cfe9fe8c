-- Time that passes only when somebody waits: the runtime of a sandbox client whose delays a test lets pass in its own
-- way. Such a client does one thing at a time.
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

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
  local tasks = tables.copy(runtime.tasks)
  -- A wait first lets the other tasks run, because what they do takes no time here.
  function tasks.signal()
    local signal, notices = runtime.tasks.signal(), 0
    return {
      wait = function(_, seconds)
        local before = notices
        signal:wait(seconds and 0)
        if seconds and notices == before then
          pass(seconds)
        end
      end,
      notify = function()
        notices = notices + 1
        signal:notify()
      end,
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
