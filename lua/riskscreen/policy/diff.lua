-- Finds the kinds of evidence about which two policies differ. Each has the actions of both and the rules that lead to
-- them. docs/policy-proofs.md says why no kind is left out.

local decision = require "riskscreen.policy.decision"
local prove = require "riskscreen.policy.prove"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local RANKS = decision.severity

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

-- Whether two risks of a list may lead to a pair of actions that no single risk leads to.
local function may_add(pairs_of_one)
  for _, one in ipairs(pairs_of_one) do
    for _, other in ipairs(pairs_of_one) do
      local before, after = decision.worst(one[1], other[1]), decision.worst(one[2], other[2])
      if before ~= after and not pairs_of_one[before .. after] then
        return true
      end
    end
  end
  return false
end

-- Adds the changes for lists of some risks, but for those whose pair of actions is known. Returns all pairs of actions;
-- nil if there are too many combinations.
local function add_changes(domain, diff, both, slots, known)
  local groups, found = {}, {}
  local elements = prove.enumerate(domain, both, { is = {} }, slots, slots == 1)
  for _, element in ipairs(elements or {}) do
    local before, after = element.actions[1], element.actions[2]
    diff.cases = diff.cases + element.count
    if not found[before .. after] then
      found[#found + 1], found[before .. after] = { before, after }, true
    end
    if before ~= after and not known[before .. after] then
      local key = { before, after }
      for place = 1, slots == 1 and 2 or 0 do
        local reason = element.reasons[place]
        key[#key + 1] = tostring(reason and reason.rule)
      end
      key = table.concat(key, "|")
      local group = groups[key] or { before = before, after = after, reasons = {}, cases = 0, elements = {} }
      groups[key], group.cases = group, group.cases + element.count
      table.insert(group.elements, element)
    end
  end
  for _, key in ipairs(tables.sorted_keys(groups)) do
    local change = groups[key]
    change.evidence = prove.example(domain, change.elements, function(evidence)
      local before, after = domain.decide(both[1], evidence).action, domain.decide(both[2], evidence).action
      return before == change.before and after == change.after
    end)
    for place, policy in ipairs(change.evidence and both or {}) do
      change.reasons[place] = domain.decide(policy, change.evidence).reasons[1].message -- the worst first
    end
    diff.complete = diff.complete and change.evidence ~= nil
    diff.differs = diff.differs or change.evidence ~= nil
    diff.changes[#diff.changes + 1] = tables.without(change, "elements")
  end
  diff.complete = diff.complete and elements ~= nil
  return elements and found
end

---The kinds of evidence whose action another policy changes.
---@param domain riskscreen.policy.Domain
---@param old riskscreen.Policy
---@param new riskscreen.Policy
---@return riskscreen.PolicyDiff
function M.diff(domain, old, new)
  local both, diff = { old, new }, { changes = {}, cases = 0, complete = true, differs = false }
  diff.complete = domain.is_comparable(old, new)
  local of_one = add_changes(domain, diff, both, 1, {})
  -- The pair of a list is the worst of the pairs of two of its risks.
  if of_one and may_add(of_one) then
    add_changes(domain, diff, both, 2, of_one)
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
