-- Proves claims about policies, and finds the evidence about which two policies differ. It tries every combination of
-- the raw values of candidates.lua, part by part. Combinations that the rules do not tell apart are merged, and the
-- policy decides about the plainest one of each. docs/policy-proofs.md says why that is enough.

local candidates = require "riskscreen.policy.candidates"
local claims = require "riskscreen.policy.claim"
local evaluate = require "riskscreen.policy.evaluate"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MOST_STEPS = 1000000 -- combinations that are looked at
local MOST_TRIES = 20 -- lists of counterparties that get amounts
-- The states of a rule. An undetermined one has the action that its failures lead to. Of several conditions the largest
-- one counts. A track's states are a list in the order of its rules, without those that fail: 10 * index + state of a
-- rule that a later part may change, or a code below zero of one that is settled.
local HOLDS, FAILS = 1, 6
local ACTIONS = { allow = 10, review = 20, block = 30 }
local UNDETERMINED = { allow = 2, review = 3, block = 4, unknown = 5 }
local NONE = {}
local KINDS = {
  missing = { absent = true, null = true },
  unknown = { absent = true, null = true, unseen = true, wrong = true },
}

local M = {}

---The rules of a policy for one risk of a list, or the conditions of a claim as a policy with one rule.
---@class riskscreen.policy.Track
---@field case_of fun(policy: riskscreen.Policy, results: riskscreen.LookupResults, index: integer): riskscreen.Case,
---riskscreen.Error|nil of the policy's module
---@field policy riskscreen.Policy its conditions on counterparties also take outcomes
---@field slot integer of the risk
---@field is_claim? boolean
---@field uses table<string, table[]> by the condition: each place that has it
---@field last integer[] by the rule: the part after which its state is settled
---@field keeps_rules? boolean rules that match are told apart, and not their actions alone

---@param case_of function
---@param policy riskscreen.Policy
---@param slot integer
---@param is_claim? boolean
---@return riskscreen.policy.Track
function M.track_of(case_of, policy, slot, is_claim)
  local track, rules = { case_of = case_of, slot = slot, is_claim = is_claim, uses = {}, last = {} }, {}
  track.policy = setmetatable(tables.merge(policy, { rules = rules }), getmetatable(policy))
  for index, rule in ipairs(policy.rules) do
    local conditions = {}
    for place, entry in ipairs(rule.conditions) do
      local condition, name, key = entry.condition, entry.condition.name, nil
      if name == "counterparty" then
        local settings = tables.pick(policy.settings, { "absent_risks", "absent_opponents" })
        key = tables.fingerprint { entry.wanted, settings, policy.recognised.level, policy.recognised.type }
        condition = candidates.with_outcome(condition, key)
      end
      conditions[place] = tables.merge(entry, { condition = condition })
      local use = { index = index, entry = conditions[place], condition = condition, policy = policy, key = key }
      use.wanted, track.uses[name] = entry.wanted, track.uses[name] or {}
      table.insert(track.uses[name], use)
    end
    rules[index] = tables.merge(rule, { conditions = conditions })
  end
  return track
end

-- Whether a part is about the risk of a track, or about all.
local function is_about(stage, track)
  return not stage.slot or stage.slot == track.slot
end

local function has_any(set, map)
  for name in pairs(set) do
    if map[name] ~= nil then
      return true
    end
  end
  return false
end

