-- A connection for one request: opened or taken from nginx's pool, then kept or closed. All of it together takes no
-- longer than the request may. response.lua reads the answer.
local semaphore = require "ngx.semaphore"

local ngx = _G.ngx
local sleep, tcp = ngx.sleep, ngx.socket.tcp
local kill, spawn, wait = ngx.thread.kill, ngx.thread.spawn, ngx.thread.wait
local ceil, find, min = math.ceil, string.find, math.min
local now = require("riskscreen.runtime.nginx.clock").now
local tls = require "riskscreen.runtime.nginx.tls"

-- The connections in use, by pool. A count may be too high: a connection that nginx ends with its request is not
-- subtracted.
---@type table<string, integer>
local in_use = {}

local PIECE = 65536 -- bytes: the most that is received at once
local LONGEST_IDLE = 60 -- seconds: a longer idle time of the server gives way to nginx's own directive
local MARGIN = 1 -- seconds
local MOMENT = 0.001 -- seconds in which a thread that was woken runs
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
---@field started number
---@field timeout number seconds for the request
---@field phase string that the request has reached
---@field pieces integer received
---@field text string what response.lua has received last
---@field at integer the first byte of it that was not read
---@field is_over? boolean the peer has ended it
---@field reused? boolean it came from the pool; known when it is lost
---@field done? boolean the thread that connects has ended
---@field connected? boolean its result
---@field reason? string of its failure
---@field awaited? table semaphore of the request that waits for the thread
---@field taken? boolean the request has the result
---@field times? table<string, number> seconds, unless the caller wants the value alone; 0 for what did not happen
local Connection = {}
Connection.__index = Connection

local M = {}

---@return nil, table failure
function Connection:fail(kind, message)
  local phase = self.phase
  return nil, { kind = kind, message = message, sent = phase == "first_byte" or phase == "body", phase = phase }
end

local function count_off(self)
  local pool = self.peer.pool.pool
  in_use[pool] = in_use[pool] - 1
end

-- Notes the time that a phase has taken since the beginning.
local function note(self, phase)
  if self.times then
    self.times[phase] = now() - self.started
  end
end

local function remaining(self)
  local timeout = self.timeout
  -- A clock that was set back must not give more time.
  return min(timeout, timeout - (now() - self.started))
end

function Connection:time_out()
  local message = ("timed out after %.3g s %s %s"):format(now() - self.started, doing[self.phase], self.peer.title)
  return self:fail("timeout", message)
end

---Closes it because a cosocket reported a lost connection or a timeout.
function Connection:lose(reason, what)
  self.reused = (self.sock:getreusedtimes() or 0) > 0
  self:close()
  if reason == "timeout" then
    return self:time_out()
  end
  return self:fail("network", ("%s %s (%s)"):format(what, self.peer.title, reason))
end

---Closes it because of a malformed answer.
---@param message string
---@return nil, table failure
function Connection:refuse(message)
  self:close()
  return self:fail("protocol", ("%s from %s"):format(message, self.peer.title))
end

local function milliseconds(seconds)
  return seconds > 0.001 and ceil(seconds * 1000) or 1
end

-- Connecting

local function connect(self)
  local peer = self.peer
  if peer.port then
    return self.sock:connect(peer.host, peer.port, peer.pool)
  end
  return self.sock:connect(peer.host, peer.pool)
end

-- Connects in a thread of its own. The request that waits may be killed, and the thread goes on: it closes a connection
-- that nobody takes.
local function connect_for(self)
  local ran, ok, reason = pcall(connect, self)
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

-- Connects within a time. A socket's own timeout starts again after its wait in the pool's queue, and does not cover
-- the lookup of a name. Where either may happen, a thread connects, which can be given up.
local function connect_within(self, seconds)
  local pool = self.peer.pool
  if self.peer.is_address and in_use[pool.pool] <= pool.pool_size then
    return connect(self)
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

-- The errors 18 to 22 of X.509: the issuer is not known.
local function hint_of(reason)
  local unknown = find(reason, "^1[89]: ") or find(reason, "^2[0-2]: ")
  return unknown and "; lua_ssl_trusted_certificate and lua_ssl_verify_depth say whom nginx trusts" or ""
end

