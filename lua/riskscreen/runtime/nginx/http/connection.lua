-- One connection for one request: opened or taken from nginx's pool, and put back or closed. All of it together takes
-- no longer than the request may. What the bytes mean is not known here.
local handshake = require "riskscreen.runtime.nginx.http.handshake"
local semaphore = require "ngx.semaphore"

local ngx = _G.ngx
local now, sleep, tcp = ngx.now, ngx.sleep, ngx.socket.tcp
local kill, spawn, wait = ngx.thread.kill, ngx.thread.spawn, ngx.thread.wait
local ceil, find, min = math.ceil, string.find, math.min

-- How many connections of each pool are in use: as many as there are, or more, since none is counted off that nginx
-- ends with its request.
---@type table<string, integer>
local in_use = {}

local PIECE = 65536 -- bytes that are received at once, at most
local LONGEST_IDLE = 60 -- seconds: up to here it counts what the server says, from here on nginx's own directive
local MARGIN = 1 -- seconds
local MOMENT = 0.001 -- seconds after which who was woken has run
local TURN = 64 -- pieces after which other requests have their turn

local doing = {
  name_lookup = "looking up the address of",
  connect = "connecting to",
  tls = "in the TLS handshake with",
  first_byte = "waiting for an answer from",
  body = "receiving the answer from",
}

---@class riskscreen.cosocket.Connection
---@field peer riskscreen.cosocket.Peer
---@field request riskscreen.Request
---@field started number
---@field phase string how far the request got
---@field sent boolean part of the request may have left
---@field reused boolean it comes from the pool
---@field done? boolean a thread has tried to connect, and these are
---@field connected? boolean what came of it
---@field reason? string and why
---@field awaited? table whom it wakes
---@field taken? boolean who waited has it
---@field times table<string, number> seconds; 0 for what did not happen
local Connection = {}
Connection.__index = Connection

local M = {}

---@return nil, table failure
function Connection:fail(kind, message)
  return nil, { kind = kind, message = message, sent = self.sent, phase = self.phase }
end

local function count_off(self)
  local pool = self.peer.pool.pool
  in_use[pool] = in_use[pool] - 1
end

-- The seconds that are left.
local function remaining(self)
  local timeout = self.request.timeout
  -- Should the clock be set back, nothing gets more time than there was.
  return min(timeout, timeout - (now() - self.started))
end

function Connection:time_out()
  local message = ("timed out after %.3g s %s %s"):format(now() - self.started, doing[self.phase], self.peer.title)
  return self:fail("timeout", message)
end

-- What a cosocket says when the connection is lost or its time is up.
function Connection:lose(reason, what)
  self:close()
  if reason == "timeout" then
    return self:time_out()
  end
  return self:fail("network", ("%s %s (%s)"):format(what, self.peer.title, reason))
end

---Ends it because of what it brought.
---@param message string what the answer is like
---@return nil, table failure
function Connection:refuse(message)
  self:close()
  return self:fail("protocol", ("%s from %s"):format(message, self.peer.title))
end

local function milliseconds(seconds)
  return seconds > 0.001 and ceil(seconds * 1000) or 1
end

-- Connecting

local function connect(sock, peer)
  if peer.port then
    return sock:connect(peer.host, peer.port, peer.pool)
  end
  return sock:connect(peer.host, peer.pool)
end

-- Connects in a thread of its own. Whoever waits for it may be killed meanwhile, and this is not: a connection that
-- nobody takes is closed.
local function connect_for(self)
  local ran, ok, reason = pcall(connect, self.sock, self.peer)
  self.connected, self.reason = ran and ok, ran and reason or ok
  self.done = true
  if self.awaited then
    self.awaited:post()
    sleep(MOMENT)
    if not self.taken then
      self.connected, self.reason = nil, "closed"
      self.sock:close()
    end
  end
end

-- Connects within a time. A socket's own time-out begins again after a turn in the queue and does not count the lookup
-- of a name: where there may be either, it happens in a thread that can be given up.
local function connect_within(self, seconds)
  local peer = self.peer
  if peer.is_address and in_use[peer.pool.pool] <= peer.pool.pool_size then
    return connect(self.sock, peer)
  end
  local connecting = spawn(connect_for, self)
  if self.done then
    wait(connecting)
    return self.connected, self.reason
  end
  self.awaited = semaphore.new()
  self.awaited:wait(seconds)
  self.taken = true
  kill(connecting)
  if not self.done then
    return nil, "timeout"
  end
  return self.connected, self.reason
