-- The client of Redis when the server, the network or the configuration fails, against real servers.
local program = require "spec.support.program"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"

local describe_if = redis_server.is_installed() and describe or pending
local PASSWORD = "s3cret:p@ss/word%"

local clients, proxies = {}, {}

local function connect(given)
  local client = riskscreen.redis.new(given)
  clients[#clients + 1] = client
  return client
end

local function proxy(...)
  local started = program.start("proxy", { ... })
  proxies[#proxies + 1] = started
  return "redis://127.0.0.1:" .. started:read()
end

-- A server that answers the first bytes with a text.
local function saying(text)
  return proxy("0", "say", (text:gsub(".", function(character)
    return ("%02x"):format(character:byte())
  end)))
end

-- Calls until the reply comes. The client pauses between two attempts to connect.
local function until_replied(client, ...)
  local reply
  repeat
    reply = client:call(...)
    if reply == nil then
      riskscreen.sleep(0.02)
    end
  until reply ~= nil
  return reply
end

local function close_clients()
  for _, client in ipairs(clients) do
    client:close()
  end
  clients = {}
end

local function clean()
  close_clients()
  for _, started in ipairs(proxies) do
    started:kill()
  end
  proxies = {}
  redis_server.stop_all()
end

describe_if("a client of a Redis in trouble", function()
  after_each(clean)

  it("reports that a command may have taken effect when its reply is lost", function()
    local server = redis_server.start()
    local client = connect(proxy(tostring(server.port), "cut"))
    local reply, err = client:call("INCR", "number")
    assert.is_nil(reply)
    assert.equal("unreachable", err.reason)
    assert.is_true(err.uncertain)
    assert.is_true(err.retryable)
    assert.equal("1", until_replied(client, "GET", "number"))
  end)

  it("sends a command again where the connection was closed before it was written", function()
    local server = redis_server.start()
    local client = connect(server.url)
    assert.equal(1, client:call("INCR", "number"))
    for _ = 1, 3 do
      server:command "CLIENT KILL TYPE normal"
      assert(client:call("INCR", "number"))
    end
    assert.equal(5, client:call("INCR", "number"))
  end)

  it("waits no longer than the timeout for a server that stands still", function()
    local server = redis_server.start()
    local client = connect { url = server.url, timeout = 0.2 }
    client:call "PING"
    server:signal "STOP"
    local reply, err = client:call("INCR", "number")
    assert.is_nil(reply)
    assert.equal("timeout", err.reason)
    assert.is_true(err.uncertain)
    server:signal "CONT"
    until_replied(client, "PING")
    -- The late reply to the first command is no reply to a later one.
    assert.equal("text", client:call("ECHO", "text"))
  end)

  it("keeps the connection where only one command is slow", function()
    local server = redis_server.start()
    local client = connect { url = server.url, timeout = 0.3 }
    local id = client:call("CLIENT", "ID")
    local url = proxy(tostring(server.port), "late", "0.05")
    local slow = connect { url = url, timeout = 10 }
    assert.equal("PONG", slow:call "PING")
    riskscreen.run(function()
      local bodies = {}
      for index = 1, 20 do
        bodies[index] = function()
          return slow:call("ECHO", index)
        end
      end
      local values = riskscreen.gather(bodies)
      for index = 1, 20 do
        assert.equal(tostring(index), values[index])
      end
    end)
    assert.equal(id, client:call("CLIENT", "ID"))
  end)

  it("tells every task that waits when the server is killed", function()
    local server = redis_server.start()
    local client = connect { url = server.url, timeout = 30 }
    client:call "PING"
    server:signal "STOP"
    riskscreen.run(function()
      local tasks = {}
      for index = 1, 20 do
        tasks[index] = riskscreen.spawn(function()
          return client:call("INCR", "number")
        end)
      end
      riskscreen.sleep(0) -- the commands are written
      riskscreen.sleep(0)
      server:kill()
      for index = 1, 20 do
        local reply, err = tasks[index]:await()
        assert.is_nil(reply)
        assert.equal("unreachable", err.reason)
        assert.is_true(err.retryable)
      end
    end)
    server:start()
    assert.equal(1, until_replied(client, "INCR", "number"))
  end)

  it("does not try to connect at each call while the server is away", function()
    local server = redis_server.start()
    local client = connect(server.url)
    server:kill()
    local first = select(2, client:call "PING")
    local second = select(2, client:call "PING")
    assert.equal("unreachable", first.reason)
    assert.equal(first, second)
    assert.is_false(first.uncertain)
    server:start()
    assert.equal("PONG", until_replied(client, "PING"))
  end)

  it("survives a server that speaks something else", function()
    for _, text in ipairs {
      "HTTP/1.1 400 Bad Request\r\n\r\n",
      "*-5\r\n",
      "$99999999999\r\n",
      "$-2\r\n",
      "*1000000000\r\n",
      ("*1\r\n"):rep(20),
      ("*1000\r\n"):rep(6),
      ":12abc\r\n",
      ",1.5\r\n",
      "#t\r\n",
      "\0\1\2\255",
      "",
    } do
      local client = connect { url = saying(text), timeout = 0.5, max_reply = 1024 * 1024 }
      local reply, err = client:call "PING"
      assert.is_nil(reply, text)
      assert.equal("storage", err.kind)
    end
  end)

  it("gives a task no reply that another server's surplus could be", function()
    local client = connect(saying "+one\r\n+two\r\n+three\r\n")
    for _ = 1, 3 do
      local reply, err = client:call "PING"
      assert.is_true(reply == "one" or err.reason == "protocol" or err.reason == "unreachable")
      riskscreen.sleep(0.01)
    end
  end)

  it("reports a full memory", function()
    local server = redis_server.start { "maxmemory 1", "maxmemory-policy noeviction" }
    local _, err = connect(server.url):call("SET", "a", "1")
    assert.equal("full", err.reason)
    assert.is_true(err.retryable)
    assert.is_false(err.uncertain)
  end)

  it("reports that a server takes no more clients", function()
    local server = redis_server.start { "maxclients 1" }
    local first = connect(server.url)
    until_replied(first, "PING")
    local _, err = connect(server.url):call "PING"
    -- The refusal may come before the command or after it.
    assert.is_true(err.reason == "busy" or err.reason == "unreachable")
    assert.is_true(err.retryable)
    assert.matches("max number of clients", err.message)
    assert.equal("PONG", first:call "PING")
  end)

  it("reports a replica, which takes no changes", function()
    local master = redis_server.start()
    local replica = redis_server.start { "replicaof 127.0.0.1 " .. master.port }
    local client = connect(replica.url)
    local _, err = client:call("SET", "a", "1")
    assert.equal("read_only", err.reason)
    assert.is_true(err.retryable)
    assert.is_false(err.uncertain)
  end)
end)

describe_if("the login of a client of Redis", function()
  after_each(clean)

  local function encoded(text)
    return (text:gsub("%W", function(character)
      return ("%%%02X"):format(character:byte())
    end))
  end

  it("sends user and password, and tells nobody", function()
    local server = redis_server.start {
      "requirepass " .. PASSWORD,
      "user reader on >" .. PASSWORD .. " ~* +get +ping +script|load",
    }
    local plain = server.url:gsub("redis://", "")
    assert.equal("PONG", connect("redis://:" .. encoded(PASSWORD) .. "@" .. plain):call "PING")
    assert.equal("PONG", connect({ url = server.url, password = PASSWORD }):call "PING")
    assert.equal(
      "PONG",
      connect({
        url = server.url,
        username = "reader",
        password = function()
          return PASSWORD
        end,
      }):call "PING"
    )
    local reader = connect("redis://reader:" .. encoded(PASSWORD) .. "@" .. plain)
    local _, err = reader:call("SET", "a", "1")
    assert.equal("auth", err.reason)
    assert.equal("NOPERM", err.code)
    _, err = connect(server.url):call "PING"
    assert.equal("auth", err.reason)
    _, err = connect({ url = server.url, password = PASSWORD .. "wrong" }):call "PING"
    assert.equal("auth", err.reason)
    assert.equal("WRONGPASS", err.code)
    assert.is_nil(tostring(err):find(PASSWORD, 1, true))
    _, err = connect({
      url = server.url,
      password = function()
        error(PASSWORD)
      end,
    }):call "PING"
    assert.equal("auth", err.reason)
    assert.is_nil(tostring(err):find(PASSWORD, 1, true))
  end)

  it("ends a task that is cancelled while its password is awaited, and blames no function", function()
    local server = redis_server.start { "requirepass " .. PASSWORD }
    local client = connect {
      url = server.url,
      password = function()
        riskscreen.sleep(0.05)
        return PASSWORD
      end,
    }
    riskscreen.run(function()
      local went_on = false
      local task = riskscreen.spawn(function()
        client:call "PING"
        went_on = true
      end)
      riskscreen.sleep(0.01)
      task:cancel()
      local _, err = task:await()
      assert.equal("cancelled", err.kind)
      assert.is_false(went_on)
      assert.equal("PONG", client:call "PING")
    end)
  end)

  it("does not show the password that a server repeats", function()
    for _, text in ipairs {
      "-ERR unknown command `AUTH`, with args beginning with: `" .. PASSWORD .. "`\r\n",
      "+OK\r\n-ERR " .. PASSWORD .. "\r\n",
      PASSWORD .. "\r\n",
    } do
      local client = connect { url = saying(text), password = PASSWORD, timeout = 0.5 }
      for _ = 1, 2 do
        local _, err = client:call "PING"
        assert.is_nil(tostring(err):find(PASSWORD, 1, true), text)
      end
    end
  end)
end)

describe_if("a client of Sentinels", function()
  after_each(clean)

  local function start_sentinel(master)
    return redis_server.start({
      ("sentinel monitor deposits 127.0.0.1 %d 1"):format(master.port),
      "sentinel down-after-milliseconds deposits 300",
      "sentinel failover-timeout deposits 2000",
    }, { sentinel = true })
  end

  it("finds the master, and the new one after a failover", function()
    local master = redis_server.start()
    local replica = redis_server.start { ("replicaof 127.0.0.1 %d"):format(master.port) }
    local sentinel = start_sentinel(master)
    local client = connect {
      sentinels = { hosts = { "127.0.0.1:1", "127.0.0.1:" .. sentinel.port }, name = "deposits" },
    }
    assert.equal("OK", client:call("SET", "a", "1"))
    local copy = connect(replica.url)
    while copy:call("GET", "a") ~= "1" do
      riskscreen.sleep(0.02)
    end
    -- The Sentinel asks the master every ten seconds who its replicas are.
    local known = connect("redis://127.0.0.1:" .. sentinel.port)
    repeat
      riskscreen.sleep(0.05)
      local replicas = known:call("SENTINEL", "REPLICAS", "deposits")
    until replicas and replicas[1]
    master:kill()
    until_replied(client, "SET", "b", "2")
    assert.equal("1", client:call("GET", "a"))
    assert.matches("tcp_port:" .. replica.port, client:call("INFO", "server"))
  end)

  it("says that no Sentinel knows the master", function()
    local master = redis_server.start()
    local sentinel = start_sentinel(master)
    local client = connect { sentinels = { hosts = { "127.0.0.1:" .. sentinel.port }, name = "other" } }
    local _, err = client:call "PING"
    assert.equal("storage", err.kind)
    assert.matches("knows no master 'other'", err.message)
  end)

  it("refuses a server that a Sentinel names and that is no master", function()
    local master = redis_server.start()
    local replica = redis_server.start { ("replicaof 127.0.0.1 %d"):format(master.port) }
    local port = tostring(replica.port)
    local sentinel = saying(("*2\r\n$9\r\n127.0.0.1\r\n$%d\r\n%s\r\n"):format(#port, port))
    local client = connect { sentinels = { hosts = { (sentinel:gsub("redis://", "")) }, name = "deposits" } }
    local _, err = client:call "PING"
    assert.equal("read_only", err.reason)
  end)

  it("fails where a server names an address that there cannot be", function()
    for _, address in ipairs {
      { "127.0.0.1", "0" },
      { "127.0.0.1", "-1" },
      { "127.0.0.1", "1.5" },
      { "127.0.0.1", "65536" },
      { "127.0.0.1", "99999999999" },
      { "127.0.0.1", "1e300" },
      { "127.0.0.1", "nan" },
      { "", "1" },
      { "127.0.0.1\0x", "1" },
    } do
      local host, port = address[1], address[2]
      local sentinel = saying(("*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n"):format(#host, host, #port, port))
      local node = saying(("-MOVED 1 %s:%s\r\n"):format(host, port))
      for _, client in ipairs {
        connect { sentinels = { hosts = { (sentinel:gsub("redis://", "")) }, name = "deposits" } },
        connect(node),
      } do
        local reply, err = client:call("GET", "a")
        assert.is_nil(reply)
        assert.equal("storage", err.kind)
      end
    end
  end)
end)

describe_if("a client of a Cluster", function()
  local nodes

  setup(function()
    nodes = redis_server.start_cluster()
  end)

  after_each(close_clients)
  teardown(clean)

  it("follows MOVED to the node that has its keys", function()
    local script = riskscreen.redis.script("both", "return redis.call('MSET', KEYS[1], 1, KEYS[2], 2)")
    for _, node in ipairs(nodes) do
      for _, prefix in ipairs { "a", "b", "c" } do -- their slots are on different nodes
        local client = connect { url = node.url, prefix = prefix }
        assert.equal("OK", client:script(script, { client:key "x", client:key "y" }))
        assert.equal("2", client:call("GET", client:key "y"))
        local first = connect { url = node.url, prefix = prefix }
        local replies = first:pipeline { { "GET", first:key "x" }, { "GET", first:key "y" } }
        assert.same({ "1", "2" }, replies)
      end
    end
    local _, err = connect(nodes[1].url):call("MSET", "a", "1", "b", "2")
    assert.equal("moved", err.reason)
    assert.equal("CROSSSLOT", err.code)
  end)

  it("has a store, a queue and a rate limit, whichever node it is given", function()
    local address = "0x" .. ("1"):rep(40)
    for index, node in ipairs(nodes) do
      local function anew()
        return connect { url = node.url, prefix = "p" .. index }
      end
      local store = assert(riskscreen.store.redis { redis = anew() })
      assert.is_true(store:space("things"):put("a", "1"))
      assert.equal(0, assert(riskscreen.queue.new({ redis = anew() }):status()).added)
      local queue = riskscreen.queue.new { redis = anew() }
      assert.equal(1, assert(queue:add("file", { { address = address, network = "eth" } })).added)
      local client =
        riskscreen.sandbox.client { rate_limit = { rate = 1000, burst = 1000, shared = { redis = anew() } } }
      assert.equal(1, riskscreen.queue.new({ redis = anew() }):worker({ client = client }):run { drain = true })
      assert.equal(1, #riskscreen.queue.new({ redis = anew() }):results(nil, 0.1))
      assert.is_false(client:stats().rate_limit.away)
      client:close()
    end
  end)

  it("refuses scripts whole while its slot moves, and goes on when it has moved", function()
    local function row(number)
      return { address = ("0x%040x"):format(number), network = "eth" }
    end
    local redis = connect { url = nodes[1].url, prefix = "moving" }
    local slot = redis:call("CLUSTER", "KEYSLOT", redis:key "")
    local owner = math.floor(slot * 3 / 16384) + 1
    local to = owner % 3 + 1
    local queue = riskscreen.queue.new { redis = redis }
    local store = assert(riskscreen.store.redis { redis = redis })
    local things = store:space "things"
    assert.is_true(things:put("a", "1"))
    -- A job, an input that waits for its outcome, a result, and an empty stream of dead letters.
    assert.equal(3, assert(queue:add("first", { row(1), row(1), { address = "?", network = "eth" } })).added)
    local dead = queue.base .. "dead"
    assert.equal(1, redis:call("XDEL", dead, redis:call("XADD", dead, "*", "id", "x")))

    local client = riskscreen.sandbox.client()
    local second = { row(1), row(2), row(3) }
    local move = redis_server.begin_move(slot, connect(nodes[owner].url), connect(nodes[to].url), nodes[to])
    local results, seen = nil, {}
    for _ = 1, 3 do
      -- The first row is a repeat of one that the old node has, and the key of the second one exists nowhere.
      local totals, err = queue:add("second", second)
      assert.is_nil(totals)
      assert.is_true(err.retryable)
      local put
      put, err = things:put("b", "2")
      assert.is_true(put or err.retryable, tostring(err))
      move.move(3)
    end
    riskscreen.run(function()
      local worker = queue:worker { client = client }
      local worked = riskscreen.spawn(worker.run, worker)
      riskscreen.sleep(0.1)
      assert.equal(0, worker.finished)
      move.finish()
      assert.equal(3, assert(queue:add("second", second)).added)
      repeat
        riskscreen.sleep(0.01)
        results = assert(queue:results())
      until #results == 6
      worker:stop()
      assert(worked:await())
    end)
    for _, result in ipairs(results) do
      seen[result.id] = (seen[result.id] or 0) + 1
    end
    assert.same(
      { ["first/1"] = 1, ["first/2"] = 1, ["first/3"] = 1, ["second/1"] = 1, ["second/2"] = 1, ["second/3"] = 1 },
      seen
    )
    assert.equal(0, redis:call("XLEN", queue.base .. "jobs"))
    assert.equal("1", things:get "a")
    assert.is_true(things:put("b", "2"))
    client:close()
  end)

  it("refuses to keep a queue or a store on a node that evicts keys", function()
    for _, node in ipairs(nodes) do
      node:command "CONFIG SET maxmemory 100mb"
    end
    local slot = connect(nodes[1].url):call("CLUSTER", "KEYSLOT", "{riskscreen}:")
    local owner = nodes[math.floor(slot * 3 / 16384) + 1]
    owner:command "CONFIG SET maxmemory-policy allkeys-lru"
    for _, node in ipairs(nodes) do
      local queue = riskscreen.queue.new { redis = connect(node.url) }
      local _, err = queue:add("file", { { address = "0x" .. ("1"):rep(40), network = "eth" } })
      assert.equal("evicting", err.reason)
      _, err = riskscreen.store.redis { redis = connect(node.url) }
      assert.equal("evicting", err.reason)
    end
  end)
end)
