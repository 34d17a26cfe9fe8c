-- The store in Redis when Redis fails or another program disturbs it, against real servers.
local program = require "spec.support.program"
local recorder = require "spec.support.recorder"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"

local describe_if = redis_server.is_installed() and describe or pending

local function open(server, options)
  options = options or {}
  options.redis = options.redis or server.url
  return assert(riskscreen.store.redis(options))
end

describe_if("a store in Redis", function()
  local server, client

  setup(function()
    server = redis_server.start()
  end)

  teardown(redis_server.stop_all)

  before_each(function()
    server:command "FLUSHALL"
    client = riskscreen.redis.new(server.url)
  end)

  after_each(function()
    client:close()
  end)

  it("is shared by all programs of one name, and by no others", function()
    local one, two, other = open(server), open(server), open(server, { name = "other" })
    one:space("things"):put("a", "1")
    assert.equal("1", two:space("things"):get "a")
    assert.is_nil(other:space("things"):get "a")
    for _, store in ipairs { one, two, other } do
      store:close()
    end
  end)

  it("uses a client that the program goes on using", function()
    local store = open(server, { redis = client })
    store:space("things"):put("a", "1")
    store:close()
    assert.equal("PONG", client:call "PING")
  end)

  it("expires entries by the clock of Redis", function()
    local store = open(server)
    local space = store:space "things"
    space:put("a", "1", 0.05)
    space:put("b", "1", 1000)
    while space:get "a" do
      riskscreen.sleep(0.01)
    end
    assert.equal(1, space:count())
    store:close()
  end)

  it("removes more expired entries than one script removes", function()
    local now = 1000
    local patient = riskscreen.redis.new { url = server.url, timeout = 30 } -- the batch is large
    local store = open(server, {
      redis = patient,
      clock = function()
        return now
      end,
    })
    local space, changes = store:space "things", {}
    for index = 1, 2500 do
      changes[index] = { kind = "put", space = "things", key = "k" .. index, value = "1", ttl = 1 }
    end
    assert.is_true(store:batch(changes))
    space:put("stays", "1")
    now = 2000
    assert.equal(1, space:count())
    assert.equal("stays", space:each()())
    assert.same(1, client:call("HLEN", client:key "store:1:values:things"))
    store:close()
    patient:close()
  end)

  it("reads entries that do not fit into one reply", function()
    local small = riskscreen.redis.new { url = server.url, max_reply = 20 * 1024 * 1024, timeout = 30 }
    local store = open(server, { redis = small })
    local space, long = store:space "things", ("x"):rep(3 * 1024 * 1024)
    for index = 1, 12 do
      assert.is_true(space:put("k" .. index, long))
    end
    local number = 0
    for _, value in space:each() do
      number = number + (value == long and 1 or 0)
    end
    assert.equal(12, number)
    store:close()
    small:close()
  end)

  it("refuses keys of another program, and leaves them as they are", function()
    client:call("SET", client:key "store:schema", "something else")
    local store, err = riskscreen.store.redis(server.url)
    assert.is_nil(store)
    assert.equal("foreign", err.reason)

    client:call("DEL", client:key "store:schema")
    client:call("LPUSH", client:key "store:schema", "x")
    store, err = riskscreen.store.redis(server.url)
    assert.is_nil(store)
    assert.equal("wrong_type", err.reason)

    client:call("DEL", client:key "store:schema")
    store = open(server)
    client:call("SET", client:key "store:1:expiries:things", "text")
    local made
    made, err = store:batch {
      { kind = "put", space = "others", key = "a", value = "1" },
      { kind = "put", space = "things", key = "a", value = "1" },
    }
    assert.is_nil(made)
    assert.equal("wrong_type", err.reason)
    assert.is_nil(store:space("others"):get "a")
    assert.equal("text", client:call("GET", client:key "store:1:expiries:things"))
    store:close()
  end)

  it("refuses a store of a newer version", function()
    for _, version in ipairs { "2", "1.5", "1e300" } do
      client:call("SET", client:key "store:schema", version)
      local _, err = riskscreen.store.redis(server.url)
      assert.equal("newer", err.reason)
      assert.matches("the store has version " .. version .. ",", err.message, 1, true)
    end
  end)

  it("says that entries are gone where another program removed them", function()
    local store = open(server)
    store:space("things"):put("a", "1")
    client:call("DEL", client:key "store:1:values:things")
    local ok, err = pcall(store:space("things"):each())
    assert.is_false(ok)
    assert.equal("damaged", err.reason)
    store:close()
  end)

  it("refuses a server that evicts keys", function()
    server:command "CONFIG SET maxmemory 100mb"
    server:command "CONFIG SET maxmemory-policy allkeys-lru"
    local store, err = riskscreen.store.redis(server.url)
    server:command "CONFIG SET maxmemory-policy noeviction"
    server:command "CONFIG SET maxmemory 0"
    assert.is_nil(store)
    assert.equal("evicting", err.reason)
    assert.matches("noeviction", err.message)
  end)

  it("changes all of a batch or nothing, whatever command the ACL refuses", function()
    local now = 1000
    local function clock()
      return now
    end
    server:command "ACL SETUSER limited on >secret ~* +@all"
    local limited = riskscreen.redis.new { url = server.url, username = "limited", password = "secret" }
    local store = open(server, { redis = limited, clock = clock })
    local space = store:space "things"
    local changes = {
      { kind = "put", space = "things", key = "new", value = "1", ttl = 10 },
      { kind = "delete", space = "things", key = "old" },
      { kind = "put", space = "things", key = "changed", value = "2" },
    }
    for _, command in ipairs { "hset", "hdel", "zadd", "zrem" } do
      now = 1000
      assert(space:put("old", "1"))
      assert(space:put("changed", "1"))
      assert(space:put("ended", "1", 1))
      space:delete "new"
      now = 2000
      server:command("ACL SETUSER limited -" .. command)
      local made, err = store:batch(changes)
      local counted = space:count()
      server:command("ACL SETUSER limited +" .. command)
      assert.is_nil(made)
      assert.is_true(counted == nil or counted == 2)
      assert.equal("auth", err.reason)
      assert.same({ "1", "1", 2 }, { space:get "old", space:get "changed", space:count() })
      assert.is_true(store:batch(changes))
      assert.same({ "1", "2", 2 }, { space:get "new", space:get "changed", space:count() })
    end
    store:close()
    limited:close()
  end)

  it("changes nothing while the memory is full, and works again afterwards", function()
    local store = open(server)
    local space = store:space "things"
    space:put("a", "1")
    server:command "CONFIG SET maxmemory 1"
    local made, err = store:batch {
      { kind = "put", space = "things", key = "b", value = "1" },
      { kind = "delete", space = "things", key = "a" },
    }
    server:command "CONFIG SET maxmemory 0"
    assert.is_nil(made)
    assert.equal("full", err.reason)
    assert.is_false(err.uncertain)
    assert.equal("1", space:get "a")
    assert.is_nil(space:get "b")
    assert.is_true(space:put("b", "1"))
    store:close()
  end)

  it("reads at a replica, and changes nothing there", function()
    local store = open(server)
    local space = store:space "things"
    space:put("a", "1")
    server:command "REPLICAOF 127.0.0.1 1"
    local made, err = space:put("a", "2")
    local value = space:get "a"
    server:command "REPLICAOF NO ONE"
    assert.is_nil(made)
    assert.equal("read_only", err.reason)
    assert.equal("1", value)
    assert.equal("1", space:get "a")
    store:close()
  end)

  it("works in tasks side by side, each change once", function()
    local store = open(server)
    local space = store:space "things"
    riskscreen.run(function()
      local bodies = {}
      for index = 1, 40 do
        bodies[index] = function()
          local made
          repeat
            local old = space:get "number"
            made = old and space:replace("number", old, ("%d"):format(tonumber(old) + 1)) or space:add("number", "1")
          until made
        end
      end
      riskscreen.gather(bodies)
    end)
    assert.equal("40", space:get "number")
    store:close()
  end)

  describe("with a lock", function()
    it("gives it to one program at a time, until that program ends", function()
      local writer = program.start("store_writer", { server.url, "lock" })
      assert.equal("locked", writer:read())
      local store = open(server)
      local release, err = store:lock "run"
      assert.is_nil(release)
      assert.equal("locked", err.reason)
      writer:kill()
      repeat
        release = store:lock "run"
      until release
      release()
      store:close()
    end)

    it("renews it while tasks run", function()
      local one, two = open(server, { lock_ttl = 3 }), open(server)
      local release = one:lock "run"
      local first = client:call("PTTL", client:key "store:1:lock:run")
      repeat -- until it has grown
        riskscreen.sleep(0.005)
        local last = first
        first = client:call("PTTL", client:key "store:1:lock:run")
      until first > last
      assert.is_nil(two:lock "run")
      release()
      assert(two:lock "run")
      one:close()
      two:close()
    end)

    it("takes it back where it expired and nobody had it meanwhile", function()
      local one, two = open(server), open(server)
      local release = one:lock "run"
      client:call("DEL", client:key "store:1:lock:run")
      assert.is_true(one:space("things"):put("a", "1"))
      assert.is_nil(two:lock "run")
      release()
      one:close()
      two:close()
    end)

    it("changes nothing after another program has taken it", function()
      local one, two = open(server), open(server)
      local release = one:lock "run"
      client:call("DEL", client:key "store:1:lock:run")
      local other = assert(two:lock "run")
      two:space("things"):put("a", "2")
      other()
      local made, err = one:space("things"):put("a", "1")
      assert.is_nil(made)
      assert.equal("lock_lost", err.reason)
      assert.equal("2", one:space("things"):get "a")
      release()
      assert.is_true(one:space("things"):put("a", "1"))
      one:close()
      two:close()
    end)

    it("has lost it for good where another program had it after Redis lost its data", function()
      local one, two = open(server), open(server)
      local release = one:lock "run"
      server:command "FLUSHALL"
      local other = assert(two:lock "run")
      two:space("things"):put("a", "2")
      other()
      for _ = 1, 2 do
        local made, err = one:space("things"):put("a", "1")
        assert.is_nil(made)
        assert.equal("lock_lost", err.reason)
      end
      assert.equal("2", two:space("things"):get "a")
      release()
      one:close()
      two:close()
    end)
  end)
end)