end

local function connect_failure(self, reason)
  if find(reason, "resolve", 1, true) then
    self.phase = "name_lookup"
    reason = find(reason, "timed out", 1, true) and "timeout" or reason
  end
  return self:lose(reason, self.phase == "connect" and "could not connect to" or "could not find the address of")
end

local function shake_hands(self)
  local sock, peer = self.sock, self.peer
  self.phase = "tls"
  self.timed_at = nil
  local left = min(remaining(self), self.request.connect_timeout - (now() - self.started))
  if left <= 0 then
    return self:lose("timeout", "")
  end
  sock:settimeouts(milliseconds(left), milliseconds(left), milliseconds(left))
  local done, reason, distrust = handshake(sock, peer)
  if done then
    self.times.tls = now() - self.started
    return true
  elseif distrust then
    self:close()
    return self:fail("tls", ("could not verify the certificate of %s %s"):format(peer.title, distrust))
  end
  -- Whether the peer refused or went away is known to nginx's error log alone.
  return self:lose(reason, "TLS could not be set up with")
end

---Opens a connection, or takes one that is open.
---@param peer riskscreen.cosocket.Peer
---@param request riskscreen.Request
---@param started number when the request's time began
---@return riskscreen.cosocket.Connection|nil, table|nil failure
function M.open(peer, request, started)
  local sock = tcp()
  local self = setmetatable({
    peer = peer,
    request = request,
    started = started,
    sock = sock,
    phase = "connect",
    sent = false,
    reused = false,
    times = { name_lookup = 0, connect = 0, tls = 0, first_byte = 0, total = 0 },
    timed_at = started,
    pieces = 0,
  }, Connection)
  local left = remaining(self)
  if left <= 0 then
    return self:time_out()
  end
  in_use[peer.pool.pool] = (in_use[peer.pool.pool] or 0) + 1
  local first = min(request.connect_timeout, left)
  self.timed_at = now()
  sock:settimeouts(milliseconds(first), milliseconds(left), milliseconds(left))
  local ok, reason = connect_within(self, first)
  if not ok then
    return connect_failure(self, reason)
  end
  self.reused = sock:getreusedtimes() > 0
  self.times.connect = now() - started
  if peer.server_name and not self.reused then
    local shaken, failure = shake_hands(self)
    if not shaken then
      return nil, failure
    end
  end
  self.phase = "first_byte"
  return self
end

-- Sending and receiving

-- Gives the next operation the time that is left; false when there is none.
local function allot(self)
  local at = now()
  if at ~= self.timed_at then
    local left = remaining(self)
    if left <= 0 then
      return false
    end
    self.timed_at = at
    local timeout = milliseconds(left)
    self.sock:settimeouts(timeout, timeout, timeout)
  end
  return true
end

---@param text string
---@return true|nil, table|nil failure
function Connection:send(text)
  if not allot(self) then
    return self:lose("timeout", "")
  end
  self.sent = true
  local count, reason = self.sock:send(text)
  if not count then
    return self:lose(reason, "lost the connection while sending to")
  end
  return true
end

---The bytes that came, as soon as there are some. At the end of the connection: nil, "closed", and it is for the caller
---to say what that means.
---@return string|nil bytes
---@return table|"closed"|nil failure
function Connection:receive()
  self.pieces = self.pieces + 1
  if self.pieces % TURN == 0 then
    sleep(0)
  end
  if not allot(self) then
    return self:lose("timeout", "")
  end
  local bytes, reason = self.sock:receiveany(PIECE)
  if bytes then
    if self.phase ~= "body" then
      self.phase = "body"
      self.times.first_byte = now() - self.started
    end
    return bytes
  elseif reason == "closed" then
    return nil, reason
  end
  return self:lose(reason, "lost the connection while receiving from")
end

-- Puts it back; nginx refuses one that has brought more than was asked for.
local function put_back(self, idle)
  if not idle or idle > LONGEST_IDLE then
    return self.sock:setkeepalive()
  end
  -- The server's time began before ours.
  return idle > MARGIN and self.sock:setkeepalive((idle - MARGIN) * 1000)
end

---Keeps it for another request, or ends it where that is not possible.
---@param idle? number seconds after which the server closes it
function Connection:keep(idle)
  if not put_back(self, idle) then
    self:close()
    return
  end
  self.times.total = now() - self.started
  count_off(self)
end

---Ends it.
function Connection:close()
  self.times.total = now() - self.started
  count_off(self)
  self.sock:close()
end

return M
