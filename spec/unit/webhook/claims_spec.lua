-- The claims of handled events, in a store that programs share and in the dict that nginx's workers share.
local claims = require "riskscreen.webhook.claims"
local dicts = require "riskscreen.nginx.webhook.dict"
local riskscreen = require "riskscreen"
local shared_dict = require "spec.support.shared_dict"

local LEASE, TTL = 10, 100 -- seconds

local clock, dict
local date_ahead -- seconds that the date was set forward

local function now()
  return clock + date_ahead
end

local function monotonic()
  return clock
end

local function in_dict(limit)
  dict = dict or shared_dict.new(now)
  return dicts.new(dict, { limit = limit or 1000, ttl = TTL, poll = 1, time = now, now = monotonic })
end

local store

local function in_store()
  store = store or riskscreen.store.memory { clock = now }
  return store:space "handled"
end

local function new_claims(space, lease)
  return claims.new(space, {
    prefix = "claim:",
    ttl = TTL,
    lease = lease or LEASE,
  })
end

before_each(function()
  clock, date_ahead, dict, store = 1000, 0, nil, nil
end)

for name, space in pairs { ["a shared dict"] = in_dict, ["a store"] = in_store } do
  describe("a claim in " .. name, function()
    it("is known to every program", function()
      local one, two = new_claims(space()), new_claims(space())
      assert.equal("new", one:claim "w1")
      assert.same({ "busy", "busy" }, { one:claim "w1", (two:claim "w1") })
      one:complete "w1"
      assert.same({ "done", "done", "new" }, { one:claim "w1", two:claim "w1", (two:claim "w2") })
    end)

    it("cannot be taken while nobody can read it", function()
      local one, its_space = new_claims(space()), space()
      one:claim "w1"
      local two = new_claims(setmetatable({
        get = function()
          return nil, "no connection"
        end,
      }, { __index = its_space }))
      local state, message = two:claim "w1"
      assert.is_nil(state)
      assert.matches("no connection", message, 1, true)
    end)

    it("is taken although the reply about it was lost", function()
      for _, is_made in ipairs { true, false } do
        local its_space = space()
        local has_lost = false
        local one = new_claims(setmetatable({
          add = function(_, ...)
            if has_lost then
              return its_space:add(...)
            elseif is_made then
              its_space:add(...)
            end
            has_lost = true
            return nil, riskscreen.errors.new("storage", "the connection is lost", { uncertain = true })
          end,
        }, {
          __index = function(_, name_of_method)
            return function(_, ...)
              return its_space[name_of_method](its_space, ...)
            end
          end,
        }))
        assert.equal("new", one:claim "w1")
        one:release "w1"
        local other = new_claims(its_space)
        assert.equal("new", other:claim "w1")
        other:release "w1"
      end
    end)

    it("is replaced by its holder alone", function()
      local one = space()
      one:add("k", "mine", LEASE)
      assert.is_false(one:replace("k", "theirs", "other", LEASE))
      assert.equal("mine", one:get "k")
      assert.is_truthy(one:replace("k", "mine", "next", LEASE))
      assert.equal("next", one:get "k")
    end)

    it("may be taken again after it is given up", function()
      local one = new_claims(space())
      one:claim "w1"
      one:release "w1"
      assert.equal("new", one:claim "w1")
    end)

    it("leaves a handled event that is forgotten after its time", function()
      local one = new_claims(space())
      one:claim "w1"
      one:complete "w1"
      clock = clock + TTL - 1
      assert.equal("done", one:claim "w1")
      clock = clock + 1
      assert.equal("new", one:claim "w1")
    end)

    it("expires with its program, and its end changes no other claim", function()
      local one, two = new_claims(space()), new_claims(space())
      one:claim "w1"
      clock = clock + LEASE - 1
      assert.equal("busy", two:claim "w1")
      clock = clock + 1
      assert.equal("new", two:claim "w1")
      one:release "w1"
      assert.equal("busy", one:claim "w1")
    end)

    it("is renewed while its event is handled, and not after", function()
      local one, two = new_claims(space(), 0.03), new_claims(space())
      riskscreen.run(function()
        one:claim "w1"
        local started = riskscreen.loop and clock
        local renewed = 0
        local replace = one.space.replace
        local watched = setmetatable({
          replace = function(_, ...)
            renewed = renewed + 1
            return replace(one.space, ...)
          end,
        }, { __index = one.space })
        one.space = watched
        while renewed < 3 do
          clock = clock + 0.01
          riskscreen.sleep(0.005)
        end
        assert.is_true(clock > started)
        assert.equal("busy", two:claim "w1")
        one:complete "w1"
      end)
      assert.equal("done", two:claim "w1")
    end)
  end)
end

it("a claim is not given while nobody can say whether 0.9.0 has handled the event", function()
  local kept = riskscreen.store.memory():space "handled"
  kept:put("id w1", "done", TTL)
  local get, is_down = kept.get, true
  local space = setmetatable({
    get = function(_, key)
      if is_down and key == "id w1" then
        return nil, "it is down"
      end
      return get(kept, key)
    end,
  }, {
    __index = function(_, method)
      return function(_, ...)
        return kept[method](kept, ...)
      end
    end,
  })
  local one = claims.new(space, { prefix = "claim:", old_prefix = "id ", ttl = TTL, lease = LEASE })
  local claimed, message = one:claim "w1"
  assert.is_nil(claimed)
  assert.matches("it is down", message)
  is_down = false
  assert.equal("done", one:claim "w1")
end)

