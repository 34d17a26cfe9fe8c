local client = require "riskscreen.client"
local driver = require "spec.support.native_driver"
local native = require "riskscreen.runtime.native"
local patience = require "spec.support.patience"
local peer = require "spec.support.peer"
local samples = require "spec.support.samples"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local socket = require "socket"

local risk = operations.by_name.getAddressRisk
local asked, answered = samples.of(risk)
local BODY = json.encode(answered)

local open = {}

local function closing(thing)
  open[#open + 1] = thing
  return thing
end

-- A peer that answers every request with a risk record, or with the answer of the test.
local function serve(answer)
  return closing(peer.tcp(driver, answer or function(connection)
    connection:send(peer.response(BODY))
  end))
end

local function new(url, options)
  local all = { base_url = url, access_key = "the-access-key" }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  return closing(client.new(all))
end

local function header(request, name)
  for line in request:gmatch "[^\r\n]+" do
    local found, value = line:match "^([^:]+): *(.*)$"
    if found and found:lower() == name then
      return value
    end
  end
end

after_each(function()
  for i = #open, 1, -1 do
    open[i]:close()
    open[i] = nil
  end
end)

describe("a client over HTTP", function()
  it("sends the request and returns the record", function()
    local server = serve()
    local value, response = new(server.url .. "/prefix", { headers = { ["X-Team"] = "a" } }).kya:risk(asked)
    assert.same(answered.data, value)
    assert.equal(200, response.status)
    assert.is_true(response.times.total >= 0)
    local request = server.requests[1]
    local line = "GET /prefix/api/v1/tracker/kya/risks?address=" .. samples.address .. "&network=eth HTTP/1.1\r\n"
    assert.equal(line, request:match "^[^\n]*\n")
    assert.equal("the-access-key", header(request, "x-access-key"))
    assert.equal("application/json", header(request, "accept"))
    assert.equal("a", header(request, "x-team"))
    assert.is_nil(header(request, "content-type"))
  end)

  it("sends a header that is empty, too", function()
    local server = serve()
    assert(new(server.url, { headers = { ["X-Team"] = "", ["X-Note"] = " " } }).kya:risk(asked))
    assert.equal("", header(server.requests[1], "x-team"))
    assert.equal("", header(server.requests[1], "x-note"))
  end)

  it("makes the headers and the times of a response when they are read", function()
    local server = serve()
    local _, response = new(server.url).kya:risk(asked)
    assert.equal("string", type(response.headers["content-length"]))
    assert.is_true(response.times.total >= 0)
    assert.is_nil(response.nothing)
    local names = {}
    for name in pairs(response) do
      names[name] = true
    end
    assert.same({ status = true, headers = true, times = true, elapsed = true, attempts = true, cached = true }, names)
  end)

  it("sends a body", function()
    local server = serve()
    new(server.url):request("POST", "/x", { body = { a = 1 } })
    assert.equal('{"a":1}', server.requests[1]:match "\r\n\r\n(.*)$")
    assert.equal("application/json", header(server.requests[1], "content-type"))
  end)

  it("uses one connection for its calls", function()
    local server = serve()
    local mine = new(server.url)
    assert.is_table((mine.kya:risk(asked)))
    assert.is_table((mine.kya:risk(asked)))
    assert.equal(1, server.connections)
  end)

  it("connects to nothing before the first call", function()
    local server = serve()
    new(server.url)
    native.loop:step(0)
    assert.equal(0, server.connections)
  end)

  it("follows no redirect and names its target", function()
    local elsewhere = serve()
    local server = serve(function(connection)
      connection:send(peer.response("", "Location: " .. elsewhere.url .. "/login\r\n", "302 Found"))
    end)
    local _, err = new(server.url).kya:risk(asked)
    assert.equal("http", err.kind)
    assert.matches(elsewhere.url .. "/login", err.message, 1, true)
    assert.equal(0, elsewhere.connections)
  end)

  it("names the address when nothing listens there", function()
    local server = serve()
    local url = server.url
    server:close()
    open = {}
    local _, err = new(url).kya:risk(asked)
    assert.same({ "network", false }, { err.kind, err.sent })
    assert.matches(url:match "//(.*)", err.message, 1, true)
  end)

  it("makes calls in the program's own coroutines", function()
    local mine = new(serve().url)
    local value = coroutine.wrap(function()
      return (mine.kya:risk(asked))
    end)()
    assert.same(answered.data, value)
  end)
end)

describe("the option", function()
  it("timeout ends a call", function()
    local server = serve(function() end)
    local err, timeout = patience(function(seconds)
      local _, err = new(server.url, { timeout = seconds }).kya:risk(asked)
      return err.sent, err, seconds
    end)
    assert.same({ "timeout", true }, { err.kind, err.sent })
    assert.matches(("%g s"):format(timeout), err.message, 1, true)
  end)

  it("timeout of a call replaces the client's", function()
    local server = serve(function() end)
    local _, err = new(server.url).kya:risk(asked, { timeout = 0.15 })
    assert.matches("0.15 s", err.message, 1, true)
  end)

  it("connect_timeout ends a handshake that does not end", function()
    local listener = closing(assert(socket.bind("127.0.0.1", 0)))
    local port = select(2, listener:getsockname())
    local mine = new("https://127.0.0.1:" .. port, { connect_timeout = 0.1 })
    local _, err = mine.kya:risk(asked)
    assert.same({ "timeout", false }, { err.kind, err.sent })
  end)

  it("max_response_size ends a longer answer, also a compressed one", function()
    local server = serve(function(connection)
      connection:send(peer.response('"' .. ("x"):rep(2000) .. '"'))
    end)
    local _, err = new(server.url, { max_response_size = 1024 }).kya:risk(asked)
    assert.equal("protocol", err.kind)
    assert.matches("1024", err.message, 1, true)
    assert.is_string((new(server.url, { max_response_size = 2002 }):request("GET", "/x")))
  end)

  it("user_agent replaces the library's name and version", function()
    local server = serve()
    new(server.url, { user_agent = "shop/1" }).kya:risk(asked)
    new(server.url).kya:risk(asked)
    assert.equal("shop/1", header(server.requests[1], "user-agent"))
    assert.matches("^riskscreen/%d", header(server.requests[2], "user-agent"))
  end)

  it("compression asks for compressed answers unless it is off", function()
    local server = serve()
    new(server.url).kya:risk(asked)
    new(server.url, { compression = false }).kya:risk(asked)
    assert.matches("gzip", header(server.requests[1], "accept-encoding"))
    assert.is_nil(header(server.requests[2], "accept-encoding"))
  end)

  it("http_version 2 asks for it", function()
    local first
    local server = serve(function(connection, request)
      first = first or request
      connection:close()
    end)
    new(server.url, { http_version = "2", timeout = 1 }).kya:risk(asked)
    -- Over plain http, HTTP/2 is either asked for in a header or spoken at once.
    assert.is_true(first:find "^PRI %* HTTP/2" ~= nil or header(first, "upgrade") == "h2c")
  end)

  it("proxy sends the requests through one", function()
    local proxy = serve(function(connection)
      connection:send "HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"
    end)
    local _, err = new("http://127.0.0.2:9", { proxy = proxy.url }).kya:risk(asked)
    assert.is_not_nil(err)
    assert.matches("127.0.0.2:9", proxy.requests[1], 1, true)
  end)

  for _, option in ipairs { "ca_file", "client_cert" } do
    it(option .. " names a file that must be there", function()
      local server = serve()
      local url = server.url:gsub("^http:", "https:")
      local _, err = new(url, { [option] = "/nonexistent/file.pem" }).kya:risk(asked)
      assert.same({ "tls", false }, { err.kind, err.sent })
    end)
  end

  it("unix_socket connects to one", function()
    local path = os.tmpname()
    os.remove(path)
    local server = closing(peer.unix(driver, path, function(connection)
      connection:send(peer.response(BODY))
    end))
    local value, err = new("http://localhost", { unix_socket = path }).kya:risk(asked)
    os.remove(path)
    assert.same(answered.data, value, tostring(err))
    assert.equal("localhost", header(server.requests[1], "host"))
  end)
end)

describe("the native runtime", function()
  it("sleeps at least for its time", function()
    local before = native.now()
    native.sleep(0.02)
    assert.is_true(native.now() - before >= 0.02)
  end)

  it("drives an object by its own timeout as well as by its descriptor", function()
    local listener = closing(assert(socket.bind("127.0.0.1", 0)))
    local due, steps = native.now() + 0.01, 0
    local object = {
      pollfd = function()
        return listener:getfd()
      end,
      events = function()
        return "r"
      end,
      timeout = function()
        return due and math.max(0, due - native.now())
      end,
      step = function()
        steps = steps + 1
        due = nil
      end,
    }
    native.attach(object)
    native.sleep(0.03)
    native.detach(object)
    assert.equal(1, steps)
  end)

  it("does not enter an object again from its own step", function()
    local listener = closing(assert(socket.bind("127.0.0.1", 0)))
    local depth, deepest = 0, 0
    local object = {
      pollfd = function()
        return listener:getfd()
      end,
      events = function()
        return "r"
      end,
      timeout = function()
        return 0
      end,
      step = function()
        depth = depth + 1
        deepest = math.max(deepest, depth)
        native.loop:step(0)
        depth = depth - 1
      end,
    }
    native.attach(object)
    native.loop:step(0)
    native.detach(object)
    assert.equal(1, deepest)
  end)

  it("drives an object no more once it is detached", function()
    local server = serve()
    server:close()
    open = {}
    native.loop:step(0)
    assert.equal(0, server.connections)
  end)

  it("raises the error of an object's step, and steps it again", function()
    local listener = closing(assert(socket.bind("127.0.0.1", 0)))
    local steps = 0
    local object = {
      pollfd = function()
        return listener:getfd()
      end,
      events = function()
        return "r"
      end,
      timeout = function()
        return 0
      end,
      step = function()
        steps = steps + 1
        if steps <= 100 then
          error("broken", 0)
        end
      end,
    }
    native.attach(object)
    for _ = 1, 100 do
      local ok, message = pcall(native.sleep, 0)
      assert.is_false(ok)
      assert.equal("broken", message)
    end
    native.sleep(0)
    native.detach(object)
    assert.is_true(steps > 100)
  end)

  it("goes on after an error that a debug hook has raised anywhere in a step", function()
    if rawget(_G, "jit") then
      return -- one hook for all coroutines
    end
    for count = 1, 2000 do
      local thread = coroutine.create(function()
        for _ = 1, 3 do
          native.tasks.spawn(native.sleep, 0)
          native.tasks.spawn(native.sleep, 0):await()
        end
      end)
      debug.sethook(thread, function()
        debug.sethook(thread)
        error("interrupted", 0)
      end, "", count)
      local ok, failure = coroutine.resume(thread)
      assert.is_true(ok or failure == "interrupted", failure)
      local value = native.tasks.run(function()
        native.sleep(0)
        return count
      end)
      assert.equal(count, value)
    end
  end)
end)
