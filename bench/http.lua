-- The cost of a request beside the same requests in C (bench/floor.c), and of tasks driven by other programs' loops.
-- Interleaved rounds against an nginx process. Needs nginx with its Lua module, openssl, a C compiler, LuaSocket,
-- cqueues and luv. Usage: lua bench/http.lua [rounds] [requests a round], with riskscreen.core on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local core = require("riskscreen.core")
local hosts = require("spec.support.hosts")
local reports = require("support.report")
local riskscreen = require("riskscreen")
local tls_server = require("spec.support.tls_server")

local rounds = tonumber(arg[1]) or reports.rounds(9, 3)
local requests = tonumber(arg[2]) or 4000
local IN_FLIGHT = 64
local MANY = 1000
local CONNECTIONS = 200 -- new ones over TLS in a round
local AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"
local KEY = "0123456789abcdef0123456789abcdef"

local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,'
  .. '"address":"$arg_address","network":"eth","whitelist":false,'
  .. '"risks":[{"riskLevel":"low","riskType":"online-gambling","riskSource":"Community"},'
  .. '{"riskLevel":"generally-high","riskType":"launder-money","riskSource":"Provider"}]}}'

local ADDRESS = "0x52908400098527886e0f7030069857d2e4169ee7"

-- As the client takes a result whose headers and times nobody wants.
local function take(loop, transfer)
  local status, body = loop:take(transfer)
  if status ~= 200 then
    error(status and ("status %d, %d bytes"):format(status, #body) or body.message)
  end
  return core.decode(body)
end

local HEADERS = { "X-Access-Key: " .. KEY, "Accept: application/json" }

local function send(origin, target)
  return origin:send("GET", target, HEADERS, 10, nil, nil, false, true)
end

local function run_calls(loop, origin, target, count)
  for _ = 1, count do
    local transfer = send(origin, target)
    while not loop:done(transfer) do
      loop:step()
    end
    loop:next()
    take(loop, transfer)
  end
end

local function run_in_flight(loop, origin, target, count, in_flight)
  local started, done = 0, 0
  while started < in_flight and started < count do
    send(origin, target)
    started = started + 1
  end
  while done < count do
    loop:step()
    local transfer = loop:next()
    while transfer do
      take(loop, transfer)
      done = done + 1
      if started < count then
        send(origin, target)
        started = started + 1
      end
      transfer = loop:next()
    end
  end
end

-- Requests over TLS, each on a new connection.
local function run_connections(loop, origin)
  for _ = 1, CONNECTIONS do
    local transfer = origin:send("GET", "/", nil, 10, nil, nil, true)
    while not loop:done(transfer) do
      loop:step()
    end
    loop:next()
    assert(loop:take(transfer) == 200)
  end
end

-- An origin over TLS whose server has a certificate of the test's authority.
local function tls_origin(loop, server, ca_file)
  return loop:origin({ base_url = "https://localhost", unix_socket = server.path("good"), ca_file = ca_file })
end

-- The system's authorities and the test's one in one file.
local function many_authorities(server)
  local file = assert(io.open(server.path("many.pem"), "w"))
  for _, name in ipairs({ AUTHORITIES, server.path("ca.pem") }) do
    local part = assert(io.open(name))
    file:write(part:read("*a"))
    part:close()
  end
  file:close()
  return server.path("many.pem")
end

-- Tasks that make so many calls, while `drive` steps the loop.
local function run_tasks(client, count, drive)
  local left, ended = count, 0
  for _ = 1, IN_FLIGHT do
    riskscreen.spawn(function()
      while left > 0 do
        left = left - 1
        assert(client.kya:risk({ address = ADDRESS, network = "eth" }))
      end
      ended = ended + 1
    end)
  end
  drive(riskscreen.loop, function()
    return ended == IN_FLIGHT
  end)
end

local function drive_ours(loop, done)
  while not done() do
    loop:step()
  end
end

-- CPU microseconds of a request.
local function cost_of(run, count, ...)
  collectgarbage()
  local before = os.clock()
  run(...)
  return (os.clock() - before) / count * 1e6
end

local function resident()
  local file = assert(io.open("/proc/self/statm"))
  local _, pages = file:read("*n", "*n")
  file:close()
  return pages * 4096
end

-- Bytes of each of many requests that are under way, their connections included.
local function bytes_in_flight(port)
  collectgarbage()
  collectgarbage()
  local before = resident()
  local loop = core.loop({})
  local origin = loop:origin({ base_url = "http://127.0.0.1:" .. port, concurrency = MANY, http_version = "1.1" })
  local transfers = {}
  for index = 1, MANY do
    transfers[index] = send(origin, "/slow")
  end
  local most = 0
  for _, transfer in ipairs(transfers) do
    while not loop:done(transfer) do
      loop:step()
      most = math.max(most, resident())
    end
  end
  loop:close()
  return (most - before) / MANY
end

local ways = {}

local function way(name, what, measure)
  ways[#ways + 1] = { what = what, measure = measure, costs = {} }
  ways[name] = ways[#ways]
end

bed.run(BODY, function(directory, port)
  local bytes = bytes_in_flight(port)
  local loop = core.loop({})
  local base_url = "http://127.0.0.1:" .. port
  local origin = loop:origin({ base_url = base_url, concurrency = IN_FLIGHT, http_version = "1.1" })
  local crowded = loop:origin({ base_url = base_url, concurrency = MANY, http_version = "1.1" })
  local client = riskscreen.new({ base_url = base_url, access_key = KEY, concurrency = IN_FLIGHT })
  local target = "/api/v1/entity?network=eth&address=" .. ADDRESS
  local function floor(mode, in_flight, path)
    local rest = ("'%s?address=0x' '&network=eth'"):format(path or "/api/v1/entity")
    return bed.floor(directory, mode, port, requests, in_flight, rest).cpu / requests * 1e6
  end

  way("easy", "C, one easy handle, nothing set between requests", function()
    return floor("easy", 1)
  end)
  way("call", "C, one easy handle, set for each request", function()
    return floor("call", 1)
  end)
  way("calls", "the core, one request after the other", function()
    return cost_of(run_calls, requests, loop, origin, target, requests)
  end)
  way("multi", ("C, curl_multi_socket_action and epoll, %d in flight"):format(IN_FLIGHT), function()
    return floor("multi", IN_FLIGHT)
  end)
  way("in flight", ("the core, %d in flight"):format(IN_FLIGHT), function()
    return cost_of(run_in_flight, requests, loop, origin, target, requests, IN_FLIGHT)
  end)
  way("perform", ("C, curl_multi_perform and curl_multi_poll, %d in flight for 100 ms"):format(MANY), function()
    return floor("perform", MANY, "/slow")
  end)
  way("many", ("the core, %d in flight for 100 ms"):format(MANY), function()
    return cost_of(run_in_flight, requests, loop, crowded, "/slow", requests, MANY)
  end)
  way("tasks", ("calls in %d tasks, the library's own loop"):format(IN_FLIGHT), function()
    return cost_of(run_tasks, requests, client, requests, drive_ours)
  end)
  for _, name in ipairs({ "cqueues", "luv" }) do
    way(name, ("the same, driven by %s"):format(name), function()
      return cost_of(run_tasks, requests, client, requests, hosts[name])
    end)
  end

  local server = tls_server.start()
  local one = tls_origin(loop, server, server.path("ca.pem"))
  local many = tls_origin(loop, server, many_authorities(server))
  way("one authority", "a further connection over TLS, one authority in ca_file", function()
    return cost_of(run_connections, CONNECTIONS, loop, one)
  end)
  way("many authorities", "a further connection over TLS, the system's authorities", function()
    return cost_of(run_connections, CONNECTIONS, loop, many)
  end)

  for round = 0, rounds do
    for _, each in ipairs(ways) do
      each.costs[round] = each.measure() -- round 0 warms up
    end
  end
  client:close()
  loop:close()
  server.stop()

  local report = reports.new({
    name = "http",
    title = "Requests",
    method = ("medians of %d interleaved rounds of %d requests, decoding included"):format(rounds, requests),
    peers = { core.curl_version },
  })
  local function chart(title, names)
    local rows = {}
    for index, name in ipairs(names) do
      rows[index] =
        { what = ways[name].what, value = bed.median(ways[name].costs), ours = not ways[name].what:find("^C,") }
    end
    report:chart({ title = title, unit = "us CPU", rows = rows })
  end
  local function goal(what, name, peer, at_most)
    report:goal({ what = what, value = bed.ratio(ways[name].costs, ways[peer].costs), at_most = at_most })
  end
  chart("One after the other", { "call", "easy", "calls" })
  chart(("%d in flight"):format(IN_FLIGHT), { "multi", "in flight" })
  chart(("%d in flight"):format(MANY), { "perform", "many" })
  chart("Loops of other programs", { "tasks", "cqueues", "luv" })
  chart("New connections over TLS", { "one authority", "many authorities" })
  goal("one after the other / C, set for each request", "calls", "call", 1.15)
  goal("one after the other / C, nothing set", "calls", "easy", 1.15)
  goal(("%d in flight / C"):format(IN_FLIGHT), "in flight", "multi", 1.15)
  goal(("%d in flight / C, curl_multi_perform"):format(MANY), "many", "perform", 0.65)
  goal("tasks driven by cqueues / by our loop", "cqueues", "tasks", 1.15)
  goal("tasks driven by luv / by our loop", "luv", "tasks", 1.15)
  goal("a further connection over TLS, the system's authorities / one", "many authorities", "one authority", 1.2)
  report:goal({ what = ("KB of each of %d requests in flight"):format(MANY), value = bytes / 1024, at_most = 17 })
  report:finish()
end)
