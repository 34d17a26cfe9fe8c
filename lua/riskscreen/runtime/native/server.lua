-- A server over riskscreen.server. The native loop drives it, or a loop of the program's own.
local errors = require "riskscreen.errors"
local optional = require "riskscreen.util.optional"
local scheduler = require "riskscreen.runtime.native.scheduler"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

-- The reasons for which the listener itself refuses a request.
local refusals = { [400] = "the head is malformed, too long or not complete", [413] = "the body is too large" }

---@class riskscreen.Server: riskscreen.Pollable
---@field url string
---@field port integer
---@field private listener userdata
---@field private take fun(request: userdata)
---@field private actions { due: number, act: fun() }[] of `later`, by due time
---@field private closed? boolean
---@field on_refused? fun(status: integer, reason: string, remote: string)
local Server = {}
Server.__index = Server

---The descriptor to poll.
---@return integer
function Server:pollfd()
  text.expect_self(self, Server, "server:pollfd")
  return self.listener:pollfd()
end

---The events to poll it for.
---@return string
function Server:events()
  text.expect_self(self, Server, "server:events")
  return self.listener:events()
end

---Seconds after which to call `step` although the descriptor is not ready; nil: never.
---@return number|nil
function Server:timeout()
  text.expect_self(self, Server, "server:timeout")
  local timeout, first = self.listener:timeout(), self.actions[1]
  local due = first and math.max(0, first.due - scheduler.now())
  return timeout and due and math.min(timeout, due) or timeout or due
end

---Calls a function after a time.
---@param seconds number
---@param act fun()
function Server:later(seconds, act)
  tables.insert_sorted(self.actions, "due", { due = scheduler.now() + seconds, act = act })
end

---Takes the requests that have arrived.
---@param seconds? number how long to wait for one
---@return integer|nil taken
---@return string|nil message of a failed listener
function Server:step(seconds)
  text.expect_self(self, Server, "server:step")
  local timeout = self:timeout()
  if timeout and (not seconds or timeout < seconds) then
    seconds = timeout
  end
  local stepped, message = self.listener:step(seconds)
  if not stepped then
    return nil, message
  end
  local taken = 0
  local request = self.listener:next()
  while request do
    self.take(request)
    taken = taken + 1
    request = self.listener:next()
  end
  local status, remote = self.listener:refused()
  while status do
    if self.on_refused then
      self.on_refused(status, refusals[status], remote)
    end
    status, remote = self.listener:refused()
  end
  while self.actions[1] and self.actions[1].due <= scheduler.now() do
    table.remove(self.actions, 1).act()
  end
  self.listener:step(0)
  return taken
end

---Stops serving. Idempotent.
function Server:close()
  text.expect_self(self, Server, "server:close")
  if not self.closed then
    self.closed, self.actions = true, {}
    scheduler.detach(self)
    self.listener:close()
  end
end

local M = {}

---Serves requests.
---@param what string the function that the program has called, for messages
---@param place { host: string, port: integer, max_body?: integer }
---@param take fun(request: userdata)
---@return riskscreen.Server|nil
---@return riskscreen.Error|nil err
function M.new(what, place, take)
  local module, failure = optional "riskscreen.server"
  if not module then
    local message = require("riskscreen.util.missing").explain(failure) or failure
    return nil, errors.new("unsupported", what .. ": " .. message)
  end
  local listener, message = module.new { host = place.host, port = place.port, max_body = place.max_body }
  if not listener then
    return nil, errors.new("network", what .. ": " .. message, { sent = false })
  end
  local host, port = place.host:find(":", 1, true) and "[" .. place.host .. "]" or place.host, listener:port()
  local server = setmetatable({
    url = ("http://%s:%d"):format(host, port),
    port = port,
    listener = listener,
    take = take,
    actions = {},
  }, Server)
  scheduler.attach(server)
  return server
end

return M
