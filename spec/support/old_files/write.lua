-- Writes the files of one version into a directory, for spec/integration/old_files_spec.lua. Run it in a checkout of
-- that version, after ./dev build and eval "$(./dev env)": lua5.4 PATH/write.lua DIRECTORY
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"

local directory = arg[1]
assert(os.execute("mkdir -p " .. directory))

local function path_of(name)
  return directory .. "/" .. name
end

local function write(name, text)
  local file = assert(io.open(path_of(name), "wb"))
  file:write(text)
  file:close()
end

-- Three decisions, with the answers, and a chain with a key.
local names = { "type-sanction", "clean-eth", "generally-high-eth" }
local journal = assert(riskscreen.journal.file(path_of "journal.jsonl", { record = true, key = "a key of old files" }))
local client = riskscreen.sandbox.client { journal = journal }
for _, name in ipairs(names) do
  local scenario = riskscreen.sandbox.scenario(name)
  client:screen { address = scenario.address, network = scenario.network, request_id = name }
end
journal:close()

write("deny.csv", "address,network,note\n0x12ae66cdc592e10b60f9097a7b0d3c59fce29876,eth,stolen in May\n")
assert(riskscreen.lists.build { output = path_of "deny.rsl", inputs = { path_of "deny.csv" }, title = "old" })

-- An entry of the program, a submitted transaction, and the verdicts of a watch.
local store = assert(riskscreen.store.sqlite(path_of "store.db"))
assert(store:space("deposits"):put("deposit-17", "allow"))
local keeping = riskscreen.sandbox.client { store = store }
local payout = { network = "eth", hash = "0x5f16", direction = "sent", customId = "payout-4" }
local transaction = assert(keeping.kyt:submit(payout))
write("ticket.txt", transaction:ticket())
local watch = keeping:watch {
  source = { riskscreen.sandbox.scenario("type-sanction").address, riskscreen.sandbox.scenario("clean-eth").address },
  network = "eth",
  store = store,
  on_change = function() end,
}
assert(watch:once())
store:close()

-- A run over a file that was killed.
local rows = { "address,network" }
for number = 1, 40 do
  rows[#rows + 1] = ("0x%040x,eth"):format(number)
end
write("input.csv", table.concat(rows, "\n") .. "\n")
os.execute(
  ("timeout -s KILL 1.5 lua5.4 bin/riskscreen.in screen -q --file %s --set rate_limit.rate=10"):format(
    path_of "input.csv"
  )
)

-- The decisions that a gate keeps in its shared dict.
local world = require("spec.support.cache_world").new()
world.answer = function(address, network)
  return world.decision(address:find "1$" and "block" or "allow", address, network)
end
local cache = world:worker()
for number = 1, 2 do
  cache:get(("0x%040x"):format(number), "eth")
end
local entries = {}
for key, entry in pairs(world.dict.entries) do
  -- Lua 5.4 writes a whole float with ".0", and LuaJIT in nginx does not.
  entries[(key:gsub("%.0$", ""))] = { value = entry.value, flags = entry.flags }
end
write("dict.json", json.encode { time = world.time, entries = entries })

-- Another process makes one file of each database and its log. Entries never expire, so that the tests do not.
local SETTLE = [[
local connection = assert(require("dbd.sqlite3").New(arg[1]))
connection:autocommit(true)
for _, sql in ipairs { "UPDATE entries SET expires = NULL", "PRAGMA journal_mode = DELETE" } do
  local statement = assert(connection:prepare(sql))
  assert(statement:execute())
  statement:close()
end
connection:close()
]]
write("settle.lua", SETTLE)
local command =
  "cd %s && for name in store.db input.results.csv.state; do lua5.4 settle.lua $name; done; rm settle.lua *.lock*"
os.exit(os.execute(command:format(directory)), true)
