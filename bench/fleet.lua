-- The gate's third tier beside a bare GET by lua-resty-redis, a hit in the dict and a fetch. Also the gate while Redis
-- is paused. nginx with one worker, redis-server, and wrk with 64 connections. The figures are the CPU time of nginx's
-- worker for a request, and the 99th percentile of latency. They are medians of interleaved rounds; a ratio is the
-- median of the rounds' ratios. Needs nginx with its Lua module, lua-resty-redis, redis-server, wrk and LuaSocket.

local median = require("bed").median
local redis = require("spec.support.redis")
local reports = require("support.report")
local servers = require("nginx.servers")
local wrk = require("nginx.wrk")

local rounds = reports.rounds(9, 3)
local MANY = 5000 -- addresses
local MOST_MISSES = 0.01 -- of the requests of a row that is called a hit
local LONGEST_WARMING = 10 -- rounds
local TRIES = 5 -- of a round on a busy machine, where Redis or nginx answered too late

-- The gate `shared` looks into its dict and never finds anything there, so that its verdicts come from Redis.
local HTTP = [[
  lua_socket_log_errors off;
  lua_shared_dict shared 64m;
  lua_shared_dict large 64m;
  lua_shared_dict alone 64m;
  init_by_lua_block {
    local function new_gate(dict, redis)
      return require("riskscreen.nginx.gate").new {
        client = {
          base_url = "http://127.0.0.1:BEHIND",
          access_key = "0123456789abcdef0123456789abcdef",
          account = "bench",
          concurrency = 128,
        },
        dict = dict, lru = 0, on_unknown = "block", redis = redis,
        address = { argument = "address" }, network = { argument = "network" },
      }
    end
    local function fleet(deadline)
      return { url = "REDISURL", key = "a secret of the fleet's gates", deadline = deadline, purge_delay = 600 }
    end
    shared, large, alone = new_gate("shared", fleet(1)), new_gate("large", fleet()), new_gate("alone")
    for _, cache in pairs(shared.context.caches) do
      local dict, get = cache.dict, cache.dict.get
      dict.get = function(_, key) get(dict, key) end
    end
    local found, library = pcall(require, "resty.redis")
    library = found and library or require "nginx.redis"
    -- The text is as long as a verdict.
    local text = ("x"):rep(240)
    function bare_get()
      local client = library:new()
      client:set_timeout(1000)
      assert(client:connect("127.0.0.1", REDISPORT))
      local key = "bare:" .. ngx.var.arg_network .. ":" .. ngx.var.arg_address
      local value = assert(client:get(key))
      if value == ngx.null then
        assert(client:set(key, text))
      end
      client:set_keepalive(60000, 128)
    end
  }
  init_worker_by_lua_block { shared:start() large:start() }
]]

local SERVER = [[
    location = /nothing { access_by_lua_block { return } empty_gif; }
    location = /bare { access_by_lua_block { bare_get() } empty_gif; }
    location = /shared { access_by_lua_block { shared:enforce() } empty_gif; }
    location = /large { access_by_lua_block { large:enforce() } empty_gif; }
    location = /from_redis { content_by_lua_block { ngx.print(shared.recorder:snapshot().lookups.redis.hit) } }
    location = /alone { access_by_lua_block { alone:enforce() } empty_gif; }
]]

---@class riskscreen.bench.FleetRow
---@field name string for goals
---@field what string
---@field path string
---@field different? integer addresses in turn; without it each request has a new one
---@field calls integer requests to the service for each
---@field from_redis? boolean every decision
---@field ours? boolean
---@field is_paused? boolean Redis stands still meanwhile

---@type riskscreen.bench.FleetRow[]
local rows = {
  { name = "nothing", what = "an access phase that does nothing", path = "/nothing", different = MANY, calls = 0 },
  { name = "bare", what = "a bare GET by lua-resty-redis", path = "/bare", different = MANY, calls = 0 },
  {
    name = "redis",
    what = "the gate, from Redis",
    path = "/shared",
    different = MANY,
    calls = 0,
    from_redis = true,
    ours = true,
  },
  { name = "dict", what = "the gate, from the shared dict", path = "/large", different = MANY, calls = 0, ours = true },
  { name = "miss", what = "the gate, a new address", path = "/large", calls = 1, ours = true },
  { name = "alone", what = "the gate without Redis, a new address", path = "/alone", calls = 1, ours = true },
  {
    name = "paused dict",
    what = "Redis paused: from the shared dict",
    path = "/large",
    different = MANY,
    calls = 0,
    ours = true,
    is_paused = true,
  },
  {
    name = "paused miss",
    what = "Redis paused: a new address",
    path = "/large",
    calls = 1,
    ours = true,
    is_paused = true,
  },
}

