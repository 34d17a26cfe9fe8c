local raw_http = require("spec.support.raw_http")
local riskscreen_server = require("riskscreen.server")

local GET = "GET / HTTP/1.1\r\nHost: test\r\n\r\n"

local server

local function start(options)
  server = assert(riskscreen_server.new(options or {}))
  return server
end

local function connect()
  return raw_http.connect(server)
end

local function next_request()
  return raw_http.next_request(server)
end

--- Returns a client that has sent `text`, and its request.
local function exchange(text)
  local client = connect()
  client:send(text or GET)
  return client, next_request()
end

local function wait_for_connections(count)
  raw_http.step_until(server, count .. " connections", function()
    return server:stats().connections == count
  end)
end

--- Steps until the server has no more work without waiting.
local function settle()
  repeat
    server:step(0)
  until server:timeout() ~= 0 and not raw_http.is_readable(server:pollfd())
end

local function assert_raises(pattern, fn, ...)
  local ok, message = pcall(fn, ...)
  assert.is_false(ok)
  assert.matches(pattern, tostring(message))
  return message
end

after_each(function()
  if server then
    server:close()
    server = nil
  end
  collectgarbage()
end)

describe("riskscreen.server.new", function()
  it("listens on a free port of the loopback address", function()
    start()
    assert.is_true(server:port() > 0)
    assert.is_not_nil(connect())
  end)

  it("listens on an IPv6 address and reports the client's", function()
    local here = riskscreen_server.new({ host = "::1" })
    if not here then
      pending("this machine has no IPv6 loopback")
      return
    end
    server = here
    raw_http.connect(server, "::1"):send(GET)
    assert.equal("::1", next_request().remote)
  end)

  it("returns nil and the reason when the port is taken", function()
    start()
    local second, message = riskscreen_server.new({ port = server:port() })
    assert.is_nil(second)
    assert.equal("could not listen on 127.0.0.1:" .. server:port() .. " (Address already in use)", message)
  end)

  it("refuses an unknown option", function()
    assert_raises("unknown server option 'max_bodies'", riskscreen_server.new, { max_bodies = 1 })
  end)

  local wrong = {
    { "host", 1 },
    { "host", "" },
    { "host", "a\0b" },
    { "port", -1 },
    { "port", 65536 },
    { "port", 80.5 },
    { "port", "80" },
    { "max_body", -1 },
    { "max_body", 2 ^ 30 + 1 },
    { "max_headers", 4095 },
    { "max_headers", 2 ^ 20 + 1 },
    { "max_connections", 0 },
    { "max_connections", 65537 },
    { "idle_timeout", 0 },
    { "idle_timeout", 86401 },
    { "idle_timeout", 0 / 0 },
    { "idle_timeout", true },
  }
  for _, case in ipairs(wrong) do
    local name, value = case[1], case[2]
    it(("refuses the option %s = %q"):format(name, tostring(value)), function()
      assert_raises("^" .. name .. " must be ", riskscreen_server.new, { [name] = value })
    end)
  end
end)

