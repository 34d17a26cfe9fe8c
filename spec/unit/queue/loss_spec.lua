-- A queue whose Redis is emptied, refuses single commands or has keys of other types: `done` twice, lost jobs, poison.
local fields_of = require("riskscreen.redis").fields
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local scripts = require "riskscreen.queue.scripts"
local tables = require "riskscreen.util.tables"

local describe_if = redis_server.is_installed() and describe or pending
local unpack = table.unpack or unpack -- luacheck: ignore 113 143

-- The commands that change a queue in its scripts.
local WRITES = { "xadd", "xack", "xdel", "set", "del", "rpush", "ltrim", "hset", "hincrby", "incrby", "expire" }

local function inputs_of(first, last, distinct)
  local list = {}
  for number = first, last do
    list[#list + 1] = { address = ("0x%040x"):format(number % (distinct or 1000)), network = "eth" }
  end
  return list
end

describe_if("a queue in a Redis that gives trouble", function()
  local server, redis, limited, queue, client, service

  setup(function()
    server = redis_server.start()
  end)

  teardown(redis_server.stop_all)

  before_each(function()
    server:command "FLUSHALL"
    server:command "ACL SETUSER limited on >secret ~* +@all"
    redis = riskscreen.redis.new(server.url)
    limited = riskscreen.redis.new { url = server.url, username = "limited", password = "secret" }
    queue = riskscreen.queue.new { redis = limited, claim_after = 1, deliveries = 2 }
    client, service = riskscreen.sandbox.client { retry = false }
  end)

  after_each(function()
    redis:close()
    limited:close()
    client:close()
  end)

  local function key(name)
    return redis:key("queue:default:" .. name)
  end

  -- All that the queue has, without the state of its group.
  local function content()
    local found = {}
    local readers = {
      string = { "GET" },
      hash = { "HGETALL" },
      list = { "LRANGE", 0, -1 },
      stream = { "XRANGE", "-", "+" },
      set = { "SMEMBERS" },
    }
    for _, name in ipairs(redis:call("KEYS", "*")) do
      local kind = redis:call("TYPE", name)
      local command = readers[kind]
      found[name] = redis:call(command[1], name, unpack(command, 2))
      found[name] = kind == "hash" and fields_of(found[name]) or found[name]
    end
    return found
  end

  local function work(more)
    return queue:worker(tables.merge({ client = client, concurrency = 4 }, more)):run { drain = true }
  end

  -- The number of results, and of their different ids.
  local function count_results()
    local seen, count, after = {}, 0, nil
    while true do
      local list = assert(queue:results(after))
      for _, result in ipairs(list) do
        seen[result.id], count, after = true, count + 1, result.position
      end
      if not list[1] then
        return count, #tables.sorted_keys(seen)
      end
    end
  end

  -- A queue in which each script has something to do: jobs, followers, results and dead letters.
  local function fill()
    assert(queue:add("dead", inputs_of(1, 2, 1)))
    service:fault { kind = "invalid-json", count = 1 }
    assert.equal(0, work())
    service:clear_faults()
    assert(queue:add("done", inputs_of(11, 14)))
    assert.equal(4, work())
    assert(queue:add("jobs", inputs_of(21, 29, 24)))
  end

  -- Calls of each script.
  local uses = {
    add = function()
      return queue:add("more", tables.concat(inputs_of(31, 34, 33), { {} }))
    end,
    done = function()
      return work()
    end,
    requeue = function()
      return queue:requeue()
    end,
    remove = function()
      local list, err = queue:results()
      if list then
        return queue:forget(list)
      end
      return nil, err
    end,
  }

  for name, use in pairs(uses) do
    it("changes nothing by the script '" .. name .. "' when the ACL refuses one of its commands", function()
      for _, command in ipairs(WRITES) do
        server:command "FLUSHALL"
        fill()
        local before = content()
        server:command("ACL SETUSER limited -" .. command)
        local done, err = use()
        server:command("ACL SETUSER limited +" .. command)
        assert.is_nil(done, command)
        assert.same({ "auth", false }, { err.reason, err.retryable })
        assert.same(before, content(), command)
      end
      assert.is_truthy(use())
    end)

    it("changes nothing by the script '" .. name .. "' where a key is of another type", function()
      server:command "FLUSHALL"
      fill()
      local subject = "seen:eth:" .. ("0x%040x"):format(21)
      assert.equal("*", redis:call("GET", key(subject)))
      local names = { "results", "dead", "counts" }
      if name == "add" then
        names[#names + 1], names[#names + 2] = "sources", "seen:eth:" .. ("0x%040x"):format(31)
      elseif name == "done" then
        names[#names + 1], names[#names + 2] = "rate", (subject:gsub("seen", "followers"))
      end
      local minute = math.floor(tonumber(redis:call("TIME")[1]) / 60)
      for _, other in ipairs(names) do
        -- The test may run into the next minute.
        local keys = other ~= "rate" and { other } or { ("rate:%.0f"):format(minute), ("rate:%.0f"):format(minute + 1) }
        local had_key = redis:call("EXISTS", key(keys[1])) == 1
        if had_key then
          redis:call("RENAME", key(keys[1]), "saved")
        end
        for _, changed in ipairs(keys) do
          redis:call("SADD", key(changed), "foreign")
        end
        local before = content()
        local done, err = use()
        assert.is_nil(done, other)
        assert.equal("wrong_type", err.reason, other)
        assert.same(before, content(), other)
        for _, changed in ipairs(keys) do
          redis:call("DEL", key(changed))
        end
        if had_key then
          redis:call("RENAME", "saved", key(keys[1]))
        end
      end
      assert.is_truthy(use())
    end)
  end

  it("has each result in a Redis that cannot tell rights, whatever command it refuses", function()
    local before = {}
    for name, script in pairs(scripts) do
      before[name] = script.text
      script.text, script.sha = script.text:gsub("redis%.acl_check_cmd", "redis.before_7"), nil
    end
    finally(function()
      for name, script in pairs(scripts) do
        script.text, script.sha = before[name], nil
      end
    end)
    for _, command in ipairs(WRITES) do
      server:command "FLUSHALL"
      local rows = inputs_of(1, 12, 5)
      server:command("ACL SETUSER limited -" .. command)
      queue:add("file", rows)
      server:command("ACL SETUSER limited +" .. command)
      assert(queue:add("file", rows))
      server:command("ACL SETUSER limited -" .. command)
      work()
      server:command("ACL SETUSER limited +" .. command)
      assert(work())
      local count, different = count_results()
      assert.equal(12, different, command)
      assert.is_true(count >= 12)
      assert.same({}, queue:dead(), command)
    end
  end)

  it("finishes a job once where two workers end it, also after the group is gone", function()
    for _, lose in ipairs { "PING", "XGROUP DESTROY " .. key "jobs" .. " workers" } do
      server:command "FLUSHALL"
      assert(queue:add("file", inputs_of(1, 2)))
      local second
      -- The first one does not tell for a while that it works.
      local first = riskscreen.queue.new({ redis = redis, claim_after = 60 }):worker {
        client = client,
        concurrency = 1,
        on_result = function()
          if not second then
            server:command(lose)
            second = queue:worker { client = client }
            assert(second:run { drain = true })
          end
        end,
      }
      assert(first:run { drain = true })
      assert.equal(2, first.finished + second.finished)
      assert.equal(2, (count_results()))
    end
  end)

  it("gives each input one result when Redis is emptied while a worker has jobs, and all is added again", function()
    local rows, has_lost = inputs_of(1, 300), false
    assert(queue:add("file", rows))
    assert(work {
      on_result = function()
        if not has_lost then
          has_lost = true
          server:command "FLUSHALL"
          assert.equal(300, assert(queue:add("file", rows)).added)
        end
      end,
    })
    local count, different = count_results()
    assert.same({ 300, 300 }, { count, different })
  end)

  it("gives a job no result of another one that has its position since", function()
    assert(queue:add("old", inputs_of(1, 1)))
    local position
    assert(work {
      on_result = function(result)
        if result.id == "old/1" then
          position = redis:call("XRANGE", key "jobs", "-", "+")[1][1]
          server:command "FLUSHALL"
          local item = '{"address":"' .. inputs_of(2, 2)[1].address .. '","network":"eth"}'
          redis:call("XADD", key "jobs", position, "id", "new/1", "key", "", "item", item, "kept", "")
        end
      end,
    })
    local list = assert(queue:results())
    assert.same({ 1, "new/1", inputs_of(2, 2)[1].address }, { #list, list[1].id, list[1].input.address })
  end)

  it("adds all again when Redis loses rows while they are added", function()
    queue = riskscreen.queue.new { redis = limited, capacity = 400 }
    local rows, has_lost = inputs_of(1, 900), false
    riskscreen.run(function()
      local worker = queue:worker { client = client, concurrency = 4 }
      local adding = riskscreen.spawn(function()
        return assert(queue:add("file", rows, function(totals)
          if not has_lost and totals.rows == 500 then
            has_lost = true
            server:command "FLUSHALL"
          end
        end))
      end)
      local working = riskscreen.spawn(worker.run, worker)
      assert.same({ rows = 900, added = 900, invalid = 0 }, adding:await())
      while assert(queue:status()).done < 900 do
        riskscreen.sleep(0.01)
      end
      worker:stop()
      working:await()
    end)
    assert.same({ 900, 900 }, { count_results() })
  end)

  it("says that rows are lost where the producer cannot begin again", function()
    local rows, index = inputs_of(1, 900), 0
    local totals, err = queue:add("file", function()
      index = index + 1
      if index == 700 then
        server:command "FLUSHALL"
      end
      return rows[index]
    end)
    assert.is_nil(totals)
    assert.same({ "lost", true }, { err.reason, err.retryable })
    assert.matches("has lost rows of the run 'file'", err.message, 1, true)
    assert.equal(900, queue:add("file", rows).added)
  end)

  it("counts no worker as dead that stops in good order with the job in its hands", function()
    service:fault { kind = "status", status = 503 }
    assert(queue:add("file", inputs_of(1, 1)))
    for _ = 1, 5 do
      riskscreen.run(function()
        local worker
        worker = queue:worker {
          client = client,
          on_problem = function()
            worker:stop()
          end,
        }
        assert.equal(0, worker:run())
      end)
    end
    service:clear_faults()
    assert.equal(1, work())
    assert.same({}, queue:dead())
  end)

  it("counts no worker as dead that ends because the key is wrong, and buries after real deaths", function()
    service:fault { kind = "status", status = 401 }
    assert(queue:add("file", inputs_of(1, 1)))
    for _ = 1, 4 do
      assert.is_nil((work()))
    end
    service:clear_faults()
    for death = 1, 2 do
      local reply
      repeat
        reply = redis:call("XAUTOCLAIM", key "jobs", "workers", "dead " .. death, 0, "0-0")
      until reply[2][1]
    end
    assert.equal(0, work())
    assert.matches("2 workers had the job", queue:dead()[1].reason)
  end)
end)

describe_if("a queue that fails over to a replica without the last changes", function()
  teardown(redis_server.stop_all)

  it("gives each input one result: lost rows are added again, lost results are made again", function()
    local group = redis_server.start_group(1, { "appendonly no" })
    local redis = riskscreen.redis.new { sentinels = group.sentinels }
    local queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    local client = riskscreen.sandbox.client {}
    local rows, seen, count = inputs_of(1, 300, 700), {}, 0
    local function collect()
      for _, result in ipairs(assert(queue:results())) do
        seen[result.id], count = (seen[result.id] or 0) + 1, count + 1
        assert(queue:forget { result })
      end
    end
    assert(queue:add("file", { unpack(rows, 1, 100) }))
    assert(queue:worker({ client = client }):run { drain = true })
    group.replicas[1]:wait_until_same(group.master)
    group.replicas[1]:signal "STOP"
    group.master:command "CLIENT KILL TYPE replica"
    collect()
    assert(queue:add("file", { unpack(rows, 1, 200) }))
    assert(queue:worker({ client = client }):run { drain = true })
    collect()
    assert.equal(200, count)
    group.master:kill()
    group.replicas[1]:signal "CONT"
    group:begin_failover()
    group:wait_for_failover()
    local totals, err
    repeat
      totals, err = queue:add("file", rows)
      assert.is_true(totals ~= nil or err.retryable, tostring(err))
    until totals
    assert.equal(200, totals.added)
    assert(queue:worker({ client = client }):run { drain = true })
    collect()
    for number = 1, 300 do
      assert.is_truthy(seen["file/" .. number])
    end
    assert.same({}, queue:dead())
    client:close()
    redis:close()
  end)
end)
