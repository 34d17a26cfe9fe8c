-- Writes the seed corpora of the Lua fuzzers: honest answers for each operation, answers of the sandbox's scenarios,
-- and refused answers. The policies of the docs get good and bad records. Run it at the root of the checkout: lua5.4
-- spec/fuzz/seed.lua
local core = require "riskscreen.core"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local samples = require "spec.support.samples"
local sandbox = require "riskscreen.sandbox"
local values = require "spec.fuzz.values"

-- The JSON text of a value, its members in the same order in every run.
local function encode(value)
  if type(value) ~= "table" then
    return json.encode(value)
  end
  local parts, is_array = {}, json.is_array(value)
  for key, member in pairs(value) do
    parts[is_array and key or #parts + 1] = (is_array and "" or json.encode(key) .. ":") .. encode(member)
  end
  if is_array then
    return "[" .. table.concat(parts, ",") .. "]"
  end
  table.sort(parts)
  return "{" .. table.concat(parts, ",") .. "}"
end

local function write(target, name, bytes)
  local file = assert(io.open(("spec/fuzz/corpus/%s/%s"):format(target, name), "wb"))
  file:write(bytes)
  file:close()
end

local function answer(operation, status, body, headers)
  return ("%s %d\n%s\n%s"):format(operation, status, headers or "", body)
end

for _, operation in ipairs(operations.list) do
  if operation.path then
    local _, body = samples.of(operation)
    write("response", operation.name, answer(operation.name, 200, encode(body)))
  end
end

local DECISION = '{"action":"allow","reasons":[{"action":"allow","message":"no risk"}]}'
local TAIL = "%014.3f%014.3f%016.0f%016.0f"
local function sealed(name, at, valid_until, decision)
  write("shared_verdict", name, "s1" .. decision .. TAIL:format(at, valid_until, 41, 7))
end
sealed("fresh", 1700000000, 1700000300, DECISION)
sealed("future", 1700000100, 1700000400, DECISION)
sealed("expired", 1690000000, 1690000300, DECISION)
sealed("worse_reason", 1700000000, 1700000300, (DECISION:gsub("allow", "block", 2):gsub("block", "allow", 1)))
sealed("no_json", 1700000000, 1700000300, "{")
write("shared_verdict", "unsealed", "w1" .. DECISION .. TAIL:format(1700000000, 1700000300, 41, 7) .. ("0"):rep(32))

local failure = encode(samples.failure(3016, "RiskType is empty"))
for _, status in ipairs { 200, 204, 301, 400, 401, 403, 404, 407, 408, 429, 500, 503 } do
  local headers = status == 301 and "Location: https://elsewhere/secret/key-0123\n" or "Retry-After: 5\n"
  write("response", "status_" .. status, answer("getAddressRisk", status, failure, headers))
end
write("response", "date", answer("getAddressRisk", 429, "", "Retry-After: Sun, 06 Nov 1994 08:50:37 GMT\n"))
write("response", "page", answer("getAddressRisk", 200, "<html>secret/key-0123</html>"))
write("response", "empty", answer("getAddressRisk", 200, ""))
write("response", "contradiction", answer("getAddressRisk", 200, '{"success":true,"code":2,"data":{}}'))

local twice = '{"success":false,"success":true,"code":1,"data":{}}'
write("response", "duplicate_member", answer("getAddressBasic", 200, twice))
local wrong_message = '{"success":true,"code":1,"msg":"address is invalid","data":{}}'
write("response", "wrong_message", answer("getAddressBasic", 200, wrong_message))
for name, data in pairs {
  at_once = '{"risks":[{"riskLevel":"low","riskType":"scam","riskSource":"Community"}],"status":1003,"time":1}',
  null_risks = '{"risks":null,"maxScore":"5","dirData":{"in":{"1":null}}}',
  nothing = '{"status":1003}',
} do
  local body = '{"success":true,"code":1,"msg":"SUCCESS","data":' .. data .. "}"
  write("response", "submission_" .. name, answer("screenTransaction", 200, body))
end

local function risk_answer(risks)
  local record = { address = samples.address, network = "eth", whitelist = false, risks = risks }
  return encode { success = true, code = 1, msg = "SUCCESS", status = "SUCCESS", data = record }
end

local records = {
  none = json.empty_array(),
  low = { { riskLevel = "low", riskType = "scam", riskSource = "Community" } },
  whitelist = { { riskLevel = "whitelist", riskType = "frozen", riskSource = "User-Defined" } },
  elevated = { { riskLevel = "generally-high", riskType = "online-gambling", riskSource = "Provider" } },
  unseen = { { riskLevel = "severe", riskType = "scam" }, { riskLevel = "low", riskType = "new" } },
  sanctioned = { { riskLevel = "low", riskType = "sanction" }, { riskLevel = "high", riskType = "hack" } },
  null = json.null,
}
for name, risks in pairs(records) do
  write("response", "risks_" .. name, answer("getAddressRisk", 200, risk_answer(risks)))
end

local policies = {
  {},
  { rules = { { level = "high", action = "block" }, { no_risk = true, action = "allow" } } },
  {
    rules = {
      { frozen = true, action = "block" },
      { category = { "exchange" }, action = "allow" },
      { contract = true, whitelist = false, action = "review" },
      { unrecognised = true, action = "allow" },
      { error = { "timeout", "network" }, action = "allow" },
      { level = { "low", "whitelist" }, source = "Provider", action = "allow" },
    },
    provider = "Provider",
    absent_entity = "none",
    not_offered = "unknown",
    lifting = { "other" },
  },
  {
    rules = {
      { counterparty = { direction = "in", level = "high", share = 1 }, action = "block" },
      { counterparty = { type = { "hack" } }, action = "review" },
      { error = true, action = "review" },
      { level = "other", action = "allow" },
      { no_risk = false, action = "allow", name = "other" },
    },
    extend = { level = { "other" }, type = { "other" } },
    not_offered = "skip",
  },
}

-- The bytes of a policy over lookups; a number in the place of a lookup is a failure.
local function case(options, lookups)
  local parts = { values.write(next(options) and options or nil) }
  for i, lookup in ipairs(lookups) do
    parts[i + 1] = type(lookup) == "number" and string.char(lookup) or "\0" .. values.write(lookup)
  end
  return table.concat(parts)
end

local entity = { contract = false, entity = { entityCategory = "exchange", entityCategoryCode = "other" } }
local freezes = {
  { frozenBalance = "12.5", contractAddress = "0xabc", chain = "eth", txTime = 1, event = "other" },
  { destroyedBalance = "0", contractAddress = "0xabc", chain = "eth", txTime = 2, type = "other" },
}
local opponents = {
  {
    dir = "in",
    amount = 1,
    symbol = "USDT",
    risks = { { riskLevel = "high", riskType = "hack" } },
  },
  { dir = "out", amount = 2, symbol = "USDT", risks = {} },
}
for number, options in ipairs(policies) do
  for name, risks in pairs(records) do
    local record = { whitelist = false, risks = risks ~= json.null and risks or nil }
    local lookups = { record, entity, freezes, { opponents = opponents } }
    write("policy", ("policy_%d_%s"):format(number, name), case(options, lookups))
  end
  write("policy", ("policy_%d_failed"):format(number), case(options, { 10, 9, 8, 10 }))
  write("policy", ("policy_%d_half_failed"):format(number), case(options, { { risks = records.low }, 9, 10, 8 }))
end

local keeping = core.decoder { null = "keep" }
for _, scenario in ipairs(sandbox.scenarios) do
  local service = sandbox.new {
    clock = function()
      return 1767225600
    end,
  }
  local reply = service:handle {
    method = "GET",
    target = ("/api/v1/tracker/kya/risks?address=%s&network=%s"):format(scenario.address, scenario.network),
    headers = { ["x-access-key"] = "sandbox-key" },
    body = "",
  }
  -- The risk types differ by a word only.
  if reply.status == 200 and not reply.fault and scenario.network == "eth" and not scenario.name:find "^type%-" then
    -- About the address that the fuzzer's question names, so that the fuzzer starts where the answer is taken.
    local body = reply.body:gsub(scenario.address, samples.address)
    write("response", "scenario_" .. scenario.name, answer("getAddressRisk", 200, encode(keeping:decode(body))))
  end
end

local function event(fields)
  local data = {
    requestId = "r1",
    customId = "c1",
    maxScore = "12.50",
    status = 1003,
    dirData = {
      ["in"] = {
        ["7"] = {
          strategyNo = "7",
          strategyName = "Sanctions",
          score = "12.50",
          details = { { score = "12.50", code = "sanction", name = "Sanctioned" } },
        },
      },
      out = {},
    },
  }
  local body =
    { webhookId = "w1", eventType = "getTxHashCustomRiskScore", timestamp = "2026-01-31 23:59:59", data = data }
  for name, value in pairs(fields) do
    local place = body[name] ~= nil and body or data
    place[name] = value
  end
  return encode(body)
end

local events = {
  plain = {},
  other_type = { eventType = "somethingNew", data = { anything = { 1, 2 } } },
  leap_day = { timestamp = "2024-02-29 00:00:60" },
  no_such_day = { timestamp = "2026-02-29 00:00:00" },
  pending = { status = 1001 },
  no_directions = { dirData = json.null, maxScore = "1e1" },
  score_is_number = { maxScore = 85.5 },
  high = { maxScore = "+099.999999999999999999999" },
  no_id = { webhookId = json.null },
  no_data = { data = json.null },
  risks = { risks = { { riskLevel = "high", riskType = "hack" } }, maxScore = "1" },
  risks_alone = { risks = json.empty_array(), requestId = json.null, maxScore = json.null, dirData = json.null },
  null_strategy = { dirData = { ["in"] = { ["7"] = json.null } }, maxScore = "1" },
  unseen_direction = { dirData = { through = json.empty_array() }, maxScore = "1" },
  negative = { maxScore = "-1", dirData = json.null },
}
write(
  "webhook",
  "duplicate_member",
  '{"webhookId":"a","webhookId":"b","eventType":"x","timestamp":"2026-01-31 23:59:59","data":{}}'
)
for name, fields in pairs(events) do
  write("webhook", name, event(fields))
end
write("webhook", "page", "<html></html>")

-- Entries of the gate's dict.
local function entry(name, action, more, ...)
  local text = ('{"action":"%s"%s,"reasons":[%s]}'):format(action, more, table.concat({ ... }, ","))
  write("verdict", name, "2v1700000000.0000000000000000005" .. text)
end
local allowed = '{"action":"allow","message":"no risk"}'
local blocked = '{"action":"block","message":"a scam","rule":"scams"}'
local risk = '"level":"high","type":"scam","source":"own"'
entry("allow", "allow", "", allowed)
entry("block", "block", ',"degraded":true', blocked, allowed)
entry("risk", "review", "", ('{"action":"review","message":"",%s}'):format(risk))
entry("failure", "unknown", "", '{"action":"unknown","message":"late","kind":"timeout","error":"late"}')
entry("contradiction", "allow", "", allowed, blocked)
entry("empty", "allow", "")
write(
  "verdict",
  "stale",
  "2s1700000000.0001700000001.0000000000000000005" .. ('{"action":"allow","reasons":[%s]}'):format(allowed)
)
write("verdict", "json", ('{"action":"allow","reasons":[%s]}'):format(allowed))

-- Journals: whole, and with lines that are changed, dropped, moved, torn or no lines.
local lines = require "riskscreen.journal.line"

local function journal(change)
  local list, head = {}, { part = 1, seq = 0, hash = lines.FIRST }
  for number = 1, 3 do
    local risks = number == 2 and '[{"riskLevel":"high","riskType":"hack","riskSource":"Provider"}]' or "[]"
    local body = ('{"id":"%d","time":"2026-01-01T00:00:00Z","input":"0xab","network":"eth",'):format(number)
      .. '"action":"allow",'
      .. '"reasons":["none"],"source":"service","record":{"risk":{"whitelist":false,"risks":'
      .. risks
      .. "}}"
    list[number], head = lines.seal(body, head, lines.hasher())
  end
  change(list)
  return table.concat(list, "\n") .. "\n"
end

for name, change in pairs {
  whole = function() end,
  changed = function(list)
    list[2] = list[2]:gsub("allow", "block")
  end,
  dropped = function(list)
    table.remove(list, 2)
  end,
  moved = function(list)
    list[2], list[3] = list[3], list[2]
  end,
  text = function(list)
    list[2] = "no line"
  end,
} do
  write("journal", name, journal(change))
end
write("journal", "torn", journal(function() end):sub(1, -40))
write("journal", "empty", "")
local HEAD = '\0{"part":%s,"seq":%s,"hash":"%s"}\n'
for name, seq in pairs { later = "9", fraction = "3.5", large = "1e300", negative = "-3" } do
  write("journal", "head_" .. name, journal(function() end) .. HEAD:format("1", seq, lines.FIRST))
end
write("journal", "head_alone", HEAD:format("1.5", "0.5", lines.FIRST))

-- Files of decisions for the report: as the command writes them, of other programs, and broken ones.
for name, text in pairs {
  table = "time,address,network,action,reasons,risk_levels,risk_types,note\n"
    .. '2026-11-18T11:06:40Z,0xab,eth,block,"rule ""scam"", high",high,hack; scam,a\n'
    .. "1763463630000,T1,tron,allow,no risks,,,\n",
  other_names = "\239\187\191wallet;chain;verdict;date\r\n"
    .. "0xab;eth;REVIEW;2026-11-18 11:06:40+01:00\r\n0xcd;eth;review;\r\n",
  wrong_count = "address,action\n0xab\n0xcd,allow,more\n0xef,block\n",
  no_action = "address,network\n0xab,eth\n",
  markup = 'address,action\n"</script><script>alert(1)</script>",allow\n<!-- & \226\128\168,block\n',
  lines = '{"address":"0xab","network":"eth","action":"block",'
    .. '"record":{"risks":[{"riskLevel":"high","riskType":"hack"}]}}\n'
    .. '{"time":1763463630,"address":"T1","action":"allow","reasons":["no risk"]}\n\n'
    .. '[1]\n{"lost":3}\n{"action":null}\n',
  counterparties = '{"action":"review","counterparties":{"total":2,"opponents":['
    .. '{"address":"0xab","dir":"in","amount":1e300,'
    .. '"symbol":"USDT","transactionNumbers":"7","risks":[{"riskLevel":"high","riskType":"hack"}]},{"amount":"x"}]}}\n',
  torn = '{"action":"allow"}\n{"action":"al',
  empty = "",
} do
  write("report", name, text)
end

-- Values for the encoder: answers, and the tables that are neither lists nor objects.
for _, operation in ipairs(operations.list) do
  if operation.path then
    local _, body = samples.of(operation)
    write("encoder", operation.name, values.write(body))
  end
end
for name, bytes in pairs {
  -- Tags of values.lua: 4 a byte, 5 a number, 6 a word, 7 a text, 8 a list, 9 an object, 10 a table, 11 an empty array.
  empty_arrays = "\8\3\11\8\0\9\0",
  great_gap = "\10\2\4\1\1\4\200\1",
  small_gap = "\10\2\4\1\1\4\3\1",
  mixed_keys = "\10\3\4\1\1\6\0\1\5\3\1",
  boolean_key = "\10\1\1\1",
  numbers = "\8\12\5\0\5\1\5\2\5\3\5\4\5\5\5\6\5\10\5\11\5\5\4\9\3",
  infinity = "\8\1\5\7",
  marks = "\8\3\11\7\5\0010:[]\7\6\0010:[]\1",
  control_characters = '\7\6\0\31\127"\\/',
} do
  write("encoder", name, bytes)
end
