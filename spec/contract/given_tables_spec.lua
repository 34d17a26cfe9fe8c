-- A method works on a copy of the tables that it is given, so a program may use them again at once. It takes or refuses
-- an inherited field, and never drops it silently.
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"
local samples = require "spec.support.samples"

local HASH, ADDRESS, DENIED = "0x5f16", samples.address, samples.other_address
local DONE = { requestId = "r1", status = 1003, maxScore = "12.5", dirData = { ["in"] = {}, out = {} } }

-- A store whose every answer takes a moment, as that of Redis does.
local function slow_store()
  local store = riskscreen.store.memory()
  return setmetatable({
    space = function(_, name)
      local space = store:space(name)
      return setmetatable({}, {
        __index = function(_, method)
          return function(_, ...)
            riskscreen.sleep(0)
            return space[method](space, ...)
          end
        end,
      })
    end,
  }, { __name = "riskscreen.Store" })
end

-- Replaces every value in a table and in the tables of it.
local function use_again(given)
  for name, value in pairs(given) do
    if type(value) == "table" then
      use_again(value)
    else
      given[name] = value == "eth" and "tron" or type(value) == "string" and "used again" or 99
    end
  end
  given.hash = given.hash and "0x5f17"
  given.outputAddress = given.outputAddress and DENIED
end

-- The requests of a method whose tables are used again while it waits, or not. One that may be repeated fails once.
local function requests_of(method, options, are_used_again)
  local requests, attempts = {}, 0
  options.transport = function(request)
    riskscreen.sleep(0)
    attempts = attempts + 1
    local header = request.headers["X-Tenant"] or ""
    requests[#requests + 1] = ("%s %s %s %s"):format(request.method, request.target, request.body or "", header)
    if attempts % 2 == 1 and request.replay then
      return recorder.reply(503, {})
    end
    return recorder.reply(200, { success = true, code = 1, data = DONE })
  end
  options.access_key, options.identity, options.account = "key-of-given-tables", "specs", "specs"
  options.retry = { base_delay = 0, max_delay = 0 }
  options.immediate_results = true
  options.endpoints = { kyt_custom_score = { method = "POST", path = "/custom" } }
  local given = { method.given(), method.options and method.options() }
  riskscreen.run(function()
    local task = riskscreen.spawn(method.act, riskscreen.new(options), given[1], given[2])
    riskscreen.sleep(0)
    if are_used_again then
      use_again(given)
    end
    task:await()
  end)
  return requests
end

local function call_options()
  return { extra = { query = { tag = "first" } }, headers = { ["X-Tenant"] = "first" }, retry = { attempts = 2 } }
end

local methods = {}
for _, operation in ipairs(operations.list) do
  methods[operation.name] = operation.path
      and {
        act = function(client, ...)
          return client:call(operation.name, ...)
        end,
        given = function()
          return (samples.of(operation))
        end,
        options = call_options,
      }
    or nil
end
methods["client:request"] = {
  act = function(client, given)
    return client:request("PUT", "/custom", given)
  end,
  given = function()
    return { body = { { names = { "first" } } }, query = { tag = "first" }, headers = { ["X-Tenant"] = "first" } }
  end,
}
methods["client:screen"] = {
  act = function(client, given)
    return client:screen(given)
  end,
  given = function()
    return { address = ADDRESS, network = "eth", include = { "entity" }, retry = { attempts = 2 } }
  end,
}
for _, name in ipairs { "submit", "screen", "submit_custom_score", "screen_custom_score" } do
  methods["client.kyt:" .. name] = {
    act = function(client, ...)
      return client.kyt[name](client.kyt, ...)
    end,
    given = function()
      local given = { network = "eth", hash = HASH, outputAddress = ADDRESS, customId = "first" }
      given.rule = name:find "custom" and { limits = { "first" } } or nil
      return given
    end,
    options = call_options,
  }
end

describe("a table that a method is given", function()
  for name, method in pairs(methods) do
    it("may be used again while the method waits: " .. name, function()
      for _, with_store in ipairs { false, true } do
        local expected = requests_of(method, { store = with_store and slow_store() or nil })
        assert.is_true(#expected > 0)
        local requests = requests_of(method, { store = with_store and slow_store() or nil }, true)
        assert.same(expected, requests)
      end
    end)
  end

  it("is refused with a field that it inherits, at any depth", function()
    local sent = 0
    local client = riskscreen.new {
      access_key = "key-of-given-tables",
      endpoints = { kyt_custom_score = { method = "POST", path = "/custom" } },
      transport = function()
        sent = sent + 1
        return nil, { kind = "network", message = "down", sent = false }
      end,
    }
    local heir = setmetatable({ name = "own" }, { __index = { network = "eth" } })
    local wrong = setmetatable({ address = ADDRESS, netwrok = "tron" }, { __index = { network = "eth" } })
    for _, given in ipairs { wrong, setmetatable({ address = ADDRESS }, { __index = { network = "eth" } }) } do
      local _, err = client.kya:risk(given)
      assert.equal("invalid_argument", err.kind)
      assert.matches("inherits", err.message)
    end
    local _, err = client.kyt:custom_score { hash = HASH, rule = { heir } }
    assert.same({ "invalid_argument", "rule" }, { err.kind, err.field })
    assert.matches("inherits", err.message)
    local address = { address = ADDRESS, network = "eth" }
    for _, extra in ipairs { { query = heir }, { body = { one = { heir } } } } do
      assert.error_matches(function()
        client.kya:risk(address, { extra = extra })
      end, "inherits")
    end
    for _, body in ipairs { heir, { one = heir } } do
      assert.error_matches(function()
        client:request("POST", "/custom", { body = body })
      end, "inherits")
    end
    assert.equal(0, sent)
  end)
end)
