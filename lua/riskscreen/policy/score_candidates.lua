-- The evidence about a transaction that a proof tries: results, good and bad, with none, one or two strategies. A slot
-- is a strategy with at most one detail, or a direction that the result leaves out. The risks of a result are tried as
-- those of an address. Pure.

local candidates = require "riskscreen.policy.candidates"
local decimal = require "riskscreen.util.decimal"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ROOT = 1 -- the part with the status, the largest score, and the directions and scores of the strategies
local KINDS = { "transaction", "strategy", "detail" }

local M = {}

-- Zero and the thresholds of all rules, the smallest first: no condition tells other scores apart.
local function scores_of(policies)
  local known, list = {}, { "0" }
  for _, policy in ipairs(policies) do
    for _, rule in ipairs(policy.rules) do
      for _, entry in ipairs(rule.conditions) do
        local score = entry.condition.name:find "^score_" and entry.wanted
        if score and not known[score] and decimal.compare(score, "0") == 1 then
          list[#list + 1], known[score] = score, true
        end
      end
    end
  end
  table.sort(list, function(one, other)
    return decimal.compare(one, other) == -1
  end)
  return list
end

-- The values of a slot beside the largest score: nothing, a direction without strategies, or a strategy.
local function slots_of(directions, scores, largest)
  local list = { { weight = 0, kinds = {} } }
  for _, direction in ipairs(directions) do
    list[#list + 1] = { missing = direction, weight = 1, kinds = {} }
    for place = 1, largest do
      list[#list + 1] = { direction = direction, score = scores[place], weight = 1, kinds = { score = "value" } }
    end
    list[#list + 1] = { direction = direction, weight = 2, kinds = { score = "absent" } }
    list[#list + 1] = { direction = direction, score = json.null, weight = 2, kinds = { score = "null" } }
  end
  return list
end

-- Whole results: failures, results without a score, and those with one and what the slots hold.
local function results_of(policies, directions, scores, slots)
  local list, final, other = candidates.answers("risk", {}), next(policies[1].is_final), 0
  local function add(fields, weight, form, kinds)
    local value = tables.merge({ requestId = "r1", status = final }, fields)
    value.status = value.status or nil
    list[#list + 1] = { path = { "risk" }, value = value, weight = weight, form = form, kinds = kinds }
  end
  for _, policy in ipairs(policies) do
    while policy.is_final[other] do
      other = other + 1
    end
  end
  add({ status = other, maxScore = "0" }, 2, "read", { status = "unseen" })
  add({ status = json.null, maxScore = "0" }, 2, "read", { status = "null" })
  add({ status = false, maxScore = "0" }, 2, "read", { status = "absent" })
  -- A field of another type, whichever it is, makes a result a failure. The rules about risks may get one as well.
  add({ status = "final", maxScore = "0" }, 2, "malformed", { any = "wrong" })
  add({ maxScore = "0", risks = "none" }, 2, "no list", { any = "wrong" })
  add({}, 2, "unscored", { max_score = "absent" })
  add({ maxScore = json.null }, 2, "unscored", { max_score = "null" })
  for place, score in ipairs(scores) do
    local contents, combined = slots_of(directions, scores, place), { {} }
    for _ = 1, slots do
      local longer = {}
      for _, before in ipairs(combined) do
        for _, slot in ipairs(contents) do
          longer[#longer + 1] = tables.concat(before, { slot })
        end
      end
      combined = longer
    end
    for _, held in ipairs(combined) do
      local form, weight, kinds = "", 0, tables.merge(held[1].kinds, { max_score = "value", status = "value" })
      for _, slot in ipairs(held) do
        form, weight = form .. (slot.direction and "s" or "-"), weight + slot.weight
      end
      add({ maxScore = score, slots = held }, weight, form, kinds)
    end
  end
  return list
end

-- The result with what the slots hold, or one of them alone.
local function with_strategies(given, own, directions, only)
  local result = tables.merge(tables.without(given, "slots"), { dirData = {} })
  for _, direction in ipairs(directions) do
    result.dirData[direction] = {}
  end
  for slot, held in ipairs(given.slots) do
    local is_held, more = not only or only == slot, own and own[slot] or {}
    if is_held and held.missing then
      result.dirData[held.missing] = nil
    elseif is_held and held.direction then
      local strategies, details = result.dirData[held.direction] or {}, more.details
      details = type(details) == "table" and details[1] and { more.detail or {} } or details
      strategies[more.number or "unnamed"] = { score = held.score, strategyName = more.name, details = details }
      result.dirData[held.direction] = strategies
    end
  end
  return result
end

-- The values of a text that the rules, the claim or the operator name, and others.
local function texts(path, name, policies)
  local good = {}
  for _, policy in ipairs(policies) do
    good = tables.merge(good, policy.recognised[name])
  end
  local list = {}
  for _, one in ipairs(candidates.field(path, name, tables.sorted_keys(good), 0)) do
    local is_text = type(one.value) == "string" or one.value == nil or one.value == json.null
    list[#list + 1] = is_text and one or nil
  end
  return list
end

-- The parts, and the conditions that the tracks of each kind and slot read there.
local function parts_of(policies, directions, slots)
  local scores, parts, places = scores_of(policies), {}, { transaction = {}, strategy = {}, detail = {}, risk = {} }
  local forms = slots == 1 and { "s" } or { "s- ss", "-s ss" }
  local function add(fields, list, more)
    parts[#parts + 1] = tables.merge({ fields = tables.set(text.words(fields)), list = list }, more or {})
    return #parts
  end
  local function place(kind, slot, names, index)
    for _, name in ipairs(text.words(names)) do
      places[kind][slot] = tables.merge(places[kind][slot] or {}, { [name] = index })
    end
  end
  local all = tables.set { "transaction", "strategy", "detail", "risk" }
  add("status max_score score", results_of(policies, directions, scores, slots), { lookup = "risk", notes = all })
  place("transaction", 1, "any score_at_least score_below", ROOT)
  for slot = 1, slots do
    local own = { slot = slot, parent = ROOT, forms = tables.set(text.words(forms[slot])) }
    local function added(name, field, more)
      return add(name, texts({ "slots", slot, field }, name, policies), more or own)
    end
    local numbers = {}
    local index = added("strategy", "number")
    for _, one in ipairs(parts[index].list) do
      numbers[#numbers + 1] = type(one.value) == "string" and one or nil
    end
    parts[index].list = numbers
    place("strategy", slot, "any score_at_least score_below direction", ROOT)
    place("detail", slot, "any direction", ROOT)
    local name = added("strategy_name", "name")
    for _, kind in ipairs { "strategy", "detail" } do
      place(kind, slot, "strategy", index)
      place(kind, slot, "strategy_name", name)
    end
    local path = { "slots", slot, "details" }
    local details = add("details", {
      { path = path, value = { true }, weight = 1, kinds = { details = "value" }, form = "detail" },
      { path = path, value = json.empty_array(), weight = 0, kinds = { details = "value" } },
      { path = path, weight = 1, kinds = { details = "absent" } },
      { path = path, value = json.null, weight = 1, kinds = { details = "null" } },
    }, tables.merge(own, { notes = { detail = true } }))
    local of_detail = { slot = slot, parent = details, forms = { detail = true } }
    for condition, field in pairs { detail = "code", detail_name = "name" } do
      local value = texts({ "slots", slot, "detail", field }, condition, policies)
      place("detail", slot, condition, add(condition, value, of_detail))
    end
    local detail_scores, own_path = {}, { "slots", slot, "detail", "score" }
    for place_of, score in ipairs(tables.concat(scores, { json.null, false })) do
      local kind = score == false and "absent" or score == json.null and "null" or "value"
      local weight = kind == "value" and 0 or 1
      detail_scores[place_of] =
        { path = own_path, value = score or nil, weight = weight, kinds = { detail_score = kind } }
    end
    place("detail", slot, "score_at_least score_below", add("detail_score", detail_scores, of_detail))
  end
  return parts, places, place, add, tables.pluck(policies, "risks")
end

-- Adds the parts of the risks: a list has at most one. A risk of another
-- form is a failure of the result, and to the rules about risks it is as one without a level and a type.
local function add_risks(parts, places, place, add, risk_policies)
  local base, is_result, used =
    #parts, tables.set(text.words "read malformed unscored - s -- s- -s ss"), { level = true }
  for _, policy in ipairs(risk_policies) do
    for _, rule in ipairs(policy.rules) do
      for _, entry in ipairs(rule.conditions) do
        used[entry.condition.name] = true
      end
    end
  end
  for _, part in ipairs(candidates.parts(risk_policies, 1, {})) do
    local list, is_used = {}, part.lookup == "risk" and next(tables.pick(part.names, tables.sorted_keys(used)))
    for _, one in ipairs(is_used and part.list or {}) do
      local result = candidates.evidence({ one }).risk
      local is_field = one.path[2] and type(result) == "table"
      list[#list + 1] = is_field and not shape.check(records.transaction_result, result, "result") and one or nil
    end
    if list[1] then
      local notes = part.notes and { risk = true, transaction = true }
      local parent = part.parent and base + 1 or ROOT
      local index = add("", list, { slot = part.slot, parent = parent, forms = part.forms or is_result, notes = notes })
      place("risk", 1, table.concat(tables.sorted_keys(part.names), " "), index)
    end
  end
  -- A transaction has no other lookups: conditions on them are never known.
  for name in pairs(used) do
    places.risk[1][name] = places.risk[1][name] or base + 1
  end
  return parts, places
end

---All evidence about a transaction, for a proof.
---@param read fun(policy: riskscreen.ScorePolicy, result: any, other: any): riskscreen.Case[], riskscreen.Error|nil
---@param risk_case fun(policy: riskscreen.ScorePolicy, result: any): riskscreen.Case|nil, riskscreen.Error|nil of the
---first risk
---@param policies riskscreen.ScorePolicy[]
---@param claim riskscreen.policy.CompiledClaim
---@param slots integer the strategies
---@return riskscreen.policy.Space
function M.space(read, risk_case, policies, claim, slots)
  local all, tracks, known = tables.concat({ claim.policy }, policies), {}, {}
  for _, policy in ipairs(all) do
    known = tables.merge(known, tables.set(policy.directions))
  end
  local directions = tables.sorted_keys(known)
  local parts, places = add_risks(parts_of(all, directions, slots))
  local function finish(evidence, only)
    local result = evidence.risk
    if type(result) ~= "table" or not result.slots then
      return tables.without(evidence, "slots")
    end
    return { risk = with_strategies(result, evidence.slots, directions, only) }
  end
  local function add_track(number, policy, kind, slot, rules, all_rules)
    local track = { policy = number, slot = slot, kind = kind, places = places[kind][slot] }
    track.rules, track.all_rules = rules, all_rules
    function track.case_of(evidence)
      evidence = finish(evidence, kind == "transaction" and 0 or slot)
      local err = evidence.errors and evidence.errors.risk
      if kind == "risk" then
        return risk_case(policy, not err and evidence.risk or nil)
      end
      local cases, failure = read(policy, evidence.risk, err)
      for _, case in ipairs(cases) do
        if KINDS[case.kind] == kind then
          return case, failure
        end
      end
    end
    tracks[#tracks + 1] = track
  end
  for number, policy in ipairs(all) do
    number = number - (claim.policy and 1 or 0)
    for kind, rules in ipairs(policy.rules_about) do
      for slot = 1, (number == 0 and not rules[1]) and 0 or (kind == 1 or number == 0) and 1 or slots do
        add_track(number, policy, KINDS[kind], slot, rules, policy.rules)
      end
    end
    if number > 0 then
      add_track(number, policy, "risk", 1, policy.risks.rules, policy.risks.rules)
    end
  end
  return { parts = parts, tracks = tracks, finish = finish }
end

return M
