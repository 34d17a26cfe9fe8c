-- The time of Redis, by which the verdicts of all machines count: a stand-in for Redis whose clock is set.
local purges = require "riskscreen.nginx.fleet.purges"
local shared_dict = require "spec.support.shared_dict"

-- Lua 5.1 cannot wait inside a pcall. Inside nginx there is LuaJIT, which can.
local it_waits = (_VERSION ~= "Lua 5.1" or rawget(_G, "jit")) and it or pending

local SKEW = 1 -- seconds
local now, redis_time, delay, records, forgotten, dict
local purged -- by address
local on_forget, on_add

local function new_client()
  local client = {}
  function client.call(_, command, ...)
    if command == "TIME" then
      now = now + delay
      return { ("%d"):format(math.floor(redis_time + now)), "0" }
    elseif command == "XREVRANGE" then
      return { records[#records] }
    elseif command == "EVAL" then
      local last_id, _, id, text = select(4, ...)
      local problem = on_add()
      if problem then
        return nil, problem
      elseif last_id ~= (records[#records] or { "" })[1] then
        return 0
      end
      table.insert(records, { id, { "r", text } })
      return id
    end
    error("an unknown command: " .. command)
  end
  function client.pipeline(_, commands)
    local id, own, behind = commands[2][3], {}, {}
    local most = tonumber(commands[3][3])
    for _, record in ipairs(records) do
      if record[1] == id then
        own[1] = record
      elseif own[1] and #behind < most then
        behind[#behind + 1] = record
      end
    end
    return { 0, own, behind[1] and { { "purges", behind } } or false }
  end
  return client
end

local function new_machine(its_dict)
  return purges.new {
    dict = its_dict or dict,
    prefix = "fleet:",
    stream = "purges",
    keys = { "a secret of the fleet's gates" },
    delay = 5,
    skew = SKEW,
    client = new_client(),
    forget = function(address)
      purged[address] = true
      on_forget()
    end,
    forget_all = function()
      forgotten = forgotten + 1
      on_forget()
    end,
    spellings = function(address)
      return { address }
    end,
    now = function()
      return now
    end,
    identity = function()
      return 1
    end,
    exiting = function()
      return false
    end,
    count = function() end,
    log = function() end,
  }
end

local function new_dict()
  return shared_dict.new(function()
    return 0
  end)
end

local machine

before_each(function()
  now, redis_time, delay, records, forgotten, purged = 1000, 1700000000, 0, {}, 0, {}
  dict = new_dict()
  on_forget, on_add = function() end, function() end
  machine = new_machine()
  machine:listen(1)
end)

describe("the clock of Redis", function()
  it("is learnt, and followed when it is set forward", function()
    assert.equal(1700000000, machine:offset())
    redis_time = redis_time + 3600
    machine:listen(1)
    assert.equal(1700003600, machine:offset())
  end)

  it("ends all verdicts from before when it is set back, because they would count for longer", function()
    local asked_at_purge, before = machine:number(), forgotten
    assert.is_false(machine:is_purged("0xab", asked_at_purge))
    redis_time = redis_time - 2 * SKEW
    machine:listen(1)
    assert.is_true(machine:is_purged("0xab", asked_at_purge))
    assert.equal(before + 1, forgotten)
    assert.is_false(machine:is_purged("0xab", machine:number()))
    machine:listen(1)
    assert.equal(before + 1, forgotten)
  end)

  it("is not believed where Redis has told it late", function()
    delay, redis_time = 2 * SKEW, redis_time + 3600
    machine:listen(1)
    assert.equal(1700000000, machine:offset())
  end)
end)

describe("a purge", function()
  local other, known -- a machine, and a purge from before

  local function fail()
    return "no connection"
  end

  local function ends_known(address)
    machine:listen(3)
    other:listen(3)
    for _, each in ipairs { machine, other } do
      assert.is_true(each:is_purged(address, known))
      assert.is_false(each:is_purged(address, each:number()))
    end
  end

  before_each(function()
    other = new_machine(new_dict())
    other:listen(1)
    machine:listen(1)
    known = other:number()
  end)

  it("is told again where another machine has told one at the same time", function()
    on_add = function()
      on_add = function() end
      assert.is_true(other:publish "0xcd")
    end
    assert.is_true(machine:publish "0xab")
    local before = forgotten
    ends_known "0xab"
    ends_known "0xcd"
    assert.equal(before, forgotten)
  end)

  it("ends all verdicts later if the dict has no room", function()
    local set = dict.set
    function dict.set()
      return nil, "no memory"
    end
    local ok, problem = machine:publish "0xab"
    dict.set = set
    assert.is_falsy(ok)
    assert.matches("no memory", problem)
    ends_known "0xab"
  end)

  it_waits("ends all verdicts if its worker is killed while it tells it", function()
    on_add = coroutine.yield
    coroutine.wrap(machine.publish)(machine, "0xab")
    on_add = function() end
    machine = new_machine()
    local count = #records
    machine:listen(1)
    assert.equal(count, #records) -- its worker may still tell it
    now = now + 10
    ends_known "0xab"
  end)

  it_waits(
    "keeps this machine from the verdicts of Redis until it is told, also if another purge is told meanwhile",
    function()
      on_add = coroutine.yield
      local under_way = coroutine.wrap(machine.publish)
      under_way(machine, "0xab")
      for _, first_fails in ipairs { true, false } do
        on_add = fail
        assert.is_nil((machine:publish "0xab"))
        on_add = function() end
        if first_fails then
          assert.is_true(under_way())
        else
          assert.is_true(machine:publish "0xab")
        end
        local last = tonumber(records[#records][1]:match "%d+")
        assert.is_true(machine:is_purged("0xab", last))
        assert.is_true(machine:is_purged("0xcd", last))
        assert.is_nil(machine:number())
      end
      ends_known "0xab"
    end
  )

  for _, lost in ipairs { "due", "untold", "" } do
    it("is not undone by a full dict that drops its keys: " .. (lost == "" and "no room" or lost), function()
      on_add, dict.full = fail, lost == ""
      for _, address in ipairs { "0xab", "0xac" } do
        assert.is_nil((machine:publish(address)))
      end
      dict.full = false
      dict.entries["fleet:" .. lost] = nil
      assert.is_true(machine:is_purged("0xab", known))
      now = now + 10
      machine:listen(1)
      assert.is_true(machine:is_purged("0xab", known))
      on_add = function() end
      now = now + 10
      ends_known "0xab"
    end)
  end

  it_waits("that is told late hides no later one that is not told", function()
    on_add = coroutine.yield
    local under_way = coroutine.wrap(machine.publish)
    under_way(machine, "0xab")
    on_add = function() end
    now = now + 10
    machine:listen(1)
    assert.is_true(under_way())
    on_add = fail
    assert.is_nil((machine:publish "0xcd"))
    on_add = function() end
    other:listen(3)
    known = other:number()
    ends_known "0xcd"
  end)

  it("is not told for ever once all are told", function()
    on_add = fail
    for number = 1, 20 do
      assert.is_nil((machine:publish("0x" .. number)))
    end
    on_add = function() end
    local count = #records
    machine:listen(2)
    assert.equal(count + 1, #records)
    for number = 1, 20 do
      ends_known("0x" .. number)
    end
  end)
end)

describe("a machine that begins", function()
  it("takes no verdict from before, whatever record stands last in Redis", function()
    local first = records[1]
    assert.is_true(machine:publish "0xab")
    local known = tonumber(records[2][1]:match "%d+")
    for _, record in ipairs { { "5-0", { "r", "x" } }, first } do
      records = { record }
      now = now + 60
      local other = new_machine(new_dict())
      other:listen(1)
      assert.is_true(other:is_purged("0xab", known))
      assert.is_false(other:is_purged("0xab", other:number()))
    end
  end)

  it("takes none where it has purged the address before it begins", function()
    local known = machine:number()
    local other = new_machine(new_dict())
    records = { { "5-0", { "r", "x" } } }
    assert.is_true(other:publish "0xab")
    assert.is_true(other:is_purged("0xab", known))
  end)

  it("ends no verdict on the other machines", function()
    local before = forgotten
    now = now + 60
    new_machine(new_dict()):listen(1)
    machine:listen(1)
    assert.equal(before + 1, forgotten) -- its own
    assert.is_true(machine:publish "0xab")
    machine:listen(1)
    assert.equal(before + 1, forgotten)
  end)
end)

describe("a machine that listens", function()
  it("forgets all where a record between two others was removed, or cannot be read", function()
    local other = new_machine(new_dict())
    for _, spoil in ipairs {
      function()
        table.remove(records, #records - 1)
      end,
      function()
        records[#records - 1][2][2] = records[#records - 1][2][2]:gsub("0xab", "0xcd")
      end,
    } do
      other:listen(1)
      other:listen(1)
      local known, before = other:number(), forgotten
      assert(machine:publish "0xab")
      assert(machine:publish "0xef")
      spoil()
      other:listen(1)
      assert.equal(before + 1, forgotten)
      for _, address in ipairs { "0xab", "0x12" } do
        assert.is_true(other:is_purged(address, known))
      end
      assert.is_false(other:is_purged("0xab", other:number()))
    end
  end)

  it("has heard of all purges only when it has read all records", function()
    local other = new_machine(new_dict())
    for number = 1, 250 do
      assert.is_true(other:publish("0x" .. number))
    end
    now = now + 10
    repeat
      machine:listen(1)
      assert.is_true(purged["0x250"] or machine:heard_at() < now)
    until machine:heard_at() == now
  end)

  it("takes no verdict from before its own purge while it hears of earlier ones", function()
    for _, is_missing in ipairs { false, true } do
      local other = new_machine(new_dict())
      assert.is_true(other:publish "0xab")
      assert.is_true(other:publish "0xcd")
      if is_missing then
        table.remove(records, #records - 1)
      end
      assert.is_true(machine:publish "0xab")
      local own = tonumber(records[#records][1]:match "%d+")
      local seen = 0
      on_forget = function()
        seen = seen + 1
        assert.is_true(machine:is_purged("0xab", own - 1))
      end
      machine:listen(1)
      assert.equal(is_missing and 2 or 3, seen)
      assert.is_false(machine:is_purged("0xab", own))
    end
  end)

  it("takes over from a worker that has crashed, also when the date is set back", function()
    dict:set("fleet:listener", ("%.3f 7"):format(now + 3))
    redis_time = redis_time + 10
    machine:listen(1)
    assert.equal(1700000000, machine:offset())
    now = now + 3
    machine:listen(1)
    assert.equal(1700000010, machine:offset())
  end)
end)
