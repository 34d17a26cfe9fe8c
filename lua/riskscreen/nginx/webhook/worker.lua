-- What an inbox needs of the nginx worker it is in: its number, its time, work beside a request and work that outlives
-- it. Specs have another one in which no time passes.
local ngx = _G.ngx

local COLLECTED_EVERY = 20 -- looks, in a worker that is told to end

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

---Calls a function every so many seconds until the returned function is called or the request is over.
---@param seconds number
---@param fn fun()
---@return fun() stop to be called where this was
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

-- What a request that was aborted has left behind keeps a worker from ending until it is collected.
local function collect_in_the_end(looks)
  if looks % COLLECTED_EVERY == 0 and ngx.worker.exiting() then
    collectgarbage()
  end
end

local function look_on(look, seconds)
  local looks = 0
  while look() do
    ngx.sleep(seconds)
    looks = looks + 1
    collect_in_the_end(looks)
  end
end

---What calls a function every so many seconds, whatever becomes of the request, for as long as that returns true.
---@param seconds number
---@return fun(look: fun(): boolean, ended: fun())
function M.watcher(seconds)
  return function(look, ended)
    local ok, message = ngx.timer.at(0, function()
      local fine, failure = pcall(look_on, look, seconds)
      ended()
      if not fine then
        M.warn("webhooks of other workers are not looked for: " .. tostring(failure))
      end
    end)
    if not ok then
      ended()
      M.warn("webhooks of other workers are not looked for: " .. tostring(message))
    end
  end
end

return M
