-- The evidence about an address that a proof tries: for each part of the answers a list of raw values, good and bad.
-- prove.lua finds out which of them the rules tell apart. Pure.

local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local lookups = require "riskscreen.policy.lookups"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MOST_LISTS = 10000 -- of counterparties
local MOST_AMOUNTS = 3 -- counterparties whose amounts are varied
local AMOUNTS = { 1, 0, 3, 9, 99, 1000000, false }
local ABSENT, OBJECT, EMPTY = {}, { key = "value" }, json.empty_array()

---A raw value of one part of the evidence. A counterexample has the least weight: it is as plain as possible.
---@class riskscreen.policy.Candidate
---@field path (string|integer)[] its place in the evidence
---@field value any
---@field weight integer
---@field kinds table<string, "value"|"absent"|"null"|"unseen"|"wrong"> by the field; `any`: of all fields
---@field form? string the later parts that fill it in

---@class riskscreen.policy.CounterpartyUse a condition on counterparties that is not decided yet, each once
---@field key string
---@field condition riskscreen.Condition
---@field wanted riskscreen.CounterpartyCondition
---@field policy riskscreen.Policy

local M = {}

local lookup_of = {}
for _, entry in ipairs(lookups.list) do
  lookup_of[entry.name] = entry
end

local WEIGHTS = { value = 0, absent = 1, null = 1, unseen = 1, wrong = 2 }

-- A text that a set does not have. It stands for every such text.
local function unseen(set)
  local name = "neverseen"
  while set[name] do
    name = name .. "x"
  end
  return name
end