local goals = {
  { what = "a hit in Redis / a bare GET, CPU", row = "redis", peer = "bare", field = "cpu", at_most = 1.3 },
  { what = "a hit in Redis / a bare GET, p99", row = "redis", peer = "bare", field = "p99", at_most = 1.3 },
  { what = "a hit in Redis / a fetch without Redis, CPU", row = "redis", peer = "alone", field = "cpu", at_most = 0.5 },
  { what = "Redis paused, from the dict, p99", row = "paused dict", peer = "dict", field = "p99", at_most = 1.2 },
  { what = "Redis paused, a new address, CPU", row = "paused miss", peer = "alone", field = "cpu", at_most = 1.2 },
}

local PAUSED_P99_AT_MOST = 25 -- ms: the deadline of 20 ms, and a fetch

-- Measures one round of a row.
local function measure(running, server, row)
  local looked_up, from_redis = running:looked_up(), tonumber(running:page("/from_redis"))
  local ran = running:cpu()
  if row.is_paused then
    server:signal("STOP")
  end
  local result = wrk.run(running.url, row.path, row.different, 1, servers.can_pin)
  server:signal("CONT")
  local cpu = running:cpu() - ran
  assert(result.refused + result.failed == 0, row.what .. ": requests failed")
  local off = math.abs(running:looked_up() - looked_up - 1 - row.calls * result.requests)
  local most_off = wrk.CONNECTIONS * (1 + row.calls) + MOST_MISSES * result.requests
  from_redis = tonumber(running:page("/from_redis")) - from_redis
  return {
    is_right = off <= most_off and (not row.from_redis or math.abs(from_redis - result.requests) <= most_off),
    rate = result.requests / result.seconds,
    cpu = cpu / result.requests * 1e6,
    p99 = result.p99 / 1e3,
  }
end

-- Measures until a round is what the row's name says; nil where none is.
local function measure_right(running, server, row, tries)
  for _ = 1, tries do
    local result = measure(running, server, row)
    if result.is_right then
      return result
    end
  end
end

-- The median of a figure over the rounds, or of its ratios to a peer's.
local function each(results, field, others)
  local list = {}
  for round, result in ipairs(results) do
    list[round] = others and result[field] / others[round][field] or result[field]
  end
  return median(list)
end

local function run(report, running, server)
  local results = {}
  for _, row in ipairs(rows) do
    measure_right(running, server, row, LONGEST_WARMING)
    results[row.name] = {}
  end
  for round = 1, rounds do
    for _, row in ipairs(rows) do
      local result = measure_right(running, server, row, TRIES)
      results[row.name][round] = assert(result, row.what .. ": not what it says")
    end
  end
  local costs = {}
  for index, row in ipairs(rows) do
    local own = results[row.name]
    costs[index] = {
      what = row.what,
      ours = row.ours,
      value = each(own, "cpu"),
      others = { each(own, "rate"), each(own, "p99") },
    }
  end
  report:chart({ title = "one worker of nginx", unit = "us CPU", columns = { "requests/s", "p99 ms" }, rows = costs })
  for _, goal in ipairs(goals) do
    local value = each(results[goal.row], goal.field, results[goal.peer])
    report:goal({ what = goal.what, value = value, at_most = goal.at_most })
  end
  report:goal({
    what = "Redis paused, a new address, p99 in ms",
    value = each(results["paused miss"], "p99"),
    at_most = PAUSED_P99_AT_MOST,
  })
end

local report = reports.new({
  name = "fleet",
  title = "gates that share a Redis",
  method = ("wrk -c%d, medians of %d interleaved rounds of %d s, ratios of CPU time"):format(
    wrk.CONNECTIONS,
    rounds,
    wrk.ROUND
  ),
  runtime = "LuaJIT in nginx",
})

local server = redis.start()
local http = HTTP:gsub("REDIS(%u+)", { URL = server.url, PORT = tostring(server.port) })
local running = servers.start({ http = http, server = SERVER }, 1, servers.can_pin)
local ok, message = pcall(run, report, running, server)
local log = running:log()
running:stop()
server:stop()
assert(ok, tostring(message) .. "\n" .. log)

report:finish()
