-- Proves claims about policies, and finds the evidence about which two policies differ. The parts of the evidence are
-- made known one after the other. Each value of a part leaves less of the rules: a condition that fails takes its rule
-- away, and one that holds is settled. Evidence that leaves the same of the rules is one element from there on.
-- docs/policy-proofs.md says why that is enough.

local candidates = require "riskscreen.policy.candidates"
local claims = require "riskscreen.policy.claim"
local decision = require "riskscreen.policy.decision"
local evaluate = require "riskscreen.policy.evaluate"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MOST_STEPS = 1000000 -- elements that get a value of a part
local MOST_TRIES = 20 -- elements whose evidence is tried as a counterexample
-- The outcomes of a condition. An undetermined one has the action that its failure leads to. Of several conditions of a
-- rule the largest one counts.
local HOLDS, FAILS = 1, 6
local UNDETERMINED = { allow = 2, review = 3, block = 4, unknown = 5 }
local EFFECTS = { [2] = "allow", [3] = "review", [4] = "block", [5] = "unknown" }
local NONE = {}
local KINDS = {
  missing = { absent = true, null = true },
  unknown = { absent = true, null = true, unseen = true, wrong = true },
}

---A part of the evidence: the raw values that it may have.
---@class riskscreen.policy.Part
---@field list riskscreen.policy.Candidate[]
---@field fields table<string, true> for claims
---@field lookup? riskscreen.LookupName of a part that may be a failure
---@field parent? integer the part that it fills in, if that one has one of the forms
---@field forms? table<string, true>
---@field slot? integer it is about the tracks of one slot
---@field notes? table<string, true> the kinds of tracks about whose case it decides more than outcomes

---The rules of a policy for one case, such as one risk of a list; or the conditions of a claim as one rule.
---@class riskscreen.policy.Track
---@field policy integer the number of the policy; 0 for a claim
---@field slot integer of the risks, or of the strategies
---@field kind string of the case
---@field rules riskscreen.CompiledRule[]
---@field all_rules riskscreen.CompiledRule[]
---@field places table<string, integer> the part that a condition reads, by the condition's name
---@field case_of fun(evidence: table): riskscreen.Case|nil, riskscreen.Error|nil

---@class riskscreen.policy.Space
---@field parts riskscreen.policy.Part[] each behind its parent
---@field tracks riskscreen.policy.Track[] the one of a claim first
---@field finish? fun(evidence: table): table the evidence of the parts as a policy takes it

---The facts about a kind of policies that a proof needs.
---@class riskscreen.policy.Domain
---@field conditions riskscreen.Condition[]
---@field named string[] the conditions whose values are known by being named
---@field fields string of claims
---@field space fun(policies: table[], claim: riskscreen.policy.CompiledClaim, slots: integer):
---riskscreen.policy.Space|nil
---@field decide fun(policy: riskscreen.Policy, evidence: table): riskscreen.Decision
---@field is_comparable fun(old: table, new: table): boolean the parts show every difference of two policies
---@field with_rules fun(policy: table, rules: riskscreen.CompiledRule[], recognised: table): table a policy like it
---@field concrete fun(evidence: table, is_wanted: fun(evidence: table): boolean): table|nil evidence to decide about

local M = {}

-- The rest of a rule: the worst outcome of its known conditions, and the conditions that are not known yet.
local function new_entry(rule, label, state, atoms)
  local key = ("%s %d %s"):format(label, state, table.concat(tables.pluck(atoms, "id"), ","))
  return { rule = rule, label = label, state = state, atoms = atoms, key = key }
end

-- The rest of a track's rules: the effects of undetermined rules by their action, then the entries of the other rules.
-- Equal rests are one residual.
local function residual_of(space, pending, entries)
  local key = { tostring(pending.allow), tostring(pending.review), tostring(pending.block) }
  key = table.concat(tables.concat(key, tables.pluck(entries, "key")), "|")
  if not space.residuals[key] then
    local first = entries[1]
    local is_known = not first or first.state == HOLDS and not first.atoms[1]
    space.residuals[key] = { pending = pending, entries = entries, is_known = is_known, key = key }
  end
  return space.residuals[key]
