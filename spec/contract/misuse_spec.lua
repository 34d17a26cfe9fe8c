-- Misuse of a client raises at the caller's line; bad data is returned as an error.
local client = require "riskscreen.client"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local samples = require "spec.support.samples"

local KEY = "K3y/with+odd=chars"

local risk = operations.by_name.getAddressRisk
local good = { address = samples.address, network = "eth" }

local function success()
  return recorder.reply(200, (select(2, samples.of(risk))))
end

local function new()
  return client.new { access_key = KEY, transport = (recorder.new(success())) }
end

describe("misuse", function()
  local HERE = debug.getinfo(1, "S").short_src

  -- Raises at the line where `misuse` is called, and says what.
  local function raises(pattern, line, fn)
    local ok, message = pcall(fn)
    assert.is_false(ok)
    assert.is_string(message)
    assert.equal(("%s:%d:"):format(HERE, line), message:match "^.-:%d+:")
    assert.matches(pattern, message)
  end

  local mine = new()
  local function line()
    return debug.getinfo(2, "l").currentline
  end

  it("of a method raises at the caller's line", function()
    raises("parameters must be a table %(got a string%)", line() + 1, function()
      mine.kya:risk "0xab"
    end)
    raises("options must be a table", line() + 1, function()
      mine.kya:risk(good, 5)
    end)
    raises("unknown option 'timeuot'; did you mean 'timeout'?", line() + 1, function()
      mine.kya:risk(good, { timeuot = 5 })
    end)
    raises("timeout must be between", line() + 1, function()
      mine.kya:risk(good, { timeout = -1 })
    end)
    raises("with a colon: client.kya:method", line() + 1, function()
      mine.kya.risk(good)
    end)
  end)

  it("of a call by name raises at the caller's line", function()
    raises("unknown operation 'getAddresRisk'; did you mean 'getAddressRisk'?", line() + 1, function()
      mine:call("getAddresRisk", good)
    end)
    raises("unknown operation nothing", line() + 1, function()
      mine:call()
    end)
    raises("parameters must be a table", line() + 1, function()
      mine:call("getAddressRisk", "0xab")
    end)
    raises("with a colon: client:method", line() + 1, function()
      mine.call("getAddressRisk", good)
    end)
  end)

  it("of a request raises at the caller's line", function()
    raises("method must be GET", line() + 1, function()
      mine:request("TRACE", "/x")
    end)
    raises("path must be a string", line() + 1, function()
      mine:request("GET", 5)
    end)
    raises("unknown option 'qery'", line() + 1, function()
      mine:request("GET", "/x", { qery = {} })
    end)
    raises("query must map names", line() + 1, function()
      mine:request("GET", "/x", { query = { "a" } })
    end)
    raises("must not set X%-Access%-Key", line() + 1, function()
      mine:request("GET", "/x", { headers = { ["X-Access-Key"] = "other" } })
    end)
  end)

  it("of new raises at the caller's line, whichever name it is called by", function()
    local riskscreen = require "riskscreen"
    raises("access_key is required", line() + 1, function()
      client.new { base_url = "https://a.example" }
    end)
    raises("options must be a table", line() + 1, function()
      riskscreen.new "https://a.example"
    end)
    raises("unknown option 'acess_key'; did you mean 'access_key'?", line() + 1, function()
      riskscreen.new { acess_key = KEY }
    end)
  end)

  it("of a wait raises at the caller's line", function()
    local riskscreen = require "riskscreen"
    local task = riskscreen.spawn(function()
      riskscreen.sleep(0.001)
    end)
    for _, seconds in ipairs { -1, 1.1e9, 1e300, math.huge, 0 / 0, "1" } do
      raises("sleep: expected a number of seconds from 0 to 1e9 %(got ", line() + 1, function()
        riskscreen.sleep(seconds)
      end)
      raises("await: timeout must be a number of seconds from 0 to 1e9 %(got ", line() + 1, function()
        task:await(seconds)
      end)
      if riskscreen.loop then
        raises("step: expected a number of seconds from 0 to 1e9", line() + 1, function()
          riskscreen.loop:step(seconds)
        end)
      end
    end
    task:await()
  end)

  it("of a closed client raises at the caller's line", function()
    local closed = new()
    local kya = closed.kya
    closed:close()
    closed:close()
    raises("the client is closed", line() + 1, function()
      kya:risk(good)
    end)
    raises("the client is closed", line() + 1, function()
      closed:request("GET", "/x")
    end)
  end)

  it("never shows the key", function()
    local _, message = pcall(client.new, { access_key = KEY, base_url = "http://service.example" })
    assert.is_nil(message:find(KEY, 1, true))
    _, message = pcall(client.new, { access_key = KEY, base_url = "https://a.example", access_token = KEY })
    assert.is_nil(message:find(KEY, 1, true))
  end)
end)

describe("what is not misuse", function()
  it("is returned, never raised, whatever the parameters hold", function()
    local mine = new()
    for _, parameters in ipairs {
      {},
      { 5 },
      { address = print, network = {} },
      { [{}] = 1 },
      { [1.5] = "a" },
      { [true] = false },
    } do
      for _, operation in ipairs(operations.list) do
        local value, err = mine:call(operation.name, parameters)
        assert.is_true(value ~= nil or errors.is(err))
      end
    end
  end)
end)
