-- What a request costs beside the same requests in C (bench/floor.c): ratios of CPU and of wall-clock time, medians
-- of interleaved rounds, against an nginx in a process of its own. Needs nginx, a C compiler and lua-socket.
-- Usage: lua bench/http.lua [rounds] [requests a round], with riskscreen.core on the path.

local core = require("riskscreen.core")
local socket = require("socket")

local here = arg[0]:match("^(.*)/[^/]*$") or "."
local rounds = tonumber(arg[1]) or 9
local requests = tonumber(arg[2]) or 4000
local IN_FLIGHT = 64

local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,'
  .. '"address":"0x52908400098527886e0f7030069857d2e4169ee7","network":"eth","whitelist":false,'
  .. '"risks":[{"riskLevel":"low","riskType":"online-gambling","riskSource":"Community"},'
  .. '{"riskLevel":"generally-high","riskType":"launder-money","riskSource":"Provider"}]}}'

local CONFIGURATION = [[
worker_processes 1; daemon on; pid DIR/nginx.pid; error_log DIR/error.log;
events { worker_connections 4096; }
http {
  access_log off; keepalive_requests 1000000000; keepalive_timeout 3600s;
  client_body_temp_path DIR/body; proxy_temp_path DIR/proxy; fastcgi_temp_path DIR/fastcgi;
  uwsgi_temp_path DIR/uwsgi; scgi_temp_path DIR/scgi;
  server { listen 127.0.0.1:PORT; default_type application/json; return 200 'BODY'; }
}
]]

local function execute(command)
  local result = os.execute(command)
  assert(result == true or result == 0, "failed: " .. command)
end

local function free_port()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local port = select(2, listener:getsockname())
  listener:close()
  return port
end

local function start_server(directory, port)
  local file = assert(io.open(directory .. "/nginx.conf", "w"))
  file:write((CONFIGURATION:gsub("DIR", directory):gsub("PORT", port):gsub("BODY", (BODY:gsub("%%", "%%%%")))))
  file:close()
  execute(("PATH=$PATH:/usr/sbin nginx -p %s -c %s/nginx.conf 2> %s/start.log"):format(directory, directory, directory))
end

local function floor_of(directory, mode, port, count, in_flight)
  local pipe = assert(io.popen(("%s/floor %s %s %d %d"):format(directory, mode, port, count, in_flight)))
  local cpu, wall = pipe:read("*n", "*n")
  pipe:close()
  return { cpu = cpu, wall = wall }
end

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
    replay = true,
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

local function median(list)
  table.sort(list)
  return list[math.floor(#list / 2) + 1]
end

local function report(what, ours, floors)
  local cpu, wall, microseconds = {}, {}, {}
  for i, ours_i in ipairs(ours) do
    cpu[i] = ours_i.cpu / floors[i].cpu
    wall[i] = ours_i.wall / floors[i].wall
    microseconds[i] = ours_i.cpu / requests * 1e6
  end
  io.write(("%-62s %5.2f %5.2f  %6.1f\n"):format(what, median(cpu), median(wall), median(microseconds)))
end

local function main(directory, port)
  execute(("cc -O2 -o %s/floor %s/floor.c -lcurl"):format(directory, here))
  start_server(directory, port)
  local loop = core.loop({})
  local origin = loop:origin({ base_url = "http://127.0.0.1:" .. port, concurrency = IN_FLIGHT, http_version = "1.1" })
  run_calls(loop, origin, 100)
  run_in_flight(loop, origin, 1000)
  local calls, many, easy, call, multi = {}, {}, {}, {}, {}
  for i = 1, rounds do
    easy[i] = floor_of(directory, "easy", port, requests, 1)
    calls[i] = measure(run_calls, loop, origin, requests)
    call[i] = floor_of(directory, "call", port, requests, 1)
    multi[i] = floor_of(directory, "multi", port, requests, IN_FLIGHT)
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

local directory = os.tmpname()
os.remove(directory)
execute("mkdir " .. directory)
local ok, message = pcall(main, directory, free_port())
os.execute(("kill $(cat %s/nginx.pid); rm -rf %s"):format(directory, directory))
assert(ok, message)
