-- Proves claims about policies, and finds the evidence about which two policies differ. The raw values of each part of
-- the evidence are put into classes that no condition tells apart. Then the rules are tried in their order: an element
-- stands for all evidence that has led to the same outcomes, and a rule splits it. Elements that no later rule tells
-- apart are merged. docs/policy-proofs.md says why that is enough.

local candidates = require "riskscreen.policy.candidates"
local claims = require "riskscreen.policy.claim"
local decision = require "riskscreen.policy.decision"
local evaluate = require "riskscreen.policy.evaluate"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MOST_STEPS = 1000000 -- elements that a rule is tried for
local MERGED_EVERY = 8 -- rules; elements that a rule has changed are merged at once
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
---@field keeps_rules? boolean rules that decide are told apart, and not their actions alone
---@field deciding? table<riskscreen.Rule, true> the rules that decide about some case

---What a kind of policies gives to a proof.
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

-- The rules of all tracks in the order in which they are tried. Those of the tracks alternate, so that rules that read
-- the same parts are near to each other.
local function rounds_of(space)
  local rounds = {}
  for number, track in ipairs(space.tracks) do
    for place, rule in ipairs(track.rules) do
      local is_last = place == #track.rules
      rounds[#rounds + 1] = { track = track, number = number, rule = rule, place = place, is_last = is_last, uses = {} }
    end
  end
  table.sort(rounds, function(one, other)
    return one.place < other.place or one.place == other.place and one.number < other.number
  end)
  return rounds
end

-- The conditions of each rule, and those that read each part. A condition reads its part, or the parent of one that is
-- not filled in.
local function index_uses(space)
  space.rounds, space.uses, space.numbers = rounds_of(space), {}, {}
  for index in ipairs(space.parts) do
    space.uses[index], space.numbers[index] = {}, { count = 0 }
  end
  for number, round in ipairs(space.rounds) do
    for place, entry in ipairs(round.rule.conditions) do
      local index, child = round.track.places[entry.condition.name], nil
      local use = { track = round.track, rule = round.rule, entry = entry, place = index, number = number }
      round.uses[place] = use
      while index do
        table.insert(space.uses[index], { use = use, child = child })
        child, index = space.parts[index], space.parts[index].parent
      end
    end
  end
end

-- What a claim says about fields. It is about the first risk of a list alone, or the first strategy.
local function fields_of(claim, part)
  return (part.slot or 1) == 1 and claim.is or NONE
end

local function is_wanted(part, claim, candidate)
  for field, kind in pairs(fields_of(claim, part)) do
    local own = candidate.kinds[field] or candidate.kinds.any
    if part.fields[field] and own ~= kind and not (KINDS[kind] and KINDS[kind][own]) then
      return false
    end
  end
  return true
end

local function is_wanted_failure(claim, lookup, failure)
  local wanted = claim.failed or NONE
  return failure ~= nil
    and (not wanted.lookups or wanted.lookups[lookup] == true)
    and (not wanted.kinds or wanted.kinds[failure.kind] == true)
end

local function action_of(track, case, failure)
  local handled = failure and evaluate.handled_reason(track.all_rules, case, failure)
  return handled and handled.action or "unknown"
end

local function outcome_of(use, case)
  local holds = evaluate.condition(use.entry, case, use.rule.not_offered)
  if holds == nil then
    return UNDETERMINED[action_of(use.track, case, case.failures[use.entry.lookup])]
  end
  return holds and HOLDS or FAILS
end

-- What the action of a case depends on besides its conditions.
local function note_of(track, case, err)
  if not case then
    return "none"
  end
  return err and "failed " .. action_of(track, case, err)
    or case.may_exist and "may"
    or case.unrecognised and "odd"
    or "known"
end

-- What one candidate leads to, as a class of its own; and the key of the classes that lead to the same.
local function class_of(space, claim, index, candidate, chosen)
  local part, cases = space.parts[index], {}
  local class = { candidate = candidate, weight = candidate.weight, count = 1, outcomes = {}, notes = {} }
  local evidence = candidates.evidence(tables.merge(chosen, { [index] = candidate }))
  local key, group = {}, { tostring(candidate.form) }
  local function case_of(track)
    cases[track] = cases[track] or { track.case_of(evidence) }
    return cases[track][1], cases[track][2]
  end
  for place, track in ipairs(part.notes and space.tracks or NONE) do
    local is_about = track.policy > 0 and part.notes[track.kind] and (not part.slot or part.slot == track.slot)
    class.notes[place] = is_about and note_of(track, case_of(track)) or nil
    group[#group + 1] = class.notes[place]
  end
  for _, reader in ipairs(space.uses[index]) do
    if not (reader.child and reader.child.forms[candidate.form]) then
      local case = case_of(reader.use.track)
      local outcome = case and outcome_of(reader.use, case) or FAILS
      class.outcomes[reader.use], key[#key + 1] = outcome, outcome
    end
  end
  class.has_failed = false
  for _, track in ipairs(claim.failed and part.lookup and space.tracks or NONE) do
    local case = case_of(track)
    local failure = case and case.failures[part.lookup]
    class.has_failed = class.has_failed or is_wanted_failure(claim, part.lookup, failure or nil)
  end
  class.group = table.concat(group, " ") .. tostring(class.has_failed)
  return class, table.concat(key) .. class.group
end

-- A class gets a number for what is left of its outcomes behind each rule: classes with the same one are not told apart
-- any more, whatever the form of the parent.
local function add_rests(space, index, class)
  local uses, numbers, rest, place = space.uses[index], space.numbers[index], 0, #space.uses[index]
  class.rests = {}
  for number = #space.rounds, 0, -1 do
    while place > 0 and uses[place].use.number > number do
      local key = rest .. ":" .. tostring(class.outcomes[uses[place].use])
      numbers.count = numbers[key] and numbers.count or numbers.count + 1
      numbers[key] = numbers[key] or numbers.count
      rest, place = numbers[key], place - 1
    end
    class.rests[number] = rest
  end
end

-- What is left of the outcomes of a set's classes behind a rule; false where it is not the same.
local function rest_of(set, number)
  if set.rests[number] == nil then
    set.rests[number] = set[1].rests[number]
    for _, class in ipairs(set) do
      set.rests[number] = class.rests[number] == set.rests[number] and set.rests[number]
    end
  end
  return set.rests[number]
end

local function sealed(set)
  local names = {}
  set.size, set.splits, set.rests = 0, {}, {}
  for place, class in ipairs(set) do
    names[place], set.size = class.rests[0], set.size + class.count
  end
  set.key = table.concat(names, ",")
  return set
end

-- The values of a part as sets of classes, the plainest first. In a set all have the same form and the same notes.
local function groups_of(space, claim, index, chosen)
  local classes, places, groups, by_name = {}, {}, {}, {}
  for _, candidate in ipairs(space.parts[index].list) do
    if is_wanted(space.parts[index], claim, candidate) then
      local class, key = class_of(space, claim, index, candidate, chosen)
      local known = classes[places[key]]
      if known then
        known.count = known.count + 1
      else
        classes[#classes + 1], places[key], class.number = class, #classes + 1, #classes + 1
      end
      if known and class.weight < known.weight then
        known.candidate, known.weight = candidate, class.weight
      end
    end
  end
  table.sort(classes, function(one, other)
    return one.weight < other.weight or one.weight == other.weight and one.number < other.number
  end)
  for _, class in ipairs(classes) do
    add_rests(space, index, class)
    if not by_name[class.group] then
      by_name[class.group], groups[#groups + 1] = {}, class.group
    end
    table.insert(by_name[class.group], class)
  end
  for place, name in ipairs(groups) do
    groups[place] = sealed(by_name[name])
  end
  return groups
end

local function plainest(sets)
  local chosen = {}
  for index, set in pairs(sets) do
    chosen[index] = set[1].candidate
  end
  return chosen
end

-- An element of all evidence that has a value of a set.
local function filled(element, index, set)
  local after = tables.merge(element, { sets = tables.merge(element.sets, { [index] = set }) })
  after.read, after.notes = {}, tables.merge(element.notes, set[1].notes)
  after.has_failed = element.has_failed or set[1].has_failed
  return after
end

-- The kind of all fields of a part that is not filled in, if what has it in its place is wrong as a whole.
local function whole_kind(space, element, part)
  local index = part.parent
  while not element.sets[index] do
    index = space.parts[index].parent
  end
  return element.sets[index][1].candidate.kinds.any
end

-- All evidence that a claim may be about, before a rule is tried: an element for each combination of forms and notes.
local function first_elements(space, claim)
  local first = { sets = {}, read = {}, notes = {}, open = {}, actions = {}, reasons = {}, count = 1 }
  first.has_failed = not claim.failed
  for number in ipairs(space.tracks) do
    first.open[number] = {}
  end
  local elements = { first }
  for index, part in ipairs(space.parts) do
    local after, groups = {}, {}
    for _, element in ipairs(elements) do
      local parent = element.sets[part.parent]
      local form, name = parent and parent[1].candidate.form, parent and parent[1].group or ""
      if not part.parent or form and part.forms[form] then
        groups[name] = groups[name] or groups_of(space, claim, index, plainest(element.sets))
        for _, set in ipairs(groups[name]) do
          after[#after + 1] = filled(element, index, set)
        end
      elseif is_wanted(part, claim, { kinds = { any = whole_kind(space, element, part) } }) then
        after[#after + 1] = element
      end
    end
    elements = after
  end
  return elements
end

-- Sets aside the parts whose values the rules behind a number do not tell apart.
local function set_aside(element, number)
  local sets, read = {}, tables.copy(element.read)
  for index, set in pairs(element.sets) do
    if rest_of(set, number) then
      element.count, read[index] = element.count * set.size, set
    else
      sets[index] = set
    end
  end
  element.sets, element.read = sets, read
end

local function weight_of(element)
  local weight = 0
  for _, sets in ipairs { element.sets, element.read } do
    for _, set in pairs(sets) do
      weight = weight + set[1].weight
    end
  end
  return weight
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

-- All that the action of a track's case depends on, besides the rule that matches.
local function state_of(element, number)
  local pending = element.open[number]
  return pending
    and ("%s %s %s %s"):format(
      tostring(element.notes[number]),
      tostring(pending.allow),
      tostring(pending.review),
      tostring(pending.block)
    )
end

-- Adds an element to a list, or merges it with the one from which no rule behind a number tells it apart. The plainer
-- one stays.
local function merge_into(list, space, element, number)
  set_aside(element, number)
  local key = {}
  for index in ipairs(space.parts) do
    local set = element.read[index]
    key[index] = set and rest_of(set, number) or element.sets[index] and element.sets[index].key or "-"
  end
  for place, track in ipairs(space.tracks) do
    local reason = space.keeps_rules and element.reasons[track.policy]
    key[#key + 1] = state_of(element, place) or "-"
    key[#key + 1] = tostring(element.actions[track.policy]) .. tostring(reason and reason.rule)
  end
  key, element.weight = table.concat(key, "|"), weight_of(element)
  local place = list[key] or #list + 1
  local kept = list[place]
  list[key] = place
  if kept then
    element.count = element.count + kept.count
  end
  if not kept or element.weight < kept.weight then
    list[place] = element
  else
    kept.count = element.count
  end
end

-- Calls a function with each outcome of a condition, and the part of an element that has it.
local function split(space, element, use, visit)
  local index = use.place
  while not (element.sets[index] or element.read[index]) do
    index = space.parts[index].parent
  end
  local set = element.sets[index]
  if not set then
    return visit(element.read[index][1].outcomes[use], element)
  end
  local splits = set.splits[use]
  if not splits then
    splits = {}
    for _, class in ipairs(set) do
      local outcome = class.outcomes[use]
      splits[outcome] = splits[outcome] or {}
      table.insert(splits[outcome], class)
    end
    for outcome, some in pairs(splits) do
      splits[outcome] = #some == #set and set or sealed(some)
    end
    set.splits[use] = splits
  end
  for outcome = HOLDS, FAILS do
    local some = splits[outcome]
    if some == set then
      visit(outcome, element)
    elseif some then
      local part = tables.merge(element, { sets = tables.merge(element.sets, { [index] = some }) })
      visit(outcome, part)
    end
  end
end

-- Decides the case of a track, by the rule that matches or without one. The worst action of a policy's cases counts.
local function decide(space, round, element, is_match)
  local track, number = round.track, round.number
  local name = is_match
    and (space.keeps_rules and round.place or round.rule.action .. tostring(round.rule.handles_unrecognised))
  local key = ("%d %s %s"):format(number, tostring(name), state_of(element, number))
  local reason = space.known[key]
  if reason == nil then
    local case, err = track.case_of(candidates.evidence(plainest(tables.merge(element.sets, element.read))))
    reason = case and evaluate.case(err and track.all_rules or track.rules, case, err) or false
    space.known[key] = reason
    space.deciding[reason and reason.rule or false] = true
  end
  local action, old = reason and reason.action or "allow", element.actions[track.policy]
  local after = tables.merge(element, { open = tables.copy(element.open) })
  after.open[number] = nil
  if not old or action ~= old and decision.worst(action, old) == action then
    after.actions = tables.merge(element.actions, { [track.policy] = action })
    after.reasons = tables.merge(element.reasons, { [track.policy] = reason })
  end
  return after
end

-- Tries a rule for an element, and visits each part of it that leads to something else.
local function try_rule(space, round, element, visit)
  local number, states = round.number, { { element, HOLDS } }
  local function leave(part)
    if not round.is_last then
      visit(part)
    elseif round.track.policy > 0 then
      visit(decide(space, round, part, false))
    end
  end
  if round.rule.errors then
    return leave(element)
  end
  for _, use in ipairs(round.uses) do
    local after = {}
    for _, one in ipairs(states) do
      split(space, one[1], use, function(outcome, part)
        if outcome == FAILS then
          leave(part)
        else
          after[#after + 1] = { part, math.max(one[2], outcome) }
        end
      end)
    end
    states = after
  end
  for _, one in ipairs(states) do
    local part, state = one[1], one[2]
    state = part.notes[number] == "may" and UNDETERMINED.unknown or state
    if state == HOLDS then
      visit(decide(space, round, part, true))
    else
      local pending = with_pending(part.open[number], round.rule.action, state)
      leave(tables.merge(part, { open = tables.merge(part.open, { [number] = pending }) }))
    end
  end
end

---All evidence that the rules of the tracks tell apart and that a claim is about; nil if there is too much of it.
---@param space riskscreen.policy.Space|nil
---@param claim riskscreen.policy.CompiledClaim
---@return table[]|nil elements each with `actions` and `reasons` by the policy, `count`, `weight` and `evidence`
---@return integer steps
function M.enumerate(space, claim)
  if not space then
    return nil, 0
  end
  index_uses(space)
  space.steps, space.known, space.deciding = 0, {}, {}
  local elements, finished, current = {}, {}, nil
  for _, element in ipairs(first_elements(space, claim)) do
    elements[#elements + 1] = element.has_failed and element or nil
  end
  for number, round in ipairs(space.rounds) do
    local after = {}
    local function visit(element)
      space.steps = space.steps + 1
      if element == current and round.place % MERGED_EVERY > 0 then
        after[#after + 1] = element
      elseif next(element.open) then
        merge_into(after, space, element, number)
      else
        merge_into(finished, space, element, #space.rounds)
      end
    end
    for _, element in ipairs(space.steps > MOST_STEPS and NONE or elements) do
      current = element
      local is_open, is_neutral = element.open[round.number], element.notes[round.number] == "none"
      if is_open and is_neutral then
        visit(decide(space, round, element, false))
      elseif is_open then
        try_rule(space, round, element, visit)
      else
        visit(element)
      end
    end
    elements = after
    if space.steps > MOST_STEPS then
      return nil, space.steps
    end
  end
  for _, element in ipairs(finished) do
    local evidence = candidates.evidence(plainest(element.read))
    element.evidence = space.finish and space.finish(evidence) or evidence
  end
  table.sort(finished, function(one, other)
    return one.weight < other.weight
  end)
  return finished, space.steps
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
  local elements, steps = M.enumerate(domain.space({ policy }, claim, slots), claim)
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
