-- Finds the kinds of evidence about which two policies differ. Each has the actions of both and the rules that lead to
-- them. docs/policy-proofs.md says why no kind is left out.

local candidates = require "riskscreen.policy.candidates"
local prove = require "riskscreen.policy.prove"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local RANKS = { allow = 1, review = 2, unknown = 3, block = 4 }
local MOST_TRIES = 20 -- lists of counterparties that get amounts

local M = {}

---@class riskscreen.PolicyChange
---@field before riskscreen.Action
---@field after riskscreen.Action
---@field reasons string[] of the two policies about the example
---@field cases number raw combinations
---@field evidence? riskscreen.LookupResults the plainest example; nil: whether there is one is not decided

---@class riskscreen.PolicyDiff
---@field differs? boolean nil: not decided
---@field complete boolean there are no changes besides these
---@field changes riskscreen.PolicyChange[] the worst first: from block to allow
---@field cases number raw combinations
local Diff = { __name = "riskscreen.PolicyDiff" }

function Diff:__tostring()
  if self.differs == false then
    return "no difference"
  elseif self.differs == nil then
    return "not decided"
  end
  return text.count(#self.changes, "change") .. (self.complete and "" or ", and not decided whether there are others")
end

-- The message of the reason that decided.
local function reason_of(decision)
  for _, reason in ipairs(decision.reasons) do
    if reason.action == decision.action then
      return reason.message
    end
  end
end

-- Adds the changes for lists of some risks; returns false if there are too many combinations.
local function add_changes(diff, both, case_of, slots)
  local tracks, known, groups = {}, {}, {}
  for _, policy in ipairs(both) do
    for slot = 1, slots do
      tracks[#tracks + 1] = prove.track_of(case_of, policy, slot)
      tracks[#tracks].keeps_rules = slots == 1
    end
  end
  for _, change in ipairs(diff.changes) do
    known[change.before .. change.after] = true
  end
  local elements = prove.enumerate(tracks, { is = {} }, slots)
  for _, element in ipairs(elements or {}) do
    diff.cases = diff.cases + element.count
    local evidence = candidates.evidence(element.chain)
    local old, new = tracks[1].policy:decide(evidence), tracks[slots + 1].policy:decide(evidence)
    if old.action ~= new.action and not known[old.action .. new.action] then
      local reasons = slots == 1 and { tostring(old.reasons[1].rule), tostring(new.reasons[1].rule) } or {}
      local key = table.concat(tables.concat({ old.action, new.action }, reasons), "\0")
      local group = groups[key] or { before = old.action, after = new.action, reasons = {}, cases = 0, elements = {} }
      groups[key], group.cases = group, group.cases + element.count
      table.insert(group.elements, element)
    end
  end
  for _, key in ipairs(tables.sorted_keys(groups)) do
    local change = groups[key]
    local function is_example(evidence)
      return both[1]:decide(evidence).action == change.before and both[2]:decide(evidence).action == change.after
    end
    table.sort(change.elements, function(one, other)
      return one.weight < other.weight
    end)
    for place = 1, math.min(MOST_TRIES, #change.elements) do
      local evidence = candidates.evidence(change.elements[place].chain)
      change.evidence = change.evidence or candidates.with_amounts(evidence, is_example)
    end
    for place, policy in ipairs(change.evidence and both or {}) do
      change.reasons[place] = reason_of(policy:decide(change.evidence))
    end
    diff.complete = diff.complete and change.evidence ~= nil
    diff.differs = diff.differs or change.evidence ~= nil
    diff.changes[#diff.changes + 1] = tables.without(change, "elements")
  end
  return elements ~= nil
end

---The kinds of evidence whose action another policy changes.
---@param old riskscreen.Policy
---@param new riskscreen.Policy
---@param case_of fun(policy: riskscreen.Policy, results: riskscreen.LookupResults, index: integer): riskscreen.Case,
---riskscreen.Error|nil
---@return riskscreen.PolicyDiff
function M.diff(old, new, case_of)
  local both, diff = { old, new }, { changes = {}, cases = 0, complete = true, differs = false }
  -- There is one list of freeze events for each outcome, and none that only one of two meanings of `lifting` ends.
  local is_same = tables.fingerprint(old.settings.lifting) == tables.fingerprint(new.settings.lifting)
  diff.complete = is_same or not (old:needs "freeze_events" and new:needs "freeze_events")
  diff.complete = add_changes(diff, both, case_of, 1) and diff.complete
  -- Where no single risk makes a difference, no list of them does. Else two of them may lead to other pairs of actions.
  if diff.changes[1] then
    diff.complete = add_changes(diff, both, case_of, 2) and diff.complete
  end
  diff.differs = diff.differs or not diff.complete and nil
  local function badness(change)
    return 10 * (RANKS[change.before] - RANKS[change.after]) + RANKS[change.before]
  end
  table.sort(diff.changes, function(one, other)
    local first, second = badness(one), badness(other)
    if first == second then
      return one.cases > other.cases
    end
    return first > second
  end)
  return setmetatable(diff, Diff)
end

return M