local function set_up_tls(self, connect_timeout)
  local sock, peer = self.sock, self.peer
  self.phase = "tls"
  local left = min(remaining(self), connect_timeout - (now() - self.started))
  if left <= 0 then
    return self:lose("timeout", "")
  end
  sock:settimeouts(milliseconds(left), milliseconds(left), milliseconds(left))
  if peer.identity then
    sock:setclientcert(peer.identity.certificates, peer.identity.key)
  end
  local done, reason, is_refused = tls.shake_hands(sock, peer.server_name)
  if done then
    note(self, "tls")
    return true
  elseif is_refused then
    self:close()
    local message = "could not verify the certificate of %s (%s)%s"
    return self:fail("tls", message:format(peer.title, reason, hint_of(reason)))
  end
  -- nginx's error log alone has the reason why the peer closed the connection.
  return self:lose(reason, "TLS could not be set up with")
end

---Opens a connection, or takes an open one.
---@param peer riskscreen.cosocket.Peer
---@param started number now: the request begins
---@param timeout number seconds for the request
---@param connect_timeout number seconds
---@param is_timed? boolean the caller wants the times
---@return riskscreen.cosocket.Connection|nil, table|nil failure
function M.open(peer, started, timeout, connect_timeout, is_timed)
  local sock = tcp()
  local self = setmetatable({
    peer = peer,
    sock = sock,
    started = started,
    timeout = timeout,
    phase = "connect",
    pieces = 0,
    text = "",
    at = 1,
  }, Connection)
  if is_timed then
    self.times = { name_lookup = 0, connect = 0, tls = 0, first_byte = 0, total = 0 }
  end
  if timeout <= 0 then
    return self:time_out()
  end
  local pool = peer.pool.pool
  in_use[pool] = (in_use[pool] or 0) + 1
  local first = min(connect_timeout, timeout)
  sock:settimeouts(milliseconds(first), milliseconds(timeout), milliseconds(timeout))
  local ok, reason = connect_within(self, first)
  if not ok then
    return connect_failure(self, reason)
  end
  note(self, "connect")
  if peer.server_name and sock:getreusedtimes() == 0 then
    local ready, failure = set_up_tls(self, connect_timeout)
    if not ready then
      return nil, failure
    end
  end
  return self
end

-- Sending and receiving

-- Gives the next operation the time that is left; false when there is no time left.
local function allot(self)
  local left = remaining(self)
  local timeout = milliseconds(left)
  self.sock:settimeouts(timeout, timeout, timeout)
  return left > 0
end

---@param pieces string[]
---@return true|nil, table|nil failure
function Connection:send(pieces)
  if not allot(self) then
    return self:lose("timeout", "")
  end
  self.phase = "first_byte"
  local count, reason = self.sock:send(pieces)
  if not count then
    return self:lose(reason, "lost the connection while sending to")
  end
  return true
end

---Receives bytes as soon as there are some. At the end of the connection: nil and "closed".
---@param most? integer bytes; the rest stays with the connection, which is then not kept
---@return string|nil bytes
---@return table|"closed"|nil failure
function Connection:receive(most)
  self.pieces = self.pieces + 1
  if self.pieces % TURN == 0 then
    sleep(MOMENT) -- without a patch of nginx, sleep(0) lets no other request run, and warns each time
  end
  if not allot(self) then
    return self:lose("timeout", "")
  end
  local bytes, reason = self.sock:receiveany(most or PIECE)
  if bytes then
    if self.phase ~= "body" then
      self.phase = "body"
      note(self, "first_byte")
    end
    return bytes
  elseif reason == "closed" then
    return nil, reason
  end
  return self:lose(reason, "lost the connection while receiving from")
end

-- Puts it back into the pool. nginx refuses a connection with unread bytes.
local function put_back(self, idle)
  if self.peer.is_fresh then
    return false
  elseif not idle or idle > LONGEST_IDLE then
    return self.sock:setkeepalive()
  end
  -- The server's idle time began before ours.
  return idle > MARGIN and self.sock:setkeepalive((idle - MARGIN) * 1000)
end

---Keeps it for another request, or closes it where that is not possible.
---@param idle? number seconds after which the server closes it
function Connection:keep(idle)
  if not put_back(self, idle) then
    self:close()
    return
  end
  note(self, "total")
  count_off(self)
end

---Closes it.
function Connection:close()
  note(self, "total")
  count_off(self)
  self.sock:close()
end

return M
