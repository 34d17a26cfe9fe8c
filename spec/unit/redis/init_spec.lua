-- The client of Redis, against a real redis-server.
local locales = require "spec.support.locales"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local describe_if = redis_server.is_installed() and describe or pending

describe_if("a client of Redis", function()
  local server, client

  setup(function()
    server = redis_server.start()
  end)

  teardown(function()
    redis_server.stop_all()
  end)

  before_each(function()
    server:command "FLUSHALL"
    client = riskscreen.redis.new { url = server.url }
  end)

  after_each(function()
    client:close()
  end)

  it("returns each kind of reply as a Lua value", function()
    assert.equal("OK", client:call("SET", "a", "1"))
    assert.equal("1", client:call("GET", "a"))
    assert.is_false(client:call("GET", "absent"))
    assert.equal(5, client:call("INCRBY", "a", 4))
    assert.equal(2, client:call("RPUSH", "list", "x", "\0\r\n\255"))
    assert.same({ "x", "\0\r\n\255" }, client:call("LRANGE", "list", 0, -1))
    assert.same({ "5", false }, client:call("MGET", "a", "absent"))
    assert.same({ { "x" }, 1 }, client:call("EVAL", "return {{'x'},1}", 0))
    assert.same({}, client:call("LRANGE", "absent", 0, -1))
  end)

  it("sends numbers as Redis reads them", function()
    client:call("SET", "a", 1e15)
    assert.equal("1000000000000000", client:call("GET", "a"))
    client:call("SET", "a", 0.5)
    assert.equal("0.5", client:call("GET", "a"))
    assert.has_error(function()
      client:call("SET", "a", {})
    end)
  end)

  it("is sent numbers with a decimal point in every locale of the program", function()
    finally(temporary.clean)
    local lines = locales.run({ "de_DE" }, "redis_in_locale", server.url)
    if lines[1] == "no locale" then
      pending "there is no localedef, or it lacks de_DE"
    else
      assert.same({ "0.5", "true\tvalue", "allow" }, lines)
    end
  end)

  it("raises for a command without a name, which would close the connection that all tasks share", function()
    for _, misuse in ipairs {
      function()
        client:call()
      end,
      function()
        client:pipeline { { "PING" }, {} }
      end,
      function()
        client:wait(1)
      end,
    } do
      local ok, message = pcall(misuse)
      assert.is_false(ok)
      assert.matches("^[^:]*init_spec.lua:%d+: redis: a command must have a name", message)
    end
    assert.equal("PONG", client:call "PING")
  end)

  it("returns nil and an error where Redis refuses a command", function()
    client:call("SET", "a", "text")
    local reply, err = client:call("LPUSH", "a", "x")
    assert.is_nil(reply)
    assert.equal("storage", err.kind)
    assert.equal("wrong_type", err.reason)
    assert.equal("WRONGTYPE", err.code)
    assert.is_false(err.retryable)
    assert.is_false(err.uncertain)
  end)

  it("sends a pipeline at once, with an error in the place of a reply", function()
    local replies = client:pipeline { { "SET", "a", "1" }, { "LPUSH", "a", "x" }, { "INCR", "a" } }
    assert.equal("OK", replies[1])
    assert.equal("wrong_type", replies[2].reason)
    assert.equal(2, replies[3])
    assert.same({}, client:pipeline {})
  end)

  it("loads a script, and again when Redis has forgotten it", function()
    local script = riskscreen.redis.script("twice", "return {KEYS[1], ARGV[1] * 2}")
    assert.same({ "a", 42 }, client:script(script, { "a" }, { 21 }))
    server:command "SCRIPT FLUSH"
    assert.same({ "a", 42 }, client:script(script, { "a" }, { 21 }))
  end)

  it("serves many tasks over one connection", function()
    local before = client:call("INFO", "clients"):match "connected_clients:(%d+)"
    riskscreen.run(function()
      local bodies = {}
      for index = 1, 50 do
        bodies[index] = function()
          for number = 1, 20 do
            assert(client:call("SET", "key" .. index, number))
            assert.equal(tostring(number), client:call("GET", "key" .. index))
          end
          return index
        end
      end
      assert.equal(50, #riskscreen.gather(bodies))
    end)
    assert.equal(before, client:call("INFO", "clients"):match "connected_clients:(%d+)")
  end)

  it("reads a reply that is much larger than a read", function()
    local long = ("0123456789"):rep(500000)
    client:call("SET", "long", long)
    assert.is_true(client:call("GET", "long") == long)
  end)

  it("refuses a reply over max_reply", function()
    local small = riskscreen.redis.new { url = server.url, max_reply = 100000 }
    client:call("SET", "long", ("x"):rep(200000))
    client:call("EVAL", "for i = 1, 5000 do redis.call('RPUSH', 'list', i) end", 0)
    for _, command in ipairs { { "GET", "long" }, { "LRANGE", "list", 0, -1 } } do
      local reply, err = small:call((table.unpack or unpack)(command)) -- luacheck: ignore 113 143
      assert.is_nil(reply)
      assert.equal("protocol", err.reason)
      assert.matches("a reply is larger than max_reply", err.message)
    end
    assert.equal("PONG", small:call "PING")
    small:close()
  end)

  it("serves many tasks also where their calls block, in coroutines of the program", function()
    local bodies = {}
    for index = 1, 100 do
      bodies[index] = coroutine.wrap(function()
        for count = 1, 2 do
          assert(client:call("SET", "key" .. index, count))
        end
        return client:call("GET", "key" .. index)
      end)
    end
    for _, value in ipairs(riskscreen.gather(bodies)) do
      assert.equal("2", value)
    end
    assert.equal("100", tostring(client:call "DBSIZE"))
  end)

  it("lets other tasks go on while one waits in Redis", function()
    local order = {}
    riskscreen.run(function()
      local reader = riskscreen.spawn(function()
        local reply = assert(client:wait(20, "XREAD", "BLOCK", 20000, "STREAMS", "stream", "0"))
        order[#order + 1] = reply[1][2][1][2][2]
      end)
      assert(client:call("GET", "a") == false)
      order[#order + 1] = "written"
      assert(client:call("XADD", "stream", "*", "field", "read"))
      reader:await()
    end)
    assert.same({ "written", "read" }, order)
  end)

  it("closes the connection of a wait that is cancelled", function()
    riskscreen.run(function()
      local reader = riskscreen.spawn(function()
        client:wait(60, "BLPOP", "list", 60)
      end)
      while not client:call("CLIENT", "LIST"):find "cmd=blpop" do
        riskscreen.sleep(0.01)
      end
      reader:cancel()
      while client:call("CLIENT", "LIST"):find "cmd=blpop" do
        riskscreen.sleep(0.01)
      end
      client:call("RPUSH", "list", "kept")
      assert.same({ "kept" }, client:call("LRANGE", "list", 0, -1))
    end)
  end)

  it("connects over a Unix socket", function()
    local unix = riskscreen.redis.new("unix:" .. server.path)
    assert.equal("PONG", unix:call "PING")
    unix:close()
  end)

  it("chooses the database of the URL", function()
    local other = riskscreen.redis.new(server.url .. "/3")
    other:call("SET", "a", "1")
    assert.is_false(client:call("GET", "a"))
    assert.equal("1", other:call("GET", "a"))
    other:close()
  end)

  it("fails after it was closed", function()
    client:close()
    client:close()
    local reply, err = client:call "PING"
    assert.is_nil(reply)
    assert.equal("closed", err.reason)
  end)
end)

describe("the options of Redis", function()
  it("refuse what is no URL, without showing it", function()
    for _, url in ipairs {
      "http://secret@host",
      "redis://user:secret@host:70000",
      "redis://user:p@secret@host",
      "redis://127.0.0.1\\@secret",
      "redis://127.0.0.010:secret@127.0.0.010",
      "redis://secret@:1",
      "redis://secret@host/x",
      "redis://secret@host/0?a=1",
      "unix:secret",
      "unix:/" .. ("secret"):rep(30),
    } do
      local ok, message = pcall(riskscreen.redis.new, url)
      assert.is_false(ok)
      assert.matches("url must", message)
      assert.is_nil(message:find "secret")
    end
  end)

  it("refuse unknown names and lists that are not", function()
    for _, given in ipairs {
      { uri = "redis://host" },
      { sentinels = { hosts = {}, name = "x" } },
      { sentinels = { hosts = { "a:1", "user:secret@b:1" }, name = "x" } },
      { sentinels = { hosts = { "a:1" } } },
      { prefix = "a{b}" },
      { password = "" },
    } do
      local ok, message = pcall(riskscreen.redis.new, given)
      assert.is_false(ok)
      assert.is_nil(message:find "secret")
    end
  end)
end)
