-- Screenings per CPU second: screen_all with 64 under way, and client:screen in sequence. A C program sends the same
-- requests over curl_multi and drops the answers (bench/floor.c). Interleaved rounds against an nginx process, and one
-- long run of screen_all, whose parts alternate with the C program: what grows shows there. Usage: lua
-- bench/screen_all.lua [rounds] [requests a round] [requests of the long run], with riskscreen on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local core = require("riskscreen.core")
local reports = require("support.report")
local riskscreen = require("riskscreen")

local rounds = tonumber(arg[1]) or reports.rounds(9, 3)
local requests = tonumber(arg[2]) or 4000
local long = tonumber(arg[3]) or reports.rounds(1000000, 50000)
local CONCURRENCY = 64
local PARTS = 10 -- of the long run
local WARM = 20000 -- requests until the memory of repeats is full

local PATH = "/api/v1/tracker/kya/risks"

-- nginx puts in what was asked for: an answer about another address would be refused.
local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
  .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
  .. '"riskSource":"Provider"}]}}'

local function address_of(number)
  return ("0x%040x"):format(number)
end

local function one_after_the_other(client, count)
  for number = 1, count do
    assert(client:screen({ address = address_of(number), network = "eth" }).action == "allow")
  end
end

local function many_at_a_time(client, count, on_progress)
  local number, allowed = 0, 0
  local function source()
    number = number + 1
    return number <= count and address_of(number) or nil
  end
  local all = { source = source, network = "eth", concurrency = CONCURRENCY, on_progress = on_progress }
  for decision in client:screen_all(all) do
    allowed = allowed + (decision.action == "allow" and 1 or 0)
  end
  assert(allowed == count)
end

-- CPU microseconds of an address.
local function cost_of(run, client, count, ...)
  collectgarbage()
  local before = os.clock()
  run(client, count, ...)
  return (os.clock() - before) / count * 1e6
end

local function kilobytes_in_use()
  collectgarbage()
  collectgarbage()
  return collectgarbage("count")
end

-- The costs of the parts of a long run, and of the C program after each part. Also the memory at the end, divided by
-- that after `WARM` addresses.
local function measure_long(client, measure_floor)
  local costs, floors = {}, {}
  local early, late
  collectgarbage()
  local before = os.clock()
  many_at_a_time(client, long, function(done)
    if done == WARM then
      early = kilobytes_in_use()
    elseif done == long - CONCURRENCY then
      late = kilobytes_in_use()
    end
    if done % (long / PARTS) == 0 then
      costs[#costs + 1] = (os.clock() - before) / (long / PARTS) * 1e6
      floors[#costs] = measure_floor()
      before = os.clock()
    end
  end)
  return costs, floors, late / early
end

bed.run(BODY, function(directory, port)
  local client = riskscreen.new({
    base_url = "http://127.0.0.1:" .. port,
    access_key = "0123456789abcdef0123456789abcdef",
    concurrency = CONCURRENCY,
  })
  local target = ("'%s?address=0x' '&network=eth'"):format(PATH)
  local function measure_floor()
    return bed.floor(directory, "multi", port, requests, CONCURRENCY, target).cpu / requests * 1e6
  end
  many_at_a_time(client, requests)
  one_after_the_other(client, requests)
  local floor, many, single = {}, {}, {}
  for i = 1, rounds do
    floor[i] = measure_floor()
    many[i] = cost_of(many_at_a_time, client, requests)
    single[i] = cost_of(one_after_the_other, client, requests)
  end
  local long_costs, long_floors, growth = measure_long(client, measure_floor)
  client:close()

  local report = reports.new({
    name = "screen_all",
    title = "Screening many addresses",
    method = ("medians of %d interleaved rounds of %d requests, and one run of %d in parts; deciding included"):format(
      rounds,
      requests,
      long
    ),
    peers = { core.curl_version },
  })
  report:chart({
    title = ("%d under way"):format(CONCURRENCY),
    unit = "us CPU",
    rows = {
      { what = "C, curl_multi, answers dropped", value = bed.median(floor) },
      { what = ("client:screen_all of %d"):format(requests), value = bed.median(many), ours = true },
      { what = ("client:screen_all of %d"):format(long), value = bed.median(long_costs), ours = true },
      { what = "client:screen, one after the other", value = bed.median(single), ours = true },
    },
  })
  local share = rawget(_G, "jit") and 0.7 or 0.6
  local short_rate, long_rate = bed.ratio(floor, many), bed.ratio(long_floors, long_costs)
  local rate_of = "rate of screen_all / C, %d addresses"
  report:goal({ what = rate_of:format(requests), value = short_rate, at_least = share })
  report:goal({ what = rate_of:format(long), value = long_rate, at_least = share })
  report:goal({
    what = ("cost of an address, %d / %d addresses"):format(long, requests),
    value = short_rate / long_rate,
    at_most = 1.1,
  })
  report:goal({
    what = ("memory in use after %d / after %d addresses"):format(long, WARM),
    value = growth,
    at_most = 1.1,
  })
  report:finish()
end)
