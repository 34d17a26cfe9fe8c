-- The nginx worker as an inbox needs it: pid, clock, work beside a request, and work that outlives the request. Specs
-- replace it by one with a virtual clock.
local ngx = _G.ngx

local COLLECTED_EVERY = 20 -- polls, in a worker that is about to exit

local M = {}

---Unix seconds.
---@return number
function M.now()
  return ngx.now()
end

---@return integer
function M.pid()
  return ngx.worker.pid()
end

---@param message string
function M.warn(message)
  ngx.log(ngx.ERR, "riskscreen: ", message)
end

---Calls a function at an interval until the returned function is called or the request is over.
---@param seconds number
---@param fn fun()
---@return fun() stop must be called in the same request
function M.beside(seconds, fn)
  local thread = ngx.thread.spawn(function()
    while true do
      ngx.sleep(seconds)
      fn()
    end
  end)
  return function()
    ngx.thread.kill(thread)
  end
end

-- The waiters of aborted requests keep an exiting worker alive until they are collected.
local function collect_when_exiting(polls)
  if polls % COLLECTED_EVERY == 0 and ngx.worker.exiting() then
    collectgarbage()
  end
end

local function poll_on(poll, seconds)
  local polls = 0
  while poll() do
    ngx.sleep(seconds)
    polls = polls + 1
    collect_when_exiting(polls)
  end
end

---Makes a function that calls `poll` at an interval, independent of the request, for as long as it returns true.
---@param seconds number
---@return fun(poll: fun(): boolean, ended: fun())
function M.watcher(seconds)
  return function(poll, ended)
    local ok, message = ngx.timer.at(0, function()
      local fine, failure = pcall(poll_on, poll, seconds)
      ended()
      if not fine then
        M.warn("the webhooks that other workers receive are not polled: " .. tostring(failure))
      end
    end)
    if not ok then
      ended()
      M.warn("the webhooks that other workers receive are not polled: " .. tostring(message))
    end
  end
end

return M
