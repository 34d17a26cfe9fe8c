-- The HTTP client over nginx's cosockets, against peers of raw bytes in this process.
local native_driver = require "spec.support.native_driver"
local nginx = require "spec.support.nginx"
local peer = require "spec.support.peer"

local LONG = 20 -- seconds
local BODY = '{"a":[1,2]}'

local server

setup(function()
  server = nginx.start {}
end)

teardown(function()
  server:stop()
end)

local peers = {}

after_each(function()
  for _, one in ipairs(peers) do
    one:close()
  end
  peers = {}
end)

local function peer_of(answer)
  local one = peer.tcp(native_driver, answer)
  peers[#peers + 1] = one
  return one
end

local function given(url, request, more)
  local all = { method = "GET", target = "/", headers = {}, timeout = LONG, connect_timeout = LONG, replay = true }
  for name, value in pairs(request or {}) do
    all[name] = value
  end
  local result = { origin = url, concurrency = 32, limit = 1024 * 1024, request = all }
  for name, value in pairs(more or {}) do
    result[name] = value
  end
  return result
end

-- Sends a request from inside nginx: the reply, or nil and the failure.
local function send(url, request, more)
  local result = server:eval("return require('spec.support.nginx_transport').send(...)", given(url, request, more))
  return result.reply, result.failure
end

local function answering(text)
  return peer_of(function(connection)
    connection:send(text)
  end)
end

describe("a request over a cosocket", function()
  it("sends what it is given and returns the decoded answer", function()
    local one = answering(peer.response(BODY, "Content-Type: application/json\r\nX-Two: a\r\nx-two: b\r\n"))
    local reply = send(one.url, { method = "POST", target = "/x?y=%20", headers = { ["X-One"] = "1" }, body = "{}" })
    assert.same({ a = { 1, 2 } }, reply.value)
    assert.equal(200, reply.status)
    assert.equal(#BODY, reply.size)
    assert.equal("1.1", reply.http_version)
    assert.equal("application/json", reply.headers["content-type"])
    assert.equal("a, b", reply.headers["x-two"])
    local request = one.requests[1]
    assert.matches("^POST /x%?y=%%20 HTTP/1.1\r\n", request)
    assert.matches("\r\nHost: " .. one.url:match "//(.*)" .. "\r\n", request, 1, true)
    assert.matches("\r\nX-One: 1\r\n", request, 1, true)
    assert.matches("\r\nContent-Length: 2\r\n", request, 1, true)
    assert.matches("\r\n\r\n{}$", request)
  end)
end)
