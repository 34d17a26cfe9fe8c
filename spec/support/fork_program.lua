-- A program that forks, and whose parent and child both use what was made before; see fork_spec.lua. Its arguments: the
-- way, the URL of the service, how the child ends, and the URL of Redis. It prints "done" if everything was right.
local fork = require "spec.support.fork"
local json = require "riskscreen.json"
local now = require("socket").gettime
local random = require "riskscreen.util.random"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local way, url, ending, redis_url = arg[1], arg[2], arg[3], arg[4]
local ROUNDS = 20

local client = riskscreen.new { base_url = url, access_key = "test-key", retry = false, timeout = 20 }

-- Every answer names its request.
local function ask(target)
  local value, err = client:request("GET", target)
  assert(value and value.target == target, value and value.target or tostring(err))
end

local function ask_many(name)
  for round = 1, ROUNDS do
    ask(("/%s/%d"):format(name, round))
  end
end

local function finish()
  collectgarbage()
  if ending == "plain" then
    os.exit(0)
  elseif ending == "closing" then
    os.exit(0, true)
  end
  error "an ending"
end

-- Runs the child's part in a child, and the parent's beside it and after it.
local function with_child(child, parent)
  local pid = fork.fork()
  if pid == 0 then
    child()
    finish()
  end
  parent()
  assert(fork.wait(pid) == 0, "the child failed")
  parent()
end

local ways = {}

function ways.blocking()
  ask "/parent/0"
  with_child(function()
    ask_many "child"
  end, function()
    ask_many "parent"
  end)
end

-- Nothing is used in the child.
function ways.idle()
  ask "/parent/0"
  with_child(function() end, function()
    ask_many "parent"
  end)
end

ways["in tasks"] = function()
  riskscreen.run(function()
    ask "/parent/0"
    local held = riskscreen.spawn(ask, "/held")
    riskscreen.sleep(0.01)
    with_child(function()
      riskscreen.gather {
        function()
          ask_many "child"
        end,
        function()
          riskscreen.sleep(0.001)
          ask_many "child"
        end,
      }
    end, function()
      ask_many "parent"
    end)
    ask "/release"
    held:await()
  end)
end

-- The child begins with a wait, and with a task.
ways["with timers"] = function()
  ask "/parent/0"
  with_child(function()
    riskscreen.sleep(0.001)
    riskscreen.run(function()
      riskscreen.sleep(0.001)
      ask_many "child"
    end)
  end, function()
    riskscreen.sleep(0.001)
    ask_many "parent"
  end)
end

ways["with Redis"] = function()
  local redis = riskscreen.redis.new(redis_url)
  local function echo(name)
    for round = 1, ROUNDS do
      local text = ("%s %d"):format(name, round)
      local reply, err = redis:call("ECHO", text)
      assert(reply == text, reply or tostring(err))
    end
  end
  local function id()
    return assert(redis:call("CLIENT", "ID"))
  end
  local first = id()
  with_child(function()
    echo "child"
    assert(id() ~= first, "the child has the parent's connection")
  end, function()
    echo "parent"
    assert(id() == first, "the parent has lost its connection")
  end)
end

-- The lock stays the parent's, whatever the child does: it changes something, releases the lock and closes the store.
ways["with a lock in Redis"] = function()
  local store = assert(riskscreen.store.redis { redis = redis_url, name = "locks" })
  local release = assert(store:lock "run")
  local redis = riskscreen.redis.new(redis_url)
  local key = redis:key "locks:1:lock:run"
  local token = assert(redis:call("GET", key))
  with_child(function()
    assert(redis:call("PEXPIRE", key, 5000))
    assert(store:space("a"):put("child", "child"))
    assert(redis:call("PTTL", key) <= 5000, "the child renews the parent's lock")
    local _, err = store:lock "run"
    assert(err.reason == "locked")
    assert(store:lock "child")
    release()
    store:close()
  end, function() end)
  assert(redis:call("GET", key) == token, "the child has released the parent's lock")
  assert(store:lock "child", "the child has released its own lock")
  assert(store:space("a"):put("parent", "parent"))
  release()
  assert(redis:call("EXISTS", key) == 0)
end

-- The tokens that the parent was granted, and those that it gives back, are not the child's as well.
ways["with a shared rate limit"] = function()
  local limited = riskscreen.new {
    base_url = url,
    access_key = "test-key",
    account = "a",
    retry = false,
    timeout = 20,
    rate_limit = { rate = 100, burst = 100, daily = 40, shared = { redis = riskscreen.redis.new(redis_url) } },
  }
  local function left()
    return limited:stats().rate_limit
  end
  repeat
    assert(limited:request("GET", "/parent/0"))
  until left().tokens >= 2
  with_child(function()
    assert(left().tokens == 0, "the child has the parent's tokens")
    assert(limited:request("GET", "/child/0"))
  end, function()
    assert(left().tokens >= 2, "the parent has lost its tokens")
  end)
end

local function kyt_client(more)
  local options =
    { identity = "fork", account = "a", access_key = "test-key", retry = false, polling = { first = 0.001 } }
  for name, value in pairs(more) do
    options[name] = value
  end
  return riskscreen.new(options)
end

local function result_of(id)
  return { requestId = id, status = 1003, maxScore = "1.00", dirData = {} }
end

-- Each process has waits of its own before it repeats a request.
ways["with jitter"] = function()
  local jitter = random.jitter()
  jitter()
  local path = os.tmpname()
  with_child(function()
    local file = assert(io.open(path, "w"))
    file:write(("%.17g"):format(jitter()))
    file:close()
  end, function() end)
  local file = assert(io.open(path))
  local others = file:read "*a"
  file:close()
  os.remove(path)
  assert(others ~= "" and others ~= ("%.17g"):format(jitter()), "the child has the parent's jitter")
