-- Decides the recorded decisions again with another policy.

local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local lines = require "riskscreen.journal.line"
local verify = require "riskscreen.journal.verify"

---@class riskscreen.ReplayRow
---@field seq integer the number of the line
---@field id string
---@field time string
---@field input any
---@field network? any
---@field address? string
---@field identity? string of the recorded decision: service, account, policy and options
---@field before riskscreen.Action the action that was recorded
---@field after? riskscreen.Action the action of the policy; absent where the decision cannot be made again
---@field changed boolean
---@field decision? riskscreen.Decision of the policy
---@field problem? string why the decision cannot be made again

local M = {}

-- The lookups of an entry as they were when it was decided, or the result of a transaction, for `policy:decide`; or nil
-- and the error, where it is all that is known.
local function results_of(record)
  if type(record.risk) == "table" and (record.risk.requestId ~= nil or record.risk.maxScore ~= nil) then
    return record.risk
  end
  local results = tables.without(record, "errors")
  for name, err in pairs(record.errors or {}) do
    results.errors = results.errors or {}
    local fields = tables.pick(err, { "status", "code", "absent", "operation" })
    fields.sent, fields.asked = false, name
    results.errors[name] = errors.new(err.kind, err.message, fields)
  end
  local failure = results.errors and results.errors.risk
  if failure and next(results, next(results)) == nil and next(results.errors, next(results.errors)) == nil then
    return nil, failure
  end
  return results
end

---Decides what a line has recorded.
---@param policy riskscreen.Policy|riskscreen.ScorePolicy
---@param record any as a line has it
---@return riskscreen.Decision|nil
---@return string|nil problem of a record that is malformed
function M.decide(policy, record)
  local ok, decision = pcall(function()
    return policy:decide(results_of(record))
  end)
  if errors.is_interrupt(decision) then
    error(decision, 0)
  end
  return ok and decision or nil,
    not ok and "the record is malformed: " .. text.printable(tostring(decision), 200) or nil
end

-- Why an entry cannot be decided again, or nil.
local function problem_of(entry)
  if entry.source == "list" then
    return "a list decided, not the policy"
  elseif type(entry.record) ~= "table" then
    return "the answer was not kept: use record = true"
  elseif type(entry.record.risk) == "table" and lines.answer_digest(entry.record.risk) ~= entry.answer then
    return "the answer does not match its digest"
  end
end

local function row_of(entry, policy)
  local row = tables.pick(entry, { "seq", "id", "time", "input", "network", "address", "identity" })
  row.before, row.changed, row.problem = entry.action, false, problem_of(entry)
  local decision
  if not row.problem then
    decision, row.problem = M.decide(policy, entry.record)
  end
  if row.problem then
    return row
  end
  decision.address, decision.network = entry.input, entry.network
  row.decision, row.after, row.changed = decision, decision.action, decision.action ~= entry.action
  return row
end

---Decides the decisions of a journal again. Iterates over a row for each of them, changed or not. It needs a journal
---with `record = true`.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param policy riskscreen.Policy
---@param on_fault? fun(fault: riskscreen.JournalFault) as for `entries`
---@return fun(): riskscreen.ReplayRow|nil
function M.replay(source, policy, on_fault)
  if type(policy) ~= "table" or type(policy.decide) ~= "function" then
    error("journal.replay: expected a policy (got " .. text.kind(policy) .. ")", 2)
  end
  local each = verify.entries(source, nil, on_fault)
  return function()
    local entry = each()
    while entry and entry.lost do
      entry = each()
    end
    return entry and row_of(entry, policy)
  end
end

return M
