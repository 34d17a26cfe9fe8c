local by_names = require("spec.support.by_names")
local core = require("riskscreen.core")
local driver = require("spec.support.driver")
local libcurl = require("spec.support.libcurl")
local patience = require("spec.support.patience")
local peer = require("spec.support.peer")
local riskscreen_server = require("riskscreen.server")

local LONG = 60 -- seconds; a timeout no test waits for
local SHORT = 0.03 -- seconds; a timeout that tests wait for

local drive, loop

--- Returns the URL of a server that replies with `handler`.
local function serve(handler, options)
  local server = assert(riskscreen_server.new(options or {}))
  drive:serve(server, handler)
  return "http://127.0.0.1:" .. server:port(), server
end

local function origin_of(url, options)
  local all = { base_url = url }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  return loop:origin(all)
end

local function send(origin, request)
  local all = { target = "/", timeout = LONG }
  for name, value in pairs(request or {}) do
    all[name] = value
  end
  return by_names.send(origin, all)
end

--- Returns the request as the server saw it, and the result.
local function exchange(request, answer)
  local seen
  local url = serve(function(received)
    seen = received
    answer = answer or { 200, nil, "" }
    received:respond(answer[1], answer[2], answer[3])
  end)
  local result, failure = drive:result(send(origin_of(url), request))
  assert.is_nil(failure and failure.message)
  return seen, result
end

--- Returns a transfer that has finished with this answer, and is not taken.
local function finished(...)
  local answer = { ... }
  local url = serve(function(received)
    received:respond(answer[1], answer[2], answer[3])
  end)
  local transfer = send(origin_of(url))
  drive:wait_for(transfer)
  return transfer
end

--- Returns a port that refuses connections, because its listener is closed.
local function refused_url()
  local listener = require("socket").bind("127.0.0.1", 0)
  local url = "http://127.0.0.1:" .. (select(2, listener:getsockname()))
  listener:close()
  return url
end

before_each(function()
  drive = driver.new()
  loop = drive.loop
end)

after_each(function()
  drive:close()
end)