describe_if("a store whose Redis is replaced by a replica", function()
  teardown(redis_server.stop_all)

  it("keeps transactions, handled events and locks for the programs that use it", function()
    local group = redis_server.start_group(1)
    local store = assert(riskscreen.store.redis { redis = riskscreen.redis.new { sentinels = group.sentinels } })
    local transport, requests =
      recorder.new(recorder.reply(200, { success = true, code = 1, data = { requestId = "r1" } }))
    local handled = 0
    local client = riskscreen.new {
      transport = transport,
      access_key = "key-of-the-store-specs",
      identity = "recorder",
      account = "specs",
      store = store,
    }
    local inbox = riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      account = "specs",
      handlers = {
        ["*"] = function()
          handled = handled + 1
        end,
      },
    }
    local function submit()
      return client.kyt:submit { network = "eth", hash = "0xabc", direction = "in" }
    end
    local function deliver()
      local event = '{"webhookId":"w1","eventType":"kyt","timestamp":"2026-01-01 00:00:00","data":{"requestId":"r2"}}'
      return (inbox:deliver("POST", {}, event))
    end
    assert.equal("r1", assert(submit()).requestId)
    assert.equal(200, deliver())
    local release = assert(store:lock "turn")
    group.replicas[1]:wait_until_same(group.master)

    group:begin_failover()
    group:wait_for_failover()
    local transaction, err = submit()
    while not transaction do
      assert.is_true(err.retryable, tostring(err))
      riskscreen.sleep(0.05)
      transaction, err = submit()
    end
    assert.is_true(err.kept)
    assert.equal(200, deliver())
    assert.same({ 1, 1 }, { #requests, handled })
    local other = assert(riskscreen.store.redis { redis = riskscreen.redis.new { sentinels = group.sentinels } })
    assert.equal("locked", select(2, other:lock "turn").reason)
    release()
    assert.is_function(other:lock "turn")
    other:close()
    store:close()
  end)
end)

describe_if("a store in a Redis that is killed", function()
  teardown(redis_server.stop_all)

  local function fill_and_kill(server)
    local store = open(server, { redis = riskscreen.redis.new { url = server.url, timeout = 5 } })
    local space, reported = store:space "rows", 0
    for number = 1, 200 do
      assert.is_true(space:put(("%03d"):format(number), "row"))
      reported = number
    end
    server:kill()
    local made, err = space:put("201", "row")
    assert.is_nil(made)
    assert.equal("unreachable", err.reason)
    assert.is_true(err.retryable)
    server:start()
    local count
    repeat
      count = space:count()
    until count
    return reported, count, store
  end

  it("keeps every reported change with appendfsync always", function()
    local server = redis_server.start { "appendonly yes", "appendfsync always" }
    local reported, count, store = fill_and_kill(server)
    assert.equal(reported, count)
    assert.is_true(store:space("rows"):put("201", "row"))
    store:close()
    server:stop()
  end)

  it("keeps the first changes without a gap with appendfsync everysec", function()
    local server = redis_server.start { "appendonly yes", "appendfsync everysec" }
    local reported, count, store = fill_and_kill(server)
    assert.is_true(count <= reported)
    for number = 1, count do
      assert.equal("row", store:space("rows"):get(("%03d"):format(number)))
    end
    store:close()
    server:stop()
  end)

  it("keeps what was there at the last snapshot", function()
    local server = redis_server.start()
    local store = open(server)
    store:space("rows"):put("000", "row")
    server:command "SAVE"
    store:close()
    local _, count, again = fill_and_kill(server)
    assert.equal(1, count)
    again:close()
    server:stop()
  end)

  it("is empty without an append-only file, and works", function()
    local server = redis_server.start()
    local _, count, store = fill_and_kill(server)
    assert.equal(0, count)
    assert.is_true(store:space("rows"):put("201", "row"))
    store:close()
    server:stop()
  end)
end)