describe("a server as a pollable", function()
  it("is readable when a client connects", function()
    start()
    assert.is_false(raw_http.is_readable(server:pollfd()))
    local client = connect()
    assert.is_true(raw_http.is_readable(server:pollfd(), raw_http.DEADLINE))
    client:close()
  end)

  it("is polled for reading", function()
    assert.equal("r", start():events())
  end)

  it("has no timeout without clients", function()
    assert.is_nil(start():timeout())
  end)

  it("has timeout 0 while a request waits", function()
    start()
    local client = connect()
    client:send(GET)
    assert.equal(1, server:step())
    assert.equal(0, server:timeout())
  end)

  it("is readable and has timeout 0 when a reply is ready to send", function()
    start()
    local _, request = exchange()
    settle()
    assert.is_false(raw_http.is_readable(server:pollfd()))
    request:respond(200)
    assert.is_true(raw_http.is_readable(server:pollfd(), raw_http.DEADLINE))
    assert.equal(0, server:timeout())
  end)

  it("is readable when the client of an open request leaves", function()
    start()
    local client, request = exchange()
    settle()
    client:close()
    assert.is_true(raw_http.is_readable(server:pollfd(), raw_http.DEADLINE))
    assert.is_not_nil(request) -- held until here: a request that is collected closes its connection
  end)

  it("does nothing and returns 0 when stepped without anything to do", function()
    assert.equal(0, start():step(0))
  end)

  it("sends a reply in the next step", function()
    start()
    local client, request = exchange()
    request:respond(200, nil, "now")
    server:step(0)
    client:leave_server_alone()
    assert.equal("now", select(3, client:receive_response()))
  end)

  it("refuses a time to wait that is negative or NaN", function()
    start()
    assert_raises("seconds from 0 on", server.step, server, -1)
    assert_raises("seconds from 0 on", server.step, server, 0 / 0)
  end)

  it("counts connections, waiting and open requests", function()
    start()
    local first, second = connect(), connect()
    first:send(GET)
    second:send(GET)
    raw_http.step_until(server, "two requests", function()
      return server:stats().waiting == 2
    end)
    assert.same({ connections = 2, waiting = 2, open = 2 }, server:stats())
    server:next():respond(200)
    assert.same({ connections = 2, waiting = 1, open = 1 }, server:stats())
    server:next():stall()
    assert.same({ connections = 2, waiting = 0, open = 1 }, server:stats())
  end)
end)

describe("a request", function()
  before_each(function()
    start({ max_body = 100, max_headers = 8192 })
  end)

  it("has the method, the target, the client's address and an empty body", function()
    local _, request = exchange("DELETE /a/b?c=d HTTP/1.1\r\nHost: test\r\n\r\n")
    assert.equal("DELETE", request.method)
    assert.equal("/a/b", request.path)
    assert.equal("c=d", request.query)
    assert.equal("127.0.0.1", request.remote)
    assert.equal("", request.body)
  end)

  it("keeps path and query exactly as sent", function()
    local _, request = exchange("GET //a%2Fb/../%zz+%00?x=%41&x=1+2&?#y HTTP/1.1\r\nHost: test\r\n\r\n")
    assert.equal("//a%2Fb/../%zz+%00", request.path)
    assert.equal("x=%41&x=1+2&?#y", request.query)
  end)

  it("has no query without a question mark, and an empty query after a final one", function()
    local _, without = exchange("GET /a HTTP/1.1\r\nHost: test\r\n\r\n")
    assert.is_nil(without.query)
    local _, bare = exchange("GET /a? HTTP/1.1\r\nHost: test\r\n\r\n")
    assert.equal("", bare.query)
  end)

  it("has headers with lower-case names and joins repeated ones", function()
    local _, request = exchange("GET / HTTP/1.1\r\nHost: test\r\nX-One: a\r\nx-two: B\r\nX-ONE:  c \r\n\r\n")
    assert.same({ host = "test", ["x-one"] = "a, c", ["x-two"] = "B" }, request.headers)
  end)

  it("has a body of any bytes", function()
    local body = "\0\r\n\r\n\255"
    local _, request = exchange("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\n" .. body)
    assert.equal(body, request.body)
  end)

  it("has a body that arrives in many pieces", function()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 6\r\n\r\nab")
    server:step(0.01)
    client:send("cd")
    server:step(0.01)
    assert.is_nil(server:next())
    client:send("ef")
    assert.equal("abcdef", next_request().body)
  end)

  it("has the joined body of a chunked request", function()
    local chunks = "3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-T: 1\r\n\r\n"
    local _, request = exchange("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" .. chunks)
    assert.equal("abcde", request.body)
  end)

  it("has a body as large as the limit", function()
    local body = ("x"):rep(100)
    local _, request = exchange("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100\r\n\r\n" .. body)
    assert.equal(body, request.body)
  end)

  it("gives a method only by its name", function()
    local _, request = exchange()
    assert.is_nil(request.nothing)
    assert.is_function(request.respond)
  end)

  it("does not wait before the client has sent all of it", function()
    local client = connect()
    client:send("GET / HTTP/1.1\r\nHost: te")
    server:step(0.01)
    assert.is_nil(server:next())
    client:send("st\r\n\r\n")
    assert.equal("test", next_request().headers.host)
  end)

  it("waits until the previous request of its connection has a reply", function()
    local client = connect()
    client:send("GET /1 HTTP/1.1\r\nHost: test\r\n\r\nGET /2 HTTP/1.1\r\nHost: test\r\n\r\n")
    local first = next_request()
    settle()
    assert.is_nil(server:next())
    first:respond(200, nil, "one")
    local second = next_request()
    second:respond(200, nil, "two")
    assert.equal("/1/2", first.path .. second.path)
    assert.equal("one", select(3, client:receive_response()))
    assert.equal("two", select(3, client:receive_response()))
  end)

  it("is returned even if its client has left", function()
    local client = connect()
    client:send(GET)
    assert.equal(1, server:step())
    client:close()
    server:step(0)
    local request = server:next()
    assert.equal("GET", request.method)
    wait_for_connections(0)
    assert.is_false(request:respond(200))
  end)
end)

