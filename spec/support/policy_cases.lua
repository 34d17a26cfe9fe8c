-- Random policies and answers. The specs compare the policies with a second implementation, and check that missing
-- knowledge never helps.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local policies = require "riskscreen.policy"
local tables = require "riskscreen.util.tables"
local score_policy = require "riskscreen.policy.score"

local ACTIONS = { "allow", "allow", "review", "block" }
local NOTHING = {} -- stands for an absent value in the lists below

-- The values of each field of an answer: well-known ones first, then odd ones.
local LEVELS = { "high", "generally-high", "low", "whitelist", "low", "low", "severe", NOTHING, json.null, 5 }
local TYPES = { "scam", "hack", "sanction", "mixing", "scam", "hack", NOTHING, json.null, false }
local SOURCES = { "Provider", "Acme", "Community", "User-Defined", "Extra", "Stranger", NOTHING, json.null, 3 }
local FLAGS = { true, false, false, NOTHING, json.null, "no" }
local CATEGORIES =
  { "Mixer", "ONLINE_GAMBLING", "exchange", "dex", "exchange", "onlinegambling", "", NOTHING, json.null, 7 }
local AMOUNTS = { 0, 1, 1, 2, 4, 8, -1, "4", NOTHING, json.null }
local BALANCES = { "5", "0.5", "0", "", "-5", "1e5", 5, NOTHING, json.null }
local LOOKUPS = { "risk", "entity", "freeze_events", "counterparties" }
local MIXED = { risks = true, freeze_events = true, opponents = true, details = true } -- lists without an order
local KINDS = { "timeout", "network", "protocol", "server" }
local SCORES = { "0", "5", "20.5", "50", "5", "20.5", "-1", "x", NOTHING, json.null, 5 }