end

-- The child asks for a result itself, also where a task of the parent has asked and waits for the answer.
ways["with a poll"] = function()
  local parent_asks = true
  local awaiting = kyt_client {
    endpoints = { kyt_result = { method = "GET", path = "/results" } },
    transport = function()
      if parent_asks then
        riskscreen.sleep(30)
      end
      return recorder.reply(200, { success = true, code = 1, data = result_of "r1" })
    end,
  }
  local waiting = riskscreen.spawn(awaiting.kyt.await, awaiting.kyt, "r1", { timeout = 30 })
  riskscreen.sleep(0.05)
  parent_asks = false
  with_child(function()
    local started = now()
    assert(awaiting.kyt:await("r1", { timeout = 20 }))
    assert(now() - started < 10, "the child waits for the parent's poll")
  end, function() end)
  waiting:cancel()
end

-- The child looks for events itself, also where a task of the parent looks for them.
ways["with an inbox in Redis"] = function()
  local function open()
    local store = assert(riskscreen.store.redis { redis = redis_url, name = "inbox" .. ending })
    return riskscreen.webhook.inbox { accept_unauthenticated = true, store = store, account = "a" }
  end
  local awaiting = kyt_client { inbox = open(), transport = error }
  local waiting = riskscreen.spawn(awaiting.kyt.await, awaiting.kyt, "r1", { timeout = 30 })
  riskscreen.sleep(0.05)
  local has_delivered = false
  with_child(function()
    assert(awaiting.kyt:await("r2", { timeout = 20 }))
  end, function()
    if not has_delivered then
      has_delivered = true
      riskscreen.sleep(0.3)
      local body = json.encode {
        webhookId = "w1",
        eventType = "getTxHashCustomRiskScore",
        timestamp = "2026-01-01 00:00:00",
        data = result_of "r2",
      }
      assert(open():deliver("POST", {}, body) == 200)
    end
  end)
  waiting:cancel()
end

-- Each line is written once, and has an id of its own.
ways["with a journal"] = function()
  local path = os.tmpname()
  local journal = assert(riskscreen.journal.file(path, { buffer = 100 }))
  local decision = riskscreen.policy():decide {}
  assert(journal:append(decision))
  with_child(function()
    assert(journal:append(decision))
    assert(journal:close())
  end, function() end)
  assert(journal:append(decision))
  assert(journal:close())
  local ids, count = {}, 0
  for entry in riskscreen.journal.entries(path) do
    ids[entry.id], count = true, count + 1
  end
  os.remove(path)
  os.remove(path .. ".head")
  local different = 0
  for _ in pairs(ids) do
    different = different + 1
  end
  assert(count == 3 and different == 3, ("%d lines with %d ids"):format(count, different))
end

-- A task of the parent waits for tokens of the rate limit. Its place is first in the queue.
ways["with a queue"] = function()
  local limited = riskscreen.new {
    base_url = url,
    access_key = "test-key",
    retry = false,
    timeout = 20,
    rate_limit = { rate = 20, burst = 1 },
  }
  local function ask_limited(target)
    local value, err = limited:request("GET", target)
    assert(value and value.target == target, value and value.target or tostring(err))
  end
  ask_limited "/parent/0"
  local first
  riskscreen.run(function()
    first = riskscreen.spawn(ask_limited, "/parent/1")
    riskscreen.sleep(0)
    with_child(function()
      ask_limited "/child/0"
    end, function() end)
    first:await()
  end)
end

-- A task of the parent connects to Redis, for all that ask.
ways["with a connection to come"] = function()
  local listener = assert(require("socket").bind("127.0.0.1", 0))
  local address = ("redis://:password@127.0.0.1:%d"):format(select(2, listener:getsockname()))
  local redis = riskscreen.redis.new { url = address, timeout = 0.5 }
  riskscreen.run(function()
    local first = riskscreen.spawn(redis.call, redis, "PING")
    riskscreen.sleep(0)
    with_child(function()
      local _, err = redis:call("PING")
      assert(err, "nobody replies")
    end, function() end)
    first:await()
  end)
end

ways["with a server"] = function()
  local served = assert(riskscreen.sandbox.serve {})
  local address = riskscreen.sandbox.scenario("clean-eth").address
  local asking = riskscreen.new { base_url = served.url, access_key = served.access_key, retry = false, timeout = 20 }
  local function risk()
    assert(asking.kya:risk { address = address, network = "eth" })
  end
  risk()
  with_child(function()
    ask_many "child"
    served:close()
  end, risk)
end

-- A request that waits for its reply while the process forks. Only the parent may reply.
ways["with a request"] = function()
  local server = assert(require("riskscreen.server").new {})
  local connection = require("socket").connect("127.0.0.1", server:port())
  connection:send "GET / HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n"
  local request
  repeat
    server:step(0.01)
    request = server:next()
  until request
  with_child(function()
    request:respond(200, {}, "child")
    assert(not pcall(server.step, server, 0), "the child steps the server")
    server:close()
  end, function() end)
  request:respond(200, {}, "parent")
  connection:settimeout(0)
  local text = ""
  repeat
    server:step(0.01)
    local whole, reason, partial = connection:receive "*a"
    text = text .. (whole or partial)
  until whole or reason == "closed"
  assert(text:find "parent$" and not text:find "child", text)
end

ways[way]()
print "done"
