-- Proofs about random policies, against random evidence and against every combination of the raw values.

local candidates = require "riskscreen.policy.candidates"
local cases_of = require "spec.support.policy_cases"
local claims = require "riskscreen.policy.claim"
local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local policies = require "riskscreen.policy"
local randoms = require "spec.support.random"
local tables = require "riskscreen.util.tables"

local ACTIONS = { "allow", "review", "unknown", "block" }
local RANK = { allow = 1, review = 2, unknown = 3, block = 4 }

describe("a proof and random evidence", function()
  local POLICIES, EVIDENCE = randoms.rounds(20), 200
  local FIELDS = {
    level = { "risk", "risks", 1, "riskLevel" },
    type = { "risk", "risks", 1, "riskType" },
    source = { "risk", "risks", 1, "riskSource" },
    whitelist = { "risk", "whitelist" },
    contract = { "entity", "contract" },
    entity = { "entity", "entity" },
    category = { "entity", "entity", "entityCategory" },
    category_code = { "entity", "entity", "entityCategoryCode" },
  }

  -- A random condition of a claim: those of a rule, a failure, or a field that is missing.
  local function new_where(random, cases)
    local kind = random.integer(8)
    if kind == 1 then
      return {}
    elseif kind == 2 then
      return { is = { [random.pick(tables.sorted_keys(FIELDS))] = random.pick { "missing", "absent", "null" } } }
    end
    local rules = cases.options().rules
    local rule = rules and random.pick(rules) or { level = "low" }
    rule = tables.without(rule, "action", "name", "not_offered")
    return not rule.any and rule or {}
  end

  local function is_missing(evidence, is)
    for field, kind in pairs(is) do
      local place, path = evidence, FIELDS[field]
      for index = 1, #path - 1 do
        place = type(place) == "table" and place[path[index]]
      end
      if type(place) ~= "table" or evidence.errors and evidence.errors[path[1]] then
        return false
      end
      local value = place[path[#path]]
      if not (kind ~= "null" and value == nil or kind ~= "absent" and value == json.null) then
        return false
      end
    end
    return true
  end

  local function has_failed(policy, evidence, kinds)
    local decided = policy:decide(evidence)
    local failures = tables.merge(decided.errors or {}, { risk = decided.error })
    for lookup, err in pairs(failures) do
      if
        (lookup == "risk" or policy:needs(lookup))
        and (kinds == true or kinds == err.kind or type(kinds) == "table" and tables.set(kinds)[err.kind])
      then
        return true
      end
    end
    return false
  end

  -- Whether a claim's condition holds for one of the risks: a policy that blocks under the condition alone tells.
  local function matcher(options, where)
    local own = tables.without(where, "is", "error")
    local rules = { tables.merge(next(own) and own or { any = true }, { action = "block" }) }
    local blocking = policies.new(tables.merge(options, { rules = rules, not_offered = "unknown" }))
    return function(policy, evidence)
      local risks = type(evidence.risk) == "table" and evidence.risk.risks
      local list = type(risks) == "table" and risks[1] ~= nil and risks or { false }
      for _, risk in ipairs(list) do
        local one = evidence
        if risk ~= false then
          one = tables.merge(evidence, { risk = tables.merge(evidence.risk, { risks = { risk } }) })
        end
        local matches = next(own) == nil or blocking:decide(one).action == "block"
        matches = matches and is_missing(one, where.is or {})
        if matches and (not where.error or has_failed(policy, evidence, where.error)) then
          return true
        end
      end
      return false
    end
  end

  it("agree: nothing that holds is broken, and a counterexample is one", function()
    local random = randoms.new(randoms.SEED)
    local cases, decided, undecided = cases_of(random), 0, 0
    for _ = 1, POLICIES do
      local options = cases.options()
      local policy = cases.new(options)
      local where = new_where(random, cases)
      local ok, holds_for = pcall(matcher, options, where)
      if ok then
        local shown = function(evidence)
          return ("seed %d\npolicy %s\nwhere %s\nevidence %s"):format(
            randoms.SEED,
            cases.show(options),
            cases.show(where),
            cases.show(evidence)
          )
        end
        local possible = {}
        for _, action in ipairs(ACTIONS) do
          local proof = policy:prove { never = action, where = where }
          possible[action] = proof.holds ~= true
          decided = decided + 1
          undecided = undecided + (proof.holds == nil and 1 or 0)
          if proof.holds == false then
            assert.equal(action, policy:decide(proof.evidence).action)
            assert.is_true(holds_for(policy, proof.evidence), "the claim is not about " .. shown(proof.evidence))
          end
        end
        for _ = 1, EVIDENCE do
          local evidence = cases.evidence()
          local action = policy:decide(evidence).action
          if not possible[action] and holds_for(policy, evidence) then
            error(("never %s holds, but\n%s"):format(action, shown(evidence)))
          end
        end
      end
    end
    assert.is_true(undecided * 50 < decided, undecided .. " of " .. decided)
  end)
end)

describe("a proof over a few raw values", function()
  local parts_of = candidates.parts

  after_each(function()
    candidates.parts = parts_of
  end)

  -- Lets proofs try a few values of each part, drawn at random. Returns the parts that they ask for, one risk first.
  local function thin_out(random, most)
    local asked = {}
    candidates.parts = function(...)
      local parts = parts_of(...)
      for _, part in ipairs(parts) do
        for index, candidate in ipairs(part.list) do
          local value = candidate.value
          local is_list = type(value) == "table" and value.outcomes
          part.list[index] = is_list and tables.merge(candidate, { value = { opponents = value.opponents } })
            or candidate
        end
        while #part.list > most do
          table.remove(part.list, random.integer(#part.list))
        end
      end
      asked[#asked + 1] = parts
      return parts
    end
    return asked
  end

  -- Visits every combination of the parts that a policy depends on.
  local function each_evidence(policy, parts, index, chosen, visit)
    local part = parts[index]
    local parent = part and chosen[part.parent]
    local is_read = part and (part.lookup == "risk" or policy:needs(part.lookup))
    if not part then
      visit(candidates.evidence(chosen))
    elseif not is_read or part.parent and not (parent and part.forms[parent.form]) then
      each_evidence(policy, parts, index + 1, chosen, visit)
    else
      for _, candidate in ipairs(part.list) do
        each_evidence(policy, parts, index + 1, tables.merge(chosen, { [index] = candidate }), visit)
      end
    end
  end

  local function options_without_shares(cases)
    local options = cases.options()
    for _, rule in ipairs(options.rules or {}) do
      if rule.counterparty then
        rule.counterparty.share = nil -- outcomes stand for amounts: they are no evidence
      end
    end
    return options
  end

  it("agrees with every combination of them", function()
    local random = randoms.new(randoms.SEED)
    local cases = cases_of(random)
    for _ = 1, randoms.rounds(30) do
      local options = options_without_shares(cases)
      local policy, asked = cases.new(options), thin_out(random, 5)
      for least = 2, #ACTIONS do
        local proof, count, mildest = policy:prove { at_least = ACTIONS[least] }, 0, #ACTIONS
        each_evidence(policy, asked[#asked], 1, {}, function(evidence)
          local action = policy:decide(evidence).action
          count, mildest = count + 1, math.min(mildest, RANK[action])
        end)
        local shown = cases.show(options) .. " " .. ACTIONS[least]
        assert.equal(count, proof.cases, shown)
        assert.equal(mildest >= least, proof.holds, shown)
      end
    end
  end)

  it("agrees with every combination of one risk and of two", function()
    local random = randoms.new(randoms.SEED)
    local cases = cases_of(random)
    for _ = 1, randoms.rounds(12) do
      local options = options_without_shares(cases)
      local policy = cases.new(options)
      for _, action in ipairs(ACTIONS) do
        candidates.parts = parts_of
        local asked, count, is_taken = thin_out(random, 2), 0, false
        local proof = policy:prove { never = action }
        for _, parts in ipairs(asked) do
          each_evidence(policy, parts, 1, {}, function(evidence)
            count, is_taken = count + 1, is_taken or policy:decide(evidence).action == action
          end)
        end
        local shown = cases.show(options) .. " " .. action
        assert.equal(count, proof.cases, shown)
        assert.equal(not is_taken, proof.holds, shown)
      end
    end
  end)
end)

describe("each raw value", function()
  local allow, out = { any = true, action = "allow" }, { level = "high", direction = "out" }
  local levels = { "high", "generally-high", "low", "whitelist" }
  local unseen_level = { { level = levels, action = "block" }, { unrecognised = true, action = "allow" } }
  local skipped = { { frozen = true, action = "block" }, { frozen = false, action = "block" }, allow }
  local two = { { level = "high", action = "block" }, { level = "low", action = "allow" } }
  local mixer = { { category = "mixer", action = "block" }, allow }

  local function allowing(rule)
    return { rules = { tables.merge(rule, { action = "allow" }) }, not_offered = "unknown" }
  end

  -- Policies that allow for one value alone, unless there is another claim that it breaks.
  local cases = {
    { "a level that nobody names", { rules = unseen_level } },
    { "a lookup that is not offered", { rules = skipped, not_offered = "skip" } },
    { "no risk", { rules = { { no_risk = false, action = "block" }, allow } } },
    { "one kind of failure", { rules = { { error = "storage", action = "allow" } } } },
    { "a freeze", allowing { frozen = true } },
    { "no freeze", allowing { frozen = false } },
    { "a second risk", { rules = two }, "never block where level = low" },
    { "an outgoing counterparty", allowing { counterparty = out } },
    { "no counterparties", { rules = { { counterparty = out, action = "block" }, allow }, not_offered = "unknown" } },
    { "an entity that is absent", { rules = mixer, absent_entity = "none" }, "never allow where entity is absent" },
    { "an entity that is null", { rules = mixer, absent_entity = "none" }, "never allow where entity is null" },
    { "a category", allowing { category = "mixer" } },
    { "an added level", { rules = { { level = "severe", action = "allow" } }, extend = { level = { "severe" } } } },
    { "an added source", { rules = { { source = "Extra", action = "allow" } }, extend = { source = { "Extra" } } } },
    { "the service's own source", { rules = { { source = "Provider", action = "allow" } }, provider = "Acme" } },
    { "a contract", allowing { contract = true } },
    { "an address that is no contract", allowing { contract = false } },
    { "a whitelisted address", allowing { whitelist = true } },
  }
  cases[#cases + 1] = {
    "a category that no rule is about",
    { rules = mixer, extend = { category = { "exchange" } } },
    "never allow where category = exchange",
  }
  for _, case in ipairs(cases) do
    it("is tried: " .. case[1], function()
      local policy = policies.new(case[2])
      local proof = policy:prove(case[3] or "never allow")
      assert.is_false(proof.holds)
      assert.equal(proof.decision.action, policy:decide(proof.evidence).action)
    end)
  end
end)

describe("the raw values", function()
  -- The fields inside of the values of a place.
  local INNER = {
    ["risk.risks.1"] = { "riskLevel", "riskType" },
    ["entity.entity"] = { "entityCategory", "entityCategoryCode" },
    counterparties = { "opponents" },
  }
  local FIELDS = [[risk risk.risks risk.risks.1.riskLevel risk.risks.1.riskType risk.risks.1.riskSource risk.whitelist
    entity entity.contract entity.entity entity.entity.entityCategory entity.entity.entityCategoryCode freeze_events
    counterparties counterparties.opponents]]
  local TYPES = { "boolean", "empty text", "list", "null", "number", "object", "unknown text" }
  local policy = policies.new()

  local function type_of(value)
    if value == json.null then
      return "null"
    elseif type(value) == "table" then
      return json.is_array(value) and "list" or "object"
    elseif type(value) == "string" then
      local is_known = policy.recognised.level[value]
        or policy.recognised.type[value]
        or policy.recognised.source[value]
      return value == "" and "empty text" or is_known and "known" or "unknown text"
    end
    return value == nil and "absent" or type(value)
  end

  -- The types by the field, and the failures.
  local function seen_types()
    local seen, failures = {}, {}
    local function see(field, value)
      seen[field] = seen[field] or {}
      seen[field][type_of(value)] = true
    end
    for _, part in ipairs(candidates.parts({ policy }, 1, {})) do
      for _, one in ipairs(part.list) do
        local path = table.concat(one.path, ".")
        if one.path[1] == "errors" then
          failures[path .. " " .. one.value.kind .. (one.value.absent and " absent" or "")] = true
        else
          see(path, one.value)
        end
        for _, name in ipairs(type_of(one.value) == "object" and INNER[path] or {}) do
          see(path .. "." .. name, one.value[name])
        end
      end
    end
    return seen, failures
  end

  it("of a field are absent, null, and of every other type", function()
    local seen = seen_types()
    for field in FIELDS:gmatch "%S+" do
      for _, name in ipairs(tables.concat(TYPES, { "absent" })) do
        assert.is_true(seen[field][name], field .. ": " .. name)
      end
    end
    assert.same({ list = true, null = true, object = true, known = true }, seen["risk.risks.1"])
  end)

  it("of a lookup are also its failures of each kind, and an answer without its list", function()
    local _, failures = seen_types()
    for _, lookup in ipairs { "risk", "entity", "freeze_events", "counterparties" } do
      for _, entry in ipairs(errors.kinds) do
        assert.is_true(failures["errors." .. lookup .. " " .. entry.kind], lookup .. " " .. entry.kind)
      end
      assert.is_true(failures["errors." .. lookup .. " protocol absent"], lookup)
    end
  end)

  it("of a flag and of a list are told from wrong ones", function()
    for claim, rule in pairs {
      ["never allow where whitelist is wrong"] = { whitelist = true },
      ["never allow where contract is wrong"] = { contract = true },
      ["never allow where freeze_events is wrong"] = { frozen = false },
    } do
      local allowing = tables.merge(rule, { action = "allow" })
      assert.is_true(policies.new({ rules = { allowing }, not_offered = "unknown" }):prove(claim).holds, claim)
    end
    local rules = { { counterparty = { level = "high" }, action = "block" }, { any = true, action = "allow" } }
    local made = policies.new { rules = rules, not_offered = "unknown" }
    assert.is_true(made:prove("never allow where opponents is wrong").holds)
  end)
end)

describe("a proof about undetermined rules", function()
  local late, clean = { error = "timeout", action = "review" }, { no_risk = true, action = "review" }
  local frozen, mixer = { frozen = true, action = "allow" }, { category = "mixer", action = "allow" }
  -- The freeze events came too late, which is review. So unknown comes from the entity alone.
  local where = { no_risk = true, error = "timeout", failed = { "freeze_events" } }

  it("counts the worst outcome of the conditions of a rule, and of the rules with an action", function()
    for _, rules in ipairs {
      { tables.merge(frozen, mixer), late, clean },
      { frozen, mixer, late, clean },
      { mixer, frozen, late, clean },
    } do
      local proof = policies
        .new({ rules = rules, not_offered = "unknown", absent_entity = "none" })
        :prove { never = "unknown", where = where }
      assert.is_false(proof.holds)
    end
    local alone = policies.new { rules = { frozen, late, clean }, not_offered = "unknown" }
    assert.is_true(alone:prove({ never = "unknown", where = where }).holds)
  end)

  it("tells a rule about what is not recognised from others with its action", function()
    local hack = { unrecognised = true, type = "hack", action = "allow" }
    local policy = policies.new { rules = { hack, { any = true, action = "allow" } } }
    for _, action in ipairs { "allow", "unknown" } do
      assert.is_false(policy:prove({ never = action, where = { unrecognised = true } }).holds)
    end
  end)
end)

describe("a proof about shares", function()
  local function shares(first, second, action)
    return policies.new {
      not_offered = "skip",
      rules = {
        { counterparty = { level = "high", share = first }, action = "block" },
        { counterparty = { level = "high", share = second }, action = action },
      },
    }
  end

  it("finds amounts for a counterexample", function()
    local policy = shares(0.5, 0.25, "allow")
    local proof = policy:prove "never allow"
    assert.is_false(proof.holds)
    assert.equal("allow", policy:decide(proof.evidence).action)
    assert.is_true(policy:prove("block where counterparty.level = high and counterparty.share = 0.5").holds)
  end)

  it("is not decided where no amounts are known, and never holds for that reason", function()
    assert.is_nil(shares(0.25, 0.5, "allow"):prove("never allow").holds)
  end)
end)

describe("a proof about a large policy", function()
  local rules = {
    { frozen = true, action = "block" },
    { category = { "mixer", "darknet market" }, action = "block" },
    { counterparty = { level = "high", type = { "sanction", "terrorist" } }, action = "block" },
    { counterparty = { level = "high", direction = "in", share = 0.25 }, action = "review" },
    { error = "timeout", action = "review" },
    { whitelist = true, level = { "low", "whitelist" }, source = "User-Defined", action = "allow" },
    { level = { "low", "whitelist" }, contract = false, action = "allow" },
    { no_risk = true, action = "allow" },
  }
  for _, kind in ipairs(enums.values.risk_type) do
    rules[#rules + 1] = { type = kind, level = "high", action = "block" }
    rules[#rules + 1] = { type = kind, level = "generally-high", action = kind < "p" and "review" or "block" }
    rules[#rules + 1] = { type = kind, level = "low", contract = true, action = "review" }
  end

  it("looks at few combinations", function()
    local policy = policies.new { rules = rules, not_offered = "unknown" }
    assert.is_true(#policy.rules > 50)
    for _, claim in ipairs {
      "never allow where type = sanction and level = high",
      "review at least where a lookup failed",
    } do
      local proof = policy:prove(claim)
      assert.is_true(proof.holds, claim)
      assert.is_true(proof.steps < 20000, claim .. ": " .. proof.steps)
    end
  end)
end)

describe("a claim", function()
  it("is refused where it says nothing, or misspells a value", function()
    local wrong = {
      [""] = "must be one of allow",
      ["never"] = "must be one of allow",
      ["never allow where"] = "must be one of allow",
      ["never allow where level"] = "a claim is such as",
      ["never allw"] = "never must be one of",
      ["allow at all"] = "at_all",
      ["never allow where type = sanctions"] = "did you mean 'sanction'",
      ["never allow where colour = red"] = "known: error, level, type, ",
      ["never allow where not_offered = skip"] = "counterparty, failed, is",
      ["never allow where somebody failed"] = "somebody",
      ["never allow where level is gone"] = "where.is.level",
      ["never allow where error = slow"] = "slow",
      ["never allow where level = low and level = high"] = "a claim is such as",
      ["never allow where risk failed and entity failed"] = "a claim is such as",
      ["never allow where level is null and level is absent"] = "a claim is such as",
    }
    for claim, message in pairs(wrong) do
      local ok, problem = pcall(policies.new().prove, policies.new(), claim)
      assert.is_false(ok, claim)
      assert.truthy(problem:find(message, 1, true), claim .. ": " .. problem)
    end
  end)

  it("is about evidence alone that meets all of its conditions", function()
    local policy = policies.new()
    assert.is_false(policy:prove("never allow").holds)
    assert.is_false(policy:prove("never allow where level = low or whitelist").holds)
    assert.is_true(policy:prove("never allow where level = low and type = csam").holds)
    assert.is_true(policy:prove("unknown where a lookup failed").holds)
    assert.is_true(policy:prove("allow where no_risk = true").holds)
    assert.is_false(policy:prove("allow at most where level = low").holds)
  end)

  it("is about a text that nobody names, where no text is named either", function()
    local policy = policies.new()
    assert.is_false(policy:prove("never allow where category is unseen").holds)
    assert.is_false(policy:prove("never allow where category_code is unseen").holds)
  end)

  it("is about the named kind of failures, where others lead to the same", function()
    assert.is_false(policies.new():prove("never unknown where error = timeout").holds)
  end)

  it("is not about a flag of an assessment that is a failure", function()
    local claim = { never = "unknown", where = { whitelist = true, is = { risks = "null" } } }
    assert.equal(0, policies.new():prove(claim).cases)
    assert.equal(1, policies.new({ absent_risks = "none" }):prove(claim).cases)
  end)

  it("is about a list of risks of which one meets them", function()
    local rules = { { unrecognised = true, action = "review" }, { level = "high", action = "block" } }
    for _, field in ipairs { "level", "type", "source" } do
      local proof = policies.new({ rules = rules }):prove("unknown at most where " .. field .. " is null")
      assert.is_false(proof.holds, field)
      assert.equal("block", proof.decision.action)
    end
  end)
end)

it("the default policy satisfies what every policy should", function()
  for _, claim in ipairs(claims.standard) do
    assert.is_true(policies.new():prove(claim).holds, claim)
  end
end)
