-- The HTTP client over nginx's cosockets, against peers of raw bytes in this process. spec/unit/runtime/nginx/http has
-- the details of reading answers.
local full_listener = require "spec.support.full_listener"
local name_server = require "spec.support.name_server"
local native = require "riskscreen.runtime.native"
local native_driver = require "spec.support.native_driver"
local nginx = require "spec.support.nginx"
local patience = require "spec.support.patience"
local peer = require "spec.support.peer"
local secrecy = require "spec.support.secrecy"
local socket = require "socket"

local LONG = 20 -- seconds
local LATE = 10 -- seconds after a request's timeout, when it is certain that the timeout did not end it
local LIMIT = 1024 * 1024 -- bytes
local BODY = '{"a":[1,2]}'
local KEY = "key-93d1c0"
local CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

local server, names

setup(function()
  names = name_server.start()
  server = nginx.start { http = names.directive }
end)

teardown(function()
  server:stop(nginx.BROKEN_CONNECTIONS)
  names.close()
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

local function merge(defaults, more)
  local all = {}
  for _, values in ipairs { defaults, more or {} } do
    for name, value in pairs(values) do
      all[name] = value
    end
  end
  return all
end

-- Sends a request from inside nginx: the reply, or nil and the failure.
local function send(url, request, more)
  local all = { method = "GET", target = "/", headers = {}, timeout = LONG, connect_timeout = LONG }
  local given = { origin = url, concurrency = 32, limit = LIMIT, request = merge(all, request) }
  local code = "return require('spec.support.nginx_transport').send(...)"
  local result = server:eval(code, merge(given, more))
  return result.reply, result.failure
end

-- Sends many requests at the same time.
local function send_all(count, url, request, more)
  local bodies = {}
  for index = 1, count do
    bodies[index] = function()
      return send(url, request, more)
    end
  end
  return native.tasks.gather(bodies)
end

local function answering(text)
  return peer_of(function(connection)
    connection:send(text)
  end)
end

-- The failure of a request with a very short timeout.
local function time_out(url, request, reached, more)
  return patience(function(seconds)
    local started = socket.gettime()
    local reply, failure = send(url, merge({ timeout = seconds }, request), more)
    assert.is_nil(reply)
    return not reached or reached(), failure, socket.gettime() - started < seconds + LATE
  end)
end

describe("a request over a cosocket", function()
  it("sends its fields and returns the answer", function()
    local one = answering(peer.response(BODY, "Content-Type: application/json\r\nX-Two: a\r\nx-two: b\r\n"))
    local reply = send(one.url, { method = "POST", target = "/x?y=%20", headers = { ["X-One"] = "1" }, body = "{}" })
    assert.equal(BODY, reply.body)
    assert.equal(200, reply.status)
    assert.equal("1.1", reply.http_version)
    assert.equal("application/json", reply.headers["content-type"])
    assert.equal("a, b", reply.headers["x-two"])
    local request = one.requests[1]
    assert.matches("^POST /x%?y=%%20 HTTP/1.1\r\n", request)
    for _, line in ipairs { "Host: " .. one.url:match "//(.*)", "X-One: 1", "Content-Length: 2" } do
      assert.truthy(request:find("\r\n" .. line .. "\r\n", 1, true), line)
    end
    assert.matches("\r\nUser%-Agent: riskscreen/%d", request)
    assert.matches("\r\n\r\n{}$", request)
  end)

  it("returns the time of each phase", function()
    local times = send(answering(peer.response(BODY)).url).times
    assert.is_true(0 <= times.connect and times.connect <= times.first_byte and times.first_byte <= times.total)
  end)

  it("returns a body that is not JSON", function()
    local reply = send(answering(peer.response("<html>" .. ("x"):rep(500), nil, "502 Bad Gateway")).url)
    assert.equal(502, reply.status)
    assert.equal("<html>" .. ("x"):rep(500), reply.body)
  end)

  it("returns an empty body for an answer without a body", function()
    for _, text in ipairs { "HTTP/1.1 204 No Content\r\n\r\n", peer.response "" } do
      assert.equal("", send(answering(text).url).body)
    end
  end)

  it("follows no redirect", function()
    local other = peer_of(function() end)
    local one = answering(peer.response("{}", "Location: " .. other.url .. "/\r\n", "301 Moved"))
    assert.equal(301, send(one.url, { headers = { ["X-Access-Key"] = KEY } }).status)
    assert.equal(0, other.connections)
  end)

  it("receives a body that is larger than any buffer, in chunks and in one piece", function()
    local text = '["' .. ("x"):rep(LIMIT - 4) .. '"]'
    for _, whole in ipairs {
      peer.response(text),
      CHUNKED .. ("%x\r\n%s\r\n0\r\n\r\n"):format(#text, text),
      "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" .. text,
    } do
      local one = peer_of(function(connection)
        connection:send(whole)
        connection:finish()
      end)
      assert.equal(text, send(one.url).body)
    end
  end)

  it("sends a body that is larger than any buffer", function()
    local one = answering(peer.response(BODY))
    local body = ("x"):rep(700000)
    assert.equal(200, send(one.url, { method = "POST", body = body }).status)
    assert.equal(body, one.requests[1]:match "\r\n\r\n(.*)$")
  end)

  it("reaches a Unix-domain socket", function()
    local path = server.directory .. "/peer"
    local one = peer.unix(native_driver, path, function(connection)
      connection:send(peer.response(BODY))
    end)
    assert.equal(200, send("http://localhost", nil, { unix_socket = path }).status)
    one:close()
  end)

  it("reaches a host by its name", function()
    local one = answering(peer.response(BODY))
    for _ = 1, 2 do
      assert.equal(200, send((one.url:gsub("127.0.0.1", "service.example"))).status)
    end
    assert.truthy(one.requests[1]:find("\r\nHost: service.example:", 1, true))
    assert.equal(1, one.connections)
  end)

  it("reaches localhost without asking for its address", function()
    local one = answering(peer.response(BODY))
    assert.equal(200, send((one.url:gsub("127.0.0.1", "localhost"))).status)
    assert.truthy(one.requests[1]:find("\r\nHost: localhost:", 1, true))
  end)

  it("is not sent with a header that holds a line end, and shows no value", function()
    local one = answering(peer.response(BODY))
    for _, request in ipairs {
      { headers = { ["X-Access-Key"] = KEY .. "\r\nX-Other: y" } },
      { headers = { ["X-A\r\nX-B"] = KEY } },
      { target = "/ HTTP/1.1\r\nX: " .. KEY },
    } do
      local reply, failure = send(one.url, request)
      assert.is_nil(reply)
      assert.same({ "protocol", false, "queue" }, { failure.kind, failure.sent, failure.phase })
      assert.is_false(secrecy.holds(failure, KEY))
    end
    assert.equal(0, one.connections)
  end)
end)

describe("a connection", function()
  it("is used again", function()
    local one = answering(peer.response(BODY))
    for _ = 1, 5 do
      assert.equal(200, send(one.url).status)
    end
    assert.equal(1, one.connections)
  end)

  it("is used again after a chunked answer, an empty one and one with Keep-Alive", function()
    local texts = {
      CHUNKED .. "2\r\n{}\r\n0\r\n\r\n",
      "HTTP/1.1 204 No Content\r\n\r\n",
      peer.response(BODY, "Keep-Alive: timeout=30\r\n"),
      peer.response(BODY, "Keep-Alive: timeout=999999999999\r\n"),
      peer.response(BODY),
    }
    local one = peer_of(function(connection)
      connection:send(texts[connection.count])
    end)
    for _ = 1, #texts do
      assert.is_not_nil(send(one.url))
    end
    assert.equal(1, one.connections)
  end)

  for name, text in pairs {
    ["says that it will be closed"] = peer.response(BODY, "Connection: close\r\n"),
    ["says that it will be closed in a moment"] = peer.response(BODY, "Keep-Alive: timeout=1\r\n"),
    ["is HTTP/1.0"] = "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    ["is followed by another"] = peer.response(BODY) .. peer.response '{"stale":true}',
    ["is followed by a byte"] = peer.response(BODY) .. "x",
    ["announces its length in two ways"] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
      .. "2\r\n{}\r\n0\r\n\r\n",
    ["is malformed"] = "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
    ["is compressed"] = peer.response(BODY, "Content-Encoding: gzip\r\n"),
    ["is too large"] = peer.response((" "):rep(LIMIT + 1)),
    ["is in bad chunks"] = CHUNKED .. "zz\r\n",
  } do
    it("is not used again after an answer that " .. name, function()
      local one = answering(text)
      send(one.url)
      send(one.url)
      assert.equal(2, one.connections)
      assert.is_nil(next(one.open, next(one.open)), "the first one is closed")
    end)
  end

  it("is not used again after a timeout", function()
    local one = peer_of(function() end)
    for _ = 1, 2 do
      local before = #one.requests
      local failure = time_out(one.url, {}, function()
        return #one.requests > before
      end)
      assert.equal("timeout", failure.kind)
    end
    assert.equal(#one.requests, one.connections)
  end)

  it("is not shared with a client that has another peer", function()
    local one = answering(peer.response(BODY))
    send(one.url)
    send(one.url, nil, { concurrency = 5 })
    assert.equal(2, one.connections)
  end)

  it("carries one request at a time", function()
    local waiting = {}
    local one = peer_of(function(connection)
      waiting[#waiting + 1] = connection
      if #waiting == 3 then
        for _, waiter in ipairs(waiting) do
          waiter:send(peer.response(BODY))
        end
      end
    end)
    for _, reply in ipairs(send_all(3, one.url)) do
      assert.equal(200, reply.status)
    end
    assert.equal(3, one.connections)
  end)

  it("makes other requests wait when the client has as many as it may have", function()
    local one = answering(peer.response(BODY))
    for _, reply in ipairs(send_all(20, one.url, nil, { concurrency = 2 })) do
      assert.equal(200, reply.status)
    end
    assert.is_true(one.connections <= 2)
    assert.equal(20, #one.requests)
  end)
end)

describe("a request that is cancelled while it waits for its turn", function()
  it("does not use up a turn", function()
    local held
    local one = peer_of(function(connection, request)
      if request:find "^GET /first " then
        held = connection
      else
        connection:send(peer.response "{}")
      end
    end)
    local release = peer_of(function(connection)
      held:send(peer.response "{}")
      connection:send(peer.response "{}")
    end)
    local third, failure = server:eval(
      [[
      local riskscreen = require "riskscreen"
      local given = ...
      local client = riskscreen.new {
        base_url = given[1], access_key = "test-key", concurrency = 1, connect_timeout = 0.3,
      }
      local releasing = riskscreen.new { base_url = given[2], access_key = "test-key" }
      return riskscreen.run(function()
        local first = riskscreen.spawn(function()
          return client:request("GET", "/first")
        end)
        repeat
          riskscreen.sleep(0.001)
        until client:stats().requests == 1
        local second = riskscreen.spawn(function()
          return client:request("GET", "/second")
        end)
        repeat
          riskscreen.sleep(0.001)
        until client:stats().requests == 2
        second:cancel()
        releasing:request("GET", "/")
        first:await()
        local value, err = client:request("GET", "/third", { retry = false })
        return value ~= nil, tostring(err)
      end)
    ]],
      { one.url, release.url }
    )
    assert.is_true(third, failure)
    assert.equal(2, #one.requests)
  end)
end)

describe("a pooled connection that is dead", function()
  -- Answers the first request of each connection and breaks at the next.
  local function breaking(how)
    return peer_of(function(connection)
      if connection.count > 1 then
        how(connection)
      else
        connection:send(peer.response(BODY))
      end
    end)
  end

  local function reset(connection)
    connection:reset()
  end

  local function finish(connection)
    connection:finish()
  end

  it("fails the request, and says so", function()
    for _, how in ipairs { reset, finish } do
      local one = breaking(how)
      assert.equal(200, send(one.url).status)
      local reply, failure = send(one.url)
      assert.is_nil(reply)
      assert.same({ "network", true, "first_byte" }, { failure.kind, failure.sent, failure.phase })
      assert.is_true(failure.dead_connection)
      assert.equal(2, #one.requests)
    end
  end)

  it("is not used by a request that needs a new one", function()
    local one = breaking(reset)
    for _ = 1, 2 do
      assert.equal(200, send(one.url, { fresh = true }).status)
    end
    assert.same({ 2, 2 }, { one.connections, #one.requests })
  end)

  it("fails the request when part of an answer came", function()
    local one = breaking(function(connection)
      connection:send "HTTP/1.1 200 OK\r\nConte"
      connection:reset()
    end)
    send(one.url)
    local reply, failure = send(one.url)
    assert.is_nil(reply)
    assert.equal("network", failure.kind)
    assert.equal(2, #one.requests)
  end)

  it("is not reported where the connection is new", function()
    local one = peer_of(reset)
    local reply, failure = send(one.url)
    assert.is_nil(reply)
    assert.same({ "network", true }, { failure.kind, failure.sent })
    assert.is_nil(failure.dead_connection)
    assert.equal(1, #one.requests)
  end)
end)

describe("a request that cannot be answered", function()
  it("says that the connection was refused", function()
    local one = peer_of(function() end)
    one:close()
    peers = {}
    local _, failure = send(one.url)
    assert.same({ "network", false, "connect" }, { failure.kind, failure.sent, failure.phase })
    assert.matches("could not connect to 127.0.0.1:%d+ %(connection refused%)", failure.message)
  end)

  it("says that there is no such socket", function()
    local _, failure = send("http://localhost", nil, { unix_socket = server.directory .. "/none" })
    assert.same({ "network", false, "connect" }, { failure.kind, failure.sent, failure.phase })
  end)

  it("says that the address of a name cannot be found", function()
    local _, failure = send "http://missing.example"
    assert.same({ "network", false, "name_lookup" }, { failure.kind, failure.sent, failure.phase })
    assert.matches("could not find the address of missing.example:80", failure.message, 1, true)
  end)

  for name, request in pairs {
    ["its time"] = { timeout = 0.1 },
    ["its time to connect"] = { connect_timeout = 0.1 },
  } do
    it("takes no longer than " .. name .. " when the address of a name is never found", function()
      local started = socket.gettime()
      local reply, failure = send("http://silent.example", request)
      assert.is_nil(reply)
      assert.same({ "timeout", false }, { failure.kind, failure.sent })
      assert.is_true(socket.gettime() - started < LATE)
    end)
  end

  it("takes no longer than its time when the connection is not accepted", function()
    local listener = full_listener.start()
    local started = socket.gettime()
    local _, failure = send(listener.url, { timeout = 0.1 })
    assert.same({ "timeout", false, "connect" }, { failure.kind, failure.sent, failure.phase })
    assert.is_true(socket.gettime() - started < LATE)
    listener:close()
  end)

  it("takes no longer than its time when it never gets a turn", function()
    local one = peer_of(function() end)
    local unsent
    patience(function(seconds)
      local started = socket.gettime()
      local failures = select(2, send_all(4, one.url, { timeout = seconds }, { concurrency = 1 }))
      assert.is_true(socket.gettime() - started < seconds + LATE)
      unsent = 0
      for _, failure in ipairs(failures) do
        assert.equal("timeout", failure.kind)
        unsent = unsent + (failure.sent and 0 or 1)
      end
      -- On a busy machine a later request may still have had its turn.
      return unsent == 3
    end)
    assert.equal(3, unsent)
  end)

  for phase, text in pairs {
    ["before the answer"] = "",
    ["in the head"] = "HTTP/1.1 200 OK\r\nContent-Le",
    ["after the head"] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
    ["in the body"] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe",
    ["in a chunk"] = CHUNKED .. "5\r\nhe",
    ["before the end"] = CHUNKED .. "2\r\nhe\r\n0\r\n",
    ["in a body without a length"] = "HTTP/1.1 200 OK\r\n\r\n{}",
  } do
    it("takes no longer than its time when the peer is silent " .. phase, function()
      local one = answering(text)
      local failure, in_time = time_out(one.url, {}, function()
        return #one.requests > 0
      end)
      assert.same({ "timeout", true }, { failure.kind, failure.sent })
      assert.is_true(in_time)
    end)
  end

  it("says that the answer is not HTTP, and shows nothing of it", function()
    local _, failure = send(answering("220 " .. KEY .. "\r\n").url)
    assert.same({ "protocol", true, "body" }, { failure.kind, failure.sent, failure.phase })
    assert.is_false(secrecy.holds(failure, KEY))
  end)

  it("lets other requests go on while a large answer comes in small pieces", function()
    local one = answering(CHUNKED .. ("1\r\nx\r\n"):rep(1000000))
    local values, failures = native.tasks.gather {
      function()
        return send(one.url, nil, { limit = 64 * LIMIT })
      end,
      function()
        while #one.requests == 0 do
          native.sleep(0)
        end
        local answer = server:eval "ngx.sleep(0.001) return 'soon'"
        one:close()
        peers = {}
        return answer
      end,
    }
    assert.equal("soon", values[2])
    -- The answer was still arriving.
    assert.equal("network", failures[1].kind)
  end)
end)

describe("nginx's error log", function()
  it("has a line for each lost connection unless lua_socket_log_errors is off, and the key in none", function()
    local talkative = nginx.start { server = "lua_socket_log_errors on;" }
    local refused, silent = peer_of(function() end), peer_of(function() end)
    refused:close()
    peers = { silent }
    local request = { method = "GET", target = "/?" .. KEY, headers = { ["X-Access-Key"] = KEY }, timeout = 0.1 }
    request.connect_timeout = LONG
    for _, one in ipairs { refused, silent } do
      local given = { origin = one.url, concurrency = 1, limit = LIMIT, request = request }
      assert.is_table(talkative:eval("return require('spec.support.nginx_transport').send(...).failure", given))
    end
    local log = talkative:log()
    assert.matches("connect%(%) failed %(111: Connection refused%)", log)
    assert.matches("lua tcp socket read timed out", log)
    assert.is_nil(log:find(KEY, 1, true))
    talkative:stop { "connect%(%) failed %(111:", "lua tcp socket read timed out" }
  end)
end)
