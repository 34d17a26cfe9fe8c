-- The evidence that a proof tries: for each part of the answers a list of raw values, good and bad. prove.lua finds out
-- which of them the rules tell apart. Pure.

local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local lookups = require "riskscreen.policy.lookups"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MOST_LISTS = 3000 -- of counterparties
local MOST_AMOUNTS = 3 -- counterparties whose amounts are varied
local AMOUNTS = { 1, 0, 3, 9, 99, 1000000, false }
local ABSENT, OBJECT, EMPTY = {}, { key = "value" }, json.empty_array()

---A raw value of one part of the evidence. A counterexample has the least weight: it is as plain as possible.
---@class riskscreen.policy.Candidate
---@field path (string|integer)[] its place in the evidence
---@field value any
---@field weight integer
---@field kinds table<string, "value"|"absent"|"null"|"unseen"|"wrong"> by the field
---@field form? string the later parts that fill it in

---A part of the evidence. The outcome of its conditions depends on no other part.
---@class riskscreen.policy.Stage
---@field lookup riskscreen.LookupName
---@field names table<string, true> the conditions that it decides
---@field fields table<string, true> for claims
---@field forms? table<string, true> those of the part before it that it fills in; absent: the lookup's first part
---@field slot? integer of the risk
---@field list fun(conditions: riskscreen.policy.CounterpartyUse[]): riskscreen.policy.Candidate[]|nil nil: too many

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
    local is_text = type(value) == "string" and type(good[1]) == "string"
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

-- Raw values as candidates for a place.
local function field(path, name, good, weight, form)
  local list = {}
  for index, one in ipairs(values_of(good)) do
    local kinds = { [name] = one.kind }
    list[index] = { path = path, value = one.value, weight = weight + one.weight, kinds = kinds, form = form }
  end
  return list
end

