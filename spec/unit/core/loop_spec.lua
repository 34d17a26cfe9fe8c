local core = require("riskscreen.core")
local driver = require("spec.support.driver")
local peer = require("spec.support.peer")
local raw_http = require("spec.support.raw_http")
local socket = require("socket")

local is_readable = raw_http.is_readable

--- Two connected sockets.
local function pair()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local near = assert(socket.connect("127.0.0.1", (select(2, listener:getsockname()))))
  local far = assert(listener:accept())
  listener:close()
  return near, far
end

local function take_all(loop)
  local taken = {}
  local operation = loop:next()
  while operation do
    taken[#taken + 1] = operation
    operation = loop:next()
  end
  return taken
end

describe("a loop", function()
  local loop

  before_each(function()
    loop = core.loop({})
  end)

  after_each(function()
    loop:close()
  end)

  it("has nothing to wait for when it is new", function()
    assert.is_nil(loop:timeout())
    assert.is_nil(loop:next())
  end)

  it("returns from a step without a limit when nothing can finish", function()
    assert.equal(0, loop:step())
  end)

  it("counts its transfers, timers and watches", function()
    local near, far = pair()
    loop:timer(100)
    loop:watch(near:getfd(), "r")
    assert.same({ transfers = 0, queued = 0, handles = 0, timers = 1, watches = 1 }, loop:stats())
    near:close()
    far:close()
  end)

  describe("when it is closed", function()
    it("can be closed again", function()
      loop:close()
      assert.has_no_error(function()
        loop:close()
      end)
    end)

    it("refuses every other call", function()
      local origin = loop:origin({ base_url = "http://127.0.0.1:1" })
      loop:close()
      for _, method in ipairs({ "pollfd", "events", "timeout", "step", "next", "stats" }) do
        assert.error_matches(function()
          loop[method](loop)
        end, "the loop is closed")
      end
      assert.error_matches(function()
        loop:timer(1)
      end, "the loop is closed")
      assert.error_matches(function()
        origin:send("GET", "/", nil, 30)
      end, "the loop is closed")
    end)

    it("still allows its timers and watches to be cancelled", function()
      local near, far = pair()
      local timer, watch = loop:timer(1), loop:watch(near:getfd(), "r")
      loop:close()
      assert.has_no_error(function()
        loop:cancel(timer)
        loop:cancel(watch)
      end)
      near:close()
      far:close()
    end)

    it("closes its descriptors", function()
      local before = raw_http.count_descriptors()
      local other = core.loop({})
      other:timer(1)
      other:close()
      assert.equal(before, raw_http.count_descriptors())
    end)
  end)

  describe("with timers", function()
    it("finishes them in the order in which they are due", function()
      local late, early = loop:timer(0.3), loop:timer(0.001)
      local order = {}
      while #order < 2 do
        loop:step()
        for _, timer in ipairs(take_all(loop)) do
          order[#order + 1] = timer
        end
      end
      assert.are.equal(early, order[1])
      assert.are.equal(late, order[2])
    end)

    it("finishes timers with the same due time in the order of their creation", function()
      local timers = {}
      for i = 1, 20 do
        timers[i] = loop:timer(0)
      end
      loop:step(0)
      local taken = take_all(loop)
      assert.equal(20, #taken)
      for i = 1, 20 do
        assert.are.equal(timers[i], taken[i])
      end
    end)

    it("does not finish a timer early", function()
      local start = core.now()
      loop:timer(0.01)
      assert.equal(1, loop:step())
      assert.is_true(core.now() - start >= 0.01)
    end)

    it("returns from a step whose limit is shorter than the timer", function()
      loop:timer(1000)
      assert.equal(0, loop:step(0.001))
    end)

    it("never waits in a step of 0 seconds", function()
      loop:timer(1000)
      assert.equal(0, loop:step(0))
    end)

    it("does not finish a cancelled timer", function()
      local cancelled, other = loop:timer(0), loop:timer(0)
      loop:cancel(cancelled)
      loop:step()
      local taken = take_all(loop)
      assert.equal(1, #taken)
      assert.are.equal(other, taken[1])
    end)

    it("does not return a timer that was cancelled after it finished", function()
      local timer = loop:timer(0)
      assert.equal(1, loop:step())
      loop:cancel(timer)
      assert.is_nil(loop:next())
      assert.is_nil(loop:timeout())
    end)

    it("lets a timer be cancelled twice", function()
      local timer = loop:timer(1)
      loop:cancel(timer)
      loop:cancel(timer)
      assert.equal(0, loop:stats().timers)
    end)

    it("keeps a timer alive without another reference", function()
      loop:timer(0)
      collectgarbage()
      collectgarbage()
      assert.equal(1, loop:step())
      assert.is_number(loop:next())
    end)

    it("returns the time until the next timer", function()
      loop:timer(1000)
      loop:timer(100)
      local timeout = loop:timeout()
      assert.is_true(timeout > 99 and timeout <= 100)
    end)

    it("refuses a delay that is negative or not a number", function()
      for _, delay in ipairs({ -1, 0 / 0, "soon" }) do
        assert.has_error(function()
          loop:timer(delay)
        end)
      end
    end)
  end)

  describe("with watches", function()
    local near, far

    before_each(function()
      near, far = pair()
    end)

    after_each(function()
      near:close()
      far:close()
    end)

    it("returns a watch when its descriptor is readable", function()
      local watch = loop:watch(near:getfd(), "r")
      assert.equal(0, loop:step(0))
      far:send("x")
      assert.equal(1, loop:step())
      assert.are.equal(watch, loop:next())
      assert.is_nil(loop:next())
    end)

    it("returns it again after each step while the descriptor is readable", function()
      local watch = loop:watch(near:getfd(), "r")
      far:send("x")
      for _ = 1, 3 do
        loop:step()
        assert.are.equal(watch, loop:next())
      end
      near:receive(1)
      assert.equal(0, loop:step(0))
    end)

    it("returns it once after several steps", function()
      loop:watch(near:getfd(), "r")
      far:send("x")
      loop:step()
      loop:step(0)
      assert.equal(1, #take_all(loop))
    end)

    it("watches for writing", function()
      local watch = loop:watch(near:getfd(), "w")
      loop:step()
      assert.are.equal(watch, loop:next())
    end)

    it("watches one descriptor for reading and writing at once", function()
      local reading, writing = loop:watch(near:getfd(), "r"), loop:watch(near:getfd(), "w")
      loop:step()
      assert.are.same({ writing }, take_all(loop))
      far:send("x")
      loop:cancel(writing)
      loop:step()
      assert.are.same({ reading }, take_all(loop))
    end)

    it("does not return a cancelled watch", function()
      local watch = loop:watch(near:getfd(), "r")
      far:send("x")
      loop:step()
      loop:cancel(watch)
      loop:cancel(watch)
      assert.is_nil(loop:next())
      assert.equal(0, loop:step(0))
      assert.equal(0, loop:stats().watches)
    end)

    it("refuses an invalid descriptor", function()
      assert.error_matches(function()
        loop:watch(1048575, "r")
      end, "the descriptor cannot be watched: Bad file descriptor")
      assert.equal(0, loop:stats().watches)
    end)

    it("watches another loop", function()
      local inner = core.loop({})
      local watch = loop:watch(inner:pollfd(), inner:events())
      local timer = inner:timer(0.005)
      loop:step()
      assert.are.equal(watch, loop:next())
      inner:step(0)
      assert.are.equal(timer, inner:next())
      inner:close()
    end)
  end)

  describe("that a host polls", function()
    it("is polled for reading", function()
      assert.equal("r", loop:events())
    end)

    it("is readable when a timer is due", function()
      local fd = loop:pollfd()
      loop:timer(0.002)
      assert.is_true(is_readable(fd, 20))
      assert.equal(1, loop:step(0))
    end)

    it("is readable when a timer made before the first poll is due", function()
      loop:timer(0.002)
      assert.is_true(is_readable(loop:pollfd(), 20))
    end)

    it("is readable and has timeout 0 until every finished operation is taken", function()
      local fd = loop:pollfd()
      loop:timer(0)
      loop:timer(0)
      loop:step()
      assert.is_true(is_readable(fd))
      assert.equal(0, loop:timeout())
      loop:next()
      assert.is_true(is_readable(fd))
      loop:next()
      assert.is_false(is_readable(fd))
      assert.is_nil(loop:timeout())
    end)

    it("is not readable for a cancelled timer", function()
      local fd = loop:pollfd()
      loop:cancel(loop:timer(0.001))
      loop:timer(0.002)
      is_readable(fd, 20)
      loop:step()
      take_all(loop)
      assert.is_false(is_readable(fd))
    end)

    it("is readable for an earlier timer that is created later", function()
      local fd = loop:pollfd()
      loop:timer(1000)
      loop:timer(0.002)
      assert.is_true(is_readable(fd, 20))
    end)

    it("is readable when a transfer finishes at once", function()
      local fd = loop:pollfd()
      local origin = loop:origin({ base_url = "http://127.0.0.1:1", unix_socket = "/nonexistent/socket" })
      local transfer = origin:send("GET", "/", nil, 30)
      assert.is_true(loop:done(transfer))
      assert.is_true(is_readable(fd))
      assert.equal(0, loop:timeout())
      assert.are.equal(transfer, loop:next())
    end)

    it("completes a transfer in steps taken only while it is readable", function()
      local drive = driver.new()
      local server = peer.tcp(drive, function(connection)
        connection:send(peer.response("hello"))
      end)
      local fd = loop:pollfd()
      local transfer = loop:origin({ base_url = server.url }):send("GET", "/", nil, 30)
      drive:on_ready(fd, "r", function()
        loop:step(0)
      end)
      drive:until_true("the transfer", function()
        return loop:done(transfer)
      end)
      assert.equal("hello", (select(2, loop:take(transfer))))
      server:close()
      drive:close()
    end)

    it("is not readable after a server closed an idle connection", function()
      local drive = driver.new()
      local connection
      local server = peer.tcp(drive, function(accepted)
        connection = accepted
        accepted:send(peer.response("hello"))
      end)
      drive:result(drive.loop:origin({ base_url = server.url }):send("GET", "/", nil, 30))
      local fd = drive.loop:pollfd()
      connection:close()
      server:close()
      assert.is_true(is_readable(fd, 20))
      drive.loop:step(0)
      assert.is_false(is_readable(fd))
      drive:close()
    end)
  end)
end)

describe("collected objects", function()
  --- Runs `make`, drops its objects and collects garbage.
  local function collect_after(make)
    make()
    for _ = 1, 3 do
      collectgarbage()
    end
  end

  it("close their descriptors when a loop with transfers in flight is collected", function()
    local listener = assert(socket.bind("127.0.0.1", 0))
    local url = "http://127.0.0.1:" .. (select(2, listener:getsockname()))
    local before = raw_http.count_descriptors()
    collect_after(function()
      local loop = core.loop({})
      local origin = loop:origin({ base_url = url, concurrency = 2 })
      for _ = 1, 4 do
        origin:send("POST", "/", nil, 30, nil, "x")
      end
      loop:timer(10)
      loop:step(0)
    end)
    assert.equal(before, raw_http.count_descriptors())
    listener:close()
  end)

  it("keep the loop of an origin alive", function()
    local origin
    collect_after(function()
      origin = core.loop({}):origin({ base_url = "http://127.0.0.1:1", unix_socket = "/nonexistent/socket" })
    end)
    assert.is_number(origin:send("GET", "/", nil, 30))
  end)

  it("may be collected in any order after the loop is closed", function()
    local loop = core.loop({})
    local origin = loop:origin({ base_url = "http://127.0.0.1:1", unix_socket = "/nonexistent/socket" })
    origin:send("GET", "/", nil, 30)
    loop:close()
    collect_after(function()
      origin, loop = nil, nil
    end)
    assert.is_nil(origin or loop)
  end)
end)
