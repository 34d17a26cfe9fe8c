-- soak_nginx.lua SECONDS LUA: wrk sends requests to the gate in a real nginx of two workers. The service is a sandbox
-- that fails one request in twenty (soak_server.lua). Prints one figure a line, and ends with status 1 if one is wrong.

local lfs = require "lfs"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local address_data = require "riskscreen.sandbox.address_data"

local seconds, lua = tonumber(arg[1]), arg[2]

local WORKERS = 2
local CONNECTIONS = 64
local CONCURRENCY = 32 -- requests to the service, of each worker
local ADDRESSES = 20000
local SAMPLES = 30
local GROWTH = 1.1 -- the most that memory may grow from the second third of the run to the last
local IDLE = 2 -- seconds until every request has ended
local SHOWN = 5 -- lines of the error log

-- nginx logs this for a connection that the sandbox has reset.
local EXPECTED = { "recv%(%) failed %(104" }

-- Short lifetimes and small caches, so that every path to a verdict is taken.
local HTTP = [[
  lua_shared_dict riskscreen 2m;
  keepalive_requests 1000000;
  init_by_lua_block {
    gate = require("riskscreen.nginx.gate").new {
      client = {
        base_url = "URL", access_key = "KEY", concurrency = CONCURRENCY, timeout = 0.5, breaker = { cooldown = 0.2 },
      },
      dict = "riskscreen", lru = 1000, timeout = 1, log = "debug", on_unknown = "block",
      ttl = { allow = 5, review = 5, block = 5, unknown = 0.1 }, stale = { block = 5 },
      address = { argument = "address" }, network = { argument = "network" },
    }
  }
]]

local SERVER = [[
    location = /withdraw {
      access_by_lua_block { gate:enforce() }
      content_by_lua_block { ngx.print(ngx.var.args) }
    }
]]

local harmless = { low = true, whitelist = true }

local function is_harmless(address)
  for _, risk in ipairs(address_data.verdict(address).risks) do
    if not harmless[risk.riskLevel] then
      return false
    end
  end
  return true
end

-- Queries without an address, or with one that two programs could read differently.
local function unclear(address)
  return {
    "network=eth",
    "address=&network=eth",
    "address=" .. address .. "&address=" .. address .. "1&network=eth",
    "address=0x12&network=eth",
    "address=" .. address .. "&network=nowhere",
  }
end

local function write_queries(path)
  local file = assert(io.open(path, "w"))
  for index = 1, ADDRESSES do
    local address = ("0x%040x"):format(index)
    local spelled = index % 3 == 0 and "0x" .. address:sub(3):upper() or address
    file:write(is_harmless(address) and "pass " or "stop ", "address=", spelled, "&network=eth\n")
    if index % 40 == 0 then
      local queries = unclear(address)
      file:write("stop ", queries[index / 40 % #queries + 1], "\n")
    end
  end
  file:close()
end

-- The memory of one worker in KiB, without the shared dict.
local function own_memory(pid)
  local file = assert(io.open(("/proc/%d/status"):format(pid)))
  local text = file:read "*a"
  file:close()
  return tonumber(text:match "RssAnon:%s*(%d+) kB")
end

local function descriptors(pid)
  local number = 0
  for _ in lfs.dir(("/proc/%d/fd"):format(pid)) do
    number = number + 1
  end
  return number
end

-- The highest figures of all workers.
local function sample(server)
  local memory, open = 0, 0
  for _, pid in ipairs(server:workers()) do
    memory, open = math.max(memory, own_memory(pid)), math.max(open, descriptors(pid))
  end
  return { memory = memory, descriptors = open }
end

local function most(samples, field, from, to)
  local result = 0
  for index = math.floor(from * #samples) + 1, math.floor(to * #samples) do
    result = math.max(result, samples[index][field])
  end
  return result
end

local function run_wrk(server, path, samples)
  local command = ("wrk -t2 -c%d -d%ds -s tools/soak_wrk.lua %s -- %s"):format(CONNECTIONS, seconds, server.url, path)
  local pipe = assert(io.popen(command))
  for index = 1, SAMPLES do
    riskscreen.sleep(seconds / SAMPLES)
    samples[index] = sample(server)
  end
  local found = {}
  for name, value in pipe:read("*a"):gmatch "found (%S+) (%d+)" do
    found[name] = tonumber(value)
  end
  pipe:close()
  return found
end

local service = assert(io.popen(lua .. " tools/soak_server.lua"))
local url = assert(service:read "*l", "the sandbox did not start")
local values = { URL = url, KEY = riskscreen.sandbox.default_key, CONCURRENCY = tostring(CONCURRENCY) }
local server = nginx.start {
  workers = WORKERS,
  http = (HTTP:gsub("%u%u%u+", values)),
  server = SERVER,
}
local workers, before, samples = table.concat(server:workers(), " "), sample(server), {}
local queries = server.directory .. "/queries"
write_queries(queries)
local found = run_wrk(server, queries, samples)
riskscreen.sleep(IDLE)
local after = sample(server)

local client = riskscreen.new { base_url = url, access_key = riskscreen.sandbox.default_key }
local failed_requests = assert(client:request("GET", "/soak")).failed
assert(client:request("GET", "/soak/stop"))
client:close()
service:close()

local holds = true
local function show(name, value, ok)
  holds = holds and ok ~= false
  io.write(("%-22s %s%s\n"):format(name, value, ok == false and "   <- wrong" or ""))
end

show("passed", found.passed, found.passed > 0)
show("stopped", found.stopped, found.stopped > 0)
show("wrong_yes", found.wrong, found.wrong == 0)
show("failed", found.failed, found.failed == 0)
show("unanswered", found.unanswered, found.unanswered == 0)
show("failed_lookups", failed_requests, failed_requests > 0)
local early, late = most(samples, "memory", 1 / 3, 2 / 3), most(samples, "memory", 2 / 3, 1)
show("worker_kib_early", early)
show("worker_kib_late", late, late <= early * GROWTH)
show("most_descriptors", most(samples, "descriptors", 0, 1))
-- The gate keeps idle connections to the service.
show("descriptors_left", after.descriptors - before.descriptors, after.descriptors <= before.descriptors + CONCURRENCY)
local same = table.concat(server:workers(), " ") == workers
show("same_workers", same and "yes" or "no", same)
local complaints = server:complaints(EXPECTED)
show("complaints", #complaints, #complaints == 0)
for index = 1, math.min(#complaints, SHOWN) do
  io.write(complaints[index], "\n")
end
server:stop { "." }
os.exit(holds and 0 or 1)
