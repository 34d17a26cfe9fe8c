-- Runs fetches outside of the request that needs them, so that they outlive it. One timer runs many of them: nginx
-- limits the timers that run at a time.
local ngx = _G.ngx

local MAX_JOBS = 64 -- of one timer, which keeps a little memory of each until it ends
local LONGEST_SLEEP = 60 -- seconds

---@class riskscreen.nginx.Runner a timer that takes jobs
---@field jobs fun()[] that nobody runs yet
---@field taken integer jobs so far
---@field running integer
---@field wake table semaphore

---@type riskscreen.nginx.Runner|nil
local current

---@class riskscreen.nginx.Background
local M = {}

local function run(runner, job)
  runner.running = runner.running + 1
  ngx.thread.spawn(function()
    job()
    runner.running = runner.running - 1
    runner.wake:post(1)
  end)
end

-- Runs the jobs, and those that come while they are under way.
local function serve(runner)
  repeat
    while runner.jobs[1] do
      run(runner, table.remove(runner.jobs, 1))
    end
    if runner.running > 0 and runner.taken < MAX_JOBS then
      runner.wake:wait(LONGEST_SLEEP)
    end
  until not runner.jobs[1] and (runner.running == 0 or runner.taken == MAX_JOBS)
  if current == runner then
    current = nil
  end
end

local function start_runner()
  local runner = {
    jobs = {},
    taken = 0,
    running = 0,
    wake = require("ngx.semaphore").new(),
  }
  local created = ngx.timer.at(0, function()
    serve(runner)
  end)
  return created and runner or nil
end

---Runs a job soon, unless nginx has no timer for it. The job must not raise, and must be ready never to be called.
---@param job fun()
---@return boolean|nil accepted
function M.run(job)
  local runner = current or start_runner()
  if not runner then
    return nil
  end
  runner.taken = runner.taken + 1
  runner.jobs[#runner.jobs + 1] = job
  runner.wake:post(1)
  current = runner.taken < MAX_JOBS and runner or nil
  return true
end

---Gives no more jobs to a timer that does not run them. nginx drops timers when too many run.
function M.give_up()
  current = nil
end

---Whether nginx may end the request that is served before its work is done, when its client disconnects. Without
---the directive lua_check_client_abort, on_abort says so before it looks at its argument.
---@return boolean
function M.is_needed()
  local ok, result, message = pcall(ngx.on_abort, nil)
  return ok and message == "duplicate call" or not ok and tostring(result):find("function expected", 1, true) ~= nil
end

return M
