-- No call outlives its timeout: each phase over real sockets. spec/unit/call/init_spec.lua tests attempts and pauses in
-- virtual time.
local driver = require "spec.support.native_driver"
local libcurl = require "spec.support.libcurl"
local native = require "riskscreen.runtime.native"
local peer = require "spec.support.peer"
local riskscreen = require "riskscreen"
local samples = require "spec.support.samples"
local scheduler = require "riskscreen.runtime.native.scheduler"
local socket = require "socket"

local TIMEOUT = 0.4 -- seconds
local HANGING = 10 -- seconds after which a call is said to hang: no more than a busy machine may take
local EVERY = 0.01 -- seconds between two pieces of a trickle

local open, writers

before_each(function()
  open, writers = {}, {}
end)

after_each(function()
  for _, task in ipairs(writers) do
    task:cancel()
  end
  for index = #open, 1, -1 do
    open[index]:close()
  end
  native.loop:step(0)
end)

local function closing(thing)
  open[#open + 1] = thing
  return thing
end

local function serve(answer)
  return closing(peer.tcp(driver, answer)).url
end

-- Sends a piece again and again until the connection is closed.
local function send_for_ever(connection, piece)
  writers[#writers + 1] = native.tasks.spawn(function()
    while not connection.closed do
      connection:send(piece)
      native.sleep(EVERY)
    end
  end)
end

-- A connection is never accepted when the listener's backlog is full.
local function full_listener()
  local listener = closing(socket.tcp())
  assert(listener:bind("127.0.0.1", 0))
  assert(listener:listen(0))
  local port = select(2, listener:getsockname())
  for _ = 1, 4 do
    local filling = closing(socket.tcp())
    filling:settimeout(0)
    filling:connect("127.0.0.1", port)
  end
  return "http://127.0.0.1:" .. port
end

local phases = {
  { what = "a connection that is never accepted", phase = "connect", sent = false, start = full_listener },
  {
    what = "a TLS handshake that stalls",
    phase = "tls",
    sent = false,
    start = function()
      return (serve(function() end):gsub("^http:", "https:"))
    end,
  },
  {
    what = "an answer that never comes",
    phase = "first_byte",
    sent = true,
    start = function()
      return serve(function() end)
    end,
  },
  {
    what = "headers that trickle",
    phase = "body",
    sent = true,
    start = function()
      return serve(function(connection)
        connection:send "HTTP/1.1 200 OK\r\nX-Long: "
        send_for_ever(connection, "x")
      end)
    end,
  },
  {
    what = "a body that never ends",
    phase = "body",
    sent = true,
    start = function()
      return serve(function(connection)
        connection:send "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        send_for_ever(connection, "5\r\n     \r\n")
      end)
    end,
  },
}

local function ask(client, options)
  return select(2, client.kya:risk({ address = samples.address, network = "eth" }, options))
end

for where, run in pairs {
  ["a blocking call"] = function(fn)
    return fn()
  end,
  ["a call in a task"] = riskscreen.run,
} do
  describe("the timeout of " .. where .. " ends", function()
    -- The error of a call that ends by itself; `options` are more options of the client.
    local function timed_out(url, options)
      options.base_url, options.access_key, options.timeout = url, "test-key", TIMEOUT
      options.connect_timeout = 60
      local client = closing(riskscreen.new(options))
      local err = run(function()
        return ask(client)
      end)
      assert.equal("timeout", err.kind, tostring(err))
      assert.is_true(err.elapsed < HANGING)
      assert.equal(0, scheduler.loop():stats().transfers)
      return err
    end

    for _, entry in ipairs(phases) do
      it(entry.what, function()
        local err = timed_out(entry.start(), {})
        assert.same({ entry.phase, entry.sent, 1 }, { err.phase, err.sent, err.attempts })
      end)

      it(entry.what .. ", attempt after attempt", function()
        local err = timed_out(entry.start(), {
          attempt_timeout = TIMEOUT / 4,
          retry = { attempts = 10, base_delay = 0.001 },
        })
        assert.is_true(err.attempts > 1)
      end)
    end

    it("the wait for other requests of the client", function()
      local url = serve(function() end)
      local client = closing(riskscreen.new { base_url = url, access_key = "test-key", concurrency = 1 })
      local first = native.tasks.spawn(function()
        ask(client, { timeout = 100 })
      end)
      local err = run(function()
        native.sleep(0.01)
        return ask(client, { timeout = TIMEOUT })
      end)
      first:cancel()
      assert.same({ "timeout", "queue", false }, { err.kind, err.phase, err.sent })
    end)
  end)
end

describe("the timeout of a call", function()
  local shim = os.tmpname()
  local compiler = "cc -shared -fPIC -o " .. shim .. " spec/support/unanswered_names.c 2>/dev/null"
  local compiled = os.execute(compiler)

  -- The silent resolver is compiled into the process.
  it("ends a name lookup that is never answered", function()
    if libcurl.waits_for_lookups then
      pending "needs libcurl 7.87"
      return
    end
    if compiled ~= true and compiled ~= 0 then
      pending "needs a C compiler"
      return
    end
    local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local command = "LD_PRELOAD=%s timeout %d %s spec/support/unanswered_names.lua %g"
    local pipe = assert(io.popen(command:format(shim, HANGING * 2, interpreter, TIMEOUT)))
    local output = pipe:read "*a"
    pipe:close()
    os.remove(shim)
    assert.equal("timeout\tname_lookup\tfalse\t1\n", output)
  end)
end)