-- Raw values of a field: the good ones, and then what is missing, not known or of another type.
local function values_of(good)
  local list, is_good, seen = {}, tables.set(good), {}
  for _, value in ipairs(tables.concat(good, { ABSENT, json.null, unseen(is_good), "", 7, true, OBJECT, EMPTY })) do
    local is_text = type(value) == "string" and (good[1] == nil or type(good[1]) == "string")
    local kind = is_good[value] and "value" or value == ABSENT and "absent" or value == json.null and "null"
    kind = kind or is_text and "unseen" or "wrong"
    if not seen[value] then
      local one = { value = value, kind = kind, weight = WEIGHTS[kind] }
      list[#list + 1] = kind == "absent" and tables.without(one, "value") or one
    end
    seen[value] = true
  end
  return list
end

---Raw values as candidates for a place.
---@param path (string|integer)[]
---@param name string for claims
---@param good any[]
---@param weight integer
---@param form? string
---@return riskscreen.policy.Candidate[]
function M.field(path, name, good, weight, form)
  local list = {}
  for index, one in ipairs(values_of(good)) do
    local kinds = { [name] = one.kind }
    list[index] = { path = path, value = one.value, weight = weight + one.weight, kinds = kinds, form = form }
  end
  return list
end

---Raw values of a lookup: good and useless answers, none, each failure, and that it is not offered.
---@param name riskscreen.LookupName
---@param good any[]
---@return riskscreen.policy.Candidate[]
function M.answers(name, good)
  local list = M.field({ name }, name, good, good[1] and 0 or 2)
  local function add(weight, place, value)
    list[#list + 1] = { path = { place, name }, value = value, weight = weight, kinds = {} }
  end
  for _, kind in ipairs(tables.pluck(errors.kinds, "kind")) do
    add(3, "errors", errors.new(kind, "the lookup failed"))
  end
  add(3, "errors", errors.new("protocol", "the answer leaves out its list", { absent = true }))
  for _, network in ipairs(enums.values.network) do
    if not lookups.applies(lookup_of[name], network) then
      add(2, "not_offered", true)
      break
    end
  end
  return list
end

-- Raw risks, each with its level and its type.
local function risks_of(known, slot)
  local list, path, types = {}, { "risk", "risks", slot }, values_of(tables.sorted_keys(known.type))
  for _, level in ipairs(values_of(tables.sorted_keys(known.level))) do
    for _, kind in ipairs(types) do
      list[#list + 1] = {
        path = path,
        value = { riskLevel = level.value, riskType = kind.value },
        kinds = { level = level.kind, type = kind.kind },
        weight = 1 + level.weight + kind.weight,
        form = "object",
      }
    end
  end
  for _, value in ipairs { json.null, "high", EMPTY } do
    local kinds = { level = "wrong", type = "wrong" }
    list[#list + 1] = { path = path, value = value, kinds = kinds, weight = 4, form = "record" }
  end
  return list
end

local function owners_of(known)
  local path, categories = { "entity", "entity" }, values_of(tables.sorted_keys(known.category))
  local list = M.field(path, "entity", {}, 0)
  for _, category in ipairs(categories) do
    for _, code in ipairs(categories) do
      list[#list + 1] = {
        path = path,
        value = { entityCategory = category.value, entityCategoryCode = code.value },
        weight = 1 + category.weight + code.weight,
        kinds = { entity = "value", category = category.kind, category_code = code.kind },
      }
    end
  end
  return list
end

-- Every single counterparty.
local function raw_counterparties(known)
  local list, risks = {}, values_of {}
  for _, one in ipairs(risks_of(known)) do
    risks[#risks + 1] = { value = { one.value }, weight = one.weight }
  end
  for _, direction in ipairs(values_of(enums.values.direction)) do
    for _, one in ipairs(risks) do
      local opponent = { dir = direction.value, risks = one.value, symbol = "ETH", amount = 1 }
      list[#list + 1] = { opponents = { opponent }, weight = 1 + direction.weight + one.weight }
    end
  end
  return list
end

-- Three outcomes as numbers: that of an "any" is the largest.
local RANKS, OUTCOMES = { ["false"] = 1, ["nil"] = 2, ["true"] = 3 }, { "false", "nil", "true" }

-- The plainest single counterparties by the outcomes of conditions. The share of a condition may make its outcome
-- worse, and cannot improve it.
local function single_counterparties(known, uses)
  local list, places = {}, {}
  for _, one in ipairs(raw_counterparties(known)) do
    local variants = { { opponents = one.opponents, weight = one.weight, ranks = {} } }
    for place, use in ipairs(uses) do
      local case, longer = { results = { counterparties = one }, policy = use.policy }, {}
      local highest = RANKS[tostring(use.condition.matches(tables.without(use.wanted, "share"), case))]
      for _, variant in ipairs(variants) do
        for rank = highest, use.wanted.share and 1 or highest, -1 do
          local ranks = tables.merge(variant.ranks, { [place] = rank })
          longer[#longer + 1] = { opponents = one.opponents, ranks = ranks, weight = variant.weight + highest - rank }
        end
      end
      variants = longer
    end
    for _, variant in ipairs(variants) do
      local key = table.concat(variant.ranks)
      local place = places[key] or #list + 1
      if not list[place] or list[place].weight > variant.weight then
        places[key], list[place] = place, variant
      end
    end
  end
  return list
end

-- Lists of counterparties with every joint outcome of the conditions. The outcome of a list is the "any" of those of
-- its elements. So a list of any length has the outcome of one of these. Nil if there are too many.
local function lists_of(single, count)
  local lists, seen, index = { { opponents = EMPTY, weight = 0, ranks = {} } }, { [("1"):rep(count)] = true }, 1
  for place = 1, count do
    lists[1].ranks[place] = 1
  end
  while lists[index] and #lists <= MOST_LISTS do
    for _, one in ipairs(single) do
      local list = { opponents = tables.concat(lists[index].opponents, one.opponents), ranks = {} }
      for place, rank in ipairs(one.ranks) do
        list.ranks[place] = math.max(rank, lists[index].ranks[place])
      end
      local key = table.concat(list.ranks)
      list.weight = lists[index].weight + one.weight
      lists[#lists + 1], seen[key] = not seen[key] and list or nil, true
    end
    index = index + 1
  end
  return not lists[index] and lists or nil
end

-- The candidates for conditions on counterparties. They have the outcome of each condition: it is not known whether
-- amounts lead to those of conditions with a share. Nil if there are too many.
local function counterparties_of(known, uses)
  local lists = lists_of(uses[1] and single_counterparties(known, uses) or {}, #uses)
  for index, one in ipairs(lists or {}) do
    local value, kinds = { opponents = one.opponents, outcomes = {} }, { opponents = "value" }
    for place, use in ipairs(uses) do
      value.outcomes[use.key] = OUTCOMES[one.ranks[place]]
    end
    lists[index] = { path = { "counterparties" }, value = value, weight = one.weight, kinds = kinds }
  end
  local others = M.answers("counterparties", {})
  for _, one in ipairs(M.field({ "counterparties", "opponents" }, "opponents", { EMPTY }, 1)) do
    others[#others + 1] = one.value ~= EMPTY and one or nil -- the empty list is the first one
  end
  return lists and tables.concat(lists, others)
end

-- The condition on counterparties that takes its outcome where the evidence has one.
local function with_outcome(condition, key)
  return tables.merge(condition, {
    matches = function(wanted, case)
      local given = case.results.counterparties
      if type(given) ~= "table" or not given.outcomes then
        return condition.matches(wanted, case)
      elseif given.outcomes[key] ~= "nil" then
        return given.outcomes[key] == "true"
      end
    end,
  })
end

-- The rules of a policy with such conditions, which are added to a list, each once.
local function with_outcomes(policy, uses)
  local rules = {}
  for index, rule in ipairs(policy.rules) do
    local own = {}
    for place, entry in ipairs(rule.conditions) do
      own[place] = entry
      if entry.condition.name == "counterparty" then
        local settings = tables.pick(policy.settings, { "absent_risks", "absent_opponents" })
        local key = tables.fingerprint { entry.wanted, settings, policy.recognised.level, policy.recognised.type }
        own[place] = tables.merge(entry, { condition = with_outcome(entry.condition, key) })
        uses[#uses + 1] = not uses[key]
            and { key = key, condition = entry.condition, wanted = entry.wanted, policy = policy }
          or nil
        uses[key] = true
      end
    end
    rules[index] = tables.merge(rule, { conditions = own })
  end
  return rules
end

---Evidence with amounts in the place of outcomes: a few of them, for the counterparties and two harmless ones.
---@param evidence riskscreen.LookupResults
---@param is_wanted fun(evidence: riskscreen.LookupResults): boolean
---@return riskscreen.LookupResults|nil
function M.with_amounts(evidence, is_wanted)
  local given = type(evidence.counterparties) == "table" and evidence.counterparties.outcomes
  local opponents = given and tables.copy(evidence.counterparties.opponents) or {}
  local function try(index)
    local counterparties = { opponents = opponents[1] and tables.copy(opponents) or EMPTY }
    local made = given and tables.merge(evidence, { counterparties = counterparties }) or evidence
    if is_wanted(made) then
      return made
    end
    for _, amount in ipairs(opponents[index] and AMOUNTS or {}) do
      local opponent = opponents[index]
      opponents[index] = tables.merge(tables.without(opponent, "amount"), { amount = amount or nil })
      local found = try(index + 1)
      opponents[index] = opponent
      if found then
        return found
      end
    end
  end
  local found = try(MOST_AMOUNTS)
  for _, direction in ipairs(given and #opponents <= MOST_AMOUNTS and enums.values.direction or {}) do
    opponents[#opponents + 1] = { dir = direction, risks = EMPTY, symbol = "ETH", amount = 0 }
  end
  return found or given and #opponents <= MOST_AMOUNTS + 2 and try(1) or nil
end

-- The values that one of the policies recognises.
local function known_by(policies)
  local known = { category = {} }
  for _, name in ipairs { "level", "type", "source" } do
    known[name] = tables.set(enums.values["risk_" .. name])
  end
  for name, set in pairs(known) do
    for _, policy in ipairs(policies) do
      set = tables.merge(set, policy.recognised[name])
    end
    known[name] = set
  end
  return known
end

-- Of freeze events only the outcome counts: no freeze is in force, or one is. It is not known where there is no list.
local function freezes_of(policies)
  local lifting = {}
  for _, policy in ipairs(policies) do
    lifting = tables.merge(lifting, policy.settings.lifting)
  end
  local name = unseen(lifting)
  local frozen = { type = name, event = name, chain = "eth", contractAddress = "0x01", txTime = 1, frozenBalance = "1" }
  return M.answers("freeze_events", { EMPTY, { frozen } })
end

---The parts of the evidence, and the conditions that read each.
---@param policies riskscreen.Policy[]
---@param slots integer the risks of a list
---@param uses riskscreen.policy.CounterpartyUse[]
---@return table[]|nil parts nil: too many counterparties
function M.parts(policies, slots, uses)
  local known, parts, flags, parent = known_by(policies), {}, { false, true }, nil
  local function add(lookup, names, fields, list, forms, more)
    parts[#parts + 1] = tables.merge(more or {}, {
      lookup = lookup,
      names = tables.set(text.words(names)),
      fields = tables.set(text.words(fields)),
      list = list,
      forms = forms and tables.set(text.words(forms)),
      parent = forms and parent,
    })
    parent = forms and parent or #parts
  end
  for slot = 1, slots do
    local alone = tables.concat(M.field({ "risk", "risks" }, "risks", { EMPTY }, 0, "record"), M.answers("risk", {}))
    local list = tables.concat(slots == 1 and alone or {}, risks_of(known, slot))
    local sources = M.field({ "risk", "risks", slot, "riskSource" }, "source", tables.sorted_keys(known.source), 0)
    add(
      "risk",
      "any level type no_risk unrecognised",
      "risks level type",
      list,
      nil,
      { slot = slot, notes = { risk = true } }
    )
    add("risk", "source", "source", sources, "object", { slot = slot })
  end
  add("risk", "whitelist", "whitelist", M.field({ "risk", "whitelist" }, "whitelist", flags, 0), "object record")
  local record = { path = { "entity" }, value = {}, weight = 0, kinds = {}, form = "entity" }
  add("entity", "", "", tables.concat({ record }, M.answers("entity", {})))
  add("entity", "contract", "contract", M.field({ "entity", "contract" }, "contract", flags, 0), "entity")
  add("entity", "category", "entity category category_code", owners_of(known), "entity")
  add("freeze_events", "frozen", "freeze_events", freezes_of(policies))
  local opponents = counterparties_of(known, uses)
  add("counterparties", "counterparty", "opponents", opponents or {})
  return opponents and parts
end

---The evidence of candidates.
---@param chosen table<integer, riskscreen.policy.Candidate> by the part
---@return riskscreen.LookupResults
function M.evidence(chosen)
  local evidence = {}
  for _, index in ipairs(tables.sorted_keys(chosen)) do
    local place, path, value = evidence, chosen[index].path, chosen[index].value
    for depth = 1, #path - 1 do
      place[path[depth]] = place[path[depth]] or {}
      place = place[path[depth]]
    end
    place[path[#path]] = type(value) == "table" and getmetatable(value) == nil and tables.copy(value) or value
  end
  return evidence
end

-- The parts of the lookups that the rules or the claim depend on.
local function needed_parts(parts, rule_lists, claim)
  local needed, kept, numbers = tables.merge({ risk = true }, claim.failed and claim.failed.lookups), {}, {}
  for _, rules in ipairs(rule_lists) do
    for _, rule in ipairs(rules) do
      needed = tables.merge(needed, rule.lookups)
    end
  end
  for _, part in ipairs(parts) do
    for name in pairs(claim.is) do
      needed[part.lookup] = needed[part.lookup] or part.fields[name]
    end
  end
  for index, part in ipairs(parts) do
    if needed[part.lookup] then
      kept[#kept + 1], numbers[index] = part, #kept + 1
      part.parent = numbers[part.parent]
    end
  end
  return kept
end

---All evidence about an address, for a proof.
---@param case_of fun(policy: riskscreen.Policy, results: riskscreen.LookupResults, index: integer): riskscreen.Case,
---riskscreen.Error|nil of the policy's module
---@param policies riskscreen.Policy[]
---@param claim riskscreen.policy.CompiledClaim
---@param slots integer the risks of a list
---@return riskscreen.policy.Space|nil nil: there is too much of it
function M.space(case_of, policies, claim, slots)
  local uses, rule_lists, tracks, all = {}, {}, {}, tables.concat({ claim.policy }, policies)
  for place, policy in ipairs(all) do
    rule_lists[place] = with_outcomes(policy, uses)
  end
  local parts = M.parts(all, slots, uses)
  parts = parts and needed_parts(parts, rule_lists, claim)
  for slot = 1, parts and slots or 0 do
    local places = {}
    for index, part in ipairs(parts) do
      for name in pairs((part.slot or slot) == slot and part.names or {}) do
        places[name] = index
      end
    end
    for place, policy in ipairs(all) do
      local track = { policy = place - (claim.policy and 1 or 0), kind = "risk", slot = slot, places = places }
      track.rules, track.all_rules = rule_lists[place], rule_lists[place]
      function track.case_of(evidence)
        return case_of(policy, evidence, slot)
      end
      tracks[#tracks + 1] = (slot == 1 or policy ~= claim.policy) and track or nil
    end
  end
  return parts and { parts = parts, tracks = tracks }
end

return M
