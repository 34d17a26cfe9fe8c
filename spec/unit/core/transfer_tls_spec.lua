local libcurl = require "spec.support.libcurl"
local by_names = require("spec.support.by_names")
local core = require("riskscreen.core")
local driver = require("spec.support.driver")
local peer = require("spec.support.peer")
local tls_server = require("spec.support.tls_server")

-- An OpenSSL configuration that allows old protocols and signatures.
local LENIENT = [[
openssl_conf = this
[this]
ssl_conf = ssl
[ssl]
system_default = everything
[everything]
MinProtocol = TLSv1
CipherString = DEFAULT:@SECLEVEL=0
]]

local INTERPRETER = os.getenv("RISKSCREEN_LUA") or "lua5.4"
local PATIENT = 60 -- seconds; under valgrind a handshake takes longer than the default of connect_timeout

local server, drive, loop

setup(function()
  server = tls_server.start()
end)

teardown(function()
  server.stop()
end)

before_each(function()
  drive = driver.new()
  loop = drive.loop
end)

after_each(function()
  drive:close()
end)

--- Returns an origin for a named server, which trusts the test's authority.
local function origin_of(name, options)
  local all = {
    base_url = "https://localhost",
    unix_socket = server.path(name),
    ca_file = server.path("ca.pem"),
    connect_timeout = PATIENT,
  }
  for option, value in pairs(options or {}) do
    all[option] = value
  end
  return loop:origin(all)
end

--- Returns an origin that expects TLS of a peer.
local function origin_at(tcp_peer)
  local port = tcp_peer.url:match "%d+$"
  return loop:origin { base_url = "https://127.0.0.1:" .. port, connect_timeout = PATIENT }
end

local function send(origin, request)
  local all = { target = "/", timeout = PATIENT }
  for name, value in pairs(request or {}) do
    all[name] = value
  end
  return by_names.send(origin, all)
end

local function answer_of(origin, request)
  local transfer = send(origin, request)
  local result, failure = drive:result(transfer)
  assert.is_nil(failure and failure.message)
  return result and result.body, result
end

