-- The cost of the library's Lua code for a lookup: from the caller's table to the decision. The transport answers at
-- once, so there are no sockets and no decoding. Microseconds of CPU time, medians of interleaved rounds, beside
-- minimal code written by hand. Usage: lua bench/layers.lua [rounds] [calls a round], with riskscreen on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local riskscreen = require("riskscreen")

local rounds = tonumber(arg[1]) or 15
local calls = tonumber(arg[2]) or 20000
local DIFFERENT = 1000 -- addresses

local addresses = {}
for index = 1, DIFFERENT do
  addresses[index] = ("0x%040x"):format(index)
end

local HEADERS = { ["content-type"] = "application/json", ["content-length"] = "300", server = "nginx" }

local asked -- address

-- A reply as a transport makes it for each request.
local function reply()
  return {
    status = 200,
    headers = HEADERS,
    size = 300,
    http_version = "1.1",
    value = {
      success = true,
      code = 1,
      msg = "SUCCESS",
      data = {
        time = 1767225600000,
        address = asked,
        network = "eth",
        whitelist = false,
        risks = { { riskLevel = "low", riskType = "online-gambling", riskSource = "Provider" } },
      },
    },
  }
end

local client = riskscreen.new({
  base_url = "http://127.0.0.1:1",
  access_key = "0123456789abcdef0123456789abcdef",
  transport = reply,
})

local ways = {
  {
    what = "by hand",
    run = function(address)
      local target = "/api/v1/tracker/kya/risks?address=" .. address .. "&network=eth"
      local answer = #target > 0 and reply()
      assert(answer.status == 200 and answer.value.success and answer.value.data.address == address)
      return answer.value.data.risks[1].riskLevel == "low" and "allow"
    end,
  },
  {
    what = "client:call",
    run = function(address)
      local record = client:call("getAddressRisk", { address = address, network = "eth" })
      return record.risks[1].riskLevel == "low" and "allow"
    end,
  },
  {
    what = "client:screen",
    run = function(address)
      return client:screen({ address = address, network = "eth" }).action
    end,
  },
}

local function cpu_of(run)
  collectgarbage()
  local before = os.clock()
  for index = 1, calls do
    asked = addresses[index % DIFFERENT + 1]
    assert(run(asked) == "allow")
  end
  return (os.clock() - before) / calls
end

local costs = {}
for index, way in ipairs(ways) do
  cpu_of(way.run)
  costs[index] = {}
end
for round = 1, rounds do
  for index, way in ipairs(ways) do
    costs[index][round] = cpu_of(way.run)
  end
end

local version = rawget(_G, "jit") and rawget(_G, "jit").version or _VERSION
io.write(("%s, median of %d rounds of %d calls, no I/O\n"):format(version, rounds, calls))
for index, way in ipairs(ways) do
  io.write(("%-16s %8.2f us\n"):format(way.what, bed.median(costs[index]) * 1e6))
end
