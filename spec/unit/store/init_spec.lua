-- The rules of a store, over every backend.
local riskscreen = require "riskscreen"
local locales = require "spec.support.locales"
local redis_server = require "spec.support.redis"
local temporary = require "spec.support.temporary"

local function memory(clock)
  return riskscreen.store.memory { clock = clock }
end

local function sqlite(clock)
  return assert(riskscreen.store.sqlite { path = temporary.path "rules.db", clock = clock, synchronous = "normal" })
end

local function keys_of(space, range)
  local keys = {}
  for key in space:each(range) do
    keys[#keys + 1] = key
  end
  return keys
end

local server

local function redis(clock)
  server = server or redis_server.start()
  server:command "FLUSHALL"
  return assert(riskscreen.store.redis { redis = server.url, clock = clock })
end

for name, open in pairs { memory = memory, sqlite = sqlite, redis = redis_server.is_installed() and redis or nil } do
  describe("a store, backend " .. name .. ",", function()
    local now, store, space

    before_each(function()
      now = 1000
      store = open(function()
        return now
      end)
      space = store:space "things"
    end)

    after_each(function()
      store:close()
      temporary.clean()
    end)

    it("keeps a value by its key", function()
      assert.is_nil(space:get "a")
      assert.is_true(space:put("a", "1"))
      assert.is_true(space:put("a", "2"))
      assert.equal("2", space:get "a")
    end)

    it("walks over every key that it has, also the empty one", function()
      for _, key in ipairs { "", "a", "b" } do
        assert.is_true(space:put(key, "1"))
      end
      assert.same({ "", "a", "b" }, keys_of(space))
      assert.same({ "a", "b" }, keys_of(space, { after = "" }))
    end)

    it("refuses a condition where a change takes none", function()
      for _, kind in ipairs { "put", "add" } do
        local made, err = store:batch { { kind = kind, space = "things", key = "a", value = "1", expected = "0" } }
        assert.is_nil(made)
        assert.same({ "invalid_argument", "expected" }, { err.kind, err.field })
      end
      assert.is_nil(space:get "a")
    end)

    it("keeps any text without a zero byte", function()
      for _, text in ipairs { "", "'; DROP TABLE entries; --", "\255\254\1\n", ("x"):rep(100000), "ключ" } do
        assert.is_true(space:put("key" .. text:sub(1, 900), text))
        assert.equal(text, space:get("key" .. text:sub(1, 900)))
      end
    end)

    it("keeps spaces apart", function()
      local other = store:space "others"
      space:put("a", "1")
      assert.is_nil(other:get "a")
      assert.same({}, keys_of(other))
    end)

    it("adds a value only where there is none", function()
      assert.is_true(space:add("a", "1"))
      assert.is_false(space:add("a", "2"))
      assert.equal("1", space:get "a")
    end)

    it("replaces only the expected value", function()
      assert.is_false(space:replace("a", "1", "2"))
      space:put("a", "1")
      assert.is_false(space:replace("a", "0", "2"))
      assert.is_true(space:replace("a", "1", "2"))
      assert.equal("2", space:get "a")
    end)

    it("deletes a key, or only its expected value", function()
      assert.is_false(space:delete "a")
      space:put("a", "1")
      assert.is_false(space:delete("a", "2"))
      assert.is_true(space:delete("a", "1"))
      space:put("a", "1")
      assert.is_true(space:delete "a")
      assert.is_nil(space:get "a")
    end)

    it("forgets an entry when it expires", function()
      space:put("a", "1", 10)
      space:put("b", "1", 20)
      now = 1009.5
      assert.equal("1", space:get "a")
      now = 1010
      assert.is_nil(space:get "a")
      assert.is_false(space:replace("a", "1", "2"))
      assert.is_false(space:delete "a")
      assert.same({ "b" }, keys_of(space))
      assert.equal(1, space:count())
      assert.is_true(space:add("a", "2", 10))
      assert.equal("2", space:get "a")
    end)

    it("keeps an entry for ever when it is set again without a time", function()
      space:put("a", "1", 10)
      space:put("a", "2")
      now = 1e6
      assert.equal("2", space:get "a")
    end)

    it("gives back the room of expired entries", function()
      for index = 1, 100 do
        space:put("old" .. index, "1", 10)
      end
      now = 2000
      space:put("new", "1", 10)
      now = 3000
      space:put("newer", "1", 10)
      now = 1000 -- a clock that goes back would show entries that are still there
      assert.same({ "newer" }, keys_of(space))
    end)

    it("iterates in the order of the keys", function()
      for _, key in ipairs { "b", "a2", "a10", "c", "a" } do
        space:put(key, "value of " .. key)
      end
      assert.same({ "a", "a10", "a2", "b", "c" }, keys_of(space))
      assert.same({ "a", "a10", "a2" }, keys_of(space, { prefix = "a" }))
      assert.same({ "a2", "b", "c" }, keys_of(space, { after = "a10" }))
      assert.same({ "a2" }, keys_of(space, { prefix = "a", after = "a10" }))
      assert.same({ "a", "a10", "a2" }, keys_of(space, { prefix = "a", after = "0" }))
      assert.same({}, keys_of(space, { prefix = "d" }))
      assert.equal(3, space:count "a")
      for key, value in space:each() do
        assert.equal("value of " .. key, value)
      end
    end)

    it("iterates over more entries than it reads at once, also while they change", function()
      local changes = {}
      for index = 1, 1700 do
        changes[index] = { kind = "put", space = "things", key = ("%05d"):format(index), value = "1" }
      end
      assert.is_true(store:batch(changes))
      local number = 0
      for key in space:each() do
        number = number + 1
        space:delete(key)
      end
      assert.equal(1700, number)
      assert.equal(0, space:count())
    end)

    it("makes all changes of a batch or none", function()
      space:put("taken", "1")
      space:put("old", "1")
      assert.is_false(store:batch {
        { kind = "put", space = "things", key = "a", value = "1" },
        { kind = "delete", space = "things", key = "old" },
        { kind = "put", space = "others", key = "a", value = "1" },
        { kind = "add", space = "things", key = "taken", value = "2" },
      })
      assert.same({ "old", "taken" }, keys_of(space))
      assert.same({}, keys_of(store:space "others"))
      assert.is_true(store:batch {
        { kind = "put", space = "things", key = "a", value = "1" },
        { kind = "replace", space = "things", key = "a", value = "2", expected = "1" },
        { kind = "add", space = "others", key = "a", value = "3", ttl = 5 },
        { kind = "delete", space = "things", key = "old", expected = "1" },
      })
      assert.same({ "a", "taken" }, keys_of(space))
      assert.equal("2", space:get "a")
      now = 1005
      assert.same({}, keys_of(store:space "others"))
    end)

    it("makes nothing of an empty batch", function()
      assert.is_true(store:batch {})
    end)

    it("refuses texts that it cannot hold, and a wrong time", function()
      for field, arguments in pairs {
        key = { "a\0b", "1" },
        value = { "a", "1\0" },
        ttl = { "a", "1", 0 },
      } do
        local made, err = space:put(arguments[1], arguments[2], arguments[3])
        assert.is_nil(made)
        assert.equal("invalid_argument", err.kind)
        assert.equal(field, err.field)
      end
      local _, err = space:put(("k"):rep(1025), "1")
      assert.equal("store: key must be at most 1024 bytes long (got 1025)", err.message)
      _, err = space:put("a", { "a table" })
      assert.equal("store: value must be a string (got a table)", err.message)
      _, err = store:batch { { kind = "push", space = "things", key = "a", value = "1" } }
      assert.equal("kind", err.field)
      assert.same({}, keys_of(space))
    end)

    it("gives a lock to one holder at a time", function()
      local release = assert(store:lock "run")
      local second, err = store:lock "run"
      assert.is_nil(second)
      assert.equal("locked", err.reason)
      assert.is_function(store:lock "other")
      release()
      release()
      local again = assert(store:lock "run")
      release() -- the old one releases nothing
      assert.is_nil(store:lock "run")
      again()
    end)

    it("raises after it was closed", function()
      store:close()
      store:close()
      assert.has_error(function()
        space:get "a"
      end)
    end)
  end)
end

teardown(redis_server.stop_all)

describe("misuse of a store", function()
  it("raises at the caller's line", function()
    local store = riskscreen.store.memory()
    for _, misuse in ipairs {
      function()
        store:space ""
      end,
      function()
        store:space(5)
      end,
      function()
        store:lock "../run"
      end,
      function()
        riskscreen.store.sqlite { path = ":memory:" }
      end,
      function()
        riskscreen.store.sqlite { path = "x.db", synchronous = "off" }
      end,
      function()
        riskscreen.store.memory { path = "x.db" }
      end,
    } do
      local ok, message = pcall(misuse)
      assert.is_false(ok)
      assert.matches("^[^:]*init_spec.lua:%d+: ", message)
    end
  end)
end)

describe("a store in memory", function()
  after_each(temporary.clean)

  it("finds the keys of a prefix in every locale", function()
    local lines = locales.run({ "en_US" }, "store_in_locale")
    if lines[1] == "no locale" then
      pending "there is no localedef, or it has no en_US"
    else
      assert.same({ "b:1", "b:2", "b:1", "b:2" }, lines)
    end
  end)
end)

local describe_if = redis_server.is_installed() and describe or pending

describe_if("a store in Redis", function()
  after_each(temporary.clean)

  it("finds the keys of a prefix in every locale", function()
    local its_server = redis_server.start()
    finally(function()
      its_server:stop()
    end)
    local lines = locales.run({ "en_US" }, "store_in_locale", its_server.url)
    if lines[1] == "no locale" then
      pending "there is no localedef, or it has no en_US"
    else
      assert.same({ "b:1", "b:2", "b:1", "b:2" }, lines)
    end
  end)
end)
