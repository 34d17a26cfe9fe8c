-- Uses up its descriptors and then calls what a client offers, over a transport or over HTTP. It prints the results.
local riskscreen = require "riskscreen"

local ADDRESS = "0xf9410a55b94b72b3be0e33912be89d4f7da143f3"
local ANSWER = '{"success":true,"code":1,"msg":"SUCCESS","status":"SUCCESS","data":%s}'
local data = {
  risks = ('{"address":"%s","network":"eth","whitelist":false,"risks":[]}'):format(ADDRESS),
  ["freeze-events"] = "[{}]",
  counterparties = '{"opponents":[{"dir":"in","risks":[{"riskLevel":"high","riskType":"hack"}]}]}',
  ["risk-screening"] = '{"requestId":"r1","maxScore":"12.5","dirData":{}}',
}
local told, is_away = "not told", false

local function answer(request)
  if is_away then
    return nil, { kind = "network", message = "away", sent = false }
  end
  local name = request.target:match "([^/?]+)%?" or request.target:match "[^/]+$"
  return { status = 200, headers = {}, body = ANSWER:format(data[name]) }
end

local client = riskscreen.new {
  base_url = "http://127.0.0.1:1",
  access_key = "a-key-of-tests",
  transport = ... == "transport" and answer or nil,
  retry = { base_delay = 0.001 },
  on = {
    error = function()
      told = "told"
    end,
  },
}
local function policy_of(rule)
  return riskscreen.policy { rules = { rule, { any = true, action = "allow" } }, not_offered = "unknown" }
end
local risky = policy_of { counterparty = { level = "high" }, action = "block" }
local frozen = policy_of { frozen = true, action = "block" }
local submit = client.kyt.submit
if ... == "transport" then
  riskscreen.sleep(0)
end

local held = {}
for count = 1, 1000 do
  held[count] = io.open "/dev/null"
end
assert(#held < 1000)

if ... ~= "transport" then
  print(client:screen { address = ADDRESS, network = "eth" })
  return
end
print(client:screen({ address = ADDRESS, network = "eth", policy = risky }).action)
print(client:screen({ address = ADDRESS, network = "eth", policy = frozen }).action)
local misspelt = client:screen { address = "0x1", network = "eth" }
print(misspelt.action .. " " .. misspelt.error.kind)
local transaction = submit(client.kyt, { network = "eth", hash = "0x" .. ("ab"):rep(32) })
print((transaction or {}).requestId)
is_away = true
local away = client:screen { address = ADDRESS, network = "eth" }
print(away.action .. " " .. away.error.kind)
print(told)
