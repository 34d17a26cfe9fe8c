-- Servers that answer every request with a given fault, byte by byte. They live in this process: the native runtime
-- drives them while a call waits. The spoiled answers are sound ones about an address without a risk. An unnoticed
-- fault would therefore let the address pass.

local driver = require "spec.support.driver"
local full_listener = require "spec.support.full_listener"
local native = require "riskscreen.runtime.native"
local peer = require "spec.support.peer"
local sandbox = require "riskscreen.sandbox"
local socket = require "socket"
local tls_server = require "spec.support.tls_server"

local M = { key = "fault-key-7c41e9" }

---@class riskscreen.spec.Sound what a sound server would answer
---@field body string
---@field text string the whole answer: head and body
---@field key string the access key as it was sent
---@field elsewhere string URL of another host
---@field settle fun() says that what the fault does to an idle connection is done

---@class riskscreen.spec.FaultServer
---@field url string
---@field options table what a client needs to reach it
---@field drive table runs timers beside the call
---@field struck integer how often the fault was done
---@field settled integer how often `settle` was called
---@field count fun(): integer requests seen
---@field elsewhere fun(): integer connections to another host
---@field close fun()

local JSON = "Content-Type: application/json\r\n"

local function sound_answer(service, request)
  local method, target = request:match "^(%S+) (%S+) HTTP/1%.1\r\n"
  local head, body = request:match "^(.-\r\n)\r\n(.*)$"
  local headers = {}
  for name, value in head:gmatch "\n([^:\r\n]+): *([^\r\n]*)" do
    headers[name:lower()] = value
  end
  local answer = service:handle { method = method, target = target, headers = headers, body = body }
  assert(answer.status == 200, answer.body)
  return {
    body = answer.body,
    text = peer.response(answer.body, JSON),
    key = headers["x-access-key"],
    target = target,
  }
end

---@return riskscreen.spec.FaultServer
local function new(close)
  local drive = driver.new()
  native.attach(drive)
  local self = { drive = drive, options = {}, struck = 0, settled = 0 }
  function self.elsewhere()
    return 0
  end
  function self.close()
    close()
    native.detach(drive)
    drive:close()
  end
  return self
end

---A server of raw bytes.
---@param fault riskscreen.spec.Fault
---@param spares string|nil requests whose target holds this text get the sound answer
---@return riskscreen.spec.FaultServer
function M.raw(fault, spares)
  local service = sandbox.new { accounts = { [M.key] = {} } }
  local raw, other
  local self = new(function()
    raw:close()
    other:close()
  end)
  other = peer.tcp(self.drive, function() end)
  raw = peer.tcp(self.drive, function(connection, request)
    local sound = sound_answer(service, request)
    sound.elsewhere = other.url
    function sound.settle()
      self.settled = self.settled + 1
    end
    if spares and sound.target:find(spares, 1, true) then
      connection:send(sound.text)
    else
      self.struck = self.struck + 1
      fault.act(connection, sound)
    end
  end)
  raw.greet = fault.greet and function(connection)
    self.struck = self.struck + 1
    fault.greet(connection)
  end
  self.url = fault.over_tls and raw.url:gsub("^http:", "https:") or raw.url
  function self.count()
    return #raw.requests
  end
  function self.elsewhere()
    return other.connections
  end
  return self
end

local tls

local function the_tls()
  tls = tls or tls_server.start()
  return tls
end

---The file of the authority that a client shall trust.
---@return string
function M.authority()
  return the_tls().path "ca.pem"
end

---A server with the TLS that the fault's `tls` names; see tls_server.lua. Without the fault's `act` its answers are
---sound. The client trusts the authority of the good certificates.
---@param fault riskscreen.spec.Fault
---@return riskscreen.spec.FaultServer
function M.tls(fault)
  local self = M.raw {
    act = fault.act or function(connection, sound)
      connection:send(sound.text)
    end,
  }
  self.url = "https://localhost/to/" .. self.url:match "%d+$"
  self.options = { unix_socket = the_tls().path(fault.tls), ca_file = M.authority() }
  return self
end

---Stops what the servers have in common; they may be started again.
function M.stop_tls()
  if tls then
    tls.stop()
    tls = nil
  end
end

---A port where nobody listens.
---@return riskscreen.spec.FaultServer
function M.refused()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local self = new(function() end)
  self.url = "http://127.0.0.1:" .. select(2, listener:getsockname())
  listener:close()
  function self.count()
    return 0
  end
  return self
end

---A port that answers no connection request.
---@return riskscreen.spec.FaultServer
function M.full()
  local listener = full_listener.start()
  local self = new(function()
    listener:close()
  end)
  self.url = listener.url
  self.struck = math.huge -- it always does
  function self.count()
    return 0
  end
  return self
end

return M
