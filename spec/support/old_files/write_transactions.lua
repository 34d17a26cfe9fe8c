-- Writes transactions.db, the store of clients and of an inbox of one version, into a directory, as write.lua does for
-- the other files: lua5.4 PATH/write_transactions.lua DIRECTORY
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local path = arg[1] .. "/transactions.db"
local store = assert(riskscreen.store.sqlite(path))

local function client(answer)
  return riskscreen.new {
    base_url = "https://service.example",
    access_key = "key-of-the-old-files",
    transport = (recorder.new(answer)),
    retry = false,
    immediate_results = true,
    endpoints = { kyt_custom_score = { method = "POST", path = "/score" } },
    store = store,
  }
end

local function success(data)
  return recorder.reply(200, { success = true, code = 1, data = data })
end

local function transaction(hash, custom_id)
  return { network = "eth", hash = hash, direction = "in", customId = custom_id }
end

assert(client(success { requestId = "r1" }).kyt:submit(transaction("0x1", "first")))
assert(client(success { requestId = "r2" }).kyt:submit(transaction "0x2"))
assert(client(success { status = 1003, maxScore = "7" }).kyt:submit(transaction("0x3", "third")))
assert(client(success { status = 2001, maxScore = "0", risks = json.empty_array() }).kyt:submit(transaction "0x4"))
client(recorder.failure("network", "reset", true)).kyt:submit(transaction "0x5")
assert(client(success { status = 1003, maxScore = "8" }).kyt:submit_custom_score { hash = "0x6" })

local inbox = riskscreen.webhook.inbox { accept_unauthenticated = true, store = store }
inbox:deliver(
  "POST",
  {},
  json.encode {
    webhookId = "w1",
    eventType = "getTxHashCustomRiskScore",
    timestamp = "2026-01-01 00:00:00",
    data = { requestId = "r9", maxScore = "42", status = 1003 },
  }
)
store:close()

local connection = assert(require("dbd.sqlite3").New(path))
connection:autocommit(true)
for _, sql in ipairs { "UPDATE entries SET expires = NULL", "PRAGMA journal_mode = DELETE" } do
  local statement = assert(connection:prepare(sql))
  assert(statement:execute())
  statement:close()
end
connection:close()