-- Raw values of a lookup: good and useless answers, none, each failure, and that it is not offered.
local function answers(name, good)
  local list = field({ name }, name, good, good[1] and 0 or 2)
  local function add(weight, place, value)
    list[#list + 1] = { path = { place, name }, value = value, weight = weight, kinds = {} }
  end
  for _, kind in ipairs(tables.concat({ "timeout" }, tables.pluck(errors.kinds, "kind"))) do
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
  local list = field(path, "entity", {}, 0)
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
  local list, risks = {}, values_of { EMPTY }
  for _, one in ipairs(risks_of(known)) do
    risks[#risks + 1] = { value = { one.value }, weight = one.weight }
  end
  for _, direction in ipairs(values_of(enums.values.direction)) do
    for _, one in ipairs(risks) do
      local opponent = { dir = direction.value, risks = one.value, symbol = "ETH", amount = 1 }
      list[#list + 1] = { opponents = { opponent }, weight = 1 + direction.weight + one.weight, known = {} }
    end
  end
  return list
end

-- Three outcomes as numbers: that of an "any" is the largest.
local RANKS, OUTCOMES = { ["false"] = 1, ["nil"] = 2, ["true"] = 3 }, { "false", "nil", "true" }

-- The outcome of a condition without its share, for one counterparty.
local function rank_of(one, use)
  if not one.known[use.key] then
    local case = { results = { counterparties = one }, policy = use.policy }
    one.known[use.key] = RANKS[tostring(use.condition.matches(tables.without(use.wanted, "share"), case))]
  end
  return one.known[use.key]
end

-- The plainest single counterparties that conditions tell apart, by the outcomes of each condition.
local function single_counterparties(raw, uses)
  local list, places = {}, {}
  for _, one in ipairs(raw) do
    local ranks = {}
    for place, use in ipairs(uses) do
      ranks[place] = rank_of(one, use)
    end
    local key = table.concat(ranks)
    local place = places[key] or #list + 1
    if not list[place] or list[place].weight > one.weight then
      places[key], list[place] = place, { opponents = one.opponents, weight = one.weight, ranks = ranks }
    end
  end
  return list
end

-- Lists of counterparties with every joint outcome of the conditions without their shares. The outcome of a list is the
-- "any" of those of its elements. So a list of any length has the outcome of one of these. Nil if there are too many.
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

-- The lists with the outcomes of conditions with a share: up to that without the share, which it cannot improve. Nil if
-- there are too many.
local function with_shares(lists, uses)
  for place, use in ipairs(uses) do
    local longer = {}
    for _, list in ipairs(#lists <= MOST_LISTS and lists or {}) do
      for rank = list.ranks[place], use.wanted.share and 1 or list.ranks[place], -1 do
        local ranks, weight = tables.copy(list.ranks), list.weight + list.ranks[place] - rank
        ranks[place] = rank
        longer[#longer + 1] = { opponents = list.opponents, ranks = ranks, weight = weight }
      end
    end
    lists = #lists <= MOST_LISTS and longer or lists
  end
  return #lists <= MOST_LISTS and lists or nil
end

-- A function that makes the candidates for conditions on counterparties. They have the outcome of each condition: it is
-- not known whether amounts lead to those of conditions with a share.
local function counterparties_for(known)
  local raw
  local others =
    tables.concat(answers("counterparties", {}), field({ "counterparties", "opponents" }, "opponents", {}, 1))
  return function(uses)
    raw = raw or raw_counterparties(known)
    local lists, list = lists_of(single_counterparties(raw, uses), #uses), {}
    lists = lists and with_shares(lists, uses)
    for index, one in ipairs(lists or {}) do
      local value, kinds = { opponents = one.opponents, outcomes = {} }, { opponents = "value" }
      for place, use in ipairs(uses) do
        value.outcomes[use.key] = OUTCOMES[one.ranks[place]]
      end
      list[index] = { path = { "counterparties" }, value = value, weight = one.weight, kinds = kinds }
    end
    return lists and tables.concat(list, others)
  end
end

---The condition on counterparties that takes its outcome where the evidence has one.
---@param condition riskscreen.Condition
---@param key string
---@return riskscreen.Condition
function M.with_outcome(condition, key)
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

---The parts of the evidence in the order in which they are tried.
---@param policies riskscreen.Policy[]
---@param slots integer the risks of a list
---@return riskscreen.policy.Stage[]
function M.stages(policies, slots)
  local known, stages, lifting, flags = known_by(policies), {}, {}, { false, true }
  for _, policy in ipairs(policies) do
    lifting = tables.merge(lifting, policy.settings.lifting)
  end
  -- Of the events only the outcome counts: no freeze is in force, one is, or that is not known.
  local name = unseen(lifting)
  local frozen = { type = name, event = name, chain = "eth", contractAddress = "0x01", txTime = 1, frozenBalance = "1" }
  local function add(lookup, names, field_names, forms, list, slot)
    stages[#stages + 1] = {
      lookup = lookup,
      names = tables.set(text.words(names)),
      fields = tables.set(text.words(field_names)),
      forms = forms and tables.set(text.words(forms)),
      list = type(list) == "function" and list or function()
        return list
      end,
      slot = slot,
    }
  end
  for slot = 1, slots do
    local alone = tables.concat(field({ "risk", "risks" }, "risks", { EMPTY }, 0, "record"), answers("risk", {}))
    local list = tables.concat(slots == 1 and alone or {}, risks_of(known, slot))
    add("risk", "any level type no_risk unrecognised", "risks level type", nil, list, slot)
    local path = { "risk", "risks", slot, "riskSource" }
    add("risk", "source", "source", "object", field(path, "source", tables.sorted_keys(known.source), 0), slot)
  end
  add("risk", "whitelist", "whitelist", "object record", field({ "risk", "whitelist" }, "whitelist", flags, 0))
  local record = { path = { "entity" }, value = {}, weight = 0, kinds = {}, form = "entity" }
  add("entity", "", "", nil, tables.concat({ record }, answers("entity", {})))
  add("entity", "contract", "contract", "entity", field({ "entity", "contract" }, "contract", flags, 0))
  add("entity", "category", "entity category category_code", "entity", owners_of(known))
  add("freeze_events", "frozen", "freeze_events", nil, answers("freeze_events", { EMPTY, { frozen }, { {} } }))
  add("counterparties", "counterparty", "opponents", nil, counterparties_for(known))
  return stages
end

---The evidence of candidates.
---@param chain { candidate: riskscreen.policy.Candidate, before?: table }|nil the last first
---@return riskscreen.LookupResults
function M.evidence(chain)
  if not chain then
    return {}
  end
  local evidence = M.evidence(chain.before)
  local place, path, value = evidence, chain.candidate.path, chain.candidate.value
  for index = 1, #path - 1 do
    place[path[index]] = place[path[index]] or {}
    place = place[path[index]]
  end
  place[path[#path]] = type(value) == "table" and getmetatable(value) == nil and tables.copy(value) or value
  return evidence
end

return M
