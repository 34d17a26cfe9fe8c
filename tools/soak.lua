-- soak.lua COUNT LUA: screens COUNT addresses, 64 at a time, against a sandbox in another process (soak_server.lua).
-- The sandbox fails one request in twenty. Prints one figure a line, and ends with status 1 if one is wrong.

local lfs = require "lfs"
local riskscreen = require "riskscreen"
local scheduler = require "riskscreen.runtime.native.scheduler"
local address_data = require "riskscreen.sandbox.address_data"

local count, lua = tonumber(arg[1]), arg[2]

local CONCURRENCY = 64
local TIMEOUT = 0.5 -- seconds of one screening
local REMEMBERED = 500 -- decisions that the run keeps, so that its memory is full early on
local SAMPLES = 10
local FIRST_FULL = 3 -- the first sample after the caches are full
local GROWTH = 1.1 -- the most that memory may grow after that sample

local harmless = { low = true, whitelist = true }

local function address_of(index)
  return ("0x%040x"):format(index)
end

-- Whether a decision allows a harmful address, or is about another address.
local function is_wrong_yes(decision)
  if decision.action ~= "allow" then
    return false
  elseif decision.address ~= address_of(decision.index) then
    return true
  end
  for _, risk in ipairs(address_data.verdict(decision.address).risks) do
    if not harmless[risk.riskLevel] then
      return true
    end
  end
  return false
end

-- The resident memory of this process in KiB.
local function resident()
  local file = assert(io.open "/proc/self/status")
  local text = file:read "*a"
  file:close()
  return tonumber(text:match "VmRSS:%s*(%d+) kB")
end

local function descriptors()
  local number = 0
  for _ in lfs.dir "/proc/self/fd" do
    number = number + 1
  end
  return number
end

local function sample()
  collectgarbage()
  collectgarbage()
  return { lua = collectgarbage "count", resident = resident(), descriptors = descriptors() }
end

local function screen_all(client, on_decision)
  local taken = 0
  local run = client:screen_all {
    source = function()
      taken = taken + 1
      return taken <= count and address_of(taken) or nil
    end,
    network = "eth",
    concurrency = CONCURRENCY,
    ordered = false,
    remember = REMEMBERED,
  }
  for decision in run do
    on_decision(decision)
  end
end

-- How often each input was reported. The table has its full size before the run, so that it does not count as growth.
local times = {}
for index = 1, count do
  times[index] = 0
end

local before = descriptors()
local server = assert(io.popen(lua .. " tools/soak_server.lua"))
local client = riskscreen.new {
  base_url = assert(server:read "*l", "the sandbox did not start"),
  access_key = riskscreen.sandbox.default_key,
  concurrency = CONCURRENCY,
  timeout = TIMEOUT,
}

local reported, wrong, failed, samples = 0, 0, 0, {}
screen_all(client, function(decision)
  reported = reported + 1
  times[decision.index] = times[decision.index] + 1
  wrong = wrong + (is_wrong_yes(decision) and 1 or 0)
  failed = failed + (decision.error and 1 or 0)
  if reported % math.floor(count / SAMPLES) == 0 then
    samples[#samples + 1] = sample()
  end
end)

local twice, missing = 0, 0
for index = 1, count do
  twice = twice + (times[index] > 1 and 1 or 0)
  missing = missing + (times[index] == 0 and 1 or 0)
end

local failed_requests = assert(client:request("GET", "/soak")).failed
assert(client:request("GET", "/soak/stop"))
client:close()
server:close()
scheduler.loop():close()

local full, last, most_descriptors = samples[FIRST_FULL], samples[#samples], 0
for _, each in ipairs(samples) do
  most_descriptors = math.max(most_descriptors, each.descriptors - before)
end

local holds = true
local function show(name, value, ok)
  holds = holds and ok ~= false
  io.write(("%-22s %s%s\n"):format(name, value, ok == false and "   <- wrong" or ""))
end

show("reported", reported, reported == count)
show("reported_twice", twice, twice == 0)
show("not_reported", missing, missing == 0)
show("wrong_yes", wrong, wrong == 0)
show("failed_requests", failed_requests, failed_requests >= math.floor(count / 20))
show("failed_decisions", failed)
show("lua_kib_early", ("%.0f"):format(full.lua))
show("lua_kib_late", ("%.0f"):format(last.lua), last.lua <= full.lua * GROWTH)
show("resident_kib_early", full.resident)
show("resident_kib_late", last.resident, last.resident <= full.resident * GROWTH)
-- A connection broken by a fault is closed before a new one replaces it.
show("most_descriptors", most_descriptors, most_descriptors <= 2 * CONCURRENCY)
local left = descriptors() - before
show("descriptors_left", left, left == 0)
show("cpu_seconds", ("%.1f"):format(os.clock()))
os.exit(holds and 0 or 1)