describe("a transfer", function()
  it("sends its method, target and headers unchanged", function()
    local seen = exchange({
      method = "DELETE",
      target = "/a/../b%20c?x=%2F&y=",
      headers = { "X-Access-Key: secret", "Accept: application/json" },
    })
    assert.equal("DELETE", seen.method)
    assert.equal("/a/../b%20c", seen.path)
    assert.equal("x=%2F&y=", seen.query)
    assert.equal("secret", seen.headers["x-access-key"])
    assert.equal("application/json", seen.headers.accept)
  end)

  it("sends a body with the given content type and no default headers", function()
    local seen = exchange({ method = "POST", headers = { "Content-Type: application/json" }, body = '{"a":1}' })
    assert.equal("POST", seen.method)
    assert.equal('{"a":1}', seen.body)
    assert.equal("application/json", seen.headers["content-type"])
    assert.is_nil(seen.headers.expect)
  end)

  it("sends the lines that its list has then, whatever an earlier request sent", function()
    local seen = {}
    local url = serve(function(request)
      local key, type = request.headers["x-key"] or "-", request.headers["content-type"] or "-"
      seen[#seen + 1] = table.concat({ key, type, request.body or "" }, " ")
      request:respond(204)
    end)
    local origin, lines = origin_of(url), { "X-Key: first" }
    local function request(more)
      drive:result(send(origin, more))
    end
    request({ headers = lines })
    lines[1] = "X-Key: other"
    request({ headers = lines })
    request({ headers = lines, method = "POST", body = "x" })
    lines[2] = "Content-Type: text/plain"
    request({ headers = lines, method = "POST", body = "y" })
    request({})
    request({ headers = { "X-Key: other" } })
    assert.same({ "first - ", "other - ", "other - x", "other text/plain y", "- - ", "other - " }, seen)
  end)

  it("adds no content type", function()
    assert.is_nil(exchange({ method = "POST", body = "x" }).headers["content-type"])
  end)

  it("sends bytes of every value", function()
    local bytes = {}
    for i = 0, 255 do
      bytes[#bytes + 1] = string.char(i)
    end
    local body = table.concat(bytes):rep(64)
    assert.equal(body, exchange({ method = "PUT", body = body }).body)
  end)

  it("sends a large body without Expect", function()
    local body = ("x"):rep(3 * 1024 * 1024)
    local seen
    local url = serve(function(request)
      seen = request
      request:respond(204)
    end, { max_body = 4 * 1024 * 1024 })
    drive:result(send(origin_of(url), { method = "POST", body = body }))
    assert.equal(#body, #seen.body)
    assert.is_nil(seen.headers.expect)
  end)

  it("sends length 0 for a POST without a body", function()
    assert.equal("0", exchange({ method = "POST" }).headers["content-length"])
  end)

  it("returns status, headers, HTTP version and body", function()
    local _, result = exchange({}, { 404, { ["X-One"] = " 1 ", ["Content-Type"] = "text/plain" }, "gone" })
    assert.equal(404, result.status)
    assert.equal("1", result.headers["x-one"])
    assert.equal("text/plain", result.headers["content-type"])
    assert.equal("1.1", result.http_version)
    assert.equal("gone", result.body)
  end)

  it("joins repeated headers", function()
    local server = peer.tcp(drive, function(connection)
      connection:send(peer.response("", "Via: a\r\nvia:b\r\nVIA:  c \r\n"))
    end)
    local result = drive:result(send(origin_of(server.url)))
    assert.equal("a, b, c", result.headers.via)
    server:close()
  end)

  it("returns the headers of the final response only", function()
    local server = peer.tcp(drive, function(connection)
      connection:send("HTTP/1.1 103 Early Hints\r\nX-Early: 1\r\n\r\n" .. peer.response("done", "X-Late: 1\r\n"))
    end)
    local transfer = send(origin_of(server.url))
    local result = drive:result(transfer)
    assert.equal(200, result.status)
    assert.is_nil(result.headers["x-early"])
    assert.equal("1", result.headers["x-late"])
    assert.equal("done", result.body)
    server:close()
  end)

  it("ignores trailers", function()
    local server = peer.tcp(drive, function(connection)
      connection:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-Trailer: 1\r\n\r\n")
    end)
    local transfer = send(origin_of(server.url))
    local result = drive:result(transfer)
    assert.equal("abc", result.body)
    assert.is_nil(result.headers["x-trailer"])
    server:close()
  end)

  it("returns the times of its phases in order", function()
    local _, result = exchange({})
    local times = result.times
    assert.is_true(0 < times.name_lookup)
    assert.is_true(times.name_lookup <= times.connect)
    assert.is_true(times.connect <= times.first_byte)
    assert.is_true(times.first_byte <= times.total)
    assert.equal(0, times.tls)
  end)

  it("gives its result once", function()
    local transfer = finished(200, nil, ' {"a":[1]}')
    assert.same({ 200, ' {"a":[1]}' }, { loop:take(transfer) })
    assert.has_error(function()
      loop:take(transfer)
    end, "the transfer is closed")
  end)

  it("gives a head, from which headers and times are made later", function()
    local _, body, head = loop:take(finished(200, { ["X-One"] = "a" }, ""), true)
    local headers, times, version = core.details(head)
    assert.same({ "", "a", "1.1" }, { body, headers["x-one"], version })
    assert.is_true(times.total > 0)
    assert.has_error(function()
      core.details "x-one: a"
    end)
  end)

  it("gives the head of any status but 200", function()
    local status, body, head = loop:take(finished(404, { ["X-One"] = "a" }, "{}"))
    assert.same({ 404, "{}", "a" }, { status, body, core.details(head)["x-one"] })
  end)

  it("makes details of any text without a crash", function()
    for _, line in ipairs({ "", (" "):rep(20), "HTTP/", "HTTP/ 1", "HTTP/1.1\r\n" }) do
      assert.equal("", (select(3, core.details(("x"):rep(40) .. line))))
    end
  end)

  it("completes HEAD without waiting for a body", function()
    local server = peer.tcp(drive, function(connection)
      connection:send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")
    end)
    local result = drive:result(send(origin_of(server.url), { method = "HEAD" }))
    assert.equal(200, result.status)
    assert.equal("", result.body)
    server:close()
  end)

  it("sends the right method from a pooled handle", function()
    local methods, bodies = {}, {}
    local url = serve(function(request)
      methods[#methods + 1] = request.method
      bodies[#bodies + 1] = request.body
      request:respond(200)
    end)
    local origin = origin_of(url, { concurrency = 1 })
    for _, request in ipairs({
      { method = "GET" },
      { method = "POST", body = "1" },
      { method = "GET" },
      { method = "PUT", body = "2" },
      { method = "DELETE" },
      { method = "HEAD" },
      { method = "POST" },
      { method = "GET", body = "3" },
      { method = "GET" },
    }) do
      assert.equal(200, drive:result(send(origin, request)).status)
    end
    assert.same({ "GET", "POST", "GET", "PUT", "DELETE", "HEAD", "POST", "GET", "GET" }, methods)
    assert.same({ "", "1", "", "2", "", "", "", "3", "" }, bodies)
    assert.equal(1, loop:stats().handles)
  end)

  it("does not follow a redirect", function()
    local count = 0
    local url = serve(function(request)
      count = count + 1
      request:respond(302, { Location = "/elsewhere" })
    end)
    assert.equal(302, drive:result(send(origin_of(url))).status)
    assert.equal(1, count)
  end)

  it("does not send cookies back", function()
    local cookies = {}
    local url = serve(function(request)
      cookies[#cookies + 1] = request.headers.cookie or "none"
      request:respond(200, { ["Set-Cookie"] = "a=b" })
    end)
    local origin = origin_of(url)
    drive:result(send(origin))
    drive:result(send(origin))
    assert.same({ "none", "none" }, cookies)
  end)

  it("asks for compression unless it is off", function()
    local encodings = {}
    local url = serve(function(request)
      encodings[#encodings + 1] = request.headers["accept-encoding"] or "none"
      request:respond(200)
    end)
    drive:result(send(origin_of(url)))
    drive:result(send(origin_of(url, { compression = false })))
    assert.matches("gzip", encodings[1])
    assert.equal("none", encodings[2])
  end)

  it("uses a Unix domain socket", function()
    local path = os.tmpname()
    os.remove(path)
    local server = peer.unix(drive, path, function(connection)
      connection:send(peer.response("local"))
    end)
    local transfer = send(origin_of("http://localhost", { unix_socket = path }))
    assert.equal("local", drive:result(transfer).body)
    server:close()
    os.remove(path)
  end)

  it("uses a tunnel through a proxy", function()
    local asked
    local proxy = peer.tcp(drive, function(connection, request)
      if connection.count == 1 then
        asked = request:match("^[^\r\n]*")
        connection:send("HTTP/1.1 200 Connected\r\nX-Proxy: 1\r\n\r\n")
      else
        connection:send(peer.response(request:match("^[^\r\n]*")))
      end
    end)
    local transfer = send(origin_of("http://service.invalid:8080", { proxy = proxy.url }), { target = "/x" })
    local result = drive:result(transfer)
    assert.equal("CONNECT service.invalid:8080 HTTP/1.1", asked)
    assert.equal("GET /x HTTP/1.1", result.body)
    assert.is_nil(result.headers["x-proxy"])
    proxy:close()
  end)
end)

describe("an origin", function()
  it("reuses a connection", function()
    local url, server = serve(function(request)
      request:respond(200, nil, "ok")
    end)
    local origin = origin_of(url)
    for _ = 1, 5 do
      assert.equal(200, drive:result(send(origin)).status)
    end
    assert.equal(1, server:stats().connections)
    assert.equal(1, loop:stats().handles)
  end)

  it("leaves a connection alone that the next transfer took before the last one was looked at", function()
    local connection
    local server = peer.tcp(drive, function(its_connection)
      connection = its_connection
    end)
    local origin, transfers = origin_of(server.url), {}
    -- A timer of libcurl for new connections ends after 0.2 s. Then libcurl reads the first response when the second
    -- request is sent, which takes the same connection at once.
    for number, pause in ipairs({ 0.25, 0.01, 0 }) do
      transfers[number] = send(origin)
      drive:until_true("the request", function()
        return #server.requests == number
      end)
      connection:send(peer.response("ok"))
      local start = core.now()
      repeat
      until core.now() > start + pause
    end
    for _, transfer in ipairs(transfers) do
      local result, failure = drive:result(transfer)
      assert.is_nil(failure)
      assert.equal(200, result.status)
    end
    server:close()
  end)

  for _, way in ipairs({ "directly", "through a proxy" }) do
    it("does not take what follows a large response for the next one, " .. way, function()
      local answers = 0
      local answering = peer.tcp(drive, function(connection, request)
        if request:find("^CONNECT ") then
          return connection:send("HTTP/1.1 200 OK\r\n\r\n")
        end
        answers = answers + 1
        connection:send(peer.response(answers .. (" "):rep(5000)) .. peer.response("stale"))
      end)
      local proxy = way ~= "directly" and answering.url or nil
      local origin = origin_of(answering.url, { concurrency = 1, proxy = proxy })
      local transfers = {}
      for i = 1, 4 do
        transfers[i] = send(origin) -- all but the first wait, and start when the one before has ended
      end
      for i, transfer in ipairs(transfers) do
        assert.equal(i, tonumber(assert(drive:result(transfer)).body))
      end
      answering:close()
    end)
  end

  it("limits the transfers in flight to its concurrency and sends the rest in order", function()
    local waiting, targets, most = {}, {}, 0
    local url = serve(function(request)
      waiting[#waiting + 1] = request
      targets[#targets + 1] = request.path
      most = math.max(most, #waiting)
    end)
    local origin = origin_of(url, { concurrency = 2 })
    local transfers = {}
    for i = 1, 6 do
      transfers[i] = send(origin, { target = "/" .. i })
    end
    assert.same({ 2, 4 }, { loop:stats().transfers, loop:stats().queued })
    for i = 1, 6 do
      drive:until_true("request " .. i, function()
        return #targets >= i
      end)
      local answered = table.remove(waiting, 1)
      answered:respond(200, nil, answered.path)
      assert.equal("/" .. i, drive:result(transfers[i]).body)
    end
    assert.equal(2, most)
    table.sort(targets)
    assert.same({ "/1", "/2", "/3", "/4", "/5", "/6" }, targets)
    assert.same({ 0, 0 }, { loop:stats().transfers, loop:stats().queued })
    assert.equal(2, loop:stats().handles)
  end)

  it("keeps the order with a concurrency of 1", function()
    local targets = {}
    local url = serve(function(request)
      targets[#targets + 1] = request.path
      request:respond(200)
    end)
    local origin = origin_of(url, { concurrency = 1 })
    local last
    for i = 1, 20 do
      last = send(origin, { target = "/" .. i })
    end
    drive:result(last)
    for i = 1, 20 do
      assert.equal("/" .. i, targets[i])
    end
  end)

  for _, case in ipairs({
    { "no URL", { base_url = "https://" } },
    { "another scheme", { base_url = "ftp://host" } },
    { "a path", { base_url = "https://host/path" } },
    { "a query", { base_url = "https://host?x=y" } },
    { "credentials", { base_url = "https://user:password@host" } },
  }) do
    it("refuses " .. case[1] .. " as its base_url", function()
      assert.error_matches(function()
        loop:origin(case[2])
      end, "base_url")
    end)
  end

  it("requires a base_url", function()
    assert.error_matches(function()
      loop:origin({})
    end, "base_url is required")
  end)

  it("refuses unknown options and values out of range", function()
    for _, options in ipairs({
      { timeout = 1 },
      { concurrency = 0 },
      { concurrency = 1.5 },
      { http_version = "3" },
      { compression = "yes" },
      { verify = false },
      { proxy = "a\0b" },
    }) do
      options.base_url = "http://127.0.0.1"
      assert.has_error(function()
        loop:origin(options)
      end)
    end
  end)
end)

describe("a request", function()
  local origin

  before_each(function()
    origin = origin_of(refused_url())
  end)

  for name, line in pairs({
    ["a line feed"] = "X-A: secret\nX-B: 2",
    ["a carriage return"] = "X-A: secret\rX-B: 2",
    ["a NUL"] = "X-A: secret\0",
    ["no colon"] = "secret",
    ["no name"] = ": secret",
    ["a space in its name"] = "X A: secret",
  }) do
    it("with " .. name .. " in a header is refused without showing it", function()
      local ok, message = pcall(send, origin, { headers = { "Accept: */*", line } })
      assert.is_false(ok)
      assert.matches("headers%[2%]", message)
      assert.not_matches("secret", message)
      assert.equal(0, loop:stats().transfers)
    end)
  end

  for name, target in pairs({
    ["a space"] = "/a b",
    ["a line feed"] = "/a\nX-B: 2",
    ["a NUL"] = "/a\0",
    ["another start than a slash"] = "http://elsewhere/",
    ["no text"] = "",
  }) do
    it("with " .. name .. " as its target is refused", function()
      assert.error_matches(function()
        send(origin, { target = target })
      end, "does not begin with '/'")
    end)
  end

  it("with a method that has other characters than letters is refused", function()
    for _, method in ipairs({ "", "GET /x HTTP/1.1\r\nA", "get", ("X"):rep(40) }) do
      assert.error_matches(function()
        send(origin, { method = method })
      end, "not upper%-case letters")
    end
  end)

  it("with a timeout out of range or of another type is refused", function()
    for _, timeout in ipairs({ 0, -1, 1e6, 0 / 0, "soon" }) do
      assert.has_error(function()
        send(origin, { timeout = timeout })
      end)
      assert.has_error(function()
        send(origin, { connect_timeout = timeout })
      end)
    end
    assert.equal(0, loop:stats().transfers)
  end)

  it("with a body, headers or a target of another type is refused", function()
    for _, request in ipairs({ { body = {} }, { headers = "X: 1" }, { target = 1 }, { method = 1 } }) do
      assert.error_matches(function()
        send(origin, request)
      end, "bad argument")
    end
  end)

  it("with a header that is not a string is refused", function()
    assert.error_matches(function()
      send(origin, { headers = { 1 } })
    end, "headers%[1%] must be a string")
  end)

  it("above the largest size is refused", function()
    assert.error_matches(function()
      send(origin, { headers = { "X: " .. ("x"):rep(300 * 1024) } })
    end, "too large")
  end)
end)

describe("a result", function()
  it("is refused before the transfer has finished", function()
    local url = serve(function() end)
    local transfer = send(origin_of(url))
    assert.is_false(loop:done(transfer))
    assert.has_error(function()
      loop:take(transfer)
    end, "the transfer has not finished")
  end)

  it("is refused after the transfer was taken, also when a later one has its place", function()
    local transfer = finished(200)
    loop:take(transfer)
    finished(200)
    assert.has_error(function()
      loop:take(transfer)
    end, "the transfer is closed")
  end)

  it("is refused of a timer, and of what is no number", function()
    assert.has_error(function()
      loop:take(loop:timer(0))
    end, "the transfer is closed")
    for _, wrong in ipairs({ "1", 0.5, {} }) do
      assert.error_matches(function()
        loop:take(wrong)
      end, "not a number of an operation")
    end
  end)

  it("is refused after the loop is closed", function()
    local transfer = finished(200)
    loop:close()
    assert.is_true(loop:done(transfer))
    assert.has_error(function()
      loop:take(transfer)
    end, "the loop is closed")
  end)
end)

describe("a timeout", function()
  local function assert_failure_is_timeout(failure, phase, sent)
    assert.same({ "timeout", phase, sent }, { failure.kind, failure.phase, failure.sent })
    assert.matches("timed out", failure.message)
    assert.matches("127.0.0.1:%d+", failure.message)
  end

  --- Fails unless the transfer timed out in this phase.
  local function assert_timed_out(transfer, phase, sent)
    local result, failure = drive:result(transfer)
    assert.is_nil(result)
    assert_failure_is_timeout(failure, phase, sent)
  end

  --- The same for a phase that a slow machine may not reach in time: `start(seconds)` returns a transfer.
  local function assert_times_out_later(start, phase, sent)
    local failure = patience(function(seconds)
      local failure = select(2, drive:result(start(seconds)))
      return failure.phase == phase, failure
    end)
    assert_failure_is_timeout(failure, phase, sent)
  end

  it("ends a transfer that waits in the queue", function()
    local count = 0
    local url = serve(function()
      count = count + 1
    end)
    local origin = origin_of(url, { concurrency = 1 })
    send(origin)
    local queued = send(origin, { timeout = SHORT })
    assert_timed_out(queued, "queue", false)
    assert.equal(0, loop:stats().queued)
    assert.equal(1, count)
  end)

  it("counts the time in the queue", function()
    local url = serve(function() end)
    local late
    assert_times_out_later(function(seconds)
      local origin = origin_of(url, { concurrency = 1 })
      local first = send(origin, { timeout = seconds })
      local second = send(origin, { timeout = 2 * seconds })
      drive:result(first)
      -- If its time began when it left the queue, the alarm would come first.
      late = false
      drive:after(1.5 * seconds, function()
        late = not loop:done(second) -- both may be due in one step of a busy machine
      end)
      return second
    end, "first_byte", true)
    assert.is_false(late)
  end)

  describe("of the connection", function()
    local listener, filling, url

    -- The listener's backlog is full, so it does not reply to new connections.
    before_each(function()
      local socket = require("socket")
      listener = socket.tcp()
      assert(listener:bind("127.0.0.1", 0))
      assert(listener:listen(0))
      local port = select(2, listener:getsockname())
      filling = {}
      for i = 1, 4 do
        filling[i] = socket.tcp()
        filling[i]:settimeout(0)
        filling[i]:connect("127.0.0.1", port)
      end
      url = "http://127.0.0.1:" .. port
    end)

    after_each(function()
      for _, client in ipairs(filling) do
        client:close()
      end
      listener:close()
    end)

    it("ends a transfer that is connecting", function()
      assert_timed_out(send(origin_of(url, { connect_timeout = SHORT })), "connect", false)
    end)

    it("may be set for one request", function()
      assert_timed_out(send(origin_of(url), { connect_timeout = SHORT }), "connect", false)
    end)

    it("does not matter if the whole timeout is shorter", function()
      assert_timed_out(send(origin_of(url), { timeout = SHORT }), "connect", false)
    end)

    it("covers the TLS handshake", function()
      local silent = peer.tcp(drive, function() end)
      assert_times_out_later(function(seconds)
        return send(origin_of((silent.url:gsub("^http:", "https:")), { connect_timeout = seconds }))
      end, "tls", false)
      silent:close()
    end)
  end)

  it("ends a transfer that waits for the first byte", function()
    local url = serve(function() end)
    assert_times_out_later(function(seconds)
      return send(origin_of(url), { timeout = seconds })
    end, "first_byte", true)
  end)

  it("ends a transfer in the middle of the body", function()
    local server = peer.tcp(drive, function(connection)
      connection:send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    end)
    assert_times_out_later(function(seconds)
      return send(origin_of(server.url), { timeout = seconds })
    end, "body", true)
    server:close()
  end)

  it("does not discard a response that arrived before a late step", function()
    local server = peer.tcp(drive, function(connection)
      connection:send(peer.response("late"))
    end)
    local result = patience(function(seconds)
      local transfer, before = send(origin_of(server.url), { timeout = seconds }), #server.requests
      -- Steps only until the peer has replied. Then time passes without a step.
      drive:until_true("the request", function()
        return #server.requests > before or loop:done(transfer)
      end)
      local start = core.now()
      repeat
      until core.now() > start + seconds
      local result = drive:result(transfer)
      return result ~= nil, result
    end)
    assert.equal("late", result.body)
    server:close()
  end)
end)

describe("a failure", function()
  --- Returns the failure of a transfer whose peer replies like this.
  local function failure_of(answer, options, request, greet)
    local server = peer.tcp(drive, answer)
    server.greet = greet
    local result, failure = drive:result(send(origin_of(server.url, options), request))
    server:close()
    assert.is_nil(result)
    return failure
  end

  local function assert_failure(expected, failure)
    assert.same(expected, { failure.kind, failure.phase, failure.sent })
    assert.matches("127.0.0.1:%d+", failure.message)
    return failure
  end

  it("to connect has the kind network and nothing was sent", function()
    local _, failure = drive:result(send(origin_of(refused_url())))
    assert_failure({ "network", "connect", false }, failure)
    assert.matches("^could not connect to 127.0.0.1:%d+ %(Connection refused%)$", failure.message)
  end)

  it("to connect to a proxy or a socket names them", function()
    local _, failure = drive:result(send(origin_of("http://name.invalid", { proxy = refused_url() })))
    assert.equal("could not connect to the proxy to name.invalid:80 (Connection refused)", failure.message)
    _, failure = drive:result(send(origin_of("http://127.0.0.1:1", { unix_socket = "/nonexistent/socket" })))
    assert.equal("could not connect to 127.0.0.1:1 at /nonexistent/socket (No such file or directory)", failure.message)
  end)

  it("to find the host has the kind network and nothing was sent", function()
    local transfer = send(origin_of("http://name.invalid"))
    local _, failure = drive:result(transfer)
    assert.same({ "network", "name_lookup", false }, { failure.kind, failure.phase, failure.sent })
    assert.matches("^could not find the address of name.invalid:80 ", failure.message)
  end)

  it("is a reset after the request", function()
    assert_failure(
      { "network", "first_byte", true },
      failure_of(function(connection)
        connection:reset()
      end)
    )
  end)

  it("is a connection closed without a response", function()
    assert_failure(
      { "network", "first_byte", true },
      failure_of(function(connection)
        connection:finish()
      end)
    )
  end)

  it("is a connection closed in the headers", function()
    assert_failure(
      { "network", "body", true },
      failure_of(function(connection)
        connection:send("HTTP/1.1 200 OK\r\nContent-Le")
        connection:finish()
      end)
    )
  end)

  it("is a truncated body", function()
    assert_failure(
      { "network", "body", true },
      failure_of(function(connection)
        connection:send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        connection:finish()
      end)
    )
  end)

  it("is a reset in the body", function()
    assert_failure(
      { "network", "body", true },
      failure_of(function(connection)
        connection:send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
        connection:reset()
      end)
    )
  end)

  it("is a chunked body without its end", function()
    assert_failure(
      { "network", "body", true },
      failure_of(function(connection)
        connection:send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
        connection:finish()
      end)
    )
  end)

  it("is a head that begins with a folded line, also after another response", function()
    local server = peer.tcp(drive, function(connection)
      local first = connection.peer.connections == 1
      connection:send("HTTP/1.1 200 OK\r\n" .. (first and "" or " ") .. "Content-Length: 5\r\n\r\nhello")
      connection:finish()
    end)
    local origin = origin_of(server.url)
    assert.equal(200, drive:result(send(origin)).status)
    for _ = 1, 20 do
      local result, failure = drive:result(send(origin))
      assert.is_nil(result)
      assert.equal("protocol", failure.kind, failure.message)
    end
    server:close()
  end)

  it("is a folded line first in the head of an interim response or of the one after it", function()
    for _, response in ipairs({
      "HTTP/1.1 103 Early Hints\r\n Link: a\r\n\r\n" .. peer.response("hello"),
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\tX-A: 1\r\nContent-Length: 5\r\n\r\nhello",
    }) do
      local requests = 0
      local server = peer.tcp(drive, function(connection)
        requests = requests + 1
        connection:send(requests % 2 == 1 and peer.response("hello") or response)
      end)
      local origin = origin_of(server.url)
      for _ = 1, 10 do
        assert.equal(200, drive:result(send(origin)).status)
        local _, failure = drive:result(send(origin))
        assert.equal("protocol", failure and failure.kind)
      end
      server:close()
    end
  end)

  it("is no long header line with a blank where libcurl cuts it", function()
    local value = ("x"):rep(16000) .. (" "):rep(1000) .. "y"
    local server = peer.tcp(drive, function(connection)
      connection:send(peer.response("hello", "X-Long: " .. value .. "\r\n"))
    end)
    local origin = origin_of(server.url)
    for _ = 1, 2 do
      local result, failure = drive:result(send(origin))
      assert.is_nil(failure and failure.message)
      assert.same({ value, "hello" }, { result.headers["x-long"], result.body })
    end
    server:close()
  end)

  it("is a response that is not HTTP", function()
    assert_failure(
      { "protocol", "first_byte", true },
      failure_of(function(connection)
        connection:send("SSH-2.0-OpenSSH_9.2\r\n")
        connection:finish()
      end)
    )
  end)

  it("is a body above max_body", function()
    local failure = failure_of(function(connection)
      connection:send(peer.response(("x"):rep(101)))
    end, { max_body = 100 })
    assert.same({ "protocol", true }, { failure.kind, failure.sent })
    assert.matches("max_body %(100 bytes%)", failure.message)
  end)

  it("is not a body of exactly max_body", function()
    local server = peer.tcp(drive, function(connection)
      connection:send(peer.response(("x"):rep(100)))
    end)
    assert.equal(100, #drive:result(send(origin_of(server.url, { max_body = 100 }))).body)
    server:close()
  end)

  it("is a body above max_body once it is decompressed", function()
    local path = os.tmpname()
    os.execute("head -c 1000000 /dev/zero | gzip -9 > " .. path)
    local file = assert(io.open(path, "rb"))
    local bomb = file:read("*a")
    file:close()
    os.remove(path)
    assert.is_true(#bomb < 2000)
    local failure = failure_of(function(connection)
      connection:send(peer.response(bomb, "Content-Encoding: gzip\r\n"))
    end, { max_body = 10000 })
    assert.equal("protocol", failure.kind)
    assert.matches("max_body %(10000 bytes%)", failure.message)
  end)

  it("is a head above max_headers", function()
    local failure = failure_of(function(connection)
      connection:send(peer.response("", ("X-Filler: xxxxxxxxxxxxxxxx\r\n"):rep(100)))
    end, { max_headers = 1000 })
    assert.equal("protocol", failure.kind)
    assert.matches("max_headers %(1000 bytes%)", failure.message)
  end)

  it("is a header line without an end", function()
    local failure = failure_of(function(connection)
      connection:send("HTTP/1.1 200 OK\r\nX-Filler: " .. ("x"):rep(200 * 1024))
    end)
    assert.equal("protocol", failure.kind)
  end)

  it("shows no header of the request", function()
    for _, answer in ipairs({
      function(connection)
        connection:reset()
      end,
      function(connection)
        connection:send("HTTP/1.1 nonsense\r\n\r\n")
        connection:finish()
      end,
      function(connection)
        connection:send(peer.response("this is not gzip", "Content-Encoding: gzip\r\n"))
      end,
    }) do
      local failure = failure_of(answer, nil, { headers = { "X-Access-Key: hunter2" } })
      assert.not_matches("hunter2", failure.message)
    end
  end)

  it("shows no password of a proxy that libcurl refuses", function()
    for _, proxy in ipairs { "http://user:secret@host:99999", "gopher://user:secret@host", "user:secret@[::1" } do
      local reply, failure = drive:result(send(origin_of("http://127.0.0.1:9", { proxy = proxy })))
      assert.is_nil(reply)
      assert.is_nil(failure.message:find("secret", 1, true), failure.message)
    end
  end)

  it("leaves the origin usable", function()
    local server = peer.tcp(drive, function(connection, request)
      if request:find("^GET /bad") then
        connection:reset()
      else
        connection:send(peer.response("good"))
      end
    end)
    local origin = origin_of(server.url, { concurrency = 1 })
    for _ = 1, 3 do
      drive:result(send(origin, { target = "/bad" }))
      assert.equal(200, drive:result(send(origin, { target = "/good" })).status)
    end
    assert.equal(1, loop:stats().handles)
    server:close()
  end)
end)

describe("a kept-alive connection that is dead", function()
  --- A peer that replies to the first request of its first connection and drops that connection at the second.
  local function dying_peer()
    return peer.tcp(drive, function(connection)
      if connection.peer.connections == 1 and connection.count == 2 then
        connection:reset()
      else
        connection:send(peer.response("ok"))
      end
    end)
  end

  local function second_result(server, request)
    local origin = origin_of(server.url)
    assert.equal(200, drive:result(send(origin)).status)
    return drive:result(send(origin, request))
  end

  for _, case in ipairs({
    { "a POST with a body", { method = "POST", body = "pay" } },
    { "a POST without a body", { method = "POST" } },
    { "a POST with a large body", { method = "POST", body = ("x"):rep(100 * 1024) } },
    { "a DELETE", { method = "DELETE" } },
    { "a GET", { method = "GET" } },
  }) do
    it("fails " .. case[1] .. ", and says so", function()
      local server = dying_peer()
      local result, failure = second_result(server, case[2])
      if libcurl.resends then
        assert.equal(200, result.status)
        assert.same({ case[2].method == "GET" and 3 or 2, 2 }, { #server.requests, server.connections })
        server:close()
        return
      end
      assert.is_nil(result)
      assert.same({ "network", true, true }, { failure.kind, failure.sent, failure.dead_connection })
      assert.equal(2, #server.requests)
      server:close()
    end)
  end

  it("is not used by a request that needs a fresh one", function()
    local server = dying_peer()
    local result = second_result(server, { method = "POST", body = "read", fresh = true })
    assert.equal(200, result.status)
    assert.same({ 2, 2 }, { #server.requests, server.connections })
    server:close()
  end)

  it("is noticed before a request is sent", function()
    local server = peer.tcp(drive, function(connection)
      connection:send(peer.response("ok"))
    end)
    local origin = origin_of(server.url)
    drive:result(send(origin))
    for connection in pairs(server.open) do
      connection:close()
    end
    assert.equal(200, drive:result(send(origin, { method = "POST", body = "x" })).status)
    assert.equal(2, #server.requests)
    server:close()
  end)
end)

describe("a cancelled transfer", function()
  local function assert_cancelled(transfer)
    assert.is_true(loop:cancel(transfer))
    assert.is_false(loop:cancel(transfer))
    assert.is_true(loop:done(transfer))
    assert.has_error(function()
      loop:take(transfer)
    end, "the transfer is closed")
    assert.equal(0, loop:stats().transfers)
    loop:step(0)
    local operation = loop:next()
    while operation do
      assert.are_not.equal(transfer, operation)
      operation = loop:next()
    end
  end

  it("leaves the queue", function()
    local url = serve(function() end)
    local origin = origin_of(url, { concurrency = 1 })
    local first, queued = send(origin), send(origin)
    loop:cancel(queued)
    assert.same({ 1, 0 }, { loop:stats().transfers, loop:stats().queued })
    loop:cancel(first)
  end)

  it("returns its handle to the pool while it connects", function()
    local silent = peer.tcp(drive, function() end)
    local transfer = send(origin_of((silent.url:gsub("^http:", "https:")), { connect_timeout = LONG }))
    drive:until_true("a connection", function()
      return silent.connections == 1
    end)
    assert_cancelled(transfer)
    assert.equal(1, loop:stats().handles)
    silent:close()
  end)

  it("returns its handle to the pool while it waits for the first byte", function()
    local arrived
    local url = serve(function()
      arrived = true
    end)
    local transfer = send(origin_of(url))
    drive:until_true("the request", function()
      return arrived
    end)
    assert_cancelled(transfer)
    assert.equal(1, loop:stats().handles)
  end)

  it("returns its handle to the pool in the middle of the body", function()
    local server = peer.tcp(drive, function(connection)
      connection:send("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf")
    end)
    local transfer = send(origin_of(server.url))
    drive:until_true("the request", function()
      return #server.requests == 1
    end)
    loop:step(0)
    loop:step(0)
    assert_cancelled(transfer)
    assert.equal(1, loop:stats().handles)
    server:close()
  end)

  it("is not returned even if it has finished", function()
    local transfer = send(origin_of("http://127.0.0.1:1", { unix_socket = "/nonexistent/socket" }))
    assert.is_true(loop:done(transfer))
    assert_cancelled(transfer)
  end)

  it("starts the next transfer of the queue", function()
    local targets = {}
    local url = serve(function(request)
      targets[#targets + 1] = request.path
      if request.path == "/second" then
        request:respond(200)
      end
    end)
    local origin = origin_of(url, { concurrency = 1 })
    local first = send(origin, { target = "/first" })
    local second = send(origin, { target = "/second" })
    drive:until_true("the first request", function()
      return targets[1]
    end)
    loop:cancel(first)
    assert.equal(200, drive:result(second).status)
  end)

  it("loses its result", function()
    assert_cancelled(finished(200, nil, "lost"))
  end)
end)

describe("a loop with transfers in flight", function()
  it("cancels them when it is closed", function()
    local url, server = serve(function() end)
    local origin = origin_of(url, { concurrency = 2 })
    local transfers = {}
    for i = 1, 4 do
      transfers[i] = send(origin, { method = "POST", body = "x" })
    end
    drive:until_true("the requests", function()
      return server:stats().open == 2
    end)
    loop:close()
    for _, transfer in ipairs(transfers) do
      assert.has_no_error(function()
        loop:cancel(transfer)
      end)
    end
    server:close()
  end)

  it("keeps them alive without another reference", function()
    local url = serve(function(request)
      request:respond(200, nil, "kept")
    end)
    do
      local origin = origin_of(url)
      send(origin)
      origin = nil -- luacheck: ignore
    end
    collectgarbage()
    collectgarbage()
    drive:until_true("the transfer", function()
      return drive.finished[1]
    end)
    assert.equal("kept", (select(2, loop:take(drive.finished[1]))))
  end)

  it("keeps the result of one whose origin is collected", function()
    local transfer = finished(200, nil, "[1,[2,[3]]]")
    collectgarbage()
    collectgarbage()
    assert.equal("[1,[2,[3]]]", (select(2, loop:take(transfer))))
  end)
end)

describe("the environment's proxies", function()
  it("are ignored", function()
    local interpreter = os.getenv("RISKSCREEN_LUA") or "lua5.4"
    local script = os.tmpname()
    local file = assert(io.open(script, "w"))
    file:write([[
      local core = require("riskscreen.core")
      local server = require("riskscreen.server").new({})
      local loop = core.loop({})
      local transfer = loop:origin({ base_url = "http://127.0.0.1:" .. server:port() }):send("GET", "/", nil, 30)
      while not loop:done(transfer) do
        loop:step(0.01)
        server:step(0)
        local request = server:next()
        if request then
          request:respond(200, nil, "direct")
        end
      end
      local status, body = loop:take(transfer)
      print(status and body or body.message)
    ]])
    file:close()
    local proxy = refused_url()
    local pipe = assert(
      io.popen(
        ("http_proxy=%s HTTP_PROXY=%s ALL_PROXY=%s timeout 20 '%s' '%s'"):format(
          proxy,
          proxy,
          proxy,
          interpreter,
          script
        )
      )
    )
    local output = pipe:read("*a")
    pipe:close()
    os.remove(script)
    assert.equal("direct\n", output)
  end)
end)
