-- The cost of a request beside the same requests in C (bench/floor.c): ratios of CPU and wall-clock time. Figures are
-- medians of interleaved rounds against an nginx process. Needs nginx, a C compiler and lua-socket. Usage: lua
-- bench/http.lua [rounds] [requests a round], with riskscreen.core on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local core = require("riskscreen.core")
local bed = require("bed")

local rounds = tonumber(arg[1]) or 9
local requests = tonumber(arg[2]) or 4000
local IN_FLIGHT = 64

local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,'
  .. '"address":"0x52908400098527886e0f7030069857d2e4169ee7","network":"eth","whitelist":false,'
  .. '"risks":[{"riskLevel":"low","riskType":"online-gambling","riskSource":"Community"},'
  .. '{"riskLevel":"generally-high","riskType":"launder-money","riskSource":"Provider"}]}}'

local function take(transfer)
  assert(transfer:result().status == 200)
  local value = transfer:decode()
  transfer:close()
  return value
end

local function send(origin)
  return origin:send({
    method = "GET",
    target = "/api/v1/entity?network=eth",
    headers = { "X-Access-Key: 0123456789abcdef0123456789abcdef", "Accept: application/json" },
    timeout = 10,
  })
end

local function run_calls(loop, origin, count)
  for _ = 1, count do
    local transfer = send(origin)
    while not transfer:done() do
      loop:step()
    end
    loop:next()
    take(transfer)
  end
end

local function run_in_flight(loop, origin, count)
  local started, done = 0, 0
  while started < IN_FLIGHT and started < count do
    send(origin)
    started = started + 1
  end
  while done < count do
    loop:step()
    local transfer = loop:next()
    while transfer do
      take(transfer)
      done = done + 1
      if started < count then
        send(origin)
        started = started + 1
      end
      transfer = loop:next()
    end
  end
end

local function measure(run, ...)
  collectgarbage()
  local cpu, wall = os.clock(), core.now()
  run(...)
  return { cpu = os.clock() - cpu, wall = core.now() - wall }
end

local function report(what, ours, floors)
  local cpu, wall, microseconds = {}, {}, {}
  for i, ours_i in ipairs(ours) do
    cpu[i] = ours_i.cpu / floors[i].cpu
    wall[i] = ours_i.wall / floors[i].wall
    microseconds[i] = ours_i.cpu / requests * 1e6
  end
  io.write(("%-62s %5.2f %5.2f  %6.1f\n"):format(what, bed.median(cpu), bed.median(wall), bed.median(microseconds)))
end

local function main(directory, port)
  local loop = core.loop({})
  local origin = loop:origin({ base_url = "http://127.0.0.1:" .. port, concurrency = IN_FLIGHT, http_version = "1.1" })
  run_calls(loop, origin, 100)
  run_in_flight(loop, origin, 1000)
  local calls, many, easy, call, multi = {}, {}, {}, {}, {}
  for i = 1, rounds do
    easy[i] = bed.floor(directory, "easy", port, requests, 1)
    calls[i] = measure(run_calls, loop, origin, requests)
    call[i] = bed.floor(directory, "call", port, requests, 1)
    multi[i] = bed.floor(directory, "multi", port, requests, IN_FLIGHT)
    many[i] = measure(run_in_flight, loop, origin, requests)
  end
  loop:close()
  local version = rawget(_G, "jit") and rawget(_G, "jit").version or _VERSION
  io.write(("%s, median of %d rounds of %d requests, decoding included\n"):format(version, rounds, requests))
  io.write(("%-62s %5s %5s  %6s\n"):format("", "CPU", "wall", "us CPU"))
  report("one call after the other / C, one easy handle, nothing set", calls, easy)
  report("one call after the other / C, one easy handle, set each time", calls, call)
  report(("%d in flight / C, socket_action and epoll"):format(IN_FLIGHT), many, multi)
end

bed.run(BODY, main)
