-- TLS over nginx's cosockets, against servers with good and bad certificates.
local native_driver = require "spec.support.native_driver"
local nginx = require "spec.support.nginx"
local patience = require "spec.support.patience"
local peer = require "spec.support.peer"
local tls_server = require "spec.support.tls_server"

local LONG = 20 -- seconds

local HTTP = [[
  lua_ssl_trusted_certificate TLS/ca.pem;
  init_by_lua_block {
    made_at_the_start = require("riskscreen").new {
      base_url = "https://localhost", access_key = "test-key", unix_socket = "TLS/mutual",
      client_cert = "TLS/client.pem", client_key = "TLS/key.pem",
    }
  }
]]

local tls, server, stranger

setup(function()
  tls = tls_server.start()
  server = nginx.start { http = (HTTP:gsub("TLS", (tls.path ""))) }
  stranger = nginx.start {}
end)

teardown(function()
  tls.stop()
  server:stop(nginx.BROKEN_CONNECTIONS)
  stranger:stop(nginx.BROKEN_CONNECTIONS)
end)

local function send(from, url, more)
  local request = { method = "GET", target = "/x?y", headers = { ["X-Test"] = "z" }, timeout = LONG }
  local given = { origin = url, concurrency = 8, limit = 65536, request = request }
  request.connect_timeout = LONG
  for name, value in pairs(more or {}) do
    if name == "timeout" then
      request.timeout = value
    else
      given[name] = value
    end
  end
  local result = from:eval("return require('spec.support.nginx_transport').send(...)", given)
  return result.reply, result.failure
end

local function send_to(name, more)
  local given = { unix_socket = tls.path(name) }
  for option, value in pairs(more or {}) do
    given[option] = value
  end
  return send(server, "https://localhost", given)
end

-- The request as the server received it.
local function request_of(...)
  local reply, failure = ...
  assert.is_nil(failure and failure.message)
  return reply.body
end

local function assert_tls(failure, phase)
  assert.same({ "tls", phase, false }, { failure.kind, failure.phase, failure.sent }, failure.message)
end

describe("TLS over a cosocket", function()
  it("succeeds with a certificate that a trusted authority signed", function()
    assert.matches("^HTTP/1.1 %d+ GET /x%?y z$", request_of(send_to "good"))
  end)

  it("is set up once for a connection that is used again", function()
    assert.equal(request_of(send_to("good", { concurrency = 3 })), request_of(send_to("good", { concurrency = 3 })))
  end)

  it("speaks HTTP/1.1 with a server that has HTTP/2 as well", function()
    assert.matches("^HTTP/1.1 ", request_of(send_to "h2"))
  end)

  for name, words in pairs { expired = "expired", other = "host mismatch", untrusted = "self%-signed" } do
    it("fails with a certificate of the kind " .. name .. ", and nothing is sent", function()
      local reply, failure = send_to(name)
      assert.is_nil(reply)
      assert_tls(failure, "tls")
      local why = failure.message:match "^could not verify the certificate of localhost:443 at /%S+ %((.-)%)"
      -- When the server answers at once, nginx does not say.
      assert.is_true(why == "the certificate was refused" or why:find(words) ~= nil, failure.message)
    end)
  end

  it("fails with a certificate of another name", function()
    local reply, failure = send(server, "https://api.example", { unix_socket = tls.path "good" })
    assert.is_nil(reply)
    assert_tls(failure, "tls")
  end)

  it("distinguishes a bad certificate from a failed handshake, in any order", function()
    for _ = 1, 40 do
      local _, expired = send_to "expired"
      local _, old = send_to "old"
      assert.same({ "tls", "network" }, { expired.kind, old.kind })
    end
  end)

  it("is the same for Redis", function()
    local code = [[
      local settings = { tls = true, connect_timeout = 20, pool_size = 1, keepalive = 1 }
      local transport = require("riskscreen.runtime.nginx.redis").new(settings)
      local connection, failure = transport:connect { path = (...), host = "localhost" }
      return connection and "connected" or failure.kind
    ]]
    for name, expected in pairs { good = "connected", expired = "tls", other = "tls", old = "network" } do
      assert.equal(expected, (server:eval(code, tls.path(name))), name)
    end
  end)

  it("trusts no certificate without trusted authorities", function()
    local reply, failure = send(stranger, "https://localhost", { unix_socket = tls.path "good" })
    assert.is_nil(reply)
    assert_tls(failure, "tls")
    assert.is_true(failure.message:find "refused" ~= nil or failure.message:find "lua_ssl_trusted_certificate" ~= nil)
  end)

  it("does not take a connection that a client without TLS has opened", function()
    local one = peer.tcp(native_driver, function(connection)
      connection:send(peer.response "{}")
    end)
    assert.equal(200, send(server, one.url).status)
    local reply, failure = send(server, (one.url:gsub("^http:", "https:")), { timeout = 0.2 })
    assert.is_nil(reply)
    assert.is_false(failure.sent)
    one:close()
  end)

  it("shows the client's certificate", function()
    local given = { client_cert = tls.path "client.pem", client_key = tls.path "key.pem" }
    assert.equal("CN=client-one", request_of(send_to("mutual", given)))
  end)

  it("shows the certificate of a client that was made in init", function()
    local message = server:eval "return tostring(select(2, made_at_the_start:request('GET', '/')))"
    assert.truthy(message:find("(the body begins 'CN=client-one')", 1, true), message)
  end)

  it("is refused when a file of the client's certificate is wrong", function()
    for option, given in pairs {
      client_cert = { client_cert = "/nonexistent/client.pem" },
      client_key = { client_cert = tls.path "client.pem", client_key = tls.path "ca.pem" },
    } do
      local code = "return require('spec.support.nginx_transport').problem(...)"
      given.origin, given.concurrency, given.limit = "https://localhost", 8, 65536
      assert.matches("^" .. option, server:eval(code, given))
    end
  end)

  it("is refused when the key of the client's certificate needs a pass phrase, which nginx would ask for", function()
    local code = "return require('spec.support.nginx_transport').problem(...)"
    for key, certificate in pairs { locked = "client", sealed = "client", bundle = "bundle" } do
      local given = { client_cert = tls.path(certificate .. ".pem"), client_key = tls.path(key .. ".pem") }
      given.client_key = key ~= "bundle" and given.client_key or nil
      given.origin, given.concurrency, given.limit = "https://localhost", 8, 65536
      assert.matches("^client_%a+ needs a pass phrase", server:eval(code, given))
    end
  end)

  for name, greet in pairs {
    ["does not speak it"] = function(connection)
      connection:send "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
    end,
    ["breaks the connection in the handshake"] = function(connection)
      connection.read = connection.reset
    end,
    ["closes the connection in the handshake"] = function(connection)
      function connection:read()
        self.socket:receive(65536)
        self:close()
      end
    end,
  } do
    it("fails with a server that " .. name, function()
      local one = peer.tcp(native_driver, function() end)
      one.greet = greet
      local reply, failure = send(server, (one.url:gsub("^http:", "https:")))
      assert.is_nil(reply)
      assert.same({ "network", "tls", false }, { failure.kind, failure.phase, failure.sent })
      one:close()
    end)
  end

  it("takes no longer than its time with a server that never answers", function()
    local one = peer.tcp(native_driver, function() end)
    local failure = patience(function(seconds)
      local _, failed = send(server, (one.url:gsub("^http:", "https:")), { timeout = seconds })
      return failed.phase == "tls", failed
    end)
    assert.same({ "timeout", "tls", false }, { failure.kind, failure.phase, failure.sent })
    one:close()
  end)
end)
