local addresses = require "riskscreen.address"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local lfs = require "lfs"
local riskscreen = require "riskscreen"
local spellings = require "spec.support.spellings"
local temporary = require "spec.support.temporary"
local virtual_time = require "riskscreen.runtime.virtual"

local START = 1795000000
local A = "0xf9410a55b94b72b3be0e33912be89d4f7da143f3"
local B = "0xa430d6f0a8960fb6b71450c7286de52dd9b28fd3"
local C = "0x16e998a4a64a384aa74dd757e5a6858ab909262e"

-- A client with a virtual clock whose decisions come from `answers`: an action, or an error, by address.
local function new_world(answers)
  local runtime = virtual_time.new()
  local world = { runtime = runtime, answers = answers, times = {}, screened = {}, changes = {} }
  function world.clock()
    return START + runtime.now()
  end
  world.client = riskscreen.sandbox.client { clock = world.clock, runtime = runtime }
  rawset(world.client, "screen", function(_, request)
    world.times[#world.times + 1] = runtime.now()
    world.screened[#world.screened + 1] = request.address
    local answer = world.answers[request.address]
    if type(answer) == "table" then
      return decisions.unknown(answer, request.address, request.network)
    end
    local risks = answer == "allow" and {} or { { riskLevel = "high", riskType = "hack" } }
    local reasons = { { action = answer, message = "it is " .. answer } }
    return decisions.new { action = answer, reasons = reasons, record = { risks = risks } }
  end)
  world.store = riskscreen.store.memory { clock = world.clock }
  return world
end

local function watch_of(world, request)
  request.store = request.store or world.store
  request.network = "eth"
  request.on_change = request.on_change or function(change)
    world.changes[#world.changes + 1] = change
  end
  return riskscreen.watch(world.client, request)
end

local function told(world)
  local list = {}
  for index, change in ipairs(world.changes) do
    list[index] = ("%s %s>%s"):format(change.address:sub(1, 4), change.before or "", change.action)
  end
  world.changes = {}
  return list
end

local timeout = errors.new("timeout", "no answer")

describe("a watch", function()
  after_each(temporary.clean)

  it("reports the first verdicts that are not allow, and then changes only", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    local watch = watch_of(world, { source = { A, B } })
    assert.same({ screened = 2, changed = 1, failed = 0, waiting = 0, finished = true }, watch:once())
    assert.same({ "0xf9 >block" }, told(world))
    watch:once()
    assert.same({}, told(world))
    world.answers[B], world.answers[A] = "review", "allow"
    watch:once()
    local change = world.changes[2]
    assert.same({ "0xf9 block>allow", "0xa4 allow>review" }, told(world))
    assert.same({ "high / hack" }, change.risks)
    assert.same({}, change.risks_before)
    assert.same({ "it is review", "the sandbox answered: this is no real result" }, change.reasons)
    assert.matches("^%x+$", change.id)
  end)

  it("screens an address also where a text with a wrong checksum comes before it", function()
    local right, wrong = "0x52908400098527886e0f7030069857d2e4169ee7", "0x52908400098527886e0F7030069857d2e4169ee7"
    local invalid = errors.new("invalid_argument", "its checksum is wrong")
    local world = new_world { [right] = "block", [wrong] = invalid }
    watch_of(world, { source = { wrong, right } }):once()
    assert.same({ "0x52 >unknown", "0x52 >block" }, told(world))
  end)

  it("delivers changes also after one about an item that is not JSON", function()
    local invalid = errors.new("invalid_argument", "it is no address")
    local world = new_world { [A] = "block", [B] = "block", [print] = invalid }
    local source = { { address = A, fields = { name = "M\252ller" } }, { address = print }, { address = B } }
    local summary = watch_of(world, { source = source }):once()
    assert.same({ 3, 0 }, { summary.changed, summary.waiting })
    assert.same({ name = "M\239\191\189ller" }, world.changes[1].fields)
    assert.equal("a function", world.changes[2].address)
    assert.equal(B, world.changes[3].address)
  end)

  it("keeps the last verdict over failures, and reports unknown after three cycles without an answer", function()
    local world = new_world { [A] = "allow" }
    local watch = watch_of(world, { source = { A } })
    watch:once()
    world.answers[A] = timeout
    assert.equal(1, watch:once().failed)
    watch:once()
    assert.same({}, told(world))
    watch:once()
    watch:once()
    assert.same({ "0xf9 allow>unknown" }, told(world))
    world.answers[A] = "allow"
    watch:once()
    assert.same({ "0xf9 unknown>allow" }, told(world))
  end)

  it("reports an address that is none at once", function()
    local world = new_world { ["no address"] = errors.new("invalid_argument", "not an address") }
    watch_of(world, { source = { "no address" } }):once()
    assert.same({ "no a >unknown" }, told(world))
  end)

  it("repeats a change that was not taken, with the same id and in order", function()
    local world = new_world { [A] = "block", [B] = "block" }
    local refuse, seen = true, {}
    local watch = watch_of(world, {
      source = { A, B },
      on_change = function(change)
        seen[#seen + 1] = change.id
        if refuse then
          return nil, "down"
        end
      end,
    })
    assert.equal(2, watch:once().waiting)
    refuse = false
    assert.equal(0, watch:once().waiting)
    assert.equal(seen[1], seen[#seen - 1])
    assert.are_not.equal(seen[1], seen[#seen])
  end)

  it("keeps a change that was not taken beside those of a program that starts again", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    local function refuse()
      return nil, "down"
    end
    assert.equal(1, watch_of(world, { source = { A, B }, on_change = refuse }):once().waiting)
    world.answers[B] = "review"
    assert.equal(2, watch_of(world, { source = { A, B }, on_change = refuse }):once().waiting)
    assert.equal(0, watch_of(world, { source = { A, B } }):once().waiting)
    assert.same({ "0xf9 >block", "0xa4 allow>review" }, told(world))
  end)

  it("goes on where a cycle ended, and screens nothing twice", function()
    local world = new_world { [A] = "allow", [B] = "allow", [C] = "block" }
    local calls = 0
    local function list()
      local position = 0
      return function()
        position = position + 1
        if position == 3 and calls == 0 then
          calls = 1
          error(errors.new("storage", "the disk is gone"), 0)
        end
        return ({ A, B, C })[position]
      end
    end
    local summary, err = watch_of(world, { source = list }):once()
    assert.is_nil(summary)
    assert.equal("storage", err.kind)
    summary = watch_of(world, { source = list }):once()
    assert.is_true(summary.finished)
    assert.same({ A, B, C }, world.screened)
  end)

  local strict = riskscreen.policy { rules = { { any = true, action = "block" } } }

  it("screens every address again where the policy is another one, and finds the verdicts before", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    local cut
    cut = watch_of(world, {
      source = { A, B },
      on_change = function(change)
        world.changes[1] = change
        cut:stop()
      end,
    })
    cut:run()
    assert.equal(1, #world.screened)
    local first = world.changes[1].id
    told(world)
    world.answers = { [A] = "allow", [B] = "block" }
    watch_of(world, { source = { A, B }, policy = strict }):once()
    assert.same({ A, A, B }, world.screened)
    local second = world.changes[2].id
    assert.same({ "0xf9 block>allow", "0xa4 >block" }, told(world))
    local other = new_world { [A] = "allow", [B] = "block" }
    watch_of(other, { source = { A, B } }):once()
    watch_of(other, { source = { B } }):once()
    assert.not_equal(second, first)
    assert.not_equal(second, other.changes[1].id)
  end)

  it("gives changes of another account or policy other ids", function()
    local ids = {}
    for _, case in ipairs { { "a" }, { "b" }, { "a", strict } } do
      local world = new_world {}
      world.client = riskscreen.sandbox.client { account = case[1], clock = world.clock, runtime = world.runtime }
      watch_of(world, { source = { riskscreen.sandbox.scenario("type-hack").address }, policy = case[2] }):once()
      local id = assert(world.changes[1]).id
      assert.is_nil(ids[id])
      ids[id] = true
    end
  end)

  it("gives the changes after its store was lost other ids, so that no receiver takes them for repeats", function()
    local world, ids = new_world { [A] = "block" }, {}
    for number = 1, 2 do
      watch_of(world, { source = { A } }):once()
      ids[number] = table.remove(world.changes).id
      world.store = riskscreen.store.memory { clock = world.clock }
      world.runtime.sleep(1)
    end
    assert.not_equal(ids[1], ids[2])
  end)

  it("gives every change another id: of any watch, file, machine and store", function()
    local ids = {}
    for _, name in ipairs { "one", "other" } do
      for _ = 1, 2 do -- two machines whose clocks are one
        local world = new_world { [A] = "block", [B] = "block" }
        for _ = 1, 2 do
          watch_of(world, { source = { A, B }, name = name }):once()
          world.answers = { [A] = "allow", [B] = "review" }
        end
        assert.equal(4, #world.changes)
        for _, change in ipairs(world.changes) do
          assert.is_nil(ids[change.id])
          ids[change.id] = true
        end
      end
    end
  end)

  describe("of an address in several rows", function()
    local function row(customer, address)
      return { address = address or A, fields = { customer = customer } }
    end

    -- The changes of a cycle over rows, each with its customer, and the number of screenings.
    local function cycle(world, ...)
      world.screened = {}
      assert(watch_of(world, { source = { ... } }):once())
      local list = {}
      for index, change in ipairs(world.changes) do
        list[index] = ("%s %s>%s"):format(change.fields.customer, change.before or "", change.action)
      end
      world.changes = {}
      return list, #world.screened
    end

    it("tells of each of them, and asks once", function()
      local world = new_world { [A] = "block" }
      local changes, asked = cycle(world, row "one", row "two", row "one")
      assert.same({ { "one >block", "two >block" }, 1 }, { changes, asked })
      assert.same({}, (cycle(world, row "one", row "two")))
      world.answers[A] = "allow"
      changes, asked = cycle(world, row "two", row "one")
      assert.same({ { "two block>allow", "one block>allow" }, 1 }, { changes, asked })
    end)

    it("tells of a row that comes later, wherever it stands", function()
      for _, rows in ipairs { { "one", "two" }, { "two", "one" } } do
        local world = new_world { [A] = "block" }
        assert.same({ "one >block" }, (cycle(world, row "one")))
        assert.same({ "two >block" }, (cycle(world, row(rows[1]), row(rows[2]))))
        assert.same({}, (cycle(world, row(rows[1]), row(rows[2]))))
      end
    end)

    it("is quiet about a row that comes later where the address may pass", function()
      local world = new_world { [A] = "allow" }
      assert.same({}, (cycle(world, row "one")))
      assert.same({}, (cycle(world, row "one", row "two")))
    end)

    it("does not take a row with another text in a column for a further row", function()
      local world = new_world { [A] = "block" }
      assert.same({ "balance 1 >block" }, (cycle(world, row "balance 1")))
      assert.same({}, (cycle(world, row "balance 2")))
      assert.same({ "balance 4 >block", "balance 5 >block" }, (cycle(world, row "balance 4", row "balance 5")))
    end)

    it("keeps little of an address in many rows, and tells of each of them", function()
      local world = new_world { [A] = "block" }
      local list = {}
      for number = 1, 400 do
        list[number] = row("customer " .. number)
      end
      local function tell()
        world.changes = {}
        assert(watch_of(world, { source = list }):once())
        local _, entry = world.store:space("watch:default:verdicts"):each()()
        assert.is_true(#entry < 20000)
        return #world.changes
      end
      assert.equal(400, tell())
      assert.equal(0, tell())
      list[401] = row "one more"
      assert.equal(1, tell())
      table.remove(list, 1)
      assert.equal(0, tell())
      assert.equal(400, world.store:space("watch:default:rows"):count())
      assert.equal(4, #world.screened)
    end)

    it("goes on behind the row at which a cycle ended", function()
      local world = new_world { [A] = "block" }
      local ends = true
      local function source()
        local position = 0
        return function()
          position = position + 1
          if position == 2 and ends then
            ends = false
            error(errors.new("storage", "the disk is gone"), 0)
          end
          return ({ row "one", row "two" })[position]
        end
      end
      assert.is_nil((watch_of(world, { source = source }):once()))
      assert(watch_of(world, { source = source }):once())
      assert.same({ A }, world.screened)
      assert.same({ "one", "two" }, { world.changes[1].fields.customer, world.changes[2].fields.customer })
    end)

    it("takes the verdicts of 0.9.0 as known to each of them", function()
      local world = new_world { [A] = "block" }
      cycle(world, row "one", row "two")
      local verdicts = world.store:space "watch:default:verdicts"
      for key in verdicts:each() do
        verdicts:put(key, '{"cycle":1,"action":"block","risks":["high / hack"]}')
      end
      assert.same({}, (cycle(world, row "one", row "two")))
      assert.same({ "three >block" }, (cycle(world, row "one", row "two", row "three")))
    end)
  end)

  it("leaves nothing behind in its store where the source is missing, broken or empty", function()
    local broken = temporary.path "broken.csv"
    temporary.write(broken, "address,customer\n" .. A .. "\n")
    for _, source in ipairs { temporary.path "nowhere.csv", broken, {} } do
      local world = new_world { [A] = "block" }
      local put = {}
      local batch = world.store.batch
      rawset(world.store, "batch", function(store, changes)
        put[#put + 1] = changes
        return batch(store, changes)
      end)
      assert.is_nil((watch_of(world, { source = source }):once()))
      assert.same({}, put)
      for _, space in ipairs { "watch:default", "watch:default:verdicts" } do
        assert.equal(0, world.store:space(space):count())
      end
    end
  end)

  it("sends one test to its receivers, and keeps nothing", function()
    local world = new_world {}
    local watch = watch_of(world, { source = "nowhere.csv" })
    local release = assert(world.store:lock "watch-default") -- the watch may be running
    assert.is_true(watch:test())
    release()
    local change = world.changes[1]
    assert.same({ true, "default", "unknown", 1 }, { change.test, change.watch, change.action, #world.changes })
    assert.equal(0, world.store:space("watch:default"):count())
    local refusing = watch_of(world, {
      source = "nowhere.csv",
      on_change = function()
        return nil, "down"
      end,
    })
    assert.same({ nil, "down" }, { refusing:test() })
  end)

  it("refuses verdicts of another account, and names the remedy", function()
    local world = new_world { [A] = "block" }
    watch_of(world, { source = { A } }):once()
    world.client = riskscreen.sandbox.client { account = "other", clock = world.clock, runtime = world.runtime }
    local summary, err = watch_of(world, { source = { A } }):once()
    assert.is_nil(summary)
    assert.equal("storage", err.kind)
    assert.matches("give this watch another name", err.message, 1, true)
    assert.is_truthy(watch_of(world, { source = { A }, name = "another" }):once())
  end)

  it("screens an address once whatever the spelling of address and network", function()
    local world = new_world(setmetatable({}, {
      __index = function()
        return "allow"
      end,
    }))
    local source, chains = {}, {}
    for network, list in pairs(spellings) do
      chains[addresses.canonical_network(network)] = true
      for _, spelling in ipairs(list) do
        source[#source + 1] = { address = spelling, network = network }
      end
    end
    local watch = watch_of(world, { source = source, rate = 1000 })
    local count = 0
    for _ in pairs(chains) do
      count = count + 1
    end
    assert.equal(count, watch:once().screened)
  end)

  it("goes on where a kept verdict is damaged", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    watch_of(world, { source = { A, B } }):once()
    local verdicts = world.store:space "watch:default:verdicts"
    for key in verdicts:each() do
      verdicts:put(key, "allow")
    end
    verdicts:put("of another program", "{")
    watch_of(world, { source = { A, B } }):once()
    assert.equal(2, verdicts:count())
    assert.same({ "0xf9 >block", "0xf9 >block" }, told(world))
  end)

  it("forgets addresses that have left the source", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    watch_of(world, { source = { A, B } }):once()
    watch_of(world, { source = { B } }):once()
    assert.equal(1, world.store:space("watch:default:verdicts"):count())
    watch_of(world, { source = { A, B } }):once()
    assert.same({ "0xf9 >block", "0xf9 >block" }, told(world))
  end)

  it("screens no faster than `rate`, and an address once that stands twice in the source", function()
    local world = new_world { [A] = "allow", [B] = "allow", [C] = "allow" }
    watch_of(world, { source = { A, B, A:upper():gsub("^0X", "0x"), C }, rate = 2 }):once()
    assert.same({ A, B, C }, world.screened)
    assert.same({ 0, 0.5, 1 }, world.times)
  end)

  it("spreads the screenings over the interval, cycle after cycle", function()
    local world = new_world { [A] = "allow", [B] = "allow", [C] = "allow" }
    local watch = watch_of(world, { source = { A, B, C }, every = 3000 })
    local cycles = 0
    assert(watch:run(function()
      cycles = cycles + 1
      if cycles == 2 then
        watch:stop()
      end
    end))
    assert.same({ 0, 900, 1800, 3000, 3900, 4800 }, world.times)
  end)

  it("begins its next cycle on time, whatever date is set meanwhile", function()
    for _, step in ipairs { -1e8, -4000, 4000 } do
      local world = new_world { [A] = "allow", [B] = "allow" }
      local clock, is_set = world.clock, false
      world.client = riskscreen.sandbox.client {
        runtime = world.runtime,
        clock = function()
          return clock() + (is_set and step or 0)
        end,
      }
      local watch = watch_of(world, { source = { A, B }, every = 3000 })
      local ends = {}
      assert(watch:run(function()
        ends[#ends + 1] = world.runtime.now()
        is_set = true
        if #ends == 3 then
          watch:stop()
        end
      end))
      assert.is_true(ends[2] - ends[1] <= 6000 and ends[3] - ends[2] <= 6000, step)
    end
  end)

  it("ends a day at the daily cap", function()
    local world = new_world { [A] = "allow", [B] = "allow", [C] = "allow" }
    local watch = watch_of(world, { source = { A, B, C }, daily_cap = 2, every = 3600 })
    local summary = watch:once()
    assert.same({ 2, false }, { summary.screened, summary.finished })
    assert.equal(0, watch:once().screened)
    assert(watch:run(function()
      watch:stop()
    end))
    assert.same({ A, B, C }, world.screened)
    local midnight = (math.floor(START / 86400) + 1) * 86400 - START
    assert.is_true(math.abs(midnight - world.times[3]) < 0.001)
  end)

  it("gives the screenings of a day once, whatever date is set meanwhile", function()
    local world, source = new_world {}, {}
    for index = 1, 20 do
      source[index] = ("0x%040x"):format(index)
    end
    local started = (math.floor(START / 86400) + 1) * 86400 + 600 -- ten minutes past midnight
    local step = 0
    local client = riskscreen.sandbox.client {
      runtime = world.runtime,
      clock = function()
        return started + step + world.runtime.now()
      end,
    }
    local store = riskscreen.store.memory()
    local function screened(seconds)
      world.runtime.sleep(seconds)
      -- Each time as another program: only the store goes on.
      local request = { source = source, daily_cap = 2, rate = 1000, store = store }
      return watch_of({ client = client, changes = {} }, request):once().screened
    end
    assert.equal(2, screened(0))
    for _, to in ipairs { -1200, 0, -1200, 0, -1e8, 0, -1e8 } do
      step = to
      assert.equal(0, screened(1), to)
    end
    assert.equal(2, screened(86400))
    assert.equal(0, screened(1))
    step = 0
    assert.equal(2, screened(1))
  end)

  it("repeats a delivery with longer and longer pauses while it waits", function()
    local world = new_world { [A] = "block" }
    local attempts = {}
    local watch = watch_of(world, {
      source = { A },
      every = 600,
      on_change = function()
        attempts[#attempts + 1] = world.runtime.now()
        return #attempts == 5 or nil, "down"
      end,
    })
    local cycles = 0
    watch:run(function()
      cycles = cycles + 1
      if cycles == 2 then
        watch:stop()
      end
    end)
    assert.same({ 0, 5, 15, 35, 75 }, attempts)
  end)

  it("is refused where another process watches", function()
    local world = new_world { [A] = "allow" }
    local path = temporary.path "state.db"
    local one, other = assert(riskscreen.store.sqlite(path)), assert(riskscreen.store.sqlite(path))
    local release = assert(one:lock "watch-default")
    local summary, err = watch_of(world, { source = { A }, store = other }):once()
    assert.is_nil(summary)
    assert.equal("locked", err.reason)
    release()
    one:close()
    other:close()
  end)

  it("is refused where another process watches by another name of the store", function()
    local world = new_world { [A] = "allow" }
    local path, link = temporary.path "state.db", temporary.path "link.db"
    local one = assert(riskscreen.store.sqlite(path))
    assert(lfs.link(path, link, true))
    local other = assert(riskscreen.store.sqlite(link))
    local release = assert(one:lock "watch-default")
    local summary, err = watch_of(world, { source = { A }, store = other }):once()
    assert.same({ nil, "locked" }, { summary, err.reason })
    release()
    assert(watch_of(world, { source = { A }, store = other }):once())
    one:close()
    other:close()
  end)

  it("reads a CSV file with further columns, which the change has", function()
    local world = new_world { [A] = "block", [B] = "allow" }
    local path = temporary.path "customers.csv"
    temporary.write(path, "\239\187\191customer;Address;network\r\nC-1;" .. A .. ";eth\r\nC-2;" .. B .. ";\r\n")
    watch_of(world, { source = path }):once()
    assert.equal(1, #world.changes)
    assert.same({ customer = "C-1" }, world.changes[1].fields)
  end)

  it("fails where the file has no addresses or a row that cannot be read", function()
    local world = new_world {}
    local path = temporary.path "customers.csv"
    for content, message in pairs {
      ["customer\nC-1\n"] = "line 1: the file has no column 'address'",
      ["address,customer\n" .. A .. "\n"] = "line 2: it has 1 field, and the first line has 2",
    } do
      temporary.write(path, content)
      local summary, err = watch_of(world, { source = path }):once()
      assert.is_nil(summary)
      assert.matches(message, err.message, 1, true)
    end
  end)

  it("fails on a source without addresses, and forgets no verdict", function()
    local world = new_world { [A] = "block" }
    local path = temporary.path "customers.csv"
    temporary.write(path, "address\n" .. A .. "\n")
    watch_of(world, { source = path }):once()
    assert.equal(1, #world.changes)
    temporary.write(path, "address\n")
    for _, source in ipairs { path, {} } do
      local summary, err = watch_of(world, { source = source }):once()
      assert.is_nil(summary)
      assert.equal("invalid_argument", err.kind)
    end
    temporary.write(path, "address\n" .. A .. "\n")
    watch_of(world, { source = path }):once()
    assert.equal(1, #world.changes)
  end)

  it("reads a file again that is changed in a cycle, and forgets no verdict", function()
    local function content(from, to, step)
      local lines = { "address" }
      for number = from, to, step do
        lines[#lines + 1] = ("0x%040x"):format(number)
      end
      return table.concat(lines, "\n") .. "\n"
    end
    local world, path =
      new_world(setmetatable({}, {
        __index = function()
          return "block"
        end,
      })), temporary.path "customers.csv"
    temporary.write(path, content(1, 4000, 1))
    assert(lfs.touch(path, 1700000000))
    local summary = assert(watch_of(world, {
      source = path,
      rate = 1000,
      on_change = function()
        if #world.screened == 10 then
          temporary.write(path, content(4010, 1, -1))
        end
      end,
    }):once())
    assert.is_true(summary.finished)
    assert.equal(4010, summary.screened)
    assert.equal(4010, world.store:space("watch:default:verdicts"):count())
    summary = assert(watch_of(world, { source = path, rate = 1000 }):once())
    assert.same({ 4010, 0 }, { summary.screened, summary.changed })
  end)

  it("ends at a failure that every address would meet, such as a refused key, and goes on there", function()
    local refused = errors.new("unauthorized", "the key is refused")
    local world = new_world { [A] = "block", [B] = refused, [C] = refused }
    local summary, err = watch_of(world, { source = { A, B, C } }):once()
    assert.same({ nil, "unauthorized" }, { summary, err.kind })
    assert.same({ A, B }, world.screened)
    world.answers, world.screened = { [A] = "block", [B] = "allow", [C] = "allow" }, {}
    summary = assert(watch_of(world, { source = { A, B, C } }):once())
    assert.is_true(summary.finished)
    assert.same({ B, C }, world.screened)
  end)

  it("fails on a source that ends by an error or has a gap, and forgets no verdict", function()
    local world = new_world { [A] = "block", [B] = "block" }
    watch_of(world, { source = { A, B } }):once()
    local function broken()
      local items = { A }
      return function()
        return table.remove(items), "the database is away"
      end
    end
    local function none() end
    local faults = {
      ["the database is away"] = broken,
      ["without a gap"] = { A, nil, B },
      ["a list, a function"] = none,
      ["is an open file"] = io.tmpfile, -- its rows would be read in another way
    }
    for message, source in pairs(faults) do
      local summary, err = watch_of(world, { source = source }):once()
      assert.is_nil(summary)
      assert.equal("invalid_argument", err.kind)
      assert.matches(message, err.message, 1, true)
    end
    watch_of(world, { source = { A, B } }):once()
    assert.equal(2, #world.changes)
  end)

  it("raises misuse at the caller's line", function()
    local world = new_world {}
    for message, request in pairs {
      ["on_change or webhook must say where changes go"] = { source = {}, store = world.store },
      ["store must be made by riskscreen.store"] = { source = {}, store = {}, on_change = print },
      ["webhook.url must be"] = { source = {}, store = world.store, webhook = { url = "x", secret = ("s"):rep(16) } },
      ["at least 16 bytes"] = { source = {}, store = world.store, webhook = { url = "https://x", secret = "s" } },
    } do
      local ok, problem = pcall(riskscreen.watch, world.client, request)
      assert.is_false(ok)
      assert.matches(message, problem, 1, true)
    end
  end)
end)
