-- A queue whose Redis is killed, or replaced by a replica under a Sentinel.
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local statuses = require "riskscreen.cli.status"

local describe_if = redis_server.is_installed() and describe or pending

local ROWS = 600

local function inputs()
  local list = {}
  for number = 1, ROWS do
    list[number] = { address = ("0x%040x"):format(number), network = "eth" }
  end
  return list
end

-- Repeats a call until it succeeds, as callers do after a failure that is retryable.
local function until_done(call)
  while true do
    local result, err = call()
    if result then
      return result
    end
    assert.is_true(err.retryable, tostring(err))
    riskscreen.sleep(0.05)
  end
end

describe_if("a queue whose Redis is killed in the middle of a run", function()
  after_each(redis_server.stop_all)

  -- Adds all rows, and again after the kill. Returns the results by id.
  local function run(server)
    local redis = riskscreen.redis.new { url = server.url }
    local queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    local client = riskscreen.sandbox.client()
    local added = assert(queue:add("file", inputs())).added
    assert.equal(ROWS, added)
    local again
    riskscreen.run(function()
      local worker = queue:worker { client = client, concurrency = 4 }
      local worked = riskscreen.spawn(worker.run, worker)
      while worker.finished < ROWS / 10 do
        riskscreen.sleep(0)
      end
      server:kill()
      server:start()
      again = until_done(function()
        return queue:add("file", inputs())
      end)
      while until_done(function()
        return queue:status()
      end).done < ROWS do
        riskscreen.sleep(0.01)
      end
      worker:stop()
      assert(worked:await())
    end)
    local by_id, after, count = {}, nil, 0
    repeat
      local results = assert(queue:results(after))
      for _, result in ipairs(results) do
        assert.is_nil(by_id[result.id])
        by_id[result.id], count, after = result, count + 1, result.position
      end
    until not results[1]
    redis:close()
    client:close()
    return count, again
  end

  it("loses nothing with appendfsync always", function()
    local count, again = run(redis_server.start { "appendonly yes", "appendfsync always" })
    assert.equal(ROWS, count)
    assert.equal(0, again.added)
  end)

  it("loses all without a file, and begins anew when all is added again", function()
    local count, again = run(redis_server.start())
    assert.equal(ROWS, count)
    assert.equal(ROWS, again.added)
  end)
end)

describe_if("a queue whose Redis is replaced by a replica", function()
  local group, redis

  local function start(replicas)
    group = redis_server.start_group(replicas, { "appendonly no" })
    redis = riskscreen.redis.new { sentinels = group.sentinels }
  end

  after_each(function()
    redis:close()
    redis_server.stop_all()
  end)

  it("gives every input exactly one result to a reader that waits for replicas", function()
    start(2)
    local queue = riskscreen.queue.new { redis = redis, replicas = 2, claim_after = 1 }
    local client = riskscreen.sandbox.client()
    local seen, count, after, has_failed = {}, 0, nil, false
    riskscreen.run(function()
      local worker = queue:worker { client = client, concurrency = 4 }
      local worked = riskscreen.spawn(worker.run, worker)
      local producer = riskscreen.spawn(until_done, function()
        return queue:add("file", inputs())
      end)
      while count < ROWS do
        local results, err = queue:results(after, 0.1)
        assert.is_true(results ~= nil or err.retryable, tostring(err))
        for _, result in ipairs(results or {}) do
          assert.is_nil(seen[result.id], "a second result of " .. result.id)
          seen[result.id], count, after = result.action, count + 1, result.position
        end
        if not has_failed and count > ROWS / 10 then
          has_failed = true
          group:begin_failover()
        elseif not group.master.pid and group:promoted() then
          group:bring_back(group:promoted())
        end
      end
      producer:await()
      worker:stop()
      assert(worked:await())
    end)
    assert.same({}, queue:results(after))
    for number, input in ipairs(inputs()) do
      assert.equal(client:screen(input).action, seen["file/" .. number])
    end
    client:close()
  end)

  it("loses what the replica has not received: `add` gives it again, and with `replicas` tells", function()
    start(1)
    local queue = riskscreen.queue.new { redis = redis }
    local careful = riskscreen.queue.new { redis = redis, replicas = 1 }
    assert.equal(ROWS, careful:add("first", inputs()).added)
    local replica = group.replicas[1]
    replica:signal "STOP"
    group.master:command "CLIENT KILL TYPE replica"
    assert.equal(ROWS, queue:add("second", inputs()).added)
    local added, err = careful:add("third", inputs())
    assert.is_nil(added)
    assert.is_true(err.retryable)
    assert.matches("too few replicas have the last changes (0, not 1)", err.message, 1, true)
    queue:worker({ client = riskscreen.sandbox.client() }):run { drain = true }
    assert.is_true(#queue:results() > 0)
    local results
    results, err = careful:results()
    assert.is_nil(results)
    assert.matches("too few replicas have the last changes (0, not 1)", err.message, 1, true)

    group.master:kill()
    replica:signal "CONT"
    group:begin_failover()
    group:wait_for_failover()
    local status = until_done(function()
      return queue:status()
    end)
    assert.equal(ROWS, status.added)
    assert.equal(0, status.done)
    assert.equal(0, queue:add("first", inputs()).added)
    assert.equal(ROWS, queue:add("second", inputs()).added)
  end)

  it("is found again by the command, whose workers go on", function()
    start(1)
    local directory, remove = cli.directory()
    local output = directory .. "/output.csv"
    local file = assert(io.open(directory .. "/input.csv", "w"))
    file:write "address,network\n"
    for _, input in ipairs(inputs()) do
      file:write(input.address, ",", input.network, "\n")
    end
    file:close()
    local flags = ("--sentinel 127.0.0.1:1 --sentinel %s --master deposits"):format(group.sentinels.hosts[1])
    local function command(verb)
      return ("env XDG_CONFIG_HOME=/nonexistent %s --sandbox queue %s %s"):format(cli.command, verb, flags)
    end
    local worker = assert(io.popen(command "work" .. " 2>/dev/null & echo $!; wait"))
    local process = worker:read "*l"
    finally(function()
      os.execute("kill " .. process)
      worker:close()
      remove()
    end)
    local text, status = command_line.run(command("add --replicas 1 " .. directory .. "/input.csv"))
    assert.equal(0, status, text)
    group:begin_failover()
    group:wait_for_failover()
    local count = 0
    while count < ROWS do
      text, status = command_line.run(command("results -o " .. output))
      -- The Sentinel may still name the old master.
      assert.is_true(status == 0 or status == statuses.unknown, text)
      if status == 0 then
        count = -1 -- for the header
        for _ in io.lines(output) do
          count = count + 1
        end
      end
    end
    assert.matches('"done":600', (command_line.run(command "status --json")))
  end)
end)
