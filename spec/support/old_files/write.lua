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
local watch = riskscreen.watch(keeping, {
  source = { riskscreen.sandbox.scenario("type-sanction").address, riskscreen.sandbox.scenario("clean-eth").address },
  network = "eth",
  store = store,
  on_change = function() end,
})
assert(watch:once())
store:close()

-- The verdicts of a watch that was stopped in its second cycle.
local watched = assert(riskscreen.store.sqlite(path_of "watch.db"))
local sanctioned, hacked = riskscreen.sandbox.scenario "type-sanction", riskscreen.sandbox.scenario "type-hack"
local source = { { address = sanctioned.address, network = "ethereum" }, { address = hacked.address, network = "eth" } }
local function nothing() end
local first = riskscreen.watch(keeping, { source = source, store = watched, on_change = nothing })
assert(first:once())
local second
second = riskscreen.watch(keeping, {
  source = function()
    local index = 0
    return function()
      index = index + 1
      if index == 2 then
        second:stop()
      end
      return source[index]
    end
  end,
  store = watched,
  on_change = nothing,
})
assert(second:once())
watched:close()

-- A queue, as the commands that make it again: one source with an outcome that is remembered, a job under way and its
-- follower, and a job that waits.
local server = require("spec.support.redis").start()
local redis = riskscreen.redis.new { url = server.url }
local queue = riskscreen.queue.new { redis = redis }
local function input(name, network)
  local scenario = riskscreen.sandbox.scenario(name)
  return { address = scenario.address, network = network or scenario.network }
end
local rows = { input "clean-eth" }
assert(queue:add("old.csv", rows))
assert(queue:worker({ client = riskscreen.sandbox.client {}, name = "old" }):run { drain = true })
rows[2], rows[3], rows[4] = input "type-hack", input "type-hack", input "type-sanction"
assert(queue:add("old.csv", rows))
local base = redis:key "queue:default:"
redis:call("XREADGROUP", "GROUP", "workers", "dead", "COUNT", 1, "STREAMS", base .. "jobs", ">")
local commands = {}
for _, key in ipairs(redis:call("KEYS", base .. "*")) do
  local kind = redis:call("TYPE", key)
  if kind == "string" then
    commands[#commands + 1] = { "SET", key, (redis:call("GET", key)) }
  elseif kind == "hash" then
    for name, value in pairs(require("riskscreen.redis").fields(redis:call("HGETALL", key))) do
      commands[#commands + 1] = { "HSET", key, name, tostring(value) }
    end
  elseif kind == "list" then
    for _, value in ipairs(redis:call("LRANGE", key, 0, -1)) do
      commands[#commands + 1] = { "RPUSH", key, value }
    end
  else
    for _, entry in ipairs(redis:call("XRANGE", key, "-", "+")) do
      commands[#commands + 1] = { "XADD", key, entry[1] }
      for _, value in ipairs(entry[2]) do
        table.insert(commands[#commands], value)
      end
    end
  end
end
commands[#commands + 1] = { "XGROUP", "CREATE", base .. "jobs", "workers", "0" }
commands[#commands + 1] = { "XREADGROUP", "GROUP", "workers", "dead", "COUNT", "1", "STREAMS", base .. "jobs", ">" }
write("queue.json", json.encode(commands))
require("spec.support.redis").stop_all()

-- A run over a file that was killed.
rows = { "address,network" }
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
local command = "cd %s && for name in store.db watch.db "
  .. "input.results.csv.state; do lua5.4 settle.lua $name; done; rm settle.lua *.lock*"
os.exit(os.execute(command:format(directory)), true)