describe("a transfer over TLS", function()
  it("succeeds with a certificate of the given authority", function()
    local body, result = answer_of(origin_of("good"), { target = "/x?y", headers = { "X-Test: z" } })
    assert.matches("^HTTP/1.1 %d+ GET /x%?y z$", body)
    assert.equal(200, result.status)
    assert.is_true(result.times.tls >= result.times.connect)
  end)

  it("reuses its connection", function()
    local origin = origin_of("good")
    assert.equal(answer_of(origin), answer_of(origin))
  end)

  it("sends a write over a new connection when the server has ended the idle one", function()
    local answering = peer.tcp(drive, function(connection)
      connection:send(peer.response("taken"))
    end)
    local origin = origin_of("brief")
    local write = { method = "POST", body = "x", target = "/to/" .. answering.url:match "%d+$" .. "/" }
    assert.equal("taken", (answer_of(origin, write)))
    local ended = false
    drive:after(1.5, function() -- the server ends it after a second
      ended = true
    end)
    drive:until_true("the end of the connection", function()
      return ended
    end)
    assert.equal("taken", (answer_of(origin, write)))
    answering:close()
  end)

  for _, options in ipairs({ {}, { compression = false }, { http_version = "1.1", concurrency = 1 } }) do
    it("does not take what follows a response in its TLS record for the next one", function()
      local answers = 0
      local answering = peer.tcp(drive, function(connection)
        answers = answers + 1
        connection:send(peer.response("answer " .. answers) .. peer.response("stale"))
        connection:finish()
      end)
      local origin = origin_of("split", options)
      local target = "/to/" .. answering.url:match "%d+$" .. "/"
      for i = 1, 5 do
        assert.equal("answer " .. i, (answer_of(origin, { target = target })))
      end
      answering:close()
    end)
  end

  it("fails no request where such a response is read when that request is sent", function()
    local first
    local answering = peer.tcp(drive, function(connection)
      if first then
        connection:send(peer.response("second"))
        connection:finish()
      end
      first = first or connection
    end)
    local origin, target = origin_of("split"), "/to/" .. answering.url:match "%d+$" .. "/"
    local transfer = send(origin, { target = target })
    drive:until_true("the request", function()
      return first
    end)
    first:send(peer.response("first") .. peer.response("stale"))
    first:finish()
    -- Until the answer is there, and libcurl's timer of 0.2 s for the new connection has ended.
    local start = core.now()
    repeat
    until core.now() > start + 0.4
    assert.equal("second", (answer_of(origin, { target = target })))
    assert.equal("first", drive:result(transfer).body)
    answering:close()
  end)

  for _, case in ipairs({
    { "expired", "expired" },
    { "other", "does not match" },
    { "untrusted", "self.signed certificate" },
  }) do
    it("fails when the certificate is of the kind: " .. case[1], function()
      local _, failure = drive:result(send(origin_of(case[1]), { method = "POST", body = "secret" }))
      assert.same({ "tls", "tls", false }, { failure.kind, failure.phase, failure.sent })
      assert.matches("^could not verify the certificate of localhost:443 at /%S+ %(", failure.message)
    end)
  end

  it("reports the problem of a certificate", function()
    local messages = {}
    for _, name in ipairs({ "expired", "other", "untrusted" }) do
      messages[name] = select(2, drive:result(send(origin_of(name)))).message
    end
    assert.matches("expired", messages.expired)
    assert.matches("localhost'", messages.other)
    assert.matches("self.signed", messages.untrusted)
  end)

  it("refuses a protocol older than TLS 1.2, even if OpenSSL is configured to allow it", function()
    local configuration = server.path("lenient.cnf")
    local file = assert(io.open(configuration, "w"))
    file:write(LENIENT)
    file:close()
    local socket, authority = server.path("old"), server.path("ca.pem")
    local command = "OPENSSL_CONF=%s SOCKET=%s CA=%s %s spec/support/tls_once.lua"
    local pipe = assert(io.popen(command:format(configuration, socket, authority, INTERPRETER)))
    local said = pipe:read("*a")
    pipe:close()
    assert.matches("^tls tls false .*localhost:443", said)
    assert.matches("protocol", said)
  end)

  -- luasocket ignores SIGPIPE in this process, and its children inherit that.
  it("survives when it closes a kept-alive connection that the server has left", function()
    local other = tls_server.start()
    local stop = ("pid=$(cat %s); kill $pid; while kill -0 $pid 2>/dev/null; do sleep 0.01; done"):format(
      other.path("nginx.pid")
    )
    local command = "STOP='%s' SOCKET=%s CA=%s env --default-signal=PIPE %s spec/support/tls_gone.lua"
    local pipe = assert(io.popen(command:format(stop, other.path("good"), other.path("ca.pem"), INTERPRETER)))
    local said = pipe:read("*a")
    pipe:close()
    os.execute("rm -rf " .. other.path(""))
    assert.equal("200\nnetwork\n", said)
  end)

  it("does not trust the test's authority by default", function()
    local socket = server.path("good")
    local origin = loop:origin({ base_url = "https://localhost", unix_socket = socket, connect_timeout = PATIENT })
    local _, failure = drive:result(send(origin))
    assert.equal("tls", failure.kind)
  end)

  it("fails without the CA file", function()
    local _, failure = drive:result(send(origin_of("good", { ca_file = "/nonexistent/ca.pem" })))
    assert.same({ "tls", false }, { failure.kind, failure.sent })
  end)

  it("presents its client certificate", function()
    local origin = origin_of("mutual", { client_cert = server.path("client.pem"), client_key = server.path("key.pem") })
    assert.equal("CN=client-one", answer_of(origin))
  end)

  it("fails with a key that needs a pass phrase, and never asks for it", function()
    -- Without a terminal OpenSSL would take the pass phrase from the standard input.
    local command = "echo secret | SOCKET=%s CA=%s CERT=%s KEY=%s setsid -w %s spec/support/tls_once.lua 2>&1"
    local certificates = { ["locked.pem"] = "client.pem", ["sealed.pem"] = "client.pem", ["bundle.pem"] = "bundle.pem" }
    for key, certificate in pairs(certificates) do
      local files = { server.path("mutual"), server.path("ca.pem"), server.path(certificate), server.path(key) }
      local pipe = assert(io.popen(command:format(files[1], files[2], files[3], files[4], INTERPRETER)))
      local said = pipe:read("*a")
      pipe:close()
      assert.matches("^tls %a+ false ", said)
      assert.is_nil(said:lower():find("pass phrase"))
    end
  end)

  it("fails without the client certificate file", function()
    local origin = origin_of("mutual", { client_cert = "/nonexistent/client.pem" })
    local _, failure = drive:result(send(origin))
    assert.same({ "tls", false }, { failure.kind, failure.sent })
  end)

  it("fails with a server that does not speak TLS", function()
    local plain = peer.tcp(drive, function() end)
    plain.greet = function(connection)
      connection:send("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    end
    local _, failure = drive:result(send(origin_at(plain)))
    assert.same({ "tls", "tls", false }, { failure.kind, failure.phase, failure.sent })
    plain:close()
  end)

  it("fails with the kind network if the connection is reset in the handshake", function()
    local rude = peer.tcp(drive, function() end)
    rude.greet = function(connection)
      connection:reset()
    end
    local _, failure = drive:result(send(origin_at(rude)))
    assert.equal("network", failure.kind)
    assert.is_false(failure.sent)
    rude:close()
  end)

  it("fails with the kind network if the connection is closed in the handshake", function()
    local rude = peer.tcp(drive, function() end)
    rude.greet = function(connection)
      function connection:read()
        self.socket:receive(65536)
        self:close()
      end
    end
    local _, failure = drive:result(send(origin_at(rude)))
    assert.same({ "network", "tls", false }, { failure.kind, failure.phase, failure.sent })
    rude:close()
  end)
end)

describe("HTTP/2", function()
  local it_if = libcurl.tells_http_2 and it or pending

  it_if("is used when the server offers it", function()
    local request = { method = "POST", body = "x", target = "/a", headers = { "X-Test: b" } }
    local body, result = answer_of(origin_of("h2"), request)
    assert.matches("^HTTP/2.0 %d+ POST /a b$", body)
    assert.equal("2", result.http_version)
  end)

  it("is not used when the origin asks for 1.1", function()
    local body, result = answer_of(origin_of("h2", { http_version = "1.1" }))
    assert.matches("^HTTP/1.1", body)
    assert.equal("1.1", result.http_version)
  end)

  it("is not required when the server does not offer it", function()
    assert.matches("^HTTP/1.1", (answer_of(origin_of("good", { http_version = "2" }))))
  end)

  it_if("sends transfers that start together on one connection", function()
    local origin = origin_of("h2")
    local transfers, connections = {}, {}
    for i = 1, 16 do
      transfers[i] = send(origin, { target = "/" .. i })
    end
    for i, transfer in ipairs(transfers) do
      local connection, target = drive:result(transfer).body:match("^HTTP/2.0 (%d+) GET (%S+)")
      connections[connection] = true
      assert.equal("/" .. i, target)
    end
    assert.is_nil(next(connections, next(connections)))
  end)

  it("keeps the other transfers of a connection when one is cancelled", function()
    local origin = origin_of("h2")
    answer_of(origin)
    local cancelled, kept = send(origin), send(origin)
    loop:cancel(cancelled)
    assert.equal(200, drive:result(kept).status)
  end)
end)
