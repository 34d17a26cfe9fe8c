-- A list with a gap is refused. By `ipairs` it would end there, and the rest of it would be lost without an error.
local riskscreen = require "riskscreen"

local function nothing() end

local store = riskscreen.store.memory()
local redis = riskscreen.redis.new "redis://127.0.0.1:1"
local put = { kind = "put", space = "gaps", key = "k", value = "v" }
local get = { "GET", "a" }
local script = { text = "return 1" }

local functions = {
  ["store:batch"] = { store.batch, store, nil, put },
  ["gather"] = { riskscreen.gather, nil, nil, nothing },
  ["redis:pipeline"] = { redis.pipeline, redis, nil, get },
  ["the keys of redis:script"] = {
    function(...)
      return redis.script(redis, script, ...)
    end,
    nil,
    nil,
    "k",
  },
  ["the arguments of redis:script"] = { redis.script, redis, { script, { "k" } }, "a" },
  ["client:screen_all"] = {
    function(source)
      return riskscreen.sandbox.client({}):screen_all { source = source, network = "eth" }
    end,
    nil,
    nil,
    "0x1",
  },
  ["riskscreen.map"] = {
    function(list)
      return riskscreen.map(list, nothing)
    end,
    nil,
    nil,
    1,
  },
}

describe("a list with a gap is refused by", function()
  for name, case in pairs(functions) do
    it(name, function()
      local call, owner, before, item = case[1], case[2], case[3] or {}, case[4]
      for _, list in ipairs { { item, nil, item }, { [2] = item }, { item, [3] = item }, { item, name = item } } do
        local arguments = owner and { owner, before[1], before[2] } or {}
        arguments[#arguments + 1] = list
        assert.error_matches(function()
          call((table.unpack or unpack)(arguments)) -- luacheck: ignore 113 143
        end, "list")
      end
    end)
  end

  it("none that has made a change", function()
    assert.equal(0, store:space("gaps"):count())
  end)
end)
