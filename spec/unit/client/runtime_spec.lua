-- A client with a runtime of its own waits and tells the time by nothing else.
local operations = require "riskscreen.interface.operations"
local program_runtime = require "riskscreen.runtime"
local riskscreen = require "riskscreen"
local samples = require "spec.support.samples"
local sandbox = require "riskscreen.sandbox"
local virtual_time = require "riskscreen.runtime.virtual"

local functions = { "spawn", "gather", "signal", "sleep", "run" }

describe("a client with a runtime of its own", function()
  local time, client, original_now, original_tasks

  before_each(function()
    time = virtual_time.new()
    client = sandbox.client {
      runtime = time,
      clock = function()
        return 1767225600 + time.now()
      end,
      access_key = sandbox.lists_key,
      kyt_delay = 20,
      faults = { { kind = "delay", delay = 1 } },
    }
    -- The program's own runtime fails every use.
    original_now, original_tasks = program_runtime.now, {}
    for _, name in ipairs(functions) do
      original_tasks[name] = program_runtime.tasks[name]
      program_runtime.tasks[name] = function()
        error("the program's own tasks." .. name .. " was used", 2)
      end
    end
    function program_runtime.now()
      error("the program's own clock was used", 2)
    end
  end)

  after_each(function()
    program_runtime.now = original_now
    for name, fn in pairs(original_tasks) do
      program_runtime.tasks[name] = fn
    end
  end)

  it("makes calls in its time", function()
    local _, response = assert(client.kya:risk { address = samples.address, network = "eth" })
    assert.equal(1, response.elapsed)
    assert.equal(1, time.now())
  end)

  it("walks pages in its time", function()
    local items = assert(client.blacklist:all { pageSize = 4, prefetch = 2 })
    local pages = math.ceil(#items / 4)
    assert.is_true(pages > 2 and time.now() > 0 and time.now() < pages)
  end)

  it("awaits a transaction's result in its time", function()
    local parameters = samples.of(operations.by_name.screenTransaction)
    local result, other = client.kyt:screen(parameters, { timeout = 60 })
    assert.is_table(result, tostring(other))
    assert.is_true(time.now() > 20 and time.now() < 60)
  end)

  it("screens an address by lookups side by side in its time", function()
    local include = { "entity", "counterparties", "freeze_events" }
    local decision = client:screen { address = samples.address, network = "eth", include = include }
    assert.is_table(decision.record)
    assert.equal(1, decision.elapsed)
    assert.equal(1, time.now())
  end)

  it("screens many addresses in its time", function()
    local source, count = { "0xa", "0xb", "0xc", "0xd" }, 0
    local options = { source = source, network = "eth", concurrency = 2, address_check = false }
    for decision in client:screen_all(options) do
      assert.equal(1, decision.elapsed)
      count = count + 1
    end
    assert.equal(4, count)
    assert.equal(2, time.now())
  end)

  it("splits a list and sends its parts in its time", function()
    local addresses = {}
    for number = 1, 250 do
      addresses[number] = ("0x%040x"):format(number)
    end
    local _, response = assert(client.kya:entities({ addresses = addresses, network = "eth" }, { concurrency = 3 }))
    assert.equal(1, response.elapsed)
    assert.equal(1, time.now())
  end)
end)

describe("the option runtime", function()
  local function refusal(change)
    local runtime = virtual_time.new()
    change(runtime)
    local ok, message =
      pcall(riskscreen.new, { access_key = "test-key", transport = function() end, runtime = runtime })
    return not ok and message
  end

  it("is refused with the name of a function that it lacks", function()
    assert.equal(
      "runtime must have the function now",
      refusal(function(runtime)
        runtime.now = nil
      end)
    )
    assert.equal(
      "runtime must have the function tasks.spawn",
      refusal(function(runtime)
        runtime.tasks = nil
      end)
    )
    assert.equal(
      "runtime must have the function tasks.hold",
      refusal(function(runtime)
        runtime.tasks.hold = nil
      end)
    )
  end)

  it("may lack what has a default", function()
    assert.is_false(refusal(function(runtime)
      runtime.tasks.blocks, runtime.tasks.contain = nil, nil
    end))
  end)

  it("may be another runtime with functions of its own", function()
    local time = virtual_time.new()
    local runtime = setmetatable({
      refusal = function()
        return "nothing can wait here"
      end,
    }, { __index = time })
    local heir = setmetatable({}, { __index = runtime })
    local client = riskscreen.new { access_key = "test-key", transport = function() end, runtime = heir }
    local decision = client:screen { address = "x", network = "eth", address_check = false }
    assert.matches("nothing can wait here", decision.error.message)
  end)

  it("is not changed", function()
    local runtime = virtual_time.new()
    riskscreen.new { access_key = "test-key", transport = function() end, runtime = runtime }
    assert.is_nil(runtime.refusal)
    assert.is_nil(runtime.tasks.iterator)
  end)
end)
