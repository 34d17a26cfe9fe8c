-- Drives a loop together with the peers of its transfers, in one process: a watch in the loop calls a peer when it is
-- ready. Nothing sleeps; a test fails at a deadline.

local by_names = require("spec.support.by_names")
local core = require("riskscreen.core")

local DEADLINE = 60 -- seconds; a busy machine under valgrind takes more than 20 for a handshake

local Driver = {}
Driver.__index = Driver

local driver = {}

--- A loop with these options, and what drives it.
function driver.new(options)
  return setmetatable({ loop = core.loop(options or {}), handlers = {}, finished = {}, servers = {} }, Driver)
end

--- Calls `handler` whenever the descriptor is ready; returns the watch.
function Driver:on_ready(fd, events, handler)
  local watch = self.loop:watch(fd, events)
  self.handlers[watch] = handler
  return watch
end

--- Calls `handler` once, after so many seconds; returns the timer, for `forget`.
function Driver:after(seconds, handler)
  local timer = self.loop:timer(seconds)
  self.handlers[timer] = function()
    self.handlers[timer] = nil
    handler()
  end
  return timer
end

function Driver:forget(operation)
  self.loop:cancel(operation)
  self.handlers[operation] = nil
end

-- With these a driver is driven in its turn by a runtime that it is attached to.

function Driver:pollfd()
  return self.loop:pollfd()
end

function Driver:events()
  return self.loop:events()
end

function Driver:timeout()
  return self.loop:timeout()
end

--- Answers the requests of a riskscreen.server with `handler`.
function Driver:serve(server, handler)
  local function step()
    server:step(0)
    local request = server:next()
    while request do
      handler(request)
      request = server:next()
    end
  end
  self.servers[#self.servers + 1] = { server = server, step = step }
  self:on_ready(server:pollfd(), "r", step)
end

--- One step of everything. Operations that are no peer's are appended to `finished`.
function Driver:step(seconds)
  for _, entry in ipairs(self.servers) do
    local timeout = entry.server:timeout()
    seconds = timeout and math.min(timeout, seconds) or seconds
  end
  self.loop:step(seconds)
  for _, entry in ipairs(self.servers) do
    entry.step()
  end
  local operation = self.loop:next()
  while operation do
    local handler = self.handlers[operation]
    if handler then
      handler()
    else
      self.finished[#self.finished + 1] = operation
    end
    operation = self.loop:next()
  end
end

--- Steps until `condition` returns something true, and returns that.
function Driver:until_true(what, condition)
  local deadline = core.now() + DEADLINE
  repeat
    local result = condition()
    if result then
      return result
    end
    self:step(1)
  until core.now() > deadline
  error("waited in vain for " .. what, 2)
end

--- Steps until the transfer is finished and out of the loop.
function Driver:wait_for(transfer)
  self:until_true("the transfer", function()
    for _, operation in ipairs(self.finished) do
      if operation == transfer then
        return true
      end
    end
  end)
end

--- Steps until the transfer is finished, and takes its response.
function Driver:result(transfer)
  self:wait_for(transfer)
  return by_names.take(self.loop, transfer)
end

function Driver:close()
  self.loop:close()
  for _, entry in ipairs(self.servers) do
    entry.server:close()
  end
end

return driver