end

-- Gives a track its rules as entries. Conditions of the same meaning are one atom. It belongs to the part that it reads
-- and to the parents of that part, which have the outcome where they do not fill it in.
local function add_atoms(space, track)
  local known, entries = {}, {}
  for place, rule in ipairs(track.rules) do
    local atoms = {}
    for number, entry in ipairs(rule.conditions) do
      local name = entry.condition.name
      local key = tables.fingerprint { name, tostring(rule.not_offered), entry.wanted }
      local index, child = not known[key] and track.places[name], nil
      space.atoms = space.atoms + 1
      known[key] = known[key] or { id = space.atoms, track = track, entry = entry, not_offered = rule.not_offered }
      atoms[number] = known[key]
      while index do
        table.insert(space.parts[index].atoms, { atom = known[key], child = child })
        child, index = space.parts[index], space.parts[index].parent
      end
    end
    local label = space.keeps_rules and place or rule.action .. tostring(rule.handles_unrecognised)
    entries[#entries + 1] = not rule.errors and new_entry(rule, label, HOLDS, atoms) or nil
  end
  return residual_of(space, {}, entries)
end

local function is_noted(part, track)
  return track.policy > 0 and part.notes and part.notes[track.kind] and (part.slot or track.slot) == track.slot
end

-- The element of all evidence, before a part is known.
local function prepare(space, claim)
  space.residuals, space.known, space.deciding, space.atoms, space.steps = {}, {}, {}, 0, 0
  local first = { chosen = {}, keys = {}, notes = {}, open = {}, actions = {}, reasons = {}, count = 1, weight = 0 }
  first.has_failed = not claim.failed
  for index, part in ipairs(space.parts) do
    part.atoms, part.classes, part.groups = {}, {}, {}
    local parent = space.parts[part.parent]
    while parent do
      parent.last_below, parent = index, space.parts[parent.parent]
    end
  end
  for number, track in ipairs(space.tracks) do
    first.open[number], track.noted = add_atoms(space, track), 0
    for index, part in ipairs(space.parts) do
      track.noted = is_noted(part, track) and index or track.noted
    end
  end
  return first
end

-- Whether a claim is about a candidate. Its conditions on fields are about the first risk of a list alone, or the first
-- strategy.
local function is_wanted(part, claim, kinds)
  for field, kind in pairs((part.slot or 1) == 1 and claim.is or NONE) do
    local own = kinds[field] or kinds.any
    if part.fields[field] and own ~= kind and not (KINDS[kind] and KINDS[kind][own]) then
      return false
    end
  end
  return true
end

local function is_wanted_failure(claim, lookup, failure)
  local wanted = claim.failed
  return failure ~= nil
    and (not wanted.lookups or wanted.lookups[lookup] == true)
    and (not wanted.kinds or wanted.kinds[failure.kind] == true)
end

local function action_of(track, case, failure)
  local handled = failure and evaluate.handled_reason(track.all_rules, case, failure)
  return handled and handled.action or "unknown"
end

local function outcome_of(atom, case)
  local holds = evaluate.condition(atom.entry, case, atom.not_offered)
  if holds == nil then
    return UNDETERMINED[action_of(atom.track, case, case.failures[atom.entry.lookup])]
  end
  return holds and HOLDS or FAILS
end

-- Everything besides the conditions that the action of a case depends on.
local function note_of(track, case, err)
  if not case then
    return "none"
  end
  return err and "failed " .. action_of(track, case, err)
    or case.may_exist and "may"
    or case.unrecognised and "odd"
    or "known"
end

-- A candidate with the outcomes of atoms, notes about tracks, and whether a lookup has failed as the claim wants it.
local function class_of(space, claim, part, candidate, evidence)
  local class, cases, notes = { candidate = candidate, weight = candidate.weight, outcomes = {}, notes = {} }, {}, {}
  class.has_failed = false
  for number, track in ipairs(space.tracks) do
    local case, err = track.case_of(evidence)
    local failure = case and case.failures[part.lookup]
    cases[track] = case
    class.notes[number] = is_noted(part, track) and note_of(track, case, err) or nil
    class.has_failed = class.has_failed or claim.failed ~= nil and is_wanted_failure(claim, part.lookup, failure)
    notes[number] = tostring(class.notes[number])
  end
  for _, one in ipairs(part.atoms) do
    if not (one.child and one.child.forms[candidate.form]) then
      local case = cases[one.atom.track]
      class.outcomes[one.atom] = case and outcome_of(one.atom, case) or FAILS
    end
  end
  class.key = ("%s %s %s"):format(tostring(candidate.form), tostring(class.has_failed), table.concat(notes, " "))
  return class
end

-- The candidates of a part that a claim is about, as classes.
local function classes_of(space, claim, index, element)
  local part, classes = space.parts[index], {}
  for _, candidate in ipairs(part.list) do
    if is_wanted(part, claim, candidate.kinds) then
      local evidence = candidates.evidence(tables.merge(element.chosen, { [index] = candidate }))
      classes[#classes + 1] = class_of(space, claim, part, candidate, evidence)
    end
  end
  return classes
end

-- The atoms of a part on which an element still depends.
local function open_atoms(part, element)
  local open, atoms = {}, {}
  for _, residual in pairs(element.open) do
    for _, entry in ipairs(residual.entries) do
      for _, atom in ipairs(entry.atoms) do
        open[atom] = true
      end
    end
  end
  for _, one in ipairs(part.atoms) do
    atoms[#atoms + 1] = open[one.atom] and one.atom or nil
  end
  return atoms
end

-- The kind of all fields of a part that is not filled in, if what has it in its place is wrong as a whole.
local function whole_kind(space, element, part)
  local index = part.parent
  while not element.chosen[index] do
    index = space.parts[index].parent
  end
  return { any = element.chosen[index].kinds.any }
end

-- The values of a part as groups that no open atom tells apart, each with its plainest candidate. Where the part is not
-- filled in there is one group without a candidate.
local function groups_of(space, claim, index, element)
  local part, parent = space.parts[index], element.chosen[space.parts[index].parent]
  if part.parent and not (parent and part.forms[parent.form]) then
    local is_about = is_wanted(part, claim, whole_kind(space, element, part))
    return { is_about and { outcomes = {}, notes = {}, after = {}, count = 1, weight = 0 } or nil }
  end
  local parent_key, atoms = element.keys[part.parent] or "", open_atoms(part, element)
  local name = parent_key .. " " .. table.concat(tables.pluck(atoms, "id"), ",")
  if part.groups[name] then
    return part.groups[name]
  end
  part.classes[parent_key] = part.classes[parent_key] or classes_of(space, claim, index, element)
  local groups, places = {}, {}
  for _, class in ipairs(part.classes[parent_key]) do
    local key = { class.key }
    for place, atom in ipairs(atoms) do
      key[place + 1] = tostring(class.outcomes[atom])
    end
    key = table.concat(key, " ")
    local place = places[key] or #groups + 1
    local known = groups[place]
    if not known or class.weight < known.weight then
      groups[place] = tables.merge(class, { after = {} })
    end
    groups[place].count, places[key] = known and known.count + 1 or 1, place
  end
  part.groups[name] = groups
  return groups
end

-- The undetermined rules before a match: the worst action that those of an action lead to. One that blocks counts
-- whatever matches, so others with no worse action do not matter.
local function with_pending(pending, action, state)
  local after, effect = tables.copy(pending), EFFECTS[state]
  after[action] = after[action] and decision.worst(after[action], effect) or effect
  for own, its_effect in pairs(after) do
    if own ~= "block" and after.block and decision.worst(after.block, its_effect) == after.block then
      after[own] = nil
    end
  end
  return after
end

-- The residual behind a group of values. Behind a rule that matches no other one counts.
local function residual_after(space, residual, group)
  if not group.after[residual] then
    local pending, entries = residual.pending, {}
    for _, entry in ipairs(residual.entries) do
      local state, atoms = entry.state, {}
      for _, atom in ipairs(entry.atoms) do
        local outcome = group.outcomes[atom]
        state, atoms[#atoms + 1] = math.max(state, outcome or HOLDS), not outcome and atom or nil
      end
      if state < FAILS and state > HOLDS and not atoms[1] and not entries[1] then
        pending = with_pending(pending, entry.rule.action, state)
      elseif state < FAILS then
        local is_same = #atoms == #entry.atoms
        entries[#entries + 1] = is_same and entry or new_entry(entry.rule, entry.label, state, atoms)
      end
      if state == HOLDS and not atoms[1] then
        break
      end
    end
    group.after[residual] = residual_of(space, pending, entries)
  end
  return group.after[residual]
end

-- Decides the case of a track whose rules are known. The worst action of a policy's cases counts.
local function decide(space, element, number)
  local track, residual = space.tracks[number], element.open[number]
  local key = ("%d %s %s"):format(number, tostring(element.notes[number]), residual.key)
  local reason = space.known[key]
  if reason == nil then
    local case, err = track.case_of(candidates.evidence(element.chosen))
    reason = case and evaluate.case(err and track.all_rules or track.rules, case, err) or false
    space.known[key] = reason
    space.deciding[reason and reason.rule or false] = true
  end
  local action, old = reason and reason.action or "allow", element.actions[track.policy]
  element.open[number] = nil
  if not old or action ~= old and decision.worst(action, old) == action then
    element.actions[track.policy], element.reasons[track.policy] = action, reason
  end
end

-- An element whose evidence has a value of a group; nil if a claim is not about it.
local function filled(space, element, index, group)
  local after = tables.merge(element, {
    chosen = tables.merge(element.chosen, { [index] = group.candidate }),
    keys = tables.merge(element.keys, { [index] = group.key }),
    notes = tables.merge(element.notes, group.notes),
    open = {},
    actions = tables.copy(element.actions),
    reasons = tables.copy(element.reasons),
    count = element.count * group.count,
    weight = element.weight + group.weight,
    has_failed = element.has_failed or group.has_failed,
  })
  for number, track in ipairs(space.tracks) do
    local residual = element.open[number] and residual_after(space, element.open[number], group)
    after.open[number] = residual
    local is_decided = residual and residual.is_known and index >= track.noted
    if is_decided and track.policy == 0 and not residual.entries[1] then
      return nil
    elseif is_decided then
      decide(space, after, number)
    end
  end
  return after
end

-- Adds an element to a list, or merges it with one that leads to the same. The plainer one stays.
local function merge_into(list, space, element, index)
  local key = { tostring(element.has_failed) }
  for place, part in ipairs(space.parts) do
    key[place + 1] = (part.last_below or 0) > index and element.keys[place] or "-"
  end
  for number, track in ipairs(space.tracks) do
    local residual, reason = element.open[number], space.keeps_rules and element.reasons[track.policy]
    key[#key + 1] = residual and residual.key .. tostring(element.notes[number]) or "-"
    key[#key + 1] = tostring(element.actions[track.policy]) .. tostring(reason and reason.rule)
  end
  key = table.concat(key, " ")
  local place = list[key] or #list + 1
  local kept = list[place]
  local count = element.count + (kept and kept.count or 0)
  if not kept or element.weight < kept.weight then
    list[key], list[place] = place, element
  end
  list[place].count = count
end

---All evidence that the rules of policies tell apart and that a claim is about; nil if there is too much of it.
---@param domain riskscreen.policy.Domain
---@param policies table[]
---@param claim riskscreen.policy.CompiledClaim
---@param slots integer the risks of a list, or the strategies
---@param keeps_rules? boolean rules that decide are told apart, and not their actions alone
---@return table[]|nil elements each with `actions` and `reasons` by the policy, `count`, `weight` and `evidence`
---@return integer steps
---@return table<riskscreen.Rule, true>|nil deciding the rules that decide about some case
function M.enumerate(domain, policies, claim, slots, keeps_rules)
  local space = domain.space(policies, claim, slots)
  if not space then
    return nil, 0
  end
  space.keeps_rules = keeps_rules
  local elements, finished = { prepare(space, claim) }, {}
  for index in ipairs(space.parts) do
    local after = {}
    for _, element in ipairs(elements) do
      for _, group in ipairs(space.steps < MOST_STEPS and groups_of(space, claim, index, element) or NONE) do
        local made = filled(space, element, index, group)
        space.steps = space.steps + 1
        local _ = made and merge_into(after, space, made, index)
      end
    end
    elements = after
  end
  if space.steps >= MOST_STEPS then
    return nil, space.steps
  end
  for _, element in ipairs(elements) do
    local evidence = candidates.evidence(element.chosen)
    element.evidence = space.finish and space.finish(evidence) or evidence
    finished[#finished + 1] = element.has_failed and element or nil
  end
  table.sort(finished, function(one, other)
    return one.weight < other.weight
  end)
  return finished, space.steps, space.deciding
end

---@class riskscreen.Proof
---@field holds? boolean nil: not decided
---@field cases number raw combinations
---@field evidence? riskscreen.LookupResults the plainest that breaks the claim
---@field decision? riskscreen.Decision about it
---@field steps integer
local Proof = { __name = "riskscreen.Proof" }

function Proof:__tostring()
  if self.holds then
    return ("holds (%s cases)"):format(self.cases < 2 ^ 53 and text.grouped(self.cases) or "more than 2^53")
  end
  return self.holds == nil and "not decided" or "does not hold: " .. tostring(self.decision)
end

---The first evidence of elements that is of a kind, without outcomes in the place of amounts.
---@param domain riskscreen.policy.Domain
---@param elements table[]
---@param is_example fun(evidence: table): boolean
---@return table|nil
function M.example(domain, elements, is_example)
  for place = 1, math.min(MOST_TRIES, #elements) do
    local evidence = domain.concrete(elements[place].evidence, is_example)
    if evidence then
      return evidence
    end
  end
end

local function prove_lists(domain, policy, claim, slots)
  local elements, steps = M.enumerate(domain, { policy }, claim, slots)
  local proof, broken = setmetatable({ cases = 0, steps = steps }, Proof), {}
  for _, element in ipairs(elements or NONE) do
    proof.cases = proof.cases + element.count
    broken[#broken + 1] = claim.forbidden[element.actions[1]] and element or nil
  end
  proof.evidence = M.example(domain, broken, function(evidence)
    local is_claimed = not claim.policy or domain.decide(claim.policy, evidence).action == "block"
    return is_claimed and claim.forbidden[domain.decide(policy, evidence).action] == true
  end)
  if proof.evidence then
    proof.holds, proof.decision = false, domain.decide(policy, proof.evidence)
  elseif elements and not broken[1] then
    proof.holds = true
  end
  return proof
end

---Whether a claim holds for all evidence.
---@param domain riskscreen.policy.Domain
---@param policy riskscreen.Policy|riskscreen.ScorePolicy
---@param given string|riskscreen.PolicyClaim
---@return riskscreen.Proof
function M.prove(domain, policy, given)
  local claim, message = claims.compile(domain, policy, given)
  if not claim then
    error("prove: " .. message, 3)
  end
  local proof = prove_lists(domain, policy, claim, 1)
  -- One more risk makes no decision better.
  if proof.holds and not claim.is_lower then
    local of_two = prove_lists(domain, policy, claim, 2)
    of_two.cases = proof.cases + of_two.cases
    return of_two
  end
  return proof
end

return M
