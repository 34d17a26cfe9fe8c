-- The gate beside gates written by hand (nginx/hand_written.lua) and a no-op access phase. nginx, and wrk with 64
-- connections. The figures are the CPU time of nginx's workers for a request, and the 99th percentile of latency. They
-- are medians of interleaved rounds; a ratio is the median of the rounds' ratios. One worker has a core of its own
-- where there are two; wrk and the service share the other. Needs nginx with its Lua module, wrk and LuaSocket.
-- lua-resty-http is measured where LUA_PATH leads to it and to lua-resty-string, which it needs.

local median = require("bed").median
local reports = require("support.report")
local servers = require("nginx.servers")
local wrk = require("nginx.wrk")

local rounds = reports.rounds(9, 3)
local CONNECTIONS = wrk.CONNECTIONS
local OFTEN = 100 -- different addresses, few enough for every cache
local SELDOM = 5000 -- addresses, too many for the memory of a worker, which has room for a fifth of them
local RARELY = 200000 -- addresses, too many for the caches of the processor: each hit finds cold memory
local MOST_MISSES = 0.01 -- of the requests of a row that is called a hit
local LONGEST_WARMING = 60 -- rounds

local HTTP = [[
  upstream application { server 127.0.0.1:BEHIND; keepalive 128; }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  lua_shared_dict hand_written 256m;
  lua_shared_dict riskscreen 256m;
  init_by_lua_block {
    PREPARE
    hand_written = require("nginx.hand_written")
    gate = require("riskscreen.nginx.gate").new {
      client = {
        base_url = "http://127.0.0.1:BEHIND",
        access_key = "0123456789abcdef0123456789abcdef",
        concurrency = 128,
      },
      dict = "riskscreen", lru = 1000, on_unknown = "block",
      address = { argument = "address" }, network = { argument = "network" },
    }
  }
]]

