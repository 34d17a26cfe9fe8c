-- The cost of the library's Lua code for a lookup: from the caller's table to the decision. The transport answers at
-- once, so there are no sockets. It stands beside minimal code written by hand. Usage: ./dev bench
-- layers, or lua bench/layers.lua [rounds] [calls a round] with riskscreen on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local json = require("riskscreen.json")
local reports = require("support.report")
local riskscreen = require("riskscreen")

local rounds = tonumber(arg[1]) or reports.rounds(15, 5)
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
    http_version = "1.1",
    body = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"'
      .. asked
      .. '","network":"eth","whitelist":false,'
      .. '"risks":[{"riskLevel":"low","riskType":"online-gambling","riskSource":"Provider"}]}}',
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
      local value = json.decode(answer.body)
      assert(answer.status == 200 and value.success and value.data.address == address)
      return value.data.risks[1].riskLevel == "low" and "allow"
    end,
  },
  {
    what = "client:call",
    at_most = 7,
    run = function(address)
      local record = client:call("getAddressRisk", { address = address, network = "eth" })
      return record.risks[1].riskLevel == "low" and "allow"
    end,
  },
  {
    what = "client:screen",
    at_most = 10,
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

local report = reports.new({
  name = "layers",
  title = "The cost of the Lua code",
  method = ("median of %d interleaved rounds of %d calls, CPU time, no I/O"):format(rounds, calls),
})
local rows = {}
for index, way in ipairs(ways) do
  rows[index] = { what = way.what, value = bed.median(costs[index]) * 1e6, ours = index > 1 }
end
report:chart({ title = "CPU time of a lookup", unit = "us", rows = rows })
for index, way in ipairs(ways) do
  local ratios = {}
  for round = 1, rounds do
    ratios[round] = costs[index][round] / costs[1][round]
  end
  if way.at_most then
    local what = way.what .. ": times the cost by hand"
    report:goal({ what = what, value = bed.median(ratios), at_most = way.at_most })
  end
end
report:finish()