---@param random table of spec/support/random.lua
return function(random)
  local pick, M = random.pick, {}

  local function chance(one_in)
    return random.integer(one_in) == 1
  end

  -- A value of a list, an odd one less often.
  local function field(values, good)
    local value = chance(4) and pick(values) or values[random.integer(good)]
    if value ~= NOTHING then
      return value
    end
  end

  local function some(values)
    if chance(2) then
      return pick(values)
    end
    local first, second = pick(values), pick(values)
    return first == second and { first } or { first, second }
  end

  local function list(make, longest)
    local made = {}
    for index = 1, random.integer(longest + 1) - 1 do
      made[index] = make()
    end
    if chance(30) then
      return pick { json.null, "none", { risk = 1 }, { [2] = "gap" }, false }
    end
    return made[1] == nil and json.empty_array() or made
  end

  local function risk()
    if chance(40) then
      return pick { json.null, "high", {} }
    end
    return { riskLevel = field(LEVELS, 6), riskType = field(TYPES, 6), riskSource = field(SOURCES, 5) }
  end

  local function optional(value, one_in)
    if not chance(one_in) then
      return value
    end
    return chance(2) and json.null or nil
  end

  local function freeze_event()
    if chance(30) then
      return pick { json.null, "frozen", {} }
    end
    return {
      type = pick { "freeze", "lift" },
      event = pick { "Added", "Removed", "REMOVED" },
      chain = optional(pick { "eth", "eth", "ethereum", "tron", "mars" }, 12),
      contractAddress = optional(pick { "0xaa", "0xaa", "0xAA", "0xbb" }, 12),
      txTime = optional(random.integer(3), 12),
      frozenBalance = field(BALANCES, 3),
      destroyedBalance = field(BALANCES, 9),
    }
  end

  local function opponent()
    if chance(40) then
      return pick { json.null, "somebody" }
    end
    return {
      dir = optional(pick { "in", "out", "in", "out", "sideways" }, 12),
      symbol = optional(pick { "ETH", "ETH", "BTC", "" }, 12),
      amount = field(AMOUNTS, 6),
      risks = optional(list(risk, 2), 12),
    }
  end

  -- A counterparty that may lack its direction alone, so that the direction can decide a share.
  local function known_opponent()
    local made = { dir = optional(pick { "in", "out" }, 3), symbol = pick { "ETH", "ETH", "BTC" } }
    made.amount = pick { 0, 1, 2, 4 }
    made.risks = { { riskLevel = pick { "high", "low" }, riskType = "hack", riskSource = "Provider" } }
    return made
  end

  local function entity_record()
    local entity = { entityCategory = field(CATEGORIES, 5), entityCategoryCode = field(CATEGORIES, 5) }
    return { contract = field(FLAGS, 3), entity = optional(entity, 6) }
  end

  local conditions = {
    level = function(options)
      return some { "high", "generally-high", "low", "whitelist", options.extend and "severe" or "low" }
    end,
    type = function()
      return some { "scam", "hack", "sanction" }
    end,
    source = function(options)
      return some { "Community", "User-Defined", options.provider and "Provider" or "Community", options.provider }
    end,
    category = function()
      return some { "mixer", "Online Gambling", "Exchange" }
    end,
    counterparty = function()
      local made = { level = some { "high", "low" }, type = some { "scam", "hack" } }
      made.direction = pick { "in", "out", false, false } or nil
      made.share = pick { 0.25, 0.5, 1, false, false } or nil
      made[pick { "level", "type", "none" }] = nil
      return made
    end,
  }
  for _, name in ipairs { "no_risk", "whitelist", "unrecognised", "contract", "frozen" } do
    conditions[name] = function()
      return chance(2)
    end
  end
  local names = { "level", "type", "source", "category", "counterparty", "no_risk", "whitelist", "unrecognised" }
  names[#names + 1], names[#names + 2], names[#names + 3], names[#names + 4] = "contract", "frozen", "level", "level"

  local function error_rule(rule)
    rule.error = chance(3) or some(KINDS)
    return rule
  end

  local function rule(options)
    local made = { action = pick(ACTIONS) }
    if chance(6) then
      return error_rule(made)
    elseif chance(8) then
      made.any = true
      return made
    end
    for _ = 1, random.integer(2) do
      local name = pick(names)
      made[name] = conditions[name](options)
    end
    made.not_offered = chance(6) and pick { "skip", "unknown" } or nil
    return made
  end

  ---The options of a policy for addresses.
  function M.options()
    if chance(20) then
      return { not_offered = pick { "skip", "unknown" } } -- the default rules
    end
    local options = { not_offered = pick { "skip", "unknown" }, provider = chance(2) and "Acme" or nil, rules = {} }
    options.extend = chance(3) and { level = { "severe" }, type = { "mixing" }, source = { "Extra" } } or nil
    if options.extend then
      options.extend.category = { "DEX" }
    end
    options.lifting = chance(2) and { "lift", "removed" } or nil
    for _, name in ipairs { "absent_entity", "absent_risks", "absent_opponents", "absent_freeze_events" } do
      options[name] = chance(3) and "none" or nil
    end
    if chance(8) then -- a share decides
      local wanted = { level = "high", direction = pick { "in", "out" }, share = pick { 0.25, 0.5, 1 } }
      options.rules = { { counterparty = wanted, action = pick(ACTIONS) }, { any = true, action = pick(ACTIONS) } }
      return options
    end
    for index = 1, random.integer(6) do
      options.rules[index] = rule(options)
    end
    return options
  end

  ---Results of the lookups.
  function M.evidence()
    local evidence = {
      risk = { address = "0xab", network = "eth", whitelist = field(FLAGS, 3), risks = optional(list(risk, 3), 12) },
      entity = entity_record(),
      freeze_events = list(freeze_event, 3),
      counterparties = { opponents = optional(list(chance(3) and known_opponent or opponent, 4), 12) },
    }
    for _, name in ipairs(LOOKUPS) do
      if chance(8) then
        evidence.errors = evidence.errors or {}
        local kind = pick(KINDS)
        evidence.errors[name] = errors.new(kind, "no", { absent = kind == "protocol" and chance(2) or nil })
        evidence[name] = nil
      elseif name ~= "risk" and name ~= "entity" and chance(8) then
        evidence.not_offered = evidence.not_offered or {}
        evidence.not_offered[name], evidence[name] = true, nil
      elseif chance(30) then
        evidence[name] = pick { json.null, "text", {}, false } or nil
      end
    end
    return evidence
  end

  local function score_rule(options)
    local made = { action = pick(ACTIONS) }
    if chance(8) then
      return error_rule(made)
    end
    local limit = pick { "score_at_least", "score_below", "score_below" }
    made[limit] = pick { "0", "5", "20.5", "21", "50" }
    local parts = {
      direction = options.extend and options.extend.direction and pick { "in", "out", "through" }
        or pick { "in", "out" },
      strategy = some { "1", "2" },
      strategy_name = some { "The list", "the_LIST", "Other" },
      detail = some { "mixer", "Online Gambling" },
      detail_name = some { "Mixer", "exchange" },
    }
    for name, value in pairs(parts) do
      made[name] = nil
      if chance(5) then
        made[name] = value
      end
    end
    made[limit] = (next(made, next(made)) == nil or not chance(3)) and made[limit] or nil
    if next(made, next(made)) == nil then
      made.any = true
    end
    return made
  end

  ---The options of a policy for scores, and those of its policy for risks.
  function M.score_options()
    local options = { rules = {}, extend = chance(4) and { direction = { "through" } } or nil }
    options.absent_score = chance(4) and "none" or nil
    if chance(2) then
      options.extend = options.extend or {}
      options.extend.strategy, options.extend.strategy_name = { "1", "2" }, { "third" }
      options.extend.detail, options.extend.detail_name = { "dex", "Mixer" }, { "EXCHANGE", "Online Gambling" }
    end
    for index = 1, random.integer(6) do
      options.rules[index] = score_rule(options)
    end
    return options, not chance(3) and M.options() or nil
  end

  local function detail()
    if chance(40) then
      return json.null
    end
    return {
      code = field(CATEGORIES, 6),
      name = field(CATEGORIES, 6),
      score = field(SCORES, 6),
    }
  end

  local function strategies()
    local made = {}
    for _ = 1, random.integer(3) - 1 do
      local number = pick { "1", "2" }
      local name = optional(pick { "The List", "the-list", "Third" }, 8)
      local own_number = chance(20) and pick { "1", "2", json.null } or number
      local one = { strategyNo = own_number, strategyName = name, score = field(SCORES, 6) }
      one.details = optional(list(detail, 2), 8)
      made[number] = chance(40) and pick { json.null, "one" } or one
    end
    return made
  end

  ---The result of a transaction.
  function M.result()
    local made = { requestId = "r1", status = 1003, maxScore = field(SCORES, 6) }
    if chance(20) then
      made.status = pick { 1004, json.null, "1003", NOTHING }
      made.status = made.status ~= NOTHING and made.status or nil
    end
    made.maxScore = chance(3) and "50" or made.maxScore
    made.dirData = optional({ ["in"] = optional(strategies(), 8), out = optional(strategies(), 8) }, 8)
    if type(made.dirData) == "table" and chance(8) then
      made.dirData[pick { "through", "sideways" }] = strategies()
    end
    if chance(3) then
      made.risks = optional(list(risk, 2), 6)
    end
    if chance(8) then
      made.requestId = nil
    end
    return made
  end

  -- The fields of the answers that the interface names.
  local FIELDS = {
    evidence = LOOKUPS,
    risk = { "whitelist", "risks" },
    entity = { "contract", "entity" },
    counterparties = { "opponents" },
    entityOf = { "entityCategory", "entityCategoryCode" },
    one_risk = { "riskLevel", "riskType", "riskSource" },
    opponent = { "dir", "symbol", "amount", "risks" },
    event = { "type", "event", "chain", "contractAddress", "txTime", "frozenBalance", "destroyedBalance" },
    result = { "status", "maxScore", "dirData", "risks" },
    directions = { "in", "out" },
    strategy = { "strategyName", "score", "details" },
    detail = { "code", "name", "score" },
  }

  -- The option that gives the absence of a field a meaning.
  local ABSENCE = {
    entity = "absent_entity",
    risks = "absent_risks",
    opponents = "absent_opponents",
    maxScore = "absent_score",
    dirData = "absent_score",
  }

  -- All places { table, field } of an answer that hold a value.
  local function places(evidence)
    local found = {}
    local function record(value, kind, visit)
      if type(value) ~= "table" then
        return
      end
      for _, name in ipairs(FIELDS[kind]) do
        if value[name] ~= nil then
          found[#found + 1] = { value, name }
        end
      end
      if visit then
        visit(value)
      end
    end
    local function each(values, kind, visit)
      for _, one in pairs(type(values) == "table" and values or {}) do
        record(one, kind, visit)
      end
    end
    record(evidence, "evidence")
    record(evidence.risk, "risk", function(one)
      each(one.risks, "one_risk")
    end)
    record(evidence.entity, "entity", function(one)
      record(one.entity, "entityOf")
    end)
    each(evidence.freeze_events, "event")
    record(evidence.counterparties, "counterparties", function(one)
      each(one.opponents, "opponent", function(opponent_)
        each(opponent_.risks, "one_risk")
      end)
    end)
    record(evidence.result, "result", function(one)
      each(one.risks, "one_risk")
      record(one.dirData, "directions", function(directions)
        for _, strategies_ in pairs(directions) do
          each(strategies_, "strategy", function(strategy)
            each(strategy.details, "detail")
          end)
        end
      end)
    end)
    return found
  end

  -- Fields whose values the interface lists or the policy names: another one is not known.
  local NAMED = { riskLevel = true, riskType = true, riskSource = true, dir = true, strategyName = true }
  NAMED.entityCategory, NAMED.entityCategoryCode, NAMED.code, NAMED.name = true, true, true, true

  ---Takes knowledge out of answers: fields are dropped, or get null, another type, an unknown value, or their own value
  ---in capitals. Returns their names. A field to whose absence an option of the operator gives a meaning gets another
  ---type instead.
  function M.lessen(evidence, options, risks)
    local lost, found = {}, places(evidence)
    for index = 1, math.min(random.integer(3), #found) do
      local place = table.remove(found, random.integer(#found))
      local parent, name = place[1], place[2]
      local old, option = parent[name], ABSENCE[name]
      local has_meaning = options[option] == "none" or risks and risks[option] == "none"
      -- Without the option `risks` a result with scores needs no risks.
      has_meaning = has_meaning or name == "risks" and parent == evidence.result and not risks
      local way = has_meaning and 3 or random.integer(NAMED[name] and type(old) == "string" and 5 or 3)
      lost[index] = name .. " " .. way
      parent[name] = way == 2 and json.null or nil
      if way == 3 then
        parent[name] = (name == "whitelist" or name == "contract") and "no" or true
      elseif way > 3 then
        parent[name] = way == 4 and "something new" or old:upper()
      end
    end
    return table.concat(lost, ", ")
  end

  ---Lets one of the lookups fail. Returns its name.
  function M.fail(evidence)
    local name, kind = pick(LOOKUPS), pick(KINDS)
    evidence.errors = evidence.errors or {}
    evidence.errors[name], evidence[name] = errors.new(kind, "no"), nil
    evidence.not_offered = evidence.not_offered and tables.merge(evidence.not_offered, { [name] = false }) or nil
    return name .. " failed"
  end

  -- A list with its elements in another order; each may come twice.
  local function mixed(list_)
    if type(list_) ~= "table" or list_[1] == nil then
      return list_
    end
    local made, times = {}, random.integer(2)
    for _, element in ipairs(list_) do
      for _ = 1, times do
        table.insert(made, random.integer(#made + 1), element)
      end
    end
    return made
  end

  ---Mixes the lists of answers. Amounts are added, so all counterparties come twice, or none.
  function M.mix(evidence)
    for _, place in ipairs(places(evidence)) do
      local parent, name = place[1], place[2]
      if MIXED[name] then
        parent[name] = mixed(parent[name])
      end
    end
    return "lists mixed"
  end

  ---Adds a risk to an address that has some.
  function M.add_risk(evidence)
    local risks = type(evidence.risk) == "table" and evidence.risk.risks
    if type(risks) == "table" and risks[1] ~= nil then
      table.insert(risks, random.integer(#risks + 1), risk())
      return "a risk added"
    end
  end

  ---A text of a value, to show a case that fails.
  function M.show(value)
    if value == json.null then
      return "null"
    elseif type(value) ~= "table" then
      return type(value) == "string" and ("%q"):format(value) or tostring(value)
    elseif errors.is(value) then
      return tostring(value)
    end
    local fields, texts = {}, {}
    for name, one in pairs(value) do
      if type(name) == "number" then
        texts[name] = M.show(one)
      else
        fields[#fields + 1] = name .. " = " .. M.show(one)
      end
    end
    table.sort(fields)
    for _, one in ipairs(texts) do
      fields[#fields + 1] = one
    end
    return "{ " .. table.concat(fields, ", ") .. " }"
  end

  M.new = policies.new
  function M.new_score(options, risks)
    local copy = {}
    for name, value in pairs(options) do
      copy[name] = value
    end
    copy.risks = risks and policies.new(risks)
    return score_policy.new(copy)
  end

  return M
end
