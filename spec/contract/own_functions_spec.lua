-- Functions that the operator gives: one that raises, yields by itself or returns something odd changes no decision.
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local clean = riskscreen.sandbox.scenario "clean-eth"
local EVENT = '{"webhookId":"w-1","eventType":"test","timestamp":"2026-01-02 03:04:05","data":{}}'

local NOT_A_NUMBER = 0 / 0

local function raises()
  error "a mistake of the program"
end

local function yields()
  coroutine.yield "something"
end

local function returning(value)
  return function()
    return value
  end
end

-- Errors in a function whose result is ignored, and in one that returns a number.
local told = { raises = raises, ["yields by itself"] = yields }
local numbers = {
  raises = raises,
  ["yields by itself"] = yields,
  ["returns a text"] = returning "7",
  ["returns nothing"] = returning(nil),
  ["returns NaN"] = returning(NOT_A_NUMBER),
  ["returns infinity"] = returning(math.huge),
}

-- The results of a function, outside of tasks and as a task.
local function in_both_ways(body)
  body()
  riskscreen.run(body)
end

describe("a function of the operator's", function()
  local stderr, lines

  before_each(function()
    stderr, lines = io.stderr, {}
    io.stderr = { -- luacheck: ignore 122
      write = function(_, ...)
        lines[#lines + 1] = table.concat { ... }
      end,
    }
  end)

  after_each(function()
    io.stderr = stderr -- luacheck: ignore 122
    temporary.clean()
  end)

  local function list(content)
    local path = temporary.path "list.csv"
    temporary.write(path, content)
    return path
  end

  it("loses no decision as a transport that waits and raises", function()
    local function transport()
      riskscreen.sleep(0)
      raises()
    end
    in_both_ways(function()
      local client = riskscreen.new { transport = transport, access_key = "key-of-own-functions" }
      local decision = client:screen { address = clean.address, network = "eth" }
      assert.same({ "unknown", "protocol" }, { decision.action, decision.error.kind })
    end)
  end)

  for what, fn in pairs(told) do
    it("loses no decision as lists.on_problem if it " .. what, function()
      in_both_ways(function()
        local lists = { deny = list("address\n" .. clean.address .. "\nno address\n"), on_problem = fn }
        local client = riskscreen.sandbox.client { lists = lists }
        assert.equal("block", client:screen({ address = clean.address, network = "eth" }).action)
      end)
      assert.matches("^riskscreen: the function on_problem failed: ", lines[1])
    end)

    it("loses no decision as a hook if it " .. what, function()
      in_both_ways(function()
        local client = riskscreen.sandbox.client { on = { request = fn, response = fn } }
        assert.equal("allow", client:screen({ address = clean.address, network = "eth" }).action)
        assert.equal(2, client:stats().hook_failures)
      end)
    end)

    it("loses no decision as a journal's on_failure if it " .. what, function()
      in_both_ways(function()
        local path = temporary.path "journal"
        local journal = assert(riskscreen.journal.file(path, { buffer = 1, on_failure = fn }))
        local client = riskscreen.sandbox.client { journal = journal }
        for _ = 1, 2 do
          assert.equal("allow", client:screen({ address = clean.address, network = "eth" }).action)
        end
        assert.equal(1, journal:stats().lost)
      end)
    end)
  end

  for what, fn in pairs(numbers) do
    it("ends no entry of a deny list as a client's clock if it " .. what, function()
      in_both_ways(function()
        local lists = { deny = list("address,expires\n" .. clean.address .. ",2099-01-01\n") }
        local client = riskscreen.sandbox.client { lists = lists, clock = fn }
        assert.equal("block", client:screen({ address = clean.address, network = "eth" }).action)
      end)
    end)

    it("loses no decision as a journal's clock if it " .. what, function()
      in_both_ways(function()
        local journal = assert(riskscreen.journal.store(riskscreen.store.memory(), { clock = fn }))
        local client = riskscreen.sandbox.client { journal = journal }
        assert.equal("allow", client:screen({ address = clean.address, network = "eth" }).action)
        assert.equal(1, journal:stats().written)
      end)
    end)

    it("loses no repeat as `random` if it " .. what, function()
      in_both_ways(function()
        local client = riskscreen.sandbox.client {
          random = fn,
          retry = { base_delay = 0.001 },
          faults = { { kind = "status", status = 500, count = 1 } },
        }
        assert.equal("allow", client:screen({ address = clean.address, network = "eth" }).action)
      end)
    end)

    it("lets no event be handled twice as an inbox's clock if it " .. what, function()
      in_both_ways(function()
        local count = 0
        local inbox = riskscreen.webhook.inbox {
          accept_unauthenticated = true,
          clock = fn,
          handlers = {
            test = function()
              count = count + 1
            end,
          },
        }
        for _ = 1, 2 do
          assert.equal(200, (inbox:deliver("POST", {}, EVENT)))
        end
        assert.equal(1, count)
      end)
    end)

    it("ends no entry as a store's clock if it " .. what, function()
      in_both_ways(function()
        local space = riskscreen.store.memory({ clock = fn }):space "some"
        assert.is_true(space:put("key", "value", 60))
        assert.equal("value", space:get "key")
      end)
    end)
  end

  it("is reported once, however often it fails, and may wait where it is told something", function()
    local calls = 0
    local function on_failure()
      riskscreen.sleep(0.001)
      calls = calls + 1
      error "a mistake of the program"
    end
    in_both_ways(function()
      local journal = assert(riskscreen.journal.file(temporary.path "journal", { buffer = 1, on_failure = on_failure }))
      local client = riskscreen.sandbox.client { journal = journal }
      for _ = 1, 3 do
        client:screen { address = clean.address, network = "eth" }
      end
    end)
    assert.same({ 4, 2 }, { calls, #lines }) -- two journals
  end)
end)

describe("a store of the operator's for handled events", function()
  -- The inbox's answer where one method fails, what its operator was told, and how often the event was handled.
  local function deliver(method, handler)
    local failures, handled = {}, 0
    local store = {
      claim = function()
        return "new"
      end,
      complete = function() end,
      release = function() end,
    }
    store[method] = raises
    local inbox = riskscreen.webhook.inbox {
      accept_unauthenticated = true,
      store = store,
      on_failure = function(failure)
        failures[#failures + 1] = tostring(failure)
      end,
      handlers = {
        test = function()
          handled = handled + 1
          return handler and handler()
        end,
      },
    }
    local status, _, body = inbox:deliver("POST", {}, EVENT)
    assert.is_table(json.decode(body))
    return status, failures, handled
  end

  it("that raises in `claim` cannot say whether the event is new, and the sender comes again", function()
    local status, failures, handled = deliver "claim"
    assert.equal(503, status)
    assert.equal(0, handled)
    assert.matches("a mistake of the program", failures[1])
  end)

  it("that raises in `complete` does not make a handled event fail", function()
    local status, failures, handled = deliver "complete"
    assert.equal(200, status)
    assert.equal(1, handled)
    assert.matches("a mistake of the program", failures[1])
  end)

  it("that raises in `release` hides no failure of the handler", function()
    local status, failures = deliver("release", function()
      error "the handler's own"
    end)
    assert.equal(500, status)
    assert.matches("a mistake of the program", failures[1])
    assert.matches("the handler's own", failures[2])
  end)
end)