describe("a request that the server refuses itself", function()
  before_each(function()
    start({ max_body = 100, max_headers = 8192 })
  end)

  local function assert_refused(client, status)
    assert.equal(status, (client:receive_response()))
    assert.is_nil(server:next())
    local refused, remote
    raw_http.step_until(server, "the refusal", function()
      refused, remote = server:refused()
      return refused
    end)
    assert.same({ status == 413 and 413 or 400, "127.0.0.1" }, { refused, remote })
  end

  it("has a body above the limit, and leaves the connection usable", function()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 101\r\n\r\n" .. ("x"):rep(101))
    assert_refused(client, 413)
    client:send(GET)
    next_request():respond(204)
    assert.equal(204, (client:receive_response()))
  end)

  it("has chunks that exceed the limit together", function()
    local client = connect()
    local chunk = "32\r\n" .. ("x"):rep(50) .. "\r\n"
    client:send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n" .. chunk:rep(3) .. "0\r\n\r\n")
    assert_refused(client, 413)
  end)

  it("announces a body that is too long to discard", function()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 99999999999\r\n\r\n")
    assert_refused(client, 413)
    client:receive_all()
  end)

  it("never ends its chunks", function()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n")
    local chunk = "10000\r\n" .. ("x"):rep(65536) .. "\r\n"
    local sent = 0
    while sent <= 17 * 2 ^ 20 and pcall(client.send, client, chunk) do
      sent = sent + 65536
    end
    wait_for_connections(0)
    assert.is_nil(server:next())
  end)

  it("asks with Expect whether it may send too much", function()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n")
    assert_refused(client, 413)
  end)

  it("has a head above the limit", function()
    local client = connect()
    client:send("GET / HTTP/1.1\r\nHost: test\r\nX-Long: " .. ("x"):rep(8192) .. "\r\n\r\n")
    assert_refused(client, 431)
  end)

  for how, lengths in pairs {
    ["two lengths"] = "Content-Length: 2\r\nContent-Length: %d",
    ["a length beside chunks"] = "Content-Length: %d\r\nTransfer-Encoding: chunked",
    ["a length beside an unknown encoding"] = "Content-Length: %d\r\nTransfer-Encoding: xchunked",
    ["two encodings"] = "Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked",
    ["an unknown encoding"] = "Transfer-Encoding: gzip, chunked",
  } do
    it("has " .. how .. ", of which a proxy before it may believe another, and loses the connection", function()
      local client = connect()
      local head = "POST / HTTP/1.1\r\nHost: test\r\n" .. lengths .. "\r\n\r\n0\r\n\r\n"
      client:send(head:format(5 + #GET) .. GET)
      assert_refused(client, 400)
      settle()
      assert.is_nil(server:next())
      assert.equal("", client:receive_all())
    end)
  end

  it("is not HTTP", function()
    local client = connect()
    client:send("GET / HTTP/1.1\r\nHost: test\r\nno colon\r\n\r\n")
    assert_refused(client, 400)
  end)
end)

describe("Expect: 100-continue", function()
  it("gets its interim response before the body is sent", function()
    start()
    local client = connect()
    client:send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n")
    assert.equal("HTTP/1.1 100 Continue\r\n\r\n", client:receive_through("\r\n\r\n"))
    assert.is_nil(server:next())
    client:send("abc")
    assert.equal("abc", next_request().body)
  end)
end)

describe("request:respond", function()
  before_each(function()
    start()
  end)

  it("sends status, headers and body with its length", function()
    local client, request = exchange()
    assert.is_true(request:respond(201, { ["Content-Type"] = "text/plain", ["X-A"] = "b" }, "h\0llo"))
    local status, headers, body = client:receive_response()
    assert.equal(201, status)
    assert.equal("text/plain", headers["content-type"])
    assert.equal("b", headers["x-a"])
    assert.equal("5", headers["content-length"])
    assert.equal("h\0llo", body)
  end)

  it("sends an empty body when none is given", function()
    local client, request = exchange()
    request:respond(404)
    local status, headers = client:receive_response()
    assert.equal(404, status)
    assert.equal("0", headers["content-length"])
  end)

  it("adds only length, date and connection headers", function()
    local client, request = exchange()
    request:respond(200, nil, "x")
    local _, headers = client:receive_response()
    for _, name in ipairs({ "content-length", "date", "connection" }) do
      headers[name] = nil
    end
    assert.same({}, headers)
  end)

  it("keeps the connection for the next request", function()
    local client, request = exchange()
    request:respond(200, nil, "first")
    client:receive_response()
    client:send(GET)
    next_request():respond(200, nil, "second")
    assert.equal("second", select(3, client:receive_response()))
    assert.equal(1, server:stats().connections)
  end)

  it("closes the connection after Connection: close", function()
    local client, request = exchange()
    request:respond(200, { Connection = "close" }, "bye")
    assert.matches("\r\n\r\nbye$", client:receive_all())
  end)

  it("closes the connection if the client asks for it", function()
    local client, request = exchange("GET / HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")
    request:respond(200, nil, "bye")
    assert.matches("\r\n\r\nbye$", client:receive_all())
  end)

  it("sends a HEAD request the length of the body but no body", function()
    local client, request = exchange("HEAD / HTTP/1.1\r\nHost: test\r\n\r\n")
    request:respond(200, nil, "body")
    local _, headers = client:receive_head()
    assert.equal("4", headers["content-length"])
    settle()
    assert.equal("", client:peek())
  end)

  it("sends neither body nor length with 204", function()
    local client, request = exchange()
    request:respond(204)
    local status, headers = client:receive_head()
    assert.equal(204, status)
    assert.is_nil(headers["content-length"])
    settle()
    assert.equal("", client:peek())
  end)

  it("sends each value of a list as a separate header", function()
    local client, request = exchange()
    request:respond(200, { ["Set-Cookie"] = { "a=1", "b=2" } })
    local _, headers = client:receive_response()
    assert.equal("a=1|b=2", headers["set-cookie"])
  end)

  it("accepts numbers and empty strings as header values", function()
    local client, request = exchange()
    request:respond(429, { ["Retry-After"] = 5, ["X-Empty"] = "" })
    local _, headers = client:receive_response()
    assert.equal("5", headers["retry-after"])
    assert.equal("", headers["x-empty"])
  end)

  it("sends a body larger than the socket's buffers to a slow reader", function()
    local client, request = exchange()
    local body = ("0123456789abcdef"):rep(2 ^ 19)
    request:respond(200, nil, body)
    assert.is_true(body == select(3, client:receive_response()))
  end)

  it("can be called later and in any order", function()
    local first_client, first = exchange()
    local second_client, second = exchange()
    second:respond(200, nil, "second")
    assert.equal("second", select(3, second_client:receive_response()))
    first:respond(200, nil, "first")
    assert.equal("first", select(3, first_client:receive_response()))
  end)

  it("raises when the request already has a reply", function()
    local _, request = exchange()
    request:respond(200)
    for _, method in ipairs({ "respond", "truncate", "drip", "reset", "stall" }) do
      assert_raises("answered already", request[method], request, 200, nil, "", 0, 0)
    end
  end)

  it("returns false when the client has left", function()
    local client, request = exchange()
    client:close()
    wait_for_connections(0)
    assert.is_false(request:respond(200, nil, "late"))
    assert_raises("answered already", request.respond, request, 200)
  end)

  it("returns false when the client has half-closed its connection", function()
    local client, request = exchange()
    client:shutdown_send()
    wait_for_connections(0)
    assert.is_false(request:respond(200))
  end)

  it("returns false when the server is closed", function()
    local _, request = exchange()
    server:close()
    assert.is_false(request:respond(200))
  end)

  local unsendable = {
    { "a CR in a value", { X = "a\rb" } },
    { "a LF in a value", { X = "a\nSet-Cookie: b" } },
    { "a NUL in a value", { X = "a\0b" } },
    { "a CR LF in a name", { ["X: y\r\nZ"] = "a" } },
    { "a blank in a name", { ["X Y"] = "a" } },
    { "an empty name", { [""] = "a" } },
    { "a value that is no text", { X = true } },
    { "a list with such a value", { X = { "a", {} } } },
    { "a list of lines", { "X: a" } },
    { "its own Content-Length", { ["content-length"] = "1" } },
    { "its own Transfer-Encoding", { ["Transfer-Encoding"] = "chunked" } },
    { "a Connection it cannot keep", { Connection = "upgrade" } },
    { "more headers than fit", { X = ("x"):rep(65536) } },
  }
  for _, case in ipairs(unsendable) do
    it("raises for " .. case[1] .. ", and the request can still be answered", function()
      local client, request = exchange()
      assert_raises("header", request.respond, request, 200, case[2])
      assert.is_true(request:respond(200, nil, "still"))
      assert.equal("still", select(3, client:receive_response()))
    end)
  end

  it("does not show the value of a header that cannot be sent", function()
    local _, request = exchange()
    local message = assert_raises("X%-Key", request.respond, request, 200, { ["X-Key"] = "secret\n" })
    assert.is_nil(message:find("secret", 1, true))
  end)

  it("raises for an invalid status", function()
    local _, request = exchange()
    for _, status in ipairs({ 100, 199, 1000, 200.5, "200" }) do
      assert_raises("integer from 200 to 999", request.respond, request, status)
    end
  end)
end)

describe("request:reset", function()
  before_each(function()
    start()
  end)

  it("resets the connection without sending anything", function()
    local client, request = exchange()
    request:reset()
    raw_http.step_until(server, "the reset", function()
      return client:was_reset()
    end)
    assert.equal("", client:receive_all())
  end)

  it("leaves no open connection", function()
    local _, request = exchange()
    request:reset()
    wait_for_connections(0)
    assert.same({ connections = 0, waiting = 0, open = 0 }, server:stats())
  end)

  it("does nothing when the client has left", function()
    local client, request = exchange()
    client:close()
    wait_for_connections(0)
    request:reset()
    assert_raises("answered already", request.reset, request)
  end)
end)

describe("request:truncate", function()
  before_each(function()
    start()
  end)

  it("announces the whole body, sends its first bytes and closes the connection", function()
    local client, request = exchange()
    assert.is_true(request:truncate(200, { ["X-A"] = "b" }, "0123456789", 4))
    local status, headers = client:receive_head()
    assert.equal(200, status)
    assert.equal("b", headers["x-a"])
    assert.equal("10", headers["content-length"])
    assert.equal("0123", client:receive_all())
    assert.is_false(client:was_reset())
  end)

  it("sends only the head for 0 bytes of the body", function()
    local client, request = exchange()
    request:truncate(200, nil, "0123456789", 0)
    local _, headers = client:receive_head()
    assert.equal("10", headers["content-length"])
    assert.equal("", client:receive_all())
  end)

  it("sends a long part of a long body", function()
    local client, request = exchange()
    local body = ("0123456789"):rep(100000)
    request:truncate(200, nil, body, 765432)
    client:receive_head()
    assert.is_true(body:sub(1, 765432) == client:receive_all())
  end)

  for name, text in pairs({ ["all of the body was sent"] = GET, ["a HEAD request"] = GET:gsub("GET", "HEAD") }) do
    it("closes the connection after " .. name .. " too", function()
      local client, request = exchange(text)
      request:truncate(200, nil, "0123456789", 10)
      local _, headers = client:receive_head()
      assert.equal("10", headers["content-length"])
      client:receive_all()
    end)
  end

  it("raises for more bytes than the body has", function()
    local _, request = exchange()
    assert_raises("integer from 0 to 3", request.truncate, request, 200, nil, "abc", 4)
  end)
end)

describe("request:drip", function()
  local HOUR = 3600

  before_each(function()
    start()
  end)

  it("sends the first piece at once and the next when it is due", function()
    local client, request = exchange()
    assert.is_true(request:drip(200, nil, "abcdef", 2, HOUR))
    local _, headers = client:receive_head()
    assert.equal("6", headers["content-length"])
    assert.equal("ab", client:receive(2))
    settle()
    assert.equal("", client:peek())
  end)

  it("sets the server's timeout to the next piece", function()
    local client, request = exchange()
    request:drip(200, nil, "abcdef", 2, HOUR)
    client:receive_through("\r\n\r\nab")
    settle()
    assert.is_true(server:timeout() > 0 and server:timeout() <= HOUR)
  end)

  it("sends the whole body and keeps the connection", function()
    local client, request = exchange()
    request:drip(200, { ["X-A"] = "b" }, "abcdefg", 2, 0.001)
    local _, headers, body = client:receive_response()
    assert.equal("b", headers["x-a"])
    assert.equal("abcdefg", body)
    client:send(GET)
    next_request():respond(204)
    assert.equal(204, (client:receive_response()))
  end)

  it("sends pieces larger than any buffer, without a pause", function()
    local client, request = exchange()
    local body = ("0123456789"):rep(100000)
    request:drip(200, nil, body, 300000, 0)
    assert.is_true(body == select(3, client:receive_response()))
  end)

  it("serves many clients at different rates", function()
    local clients = {}
    for i = 1, 100 do
      local client, request = exchange()
      request:drip(200, nil, ("%03d"):format(i), 1, (i % 7) / 1000)
      clients[i] = client
    end
    for i, client in ipairs(clients) do
      assert.equal(("%03d"):format(i), select(3, client:receive_response()))
    end
  end)

  it("allows replies to other requests between the pieces", function()
    local slow_client, slow = exchange()
    slow:drip(200, nil, "ab", 1, HOUR)
    slow_client:receive_through("\r\n\r\na")
    local client, request = exchange()
    request:respond(200, nil, "quick")
    assert.equal("quick", select(3, client:receive_response()))
  end)

  it("stops when the client leaves", function()
    local client, request = exchange()
    request:drip(200, nil, "ab", 1, HOUR)
    client:receive_through("\r\n\r\na")
    client:close()
    wait_for_connections(0)
    assert.is_nil(server:timeout())
  end)

  it("raises for empty pieces and invalid intervals", function()
    local _, request = exchange()
    assert_raises("integer from 1", request.drip, request, 200, nil, "abc", 0, 1)
    assert_raises("seconds from 0 to 86400", request.drip, request, 200, nil, "abc", 1, -1)
    assert_raises("seconds from 0 to 86400", request.drip, request, 200, nil, "abc", 1, 0 / 0)
  end)
end)

describe("request:stall", function()
  before_each(function()
    start()
  end)

  it("leaves the connection open without a reply, even after the request is collected", function()
    local client = connect()
    client:send(GET)
    next_request():stall()
    collectgarbage()
    collectgarbage()
    settle()
    assert.equal("", client:peek())
    assert.is_false(client.ended)
    assert.same({ connections = 1, waiting = 0, open = 1 }, server:stats())
  end)

  it("ends when the client leaves", function()
    local client, request = exchange()
    request:stall()
    client:close()
    wait_for_connections(0)
    assert.equal(0, server:stats().open)
  end)

  it("ends when the server is closed", function()
    local client, request = exchange()
    request:stall()
    server:close()
    client:leave_server_alone()
    assert.equal("", client:receive_all())
  end)
end)

describe("a request that is collected without a reply", function()
  it("closes its connection", function()
    start()
    local client = connect()
    client:send(GET)
    raw_http.step_until(server, "a request", function()
      return server:next() ~= nil
    end)
    collectgarbage()
    collectgarbage()
    assert.equal("", client:receive_all())
    assert.equal(0, server:stats().open)
  end)

  it("keeps its connection if it had a reply", function()
    start()
    local client = connect()
    client:send(GET)
    next_request():respond(200, nil, "done")
    collectgarbage()
    collectgarbage()
    assert.equal("done", select(3, client:receive_response()))
  end)
end)

describe("a server", function()
  it("makes clients above max_connections wait until another leaves", function()
    start({ max_connections = 1 })
    local first, request = exchange()
    local second = connect()
    second:send(GET)
    request:respond(200, { Connection = "close" })
    first:receive_all()
    next_request():respond(200, nil, "second")
    assert.equal("second", select(3, second:receive_response()))
  end)

  it("closes connections after idle_timeout without a request", function()
    start({ idle_timeout = 0.5 })
    local client = connect()
    assert.equal("", client:receive_all())
  end)

  it("does not count the time until a reply as idle", function()
    start({ idle_timeout = 0.5 })
    local client, request = exchange()
    local silent = connect()
    silent:receive_all()
    assert.is_true(request:respond(200, nil, "late"))
    assert.equal("late", select(3, client:receive_response()))
  end)

  it("can be closed twice and then refuses every other method", function()
    start()
    server:close()
    server:close()
    for _, method in ipairs({ "port", "pollfd", "events", "timeout", "step", "next", "stats" }) do
      assert_raises("the server is closed", server[method], server)
    end
  end)

  it("sends pending replies before it closes", function()
    start()
    local client, request = exchange()
    request:respond(200, nil, "last words")
    server:close()
    client:leave_server_alone()
    assert.matches("\r\n\r\nlast words$", client:receive_all())
  end)

  it("can be collected before its requests, whose input stays readable", function()
    start()
    local request = select(2, exchange("POST /p HTTP/1.1\r\nHost: test\r\nContent-Length: 2\r\n\r\nhi"))
    server = nil
    collectgarbage()
    collectgarbage()
    assert.equal("/p hi", request.path .. " " .. request.body)
    assert.is_false(request:respond(200))
  end)

  it("closes every descriptor", function()
    collectgarbage()
    collectgarbage()
    local before = raw_http.count_descriptors()
    start()
    local clients = {}
    for i, answer in ipairs({ "respond", "reset", "stall", "truncate", "drip", "nothing", "waiting", "half" }) do
      local client = connect()
      clients[i] = client
      client:send(answer == "half" and "GET" or GET)
      if answer ~= "half" and answer ~= "waiting" then
        local request = next_request()
        if answer ~= "nothing" then
          request[answer](request, 200, nil, "abcdef", 3, 3600)
        end
      end
      server:step(0)
    end
    server:close()
    for _, client in ipairs(clients) do
      client:close()
    end
    assert.equal(before, raw_http.count_descriptors())
  end)

  it("closes every descriptor when it cannot listen", function()
    start()
    local before = raw_http.count_descriptors()
    assert.is_nil((riskscreen_server.new({ port = server:port() })))
    assert.equal(before, raw_http.count_descriptors())
  end)

  if _VERSION == "Lua 5.4" then
    it("is closed at the end of the scope of a to-be-closed variable", function()
      local closed = load("local new = ...; local s <close> = new(); return s")(riskscreen_server.new)
      assert_raises("the server is closed", closed.port, closed)
    end)
  end
end)