describe("claims outside of tasks", function()
  it("leave nothing behind in a program that never runs the loop", function()
    local one = new_claims(in_store())
    local function claim_many()
      for index = 1, 1000 do
        one:claim("w" .. index)
        one:release("w" .. index)
      end
      collectgarbage()
      collectgarbage()
      return collectgarbage "count"
    end
    local before = claim_many()
    assert.is_true(claim_many() - before < 100)
  end)
end)

describe("the claims in a shared dict", function()
  it("forget the oldest events above their limit", function()
    local one = new_claims(in_dict(3))
    for index = 1, 5 do
      one:claim("w" .. index)
      one:complete("w" .. index)
    end
    assert.same({ "done", "done", "new" }, { one:claim "w5", one:claim "w4", (one:claim "w1") })
  end)

  it("never forget an event that is being handled", function()
    local one, two = new_claims(in_dict(2)), new_claims(in_dict(2))
    one:claim "w0"
    for index = 1, 20 do
      two:claim("w" .. index)
      two:complete("w" .. index)
    end
    assert.equal("busy", two:claim "w0")
    one:complete "w0"
    assert.equal("done", two:claim "w0")
    for index = 21, 25 do
      two:claim("w" .. index)
      two:complete("w" .. index)
    end
    assert.equal("new", two:claim "w0")
  end)

  it("make room by forgetting the oldest, and refuse an event for which there is none", function()
    local one = new_claims(in_dict())
    dict.room = 6
    for index = 1, 50 do
      assert.equal("new", one:claim("w" .. index))
      one:complete("w" .. index)
    end
    assert.equal("done", one:claim "w50")
    dict.entries, dict.full = {}, true
    local state, message = one:claim "w51"
    assert.is_nil(state)
    assert.matches("no memory", message, 1, true)
  end)

  it("mark an event as handled although the dict is full", function()
    local one = new_claims(in_dict())
    one:claim "w1"
    dict.full = true
    one:complete "w1"
    assert.equal("done", one:claim "w1")
  end)

  it("forget no event because it failed before", function()
    local one = new_claims(in_dict(3))
    for _ = 1, 5 do
      one:claim "w1"
      one:release "w1"
    end
    for index = 1, 3 do
      one:claim("w" .. index)
      one:complete("w" .. index)
    end
    assert.same({ "done", "done", "done" }, { one:claim "w1", one:claim "w2", (one:claim "w3") })
    one:claim "w4"
    assert.equal("new", one:claim "w1")
  end)

  it("are held while their event is handled, however the date is set", function()
    local one, two = new_claims(in_dict()), new_claims(in_dict())
    one:claim "w1"
    date_ahead = 100 * LEASE
    assert.equal("busy", two:claim "w1")
    date_ahead = -100 * LEASE
    clock = clock + LEASE - 1
    assert.equal("busy", two:claim "w1")
    clock = clock + 1
    assert.equal("new", two:claim "w1")
  end)

  it("are taken over by one program alone", function()
    local one, two, three = new_claims(in_dict()), new_claims(in_dict()), new_claims(in_dict())
    one:claim "w1"
    clock = clock + LEASE
    local safe_add, state = dict.safe_add, nil
    dict.safe_add = function(self, key, ...)
      if key:find "^taken:" and not state then
        state = "asked"
        state = three:claim "w1"
      end
      return safe_add(self, key, ...)
    end
    assert.same({ "busy", "new" }, { two:claim "w1", state })
  end)

  it("are not forgotten when another program has taken them over meanwhile", function()
    local one, two, three = new_claims(in_dict(1)), new_claims(in_dict(1)), new_claims(in_dict(1))
    one:claim "w1"
    clock = clock + LEASE
    local lpop, get, state = dict.lpop, dict.get, nil
    dict.lpop = function(self, key)
      dict.lpop = nil
      dict.get = function(_, claim)
        dict.get = nil
        local content = get(self, claim)
        state = two:claim "w1"
        return content
      end
      return lpop(self, key)
    end
    three:claim "w2"
    assert.same({ "new", "busy" }, { state, one:claim "w1" })
  end)

  it("are busy where the dict has no room to take them over", function()
    local one, two = new_claims(in_dict()), new_claims(in_dict())
    one:claim "w1"
    clock = clock + LEASE
    dict.full = true
    assert.equal("busy", two:claim "w1")
    dict.full = false
    assert.equal("new", two:claim "w1")
  end)

  it("leave nothing of programs that have died", function()
    local one, two = new_claims(in_dict(2)), new_claims(in_dict(2))
    one:claim "w0"
    clock = clock + LEASE
    for index = 1, 5 do
      two:claim("w" .. index)
      two:complete("w" .. index)
    end
    assert.is_nil(dict:get "claim:w0")
  end)
end)
