-- Screenings per CPU second: screen_all with 64 under way, client:screen in sequence, and a C program with the same
-- requests over curl_multi that drops the answers (bench/floor.c). Interleaved rounds against an nginx process. Usage:
-- lua bench/screen_all.lua [rounds] [requests a round], with riskscreen on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local riskscreen = require("riskscreen")

local rounds = tonumber(arg[1]) or 9
local requests = tonumber(arg[2]) or 4000
local CONCURRENCY = 64

local PATH = "/api/v1/tracker/kya/risks"

-- nginx puts in what was asked for: an answer about another address would be refused.
local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
  .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
  .. '"riskSource":"Provider"}]}}'

local function address_of(number)
  return ("0x%040x"):format(number)
end

local function one_after_the_other(client)
  for number = 1, requests do
    assert(client:screen({ address = address_of(number), network = "eth" }).action == "allow")
  end
end

local function many_at_a_time(client)
  local number, allowed = 0, 0
  local function source()
    number = number + 1
    return number <= requests and address_of(number) or nil
  end
  for decision in client:screen_all({ source = source, network = "eth", concurrency = CONCURRENCY }) do
    allowed = allowed + (decision.action == "allow" and 1 or 0)
  end
  assert(allowed == requests)
end

local function cpu_of(run, client)
  collectgarbage()
  local before = os.clock()
  run(client)
  return os.clock() - before
end

local function ratios(costs, others)
  local list = {}
  for i, cost in ipairs(costs) do
    list[i] = others[i] / cost
  end
  return bed.median(list)
end

bed.run(BODY, function(directory, port)
  local client = riskscreen.new({
    base_url = "http://127.0.0.1:" .. port,
    access_key = "0123456789abcdef0123456789abcdef",
    concurrency = CONCURRENCY,
  })
  local target = ("'%s?address=0x' '&network=eth'"):format(PATH)
  many_at_a_time(client)
  one_after_the_other(client)
  local floor, many, single = {}, {}, {}
  for i = 1, rounds do
    floor[i] = bed.floor(directory, "multi", port, requests, CONCURRENCY, target).cpu
    many[i] = cpu_of(many_at_a_time, client)
    single[i] = cpu_of(one_after_the_other, client)
  end
  client:close()

  local version = rawget(_G, "jit") and rawget(_G, "jit").version or _VERSION
  io.write(
    ("%s, median of %d rounds of %d requests, decoding and deciding included\n"):format(version, rounds, requests)
  )
  io.write(("%-44s %14s %12s %8s\n"):format("", "a CPU second", "/ one by one", "/ C"))
  local function report(what, costs)
    local to_single, to_floor = ratios(costs, single), ratios(costs, floor)
    io.write(("%-44s %14.0f %12.2f %8.2f\n"):format(what, requests / bed.median(costs), to_single, to_floor))
  end
  report(("C, curl_multi, %d under way, answers dropped"):format(CONCURRENCY), floor)
  report(("client:screen_all, %d under way"):format(CONCURRENCY), many)
  report("client:screen, one after the other", single)
end)
