-- The events of an inbox in each of its places. The workers here have a virtual clock. In a real nginx:
-- spec/in_nginx/inbox_nginx.lua.
local dicts = require "riskscreen.nginx.webhook.dict"
local places = require "riskscreen.webhook.places"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local shared_dict = require "spec.support.shared_dict"
local waiters = require "riskscreen.webhook.waiters"

local TTL = 100 -- seconds

local clock, dict, store, looks, kept_now

local function now()
  return clock
end

before_each(function()
  clock, looks = 1000, {}
  dict = shared_dict.new(now)
  store = riskscreen.store.memory { clock = now }
  kept_now, runtime.now = runtime.now, now
end)

after_each(function()
  runtime.now = kept_now
end)

local function attend(one, awaited)
  local looking = one:attend(awaited)
  looks[#looks + 1] = function()
    one:look(looking)
  end
end

-- Lets all that wait look once.
local function look()
  clock = clock + 1
  for _, run in ipairs(looks) do
    run()
  end
end

local function in_dict()
  return waiters.new(dicts.new(dict, { limit = 100, ttl = TTL, poll = 1, time = now, now = now }), TTL)
end

local function in_store(account)
  return waiters.new(places.store(store, account or "a", TTL, waiters.keys_of), TTL)
end

local function in_shared_store()
  store.is_shared = function()
    return true
  end
  return in_store()
end

local memory

local function in_memory()
  memory = memory or waiters.new(places.memory({ limit = 1000, ttl = TTL }, now, now), TTL)
  return memory
end

before_each(function()
  memory = nil
end)

local function new_awaited(request_id, more)
  local submission = { kind = "transaction", requestId = request_id }
  for name, value in pairs(more or {}) do
    submission[name] = value
  end
  local awaited = { submission = submission, offered = {} }
  function awaited:offer(event)
    table.insert(self.offered, event.webhookId)
  end
  return awaited
end

local function event(id, request_id, custom_id)
  return { webhookId = id, data = { requestId = request_id, customId = custom_id, status = 1003 } }
end

local function add(to, id, request_id, custom_id)
  return to:add(event(id, request_id, custom_id), id)
end

it("as many events in memory are kept as the limit says, however many keys they have", function()
  local place = places.memory({ limit = 100, ttl = TTL }, now, now)
  local one = waiters.new(place, TTL)
  local function offered(index)
    local awaited = new_awaited("r" .. index)
    one:expect(awaited)
    return awaited.offered[1]
  end
  for index = 1, 100 do
    add(one, "w" .. index, "r" .. index, "c" .. index)
  end
  assert.equal("w1", offered(1))
  for index = 101, 150 do
    add(one, "w" .. index, "r1", "c1")
  end
  assert.same({ nil, "w51", "w135" }, { offered(50), offered(51), offered(1) })
end)

it("an event in memory is not hidden by a submission of a program whose clock is ahead", function()
  add(in_memory(), "w1", "r1")
  local awaited = new_awaited("r1", { at = clock + 5 })
  in_memory():expect(awaited)
  assert.same({ "w1" }, awaited.offered)
end)

for name, new in pairs { ["a dict"] = in_dict, memory = in_memory, ["a store"] = in_store } do
  describe("events in " .. name, function()
    it("are offered to a later waiter for a time", function()
      local one, two = new(), new()
      assert.is_truthy(add(one, "w1", "r1"))
      local early, late = new_awaited "r1", new_awaited "r1"
      clock = clock + TTL - 1
      two:expect(early)
      clock = clock + 1
      two:expect(late)
      assert.same({ { "w1" }, {} }, { early.offered, late.offered })
    end)

    it("from before a submission are not offered to its transaction, also when it is resumed", function()
      local one = new()
      add(one, "w1", "r1")
      clock = clock + 1
      local since = new():mark()
      local fresh, resumed = new_awaited("r1", { at = since }), new_awaited("r1", { at = since })
      local unknown = new_awaited "r1"
      one:expect(fresh)
      new():expect(resumed)
      new():expect(unknown)
      assert.same({ {}, {}, { "w1" } }, { fresh.offered, resumed.offered, unknown.offered })
      add(one, "w2", "r1")
      local later = new_awaited("r1", { at = since })
      new():expect(later)
      assert.same({ "w2" }, later.offered)
    end)

    it("that were kept while the clock was ahead are not offered", function()
      clock = clock + 3600
      add(new(), "w1", "r1")
      clock = clock - 3600
      local awaited = new_awaited("r1", { at = new():mark() })
      new():expect(awaited)
      assert.same({}, awaited.offered)
    end)

    it("that come after the clock was set back are offered, also later", function()
      local awaited, later = new_awaited("r1", { at = new():mark() }), new_awaited "r1"
      later.submission.at = awaited.submission.at
      clock = clock - 60
      add(new(), "w1", "r1")
      new():expect(awaited)
      clock = clock + TTL - 1
      new():expect(later)
      assert.same({ { "w1" }, { "w1" } }, { awaited.offered, later.offered })
    end)

    it("keep their nulls, numbers and bytes", function()
      local null = require("riskscreen.json").null
      local data = { requestId = "r1", dirData = { ["in"] = { ["1"] = null } }, time = 2 ^ 50, note = "\195\188\1" }
      assert.is_truthy(new():add({ webhookId = "w1", data = data }, "w1"))
      local found
      local awaited = new_awaited "r1"
      function awaited.offer(_, its_event)
        found = its_event.data
      end
      new():expect(awaited)
      assert.same(data, found)
      local kept, err = new():add({ webhookId = "w2", data = { requestId = "r2", note = "\255" } }, "w2")
      assert.is_nil(kept)
      assert.matches("UTF-8", err.message, 1, true)
    end)

    it("are kept once, however often one is added after its handler failed", function()
      for _ = 1, 40 do
        add(new(), "w1", "r1")
      end
      add(new(), "w2", "r1")
      local awaited = new_awaited "r1"
      new():expect(awaited)
      table.sort(awaited.offered)
      assert.same({ "w1", "w2" }, awaited.offered)
    end)

    it("reach a transaction of the longest requestId, and of any bytes", function()
      for index, id in ipairs { ("r"):rep(1024), ("x"):rep(1023) .. "y", "r\1", "r" } do
        add(new(), "w" .. index, id)
        local awaited = new_awaited(id)
        new():expect(awaited)
        assert.same({ "w" .. index }, awaited.offered)
      end
    end)

    it("reach a waiter after a collection of garbage", function()
      local one = new()
      local awaited = new_awaited "r1"
      local hold = one:expect(awaited)
      collectgarbage()
      collectgarbage()
      add(one, "w1", "r1")
      assert.same({ { "w1" }, true }, { awaited.offered, hold ~= nil })
    end)

    it("are taken although no transaction can have their identifiers", function()
      assert.is_truthy(add(new(), "w1", { "not a text" }, 7))
      assert.is_truthy(add(new(), "w2", "", ""))
    end)

    it("are given to nobody where a transaction and a custom score of one requestId await them", function()
      local one = new()
      local score = new_awaited("r1", { kind = "custom_score" })
      local transaction = new_awaited "r1"
      local hold = { one:expect(score), one:expect(transaction) }
      add(one, "w1", "r1")
      assert.same({ {}, {}, 2 }, { score.offered, transaction.offered, #hold })
    end)
  end)
end

for name, new in pairs { ["a dict"] = in_dict, ["a shared store"] = in_shared_store } do
  describe("events that others add to " .. name, function()
    it("are offered to waiters: at once in the receiving program, at the next look elsewhere", function()
      local one, two = new(), new()
      local mine, theirs, others = new_awaited "r1", new_awaited "r1", new_awaited "r2"
      local holds = { one:expect(mine), two:expect(theirs), two:expect(others) }
      attend(one, mine)
      attend(two, theirs)
      attend(two, others)
      add(one, "w1", "r1")
      assert.same({ { "w1" }, {} }, { mine.offered, theirs.offered })
      look()
      look()
      assert.same({ { "w1" }, { "w1" }, {}, 3 }, { mine.offered, theirs.offered, others.offered, #holds })
    end)

    it("are given to nobody where transactions of two programs could claim them", function()
      local transaction, score = new_awaited "r1", new_awaited("r1", { kind = "custom_score" })
      local one, two, three = new(), new(), new()
      local hold = { one:expect(transaction), two:expect(score) }
      attend(one, transaction)
      attend(two, score)
      add(one, "w1", "r1")
      add(two, "w2", "r1")
      add(three, "w3", "r1")
      look()
      look()
      assert.same({ {}, {}, 2 }, { transaction.offered, score.offered, #hold })
    end)

    it("go to no other transaction once they had an owner", function()
      local transaction, score = new_awaited "r1", new_awaited("r1", { kind = "custom_score" })
      local one, two = new(), new()
      local hold = { one:expect(transaction) }
      add(one, "w1", "r1")
      hold[2] = two:expect(score)
      attend(two, score)
      look()
      local resumed = new_awaited "r1"
      hold[3] = new():expect(resumed)
      assert.same({ { "w1" }, {}, { "w1" }, 3 }, { transaction.offered, score.offered, resumed.offered, #hold })
    end)

    it("are offered once to each waiter", function()
      local one, two = new(), new()
      local awaited = new_awaited "r1"
      one:expect(awaited)
      attend(one, awaited)
      add(two, "w1", "r1")
      look()
      add(two, "w2", "r1")
      look()
      look()
      assert.same({ "w1", "w2" }, awaited.offered)
    end)
  end)
end

describe("events in a store", function()
  it("are found by a later look where the store fails", function()
    local one, awaited = in_shared_store(), new_awaited "r1"
    add(one, "w1", "r1")
    local two, page = in_shared_store(), store.backend.page
    store.backend.page = function()
      return nil, riskscreen.errors.new("storage", "no connection", { reason = "unreachable" })
    end
    local hold = two:expect(awaited)
    attend(two, awaited)
    assert.same({}, awaited.offered)
    store.backend.page = page
    look()
    assert.same({ { "w1" }, true }, { awaited.offered, hold ~= nil })
    store.backend.page = function()
      error("a mistake", 0)
    end
    assert.has_error(function()
      two:expect(new_awaited "r1")
    end, "a mistake")
    store.backend.page = page
  end)

  it("are those of one account", function()
    add(in_store "a", "w1", "r1")
    local mine, theirs = new_awaited "r1", new_awaited "r1"
    in_store("a"):expect(mine)
    in_store("b"):expect(theirs)
    assert.same({ { "w1" }, {} }, { mine.offered, theirs.offered })
  end)
end)

describe("events in a dict", function()
  it("reach a transaction by requestId alone: a customId may be several transactions'", function()
    local one = in_dict()
    local awaited = new_awaited("r1", { customId = "c1" })
    add(one, "w1", nil, "c1")
    add(one, "w2", "r2", "c1")
    one:expect(awaited)
    assert.same({}, awaited.offered)
  end)

  it("are at most sixteen for one transaction: the oldest are dropped", function()
    for index = 1, 20 do
      add(in_dict(), "w" .. index, "r1")
    end
    local awaited = new_awaited "r1"
    in_dict():expect(awaited)
    assert.equal(16, #awaited.offered)
    assert.same({ "w5", "w20" }, { awaited.offered[1], awaited.offered[16] })
    local places_used = 0
    for key in pairs(dict.entries) do
      places_used = places_used + (key:find "^event:" and 1 or 0)
    end
    assert.equal(16, places_used)
  end)

  it("are offered also where there is no room for the name of their owner", function()
    local one, two, awaited = in_dict(), in_dict(), new_awaited "r1"
    add(two, "w1", "r1")
    dict.full = true
    one:expect(awaited)
    assert.same({ "w1" }, awaited.offered)
  end)

  it("are refused while there is no room", function()
    local one = in_dict()
    dict.full = true
    local ok, message = add(one, "w1", "r1")
    assert.is_nil(ok)
    assert.matches("the shared dict cannot keep the event: no memory", message, 1, true)
    dict.full = false
    assert.is_truthy(add(one, "w1", "r1"))
    local awaited = new_awaited "r1"
    one:expect(awaited)
    assert.same({ "w1" }, awaited.offered)
  end)

  it("are kept completely or refused, wherever the room ends", function()
    for room = 0, 8 do
      dict.entries, dict.room = {}, room
      local ok = add(in_dict(), "w1", "r1", "c1")
      dict.room = nil
      assert.is_truthy(ok or add(in_dict(), "w1", "r1", "c1"))
      local awaited = new_awaited "r1"
      in_dict():expect(awaited)
      assert.same({ "w1" }, awaited.offered)
    end
  end)
end)
