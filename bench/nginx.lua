-- The gate beside a no-op access phase, a gate written by hand (nginx/hand_written.lua), and plain `return 200`, which
-- has no access phase. One nginx worker, wrk with 64 connections. Ratios, medians of interleaved rounds: requests a
-- second, the worker's CPU time for each, and the 99th percentile of latency. It measures twice. First the worker has a
-- core of its own where there are two; wrk and the service share the other. The column `busy` is the share of time in
-- which the worker ran or waited for its core. Then nothing is pinned, and wrk has two threads. On a busy machine trust
-- the ratio of CPU times. Needs nginx with its Lua module, wrk and LuaSocket. Usage: lua bench/nginx.lua [rounds]

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local median = require("bed").median
local servers = require("nginx.servers")

local rounds = tonumber(arg[1]) or 9
local CONNECTIONS = 64
local ROUND = 1 -- seconds; wrk takes whole ones
local OFTEN = 100 -- different addresses, few enough for every cache
local SELDOM = 5000 -- addresses, too many for the gate's own memory, which has room for a fifth of them
local MOST_MISSES = 0.01 -- of the requests of a row that is called a hit
local LONGEST_WARMING = 10 -- rounds

local HTTP = [[
  upstream application { server 127.0.0.1:BEHIND; keepalive 128; }
  proxy_http_version 1.1;
  proxy_set_header Connection "";
  lua_shared_dict hand_written 64m;
  lua_shared_dict riskscreen 64m;
  init_by_lua_block {
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
    location = /hand-written {
      access_by_lua_block { hand_written.enforce(ngx.shared.hand_written, BEHIND) }
      empty_gif;
    }
    location = /gate { access_by_lua_block { gate:enforce() } empty_gif; }
    location = /application { access_by_lua_block { return } proxy_pass http://application; }
    location = /gate-application { access_by_lua_block { gate:enforce() } proxy_pass http://application; }
]]

---@class riskscreen.bench.Row
---@field what string
---@field path string
---@field base? integer the row that it is compared with; the access phase that does nothing without it
---@field different? integer addresses in turn; without it each request has a new one
---@field calls? integer requests that each one leads to behind the gateway

local BASE, APPLICATION = 2, 9

---@type riskscreen.bench.Row[]
local rows = {
  { what = "return 200, no access phase", path = "/return", different = OFTEN },
  { what = "an access phase that does nothing", path = "/nothing", different = OFTEN },
  { what = "a gate by hand, from its shared dict", path = "/hand-written", different = OFTEN },
  { what = "the same, of many addresses", path = "/hand-written", different = SELDOM },
  { what = "a gate by hand, over a cosocket", path = "/hand-written", calls = 1 },
  { what = "the gate, from the worker's memory", path = "/gate", different = OFTEN },
  { what = "the gate, from the shared dict", path = "/gate", different = SELDOM },
  { what = "the gate, over a cosocket", path = "/gate", calls = 1 },
  { what = "an application without a gate", path = "/application", different = OFTEN, calls = 1, base = APPLICATION },
  {
    what = "behind the gate, worker's memory",
    path = "/gate-application",
    different = OFTEN,
    calls = 1,
    base = APPLICATION,
  },
  {
    what = "behind the gate, shared dict",
    path = "/gate-application",
    different = SELDOM,
    calls = 1,
    base = APPLICATION,
  },
  { what = "behind the gate, over a cosocket", path = "/gate-application", calls = 2, base = APPLICATION },
}

---@class riskscreen.bench.Bed
---@field what string
---@field pinned boolean
---@field wrk string the command
---@field rows integer how many of the rows

local GATES = 8 -- the rows before those with an application

---@type riskscreen.bench.Bed[]
local beds = {
  {
    what = "the worker on its own core",
    pinned = servers.can_pin,
    wrk = servers.can_pin and "taskset -c 1 wrk -t1" or "wrk -t1",
    rows = #rows,
  },
  { what = "nothing pinned, wrk with two threads", pinned = false, wrk = "wrk -t2", rows = GATES },
}

local first = 0 -- of the addresses that nobody has asked for yet

local function wrk(bed, running, row)
  local from = row.different and 0 or first
  local command = ("%s -c%d -d%ds -s bench/nginx/requests.lua %s -- %s %d %s"):format(
    bed.wrk,
    CONNECTIONS,
    ROUND,
    running.url,
    row.path,
    from,
    row.different or ""
  )
  first = first + 1e6
  local pipe = assert(io.popen(command))
  local output = pipe:read("*a")
  pipe:close()
  local figures = {}
  for figure in output:match("figures ([^\n]*)"):gmatch("%S+") do
    figures[#figures + 1] = tonumber(figure)
  end
  return {
    requests = figures[1],
    seconds = figures[2] / 1e6,
    refused = figures[3],
    failed = figures[4],
    p99 = figures[6],
  }
end

-- The difference between the requests to the service and those that the row should have caused.
local function misses(row, result, looked_up)
  return math.abs(looked_up - (row.calls or 0) * result.requests)
end

-- Measures one round of a row. Raises where the row was not measured as named, unless that check is off.
local function measure(bed, running, row, is_warming)
  local looked_up, ran, waited = running:looked_up(), running:cpu()
  local result = wrk(bed, running, row)
  local ran_then, waited_then = running:cpu()
  assert(result.refused + result.failed == 0, row.what .. ": requests failed")
  local off = misses(row, result, running:looked_up() - looked_up - 1)
  local is_right = off <= CONNECTIONS * (1 + (row.calls or 0)) + MOST_MISSES * result.requests
  assert(is_right or is_warming, row.what .. ": not what it says")
  return {
    is_right = is_right,
    rate = result.requests / result.seconds,
    cpu = (ran_then - ran) / result.requests,
    busy = (ran_then - ran + waited_then - waited) / result.seconds,
    p99 = result.p99,
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

local function each(results, field, others)
  local list = {}
  for round, result in ipairs(results) do
    list[round] = others and result[field] / others[round][field] or result[field]
  end
  return median(list)
end

local function report(bed, results)
  io.write(
    ("nginx, one worker, %s, wrk -c%d, median of %d rounds of %d s\n"):format(bed.what, CONNECTIONS, rounds, ROUND)
  )
  local form = "%-36s %10s %6s %6s %8s %6s %8s %6s\n"
  io.write(form:format("", "requests/s", "ratio", "busy", "us CPU", "ratio", "p99 ms", "ratio"))
  form = "%-36s %10.0f %6.2f %6.2f %8.1f %6.2f %8.2f %6.2f\n"
  for index = 1, bed.rows do
    local row, own = rows[index], results[index]
    local base = results[row.base or BASE]
    local rate, busy, cpu, p99 = each(own, "rate"), each(own, "busy"), each(own, "cpu") * 1e6, each(own, "p99") / 1e3
    local cpu_ratio = 1 / each(own, "cpu", base)
    local rate_ratio, p99_ratio = each(own, "rate", base), each(own, "p99", base)
    io.write(form:format(row.what, rate, rate_ratio, busy, cpu, cpu_ratio, p99, p99_ratio))
  end
end

local function run(bed, running)
  local results = {}
  for index = 1, bed.rows do
    warm(bed, running, rows[index])
    results[index] = {}
  end
  for round = 1, rounds do
    for index = 1, bed.rows do
      results[index][round] = measure(bed, running, rows[index])
    end
  end
  report(bed, results)
  assert(running:log() == "", "the error log is not empty:\n" .. running:log())
end

for _, bed in ipairs(beds) do
  local running = servers.start({ http = HTTP, server = SERVER }, bed.pinned)
  local ok, message = pcall(run, bed, running)
  running:stop()
  assert(ok, message)
end