-- The parts of the lookups that the tracks or the claim depend on.
local function stages_of(tracks, claim, slots)
  local needed, kept = tables.merge({ risk = true }, claim.failed and claim.failed.lookups), {}
  local stages = candidates.stages(tables.pluck(tracks, "policy"), slots)
  for _, stage in ipairs(stages) do
    needed[stage.lookup] = needed[stage.lookup] or has_any(stage.fields, claim.is)
    for _, track in ipairs(tracks) do
      needed[stage.lookup] = needed[stage.lookup] or has_any(stage.names, track.uses)
    end
  end
  for _, stage in ipairs(stages) do
    kept[#kept + 1] = needed[stage.lookup] and stage or nil
    for _, track in ipairs(tracks) do
      for name in pairs(is_about(stage, track) and stage.names or NONE) do
        for _, use in ipairs(track.uses[name] or NONE) do
          track.last[use.index] = #kept
        end
      end
    end
  end
  return kept
end

-- The conditions that a value decides: those of its part, and those of later parts that it leaves nothing to fill in.
local function names_decided(stages, stage, form)
  local names = stage.names
  for _, later in ipairs(stage.forms and NONE or stages) do
    local is_same = later.lookup == stage.lookup and (not later.slot or later.slot == stage.slot)
    if is_same and later.forms and not later.forms[form] then
      names = tables.merge(names, later.names)
    end
  end
  return names
end

-- The states of a track's open rules by the conditions of some names; what matters of the case besides; the failure.
local function effect_of(track, stage, names, evidence, open)
  local case, err = track.case_of(track.policy, evidence, track.slot)
  local states, note, is_open = {}, "", tables.set(open)
  local function action_of(failure)
    local handled = failure and evaluate.handled_reason(track.policy.rules, case, failure)
    return handled and handled.action or "unknown"
  end
  for name in pairs(is_about(stage, track) and names or NONE) do
    for _, use in ipairs(track.uses[name] or NONE) do
      if is_open[use.index] then
        local rule = track.policy.rules[use.index]
        local holds = evaluate.condition(use.entry, case, rule.not_offered)
        local state = holds and HOLDS or FAILS
        state = holds == nil and UNDETERMINED[action_of(case.failures[stage.lookup])] or state
        states[use.index] = math.max(states[use.index] or HOLDS, state)
      end
    end
  end
  if stage.slot == track.slot and not stage.forms and not track.is_claim then
    note = err and "failed " .. action_of(err) or case.unrecognised and "unrecognised" or "known"
  end
  return { states = states, note = note }, case.failures[stage.lookup]
end

local function is_wanted(stage, claim, candidate)
  for field, kind in pairs(claim.is) do
    local own = candidate.kinds[field]
    if stage.fields[field] and own ~= kind and not (KINDS[kind] and KINDS[kind][own]) then
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

-- Adds an element to a list, or merges it with the one that has its key. The plainer one stays.
local function merge_into(list, places, key, element)
  local place = places[key] or #list + 1
  local kept = list[place]
  places[key] = place
  if kept then
    element.count = element.count + kept.count
  end
  if not kept or element.weight < kept.weight then
    list[place] = element
  else
    kept.count = element.count
  end
end

-- The rules of each track that a part may still change, as lists; the conditions on counterparties in them; a key.
local function open_rules(tracks, stage, element)
  local open, uses, keys, seen = {}, {}, {}, {}
  for place, track in ipairs(tracks) do
    open[place] = {}
    for _, code in ipairs(element.states[place]) do
      local index = math.floor(code / 10)
      if code > 0 and track.policy.rules[index].lookups[stage.lookup] then
        table.insert(open[place], index)
      end
    end
    local is_open = tables.set(open[place])
    for _, use in ipairs(stage.names.counterparty and track.uses.counterparty or NONE) do
      uses[#uses + 1] = is_open[use.index] and not seen[use.key] and use or nil
      seen[use.key] = seen[use.key] or is_open[use.index]
    end
    keys[place] = table.concat(open[place], ",")
  end
  return open, uses, table.concat(keys, "|")
end

-- The values of a part that the open rules of an element tell apart, and their effects; nil if there are too many.
local function choices_of(search, stage, element)
  local claim, choices, places = search.claim, {}, {}
  if stage.forms and not stage.forms[element.form] then
    return { not has_any(stage.fields, claim.is) and { count = 1, weight = 0, effects = NONE } or nil }
  end
  local open, uses, mask = open_rules(search.tracks, stage, element)
  mask = table.concat({ mask, tostring(element.form), stage.forms and element.notes or "" }, " ")
  local known = search.known[stage]
  if known[mask] then
    return known[mask]
  end
  local list = stage.list(uses)
  for _, candidate in ipairs(list or NONE) do
    local choice = { candidate = candidate, count = 1, weight = candidate.weight, effects = {}, has_failed = false }
    local key = { tostring(candidate.form) }
    local names = names_decided(search.stages, stage, candidate.form)
    local evidence = candidates.evidence { candidate = candidate, before = element.chain }
    for place, track in ipairs(is_wanted(stage, claim, candidate) and search.tracks or NONE) do
      local effect, failure = effect_of(track, stage, names, evidence, open[place])
      choice.effects[place], key[#key + 1] = effect, effect.note
      choice.has_failed = choice.has_failed or is_wanted_failure(claim, stage.lookup, failure)
      for _, index in ipairs(open[place]) do
        key[#key + 1] = effect.states[index] or HOLDS
      end
    end
    key[#key + 1] = tostring(choice.has_failed)
    if choice.effects[1] then
      merge_into(choices, places, table.concat(key, " "), choice)
    end
  end
  known[mask] = list and choices
  return known[mask]
end

-- The code of a rule that is settled. Its number does not matter unless the track keeps it.
local function settled_code(track, index, state)
  local rule = track.policy.rules[index]
  local own = track.keeps_rules and 100 * index or rule.handles_unrecognised and 100 or 0
  return -ACTIONS[rule.action] - state - (state == HOLDS and own or 0)
end

-- The states of a track after one more part; nil where a claim is not about the evidence. Rules behind one that matches
-- do not matter. Of those that stay undetermined, the first of each action and cause does.
local function next_states(track, states, effect, part)
  local after, seen = {}, {}
  for _, code in ipairs(states) do
    if code > 0 then
      local index, state = math.floor(code / 10), code % 10
      state = math.max(state, effect and effect.states[index] or HOLDS)
      code = (track.last[index] or 0) > part and 10 * index + state or settled_code(track, index, state)
      code = state ~= FAILS and code
      if track.is_claim and state ~= HOLDS then
        return nil
      end
    end
    if code and not seen[code] then
      after[#after + 1], seen[code] = code, true
    end
    if code and code < 0 and -code % 10 == HOLDS then
      break
    end
  end
  return after
end

-- An element with one more value, and its key; nil where the claim is not about it.
local function extended(search, element, choice, index)
  local after, following = { states = {}, notes = element.notes }, search.stages[index + 1]
  after.chain = choice.candidate and { candidate = choice.candidate, before = element.chain } or element.chain
  after.count, after.weight = element.count * choice.count, element.weight + choice.weight
  after.has_failed = element.has_failed or choice.has_failed or false
  if following and following.forms then
    after.form = (search.stages[index].forms and element or choice.candidate).form
  end
  local key = { tostring(after.form), tostring(after.has_failed) }
  for place, track in ipairs(search.tracks) do
    local effect = choice.effects[place]
    local states = next_states(track, element.states[place], effect, index)
    if not states then
      return nil
    end
    after.notes = after.notes .. (effect and effect.note or "")
    after.states[place], key[#key + 1] = states, table.concat(states, ",")
  end
  return after, table.concat(key, " ") .. after.notes
end

---All evidence that the rules of the tracks tell apart and that a claim is about; nil if there is too much of it.
---@param tracks riskscreen.policy.Track[]
---@param claim riskscreen.policy.CompiledClaim
---@param slots integer the risks of a list
---@return table[]|nil
---@return integer steps
function M.enumerate(tracks, claim, slots)
  local search = { tracks = tracks, claim = claim, stages = stages_of(tracks, claim, slots), known = {} }
  local first, steps = { count = 1, weight = 0, has_failed = not claim.failed, states = {}, notes = "" }, 0
  for place, track in ipairs(tracks) do
    first.states[place] = {}
    for index, rule in ipairs(track.policy.rules) do
      table.insert(first.states[place], not rule.errors and 10 * index + HOLDS or nil)
    end
  end
  local elements = { first }
  for index, stage in ipairs(search.stages) do
    local after, places = {}, {}
    search.known[stage] = {}
    for _, element in ipairs(elements) do
      local choices = choices_of(search, stage, element)
      steps = steps + #(choices or NONE)
      if not choices or steps > MOST_STEPS then
        return nil, steps
      end
      for _, choice in ipairs(choices) do
        local one, key = extended(search, element, choice, index)
        if one then
          merge_into(after, places, key, one)
        end
      end
    end
    elements = after
  end
  local wanted = {}
  for _, element in ipairs(elements) do
    wanted[#wanted + 1] = element.has_failed and element or nil
  end
  return wanted, steps
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

local function prove_lists(case_of, policy, claim, slots)
  local tracks = {}
  for slot = 1, slots do
    tracks[slot] = M.track_of(case_of, policy, slot)
  end
  tracks[#tracks + 1] = claim.policy and M.track_of(case_of, claim.policy, 1, true) or nil
  local elements, steps = M.enumerate(tracks, claim, slots)
  local proof, broken, tries = setmetatable({ cases = 0, steps = steps }, Proof), {}, 0
  for _, element in ipairs(elements or NONE) do
    proof.cases = proof.cases + element.count
    local decided = tracks[1].policy:decide(candidates.evidence(element.chain))
    broken[#broken + 1] = claim.forbidden[decided.action] and element or nil
  end
  table.sort(broken, function(one, other)
    return one.weight < other.weight
  end)
  local function is_broken(evidence)
    local is_claimed = not claim.policy or claim.policy:decide(evidence).action == "block"
    return is_claimed and claim.forbidden[policy:decide(evidence).action] == true
  end
  while broken[tries + 1] and tries < MOST_TRIES and not proof.evidence do
    tries = tries + 1
    proof.evidence = candidates.with_amounts(candidates.evidence(broken[tries].chain), is_broken)
  end
  proof.decision = proof.evidence and policy:decide(proof.evidence)
  if proof.evidence then
    proof.holds = false
  elseif elements and not broken[1] then
    proof.holds = true
  end
  return proof
end

---Whether a claim holds for all evidence.
---@param policy riskscreen.Policy
---@param given string|riskscreen.PolicyClaim
---@param case_of fun(policy: riskscreen.Policy, results: riskscreen.LookupResults, index: integer): riskscreen.Case,
---riskscreen.Error|nil
---@return riskscreen.Proof
function M.prove(policy, given, case_of)
  local claim, message = claims.compile(policy, given)
  if not claim then
    error("prove: " .. message, 3)
  end
  local proof = prove_lists(case_of, policy, claim, 1)
  -- One more risk makes no decision better.
  if proof.holds and not claim.is_lower then
    local of_two = prove_lists(case_of, policy, claim, 2)
    of_two.cases = proof.cases + of_two.cases
    return of_two
  end
  return proof
end

return M
