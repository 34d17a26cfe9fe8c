-- Whether a cell of the fault matrix came out as expected, wherever its call was made.

local busted = require "busted"
local cell = require "spec.faults.cell"
local errors = require "riskscreen.errors"
local secrecy = require "spec.support.secrecy"

local assert = busted.assert

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

local M = {}

---Fails unless a cell of the matrix came out as expected.
---@param expected table see cell.lua
---@param class riskscreen.spec.Class
---@param outcome riskscreen.spec.Outcome
function M.check(expected, class, outcome)
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

---How a sentence about it ends.
---@param expected table
---@return string
function M.summary(expected)
  if not expected.kind then
    return " gets its answer"
  end
  return (" fails with %s"):format(expected.kind)
end

return M
