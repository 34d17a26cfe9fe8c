-- Addresses that workers of a queue screen, with 1, 2 and 4 workers, beside screen_all in one process without a queue.
-- All of them, the service and Redis share this machine, so more workers than cores bring nothing. The memory of Redis
-- is that of a waiting address, a result and a verdict of a gate.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local redis_server = require("spec.support.redis")
local reports = require("support.report")
local riskscreen = require("riskscreen")
local socket = require("socket")

local rounds = reports.rounds(5, 3)
local ADDRESSES = reports.rounds(20000, 6000)
local interpreter = arg[-1] or "lua5.4"

local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
  .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
  .. '"riskSource":"Provider"}]}}'

local function inputs()
  local number = 0
  return function()
    number = number + 1
    return number <= ADDRESSES and { address = ("0x%040x"):format(number), network = "eth" } or nil
  end
end

local function memory_of(redis)
  return tonumber(redis:call("INFO", "memory"):match("used_memory:(%d+)"))
end

local function figures_of(redis)
  local info = redis:call("INFO", "all")
  local commands = tonumber(info:match("total_commands_processed:(%d+)"))
  return tonumber(info:match("used_cpu_user:([%d.]+)")) + tonumber(info:match("used_cpu_sys:([%d.]+)")), commands
end

local function command_of(environment)
  local form = "%s %s bin/riskscreen.in queue work --drain --quiet --results 100000000 --remember 0"
  return form:format(environment, interpreter)
end

-- Wall-clock milliseconds of a worker that finds no job.
local function run_idle(redis, environment)
  redis:call("FLUSHALL")
  local from = socket.gettime()
  os.execute(command_of(environment))
  return (socket.gettime() - from) * 1000
end

-- Wall-clock microseconds of an address, and what Redis has done for it. The time has the workers' start and end.
local function run_workers(redis, queue, environment, workers)
  redis:call("FLUSHALL")
  queue.prepared = false
  local empty = memory_of(redis)
  assert(queue:add("bench", inputs()))
  local waiting = memory_of(redis)
  local cpu, commands = figures_of(redis)
  local command = command_of(environment)
  local from = socket.gettime()
  os.execute("for i in $(seq " .. workers .. "); do " .. command .. " & done; wait")
  local wall = socket.gettime() - from
  local status = assert(queue:status())
  assert(status.done == ADDRESSES and status.dead == 0, "not every address has a result")
  local cpu_after, commands_after = figures_of(redis)
  return {
    wall = wall / ADDRESSES * 1e6,
    redis = (cpu_after - cpu) / ADDRESSES * 1e6,
    commands = (commands_after - commands) / ADDRESSES,
    waiting = (waiting - empty) / ADDRESSES,
    result = (memory_of(redis) - empty) / ADDRESSES,
  }
end

local function run_alone(client)
  local from = socket.gettime()
  for decision in client:screen_all({ source = inputs(), concurrency = 32 }) do
    assert(decision.action == "allow")
  end
  return (socket.gettime() - from) / ADDRESSES * 1e6
end

local function medians(list, field)
  local values = {}
  for index, entry in ipairs(list) do
    values[index] = entry[field]
  end
  return bed.median(values)
end

bed.run(BODY, function(_, port)
  local server = redis_server.start()
  local redis = riskscreen.redis.new({ url = server.url, timeout = 10 })
  local queue = riskscreen.queue.new({ redis = redis, capacity = 1000000 })
  local url, key = "http://127.0.0.1:" .. port, "0123456789abcdef0123456789abcdef"
  local environment = ("XDG_CONFIG_HOME=/nonexistent RISKSCREEN_REDIS_URL=%s RISKSCREEN_BASE_URL=%s "):format(
    server.url,
    url
  ) .. "RISKSCREEN_ACCESS_KEY=" .. key
  local client = riskscreen.new({ base_url = url, access_key = key, concurrency = 32 })
  local alone, idle, by_workers = {}, {}, { {}, {}, {} }
  local counts = { 1, 2, 4 }
  for round = 1, rounds do
    alone[round] = run_alone(client)
    idle[round] = run_idle(redis, environment)
    for index, count in ipairs(counts) do
      by_workers[index][round] = run_workers(redis, queue, environment, count)
    end
  end
  client:close()
  redis:close()
  server:stop()

  local report = reports.new({
    name = "queue",
    title = "A queue of addresses in Redis",
    method = ("medians of %d interleaved rounds of %d addresses; service, Redis and workers on this machine"):format(
      rounds,
      ADDRESSES
    ),
    peers = { "redis-server" },
  })
  local rows = { { what = "screen_all in one process, without a queue", value = bed.median(alone) } }
  for index, count in ipairs(counts) do
    local what = ("a queue with %d worker%s"):format(count, count == 1 and "" or "s")
    rows[index + 1] = { what = what, value = medians(by_workers[index], "wall"), ours = true }
  end
  report:chart({ title = "Time for an address", unit = "us", rows = rows })
  report:chart({
    title = "A worker that finds no job",
    unit = "ms",
    rows = { { what = "start and end of the process", value = bed.median(idle), ours = true } },
  })
  report:chart({
    title = "What Redis does for an address, one worker",
    unit = "us CPU",
    columns = { "commands" },
    rows = {
      {
        what = "from the start of the worker",
        value = medians(by_workers[1], "redis"),
        ours = true,
        others = { medians(by_workers[1], "commands") },
      },
    },
  })
  report:chart({
    title = "Memory of Redis",
    unit = "bytes",
    rows = {
      { what = "an address that waits", value = medians(by_workers[1], "waiting"), ours = true },
      { what = "a result that nobody has read", value = medians(by_workers[1], "result"), ours = true },
    },
  })
  report:goal({
    what = "time for an address, one worker / screen_all without a queue",
    value = medians(by_workers[1], "wall") / bed.median(alone),
    at_most = 1.5,
  })
  report:finish()
end)