-- The content is the same for every row, and as cheap as possible.
local SERVER = [[
    location = /return { return 200; }
    location = /nothing { access_by_lua_block { return } empty_gif; }
    location = /by-hand {
      access_by_lua_block { hand_written.enforce(ngx.shared.hand_written, BEHIND) }
      empty_gif;
    }
    location = /by-hand-lru {
      access_by_lua_block { hand_written.enforce_with_lru(ngx.shared.hand_written, BEHIND) }
      empty_gif;
    }
    location = /by-hand-http {
      access_by_lua_block { hand_written.enforce_by_http(ngx.shared.hand_written, BEHIND) }
      empty_gif;
    }
    location = /gate { access_by_lua_block { gate:enforce() } empty_gif; }
    location = /lua-resty-http { content_by_lua_block { ngx.print(hand_written.http_version) } }
    location = /application { access_by_lua_block { return } proxy_pass http://application; }
    location = /gate-application { access_by_lua_block { gate:enforce() } proxy_pass http://application; }
]]

local WITHOUT_CORE = [[package.preload["riskscreen.core"] = function() error("no core") end]]

---@class riskscreen.bench.Row
---@field name string for goals
---@field group string the rows beside which it stands; the first one is the base of the ratios
---@field what string
---@field path string
---@field different? integer addresses in turn; without it each request has a new one
---@field calls? integer requests that each one leads to behind the gateway
---@field ours? boolean
---@field needs_http? boolean

local NO_GATE, HIT, MANY = "no gate", "an address of 100 different ones", "an address of 5000 different ones"
local COLD = "an address of 200000 different ones"
local MISS, APPLICATION = "a new address", "before an application"

local nothing = { name = "nothing", group = NO_GATE, what = "an access phase that does nothing", path = "/nothing" }
local plain = { name = "return", group = NO_GATE, what = "return 200, without an access phase", path = "/return" }
local hand_hit = { name = "hand hit", group = HIT, what = "by hand, from its shared dict", path = "/by-hand" }
local hand_lru =
  { name = "hand lru", group = HIT, what = "by hand, lua-resty-lrucache before its dict", path = "/by-hand-lru" }
local hit = { name = "hit", group = HIT, what = "the gate, from the worker's memory", path = "/gate", ours = true }
for _, row in ipairs({ nothing, plain, hand_hit, hand_lru, hit }) do
  row.different = OFTEN
end

local function from_dict(name, group, what, path, different, ours)
  return { name = name, group = group, what = what, path = path, different = different, ours = ours }
end

local hand_many = from_dict("hand many", MANY, "by hand, from its shared dict", "/by-hand", SELDOM)
local many = from_dict("many", MANY, "the gate, from the shared dict", "/gate", SELDOM, true)
local hand_cold = from_dict("hand cold", COLD, "by hand, from its shared dict", "/by-hand", RARELY)
local cold = from_dict("cold", COLD, "the gate, from the shared dict", "/gate", RARELY, true)
local hand_miss = { name = "hand miss", group = MISS, what = "by hand, over a cosocket", path = "/by-hand", calls = 1 }
local http_miss = {
  name = "http miss",
  group = MISS,
  what = "by hand, lua-resty-http",
  path = "/by-hand-http",
  calls = 1,
  needs_http = true,
}
local miss = { name = "miss", group = MISS, what = "the gate", path = "/gate", calls = 1, ours = true }

local function before_application(name, what, path, different, calls)
  return {
    name = name,
    group = APPLICATION,
    what = what,
    path = path,
    different = different,
    calls = calls,
    ours = path ~= "/application",
  }
end

---@class riskscreen.bench.Bed
---@field title string
---@field workers integer
---@field prepare string Lua code before the gate is made
---@field rows riskscreen.bench.Row[]
---@field goals { what: string, row: string, peer: string, at_most: number }[]

local one = {
  title = "nginx with one worker",
  workers = 1,
  prepare = "",
  rows = {
    nothing,
    plain,
    hand_hit,
    hand_lru,
    hit,
    hand_many,
    many,
    hand_cold,
    cold,
    hand_miss,
    http_miss,
    miss,
    before_application("application", "the application alone", "/application", OFTEN, 1),
    before_application("application hit", "the gate, from the worker's memory", "/gate-application", OFTEN, 1),
    before_application("application many", "the gate, from the shared dict", "/gate-application", SELDOM, 1),
    before_application("application miss", "the gate, a new address", "/gate-application", nil, 2),
  },
  goals = {
    { what = "a hit in the worker's memory / by hand from a dict", row = "hit", peer = "hand hit", at_most = 0.95 },
    { what = "a hit in the shared dict / by hand", row = "many", peer = "hand many", at_most = 1.2 },
    { what = "a hit in a shared dict of 200000 / by hand", row = "cold", peer = "hand cold", at_most = 1.3 },
    { what = "a new address / by hand", row = "miss", peer = "hand miss", at_most = 1.12 },
    { what = "a new address / by hand with lua-resty-http", row = "miss", peer = "http miss", at_most = 0.65 },
  },
}

---@type riskscreen.bench.Bed[]
local beds = {
  one,
  {
    title = "nginx with two workers",
    workers = 2,
    prepare = "",
    rows = { hand_hit, hit, hand_many, many, hand_miss, miss },
    goals = {
      { what = "two workers, a new address / by hand", row = "miss", peer = "hand miss", at_most = 1.15 },
    },
  },
  {
    title = "nginx with one worker, without the C core",
    workers = 1,
    prepare = WITHOUT_CORE,
    rows = { hand_miss, miss },
    goals = {
      { what = "without the core, a new address / by hand", row = "miss", peer = "hand miss", at_most = 1.3 },
    },
  },
}

local P99_AT_MOST = 1.2

-- The difference between the requests to the service and those that the row should have caused.
local function misses(row, result, looked_up)
  return math.abs(looked_up - (row.calls or 0) * result.requests)
end

-- Measures one round of a row. Raises where the row was not measured as named, unless that check is off.
local function measure(bed, running, row, is_warming)
  local looked_up, ran = running:looked_up(), running:cpu()
  local pinned = bed.workers == 1 and servers.can_pin
  local result = wrk.run(running.url, row.path, row.different, bed.workers, pinned)
  local cpu = running:cpu() - ran
  assert(result.refused + result.failed == 0, row.what .. ": requests failed")
  local off = misses(row, result, running:looked_up() - looked_up - 1)
  local is_right = off <= CONNECTIONS * (1 + (row.calls or 0)) + MOST_MISSES * result.requests
  assert(is_right or is_warming, row.what .. ": not what it says")
  return {
    is_right = is_right,
    rate = result.requests / result.seconds,
    cpu = cpu / result.requests * 1e6,
    p99 = result.p99 / 1e3,
  }
end

-- Fills the caches for a row.
local function warm(bed, running, row)
  for _ = 1, LONGEST_WARMING do
    if measure(bed, running, row, true).is_right then
      return
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

-- The rows that can be measured, and what stands for lua-resty-http, which may be absent.
local function rows_of(bed, running)
  local version, rows = running:page("/lua-resty-http"), {}
  local has_http = version:find("^%d") ~= nil
  for _, row in ipairs(bed.rows) do
    if has_http or not row.needs_http then
      rows[#rows + 1] = row
    end
  end
  return rows, has_http and "lua-resty-http " .. version or ("no lua-resty-http (%s)"):format(version)
end

local function run(report, bed, running)
  -- lua-resty-http warns about modules that it does not find.
  local results, log = {}, running:log()
  local rows, found = rows_of(bed, running)
  report.peers = { found }
  for _, row in ipairs(rows) do
    warm(bed, running, row)
    results[row.name] = {}
  end
  for round = 1, rounds do
    for _, row in ipairs(rows) do
      results[row.name][round] = measure(bed, running, row)
    end
  end
  local costs = {}
  for index, row in ipairs(rows) do
    local own = results[row.name]
    costs[index] = {
      what = row.what,
      group = row.group,
      ours = row.ours,
      value = each(own, "cpu"),
      others = { each(own, "rate"), each(own, "p99") },
    }
  end
  report:chart({ title = bed.title, unit = "us CPU", columns = { "requests/s", "p99 ms" }, rows = costs })
  for _, goal in ipairs(bed.goals) do
    local own, peer = results[goal.row], results[goal.peer]
    if peer then
      report:goal({ what = goal.what .. ", CPU", value = each(own, "cpu", peer), at_most = goal.at_most })
      report:goal({ what = goal.what .. ", p99", value = each(own, "p99", peer), at_most = P99_AT_MOST })
    end
  end
  assert(running:log() == log, "nginx has logged something:\n" .. running:log())
end

local method = ("wrk -c%d, medians of %d interleaved rounds of %d s, ratios of CPU time"):format(
  CONNECTIONS,
  rounds,
  wrk.ROUND
)
local report = reports.new({
  name = "nginx",
  title = "the gate in nginx",
  method = method,
  runtime = "LuaJIT in nginx",
})

for _, bed in ipairs(beds) do
  local http = HTTP:gsub("PREPARE", bed.prepare)
  local running = servers.start({ http = http, server = SERVER }, bed.workers, bed.workers == 1 and servers.can_pin)
  local ok, message = pcall(run, report, bed, running)
  running:stop()
  assert(ok, message)
end

report:finish()
