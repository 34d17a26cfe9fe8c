-- The fault matrix: every fault with every class of operation in every runtime.

local busted = require "busted"
local cell = require "spec.faults.cell"
local classes = require "spec.faults.classes"
local errors = require "riskscreen.errors"
local fault_server = require "spec.support.fault_server"
local faults = require "spec.faults.faults"
local leftovers = require "spec.support.leftovers"
local runtimes = require "spec.faults.runtimes"
local secrecy = require "spec.support.secrecy"

local assert, describe, it, setup, teardown =
  busted.assert, busted.describe, busted.it, busted.setup, busted.teardown

-- Idle connections that a loop keeps at most: as many as the clients that it has not yet forgotten may use at once.
local CONNECTIONS_KEPT = 256

local function assert_error(expected, err)
  assert.is_true(errors.is(err), tostring(err))
  assert.equal(expected.kind, err.kind, tostring(err))
  assert.equal(expected.status or nil, err.status)
  assert.equal(expected.retry_after, err.retry_after)
  if expected.sent ~= nil then
    assert.equal(expected.sent, err.sent, tostring(err))
  end
  assert.is_string(err.operation)
  assert.is_true(err.elapsed >= 0)
end

-- A decision is `unknown` with the failure of each lookup that was not spared; it is `allow` where nothing failed.
local function assert_decision(expected, class, decision)
  if not expected.kind then
    assert.equal("allow", decision.action)
    return
  end
  assert.equal("unknown", decision.action)
  assert.is_false(decision.degraded)
  local failed = 0
  for _, err in pairs(decision.errors) do
    assert_error(expected, err)
    failed = failed + 1
  end
  assert.equal(class.requests, failed)
end

local function assert_outcome(expected, class, outcome)
  local value, other = outcome.results[1], outcome.results[2]
  if class.screening then
    assert.equal(1, outcome.results.n)
    assert_decision(expected, class, value)
  elseif expected.kind then
    assert.equal(2, outcome.results.n)
    assert.is_nil(value)
    assert_error(expected, other)
  else
    assert.is_not_nil(value, tostring(other))
  end
  assert.is_false(outcome.late)
  assert.equal(expected.requests, outcome.requests)
  assert.equal(0, outcome.elsewhere)
  assert.is_false(secrecy.holds(outcome.results, cell.key))
end

local function summary(expected)
  if not expected.kind then
    return " gets its answer"
  end
  return (" fails with %s"):format(expected.kind)
end

-- What was there before the first fault: a descriptor that each cell lost would soon be more than the loop keeps.
local first = leftovers.count()

teardown(fault_server.stop_tls)

for _, runtime in ipairs(runtimes) do
  for _, fault in ipairs(faults) do
    describe(("%s in %s:"):format(fault.name, runtime.name), function()
      local outcomes, before, after = {}, nil, nil

      setup(function()
        local cells = {}
        for _, class in ipairs(classes) do
          cells[#cells + 1] = cell.applies(fault, class) and class or nil
        end
        before = leftovers.count()
        runtime.each(cells, function(class)
          outcomes[class] = cell.run(fault, class)
        end)
        after = leftovers.count()
      end)

      for _, class in ipairs(classes) do
        if cell.applies(fault, class) then
          local expected = cell.expected(fault, class)
          it(class.name .. summary(expected), function()
            assert_outcome(expected, class, outcomes[class])
          end)
        end
      end

      it("leaves nothing behind but connections that may be used again", function()
        local kept = after.descriptors - first.descriptors
        before.descriptors, after.descriptors = nil, nil
        assert.same(before, after)
        assert.is_true(kept <= CONNECTIONS_KEPT, kept .. " descriptors more than at the beginning")
      end)
    end)
  end
end
