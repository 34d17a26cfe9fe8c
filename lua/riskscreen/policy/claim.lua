-- Claims about a policy, such as "never allow where type = sanction", as a text or a table. A claim is compiled to the
-- actions that break it, and to a policy that blocks the evidence that it is about. Pure.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local conditions = require "riskscreen.policy.conditions"
local decision = require "riskscreen.policy.decision"
local lookups = require "riskscreen.policy.lookups"
local rule = require "riskscreen.policy.rule"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ACTIONS, RANKS = decision.actions, decision.severity
local KINDS = { "absent", "null", "unseen", "wrong", "missing", "unknown" }
local FORM = "a claim is such as 'never allow where type = sanction', 'block at least where level = high', "
  .. "'review at most', 'unknown where a lookup failed'"

---A claim has one of the first four fields. Without `where` it is about all evidence.
---@class riskscreen.PolicyClaim
---@field never? riskscreen.Action|riskscreen.Action[]
---@field at_least? riskscreen.Action in the order allow, review, unknown, block
---@field at_most? riskscreen.Action
---@field always? riskscreen.Action
---@field where? table the conditions of a rule; and `error`: a lookup failed with such a kind, `failed`: one of these
---lookups failed, `is`: by the field "absent", "null", "unseen", "wrong", "missing" (absent or null) or "unknown"

local M = {
  ---Claims that every policy should satisfy.
  standard = {
    "never allow where type = sanction or terrorist or csam",
    "never allow where level = high",
    "never allow where unrecognised = true",
    "never allow where risks is unknown",
    "never allow where a lookup failed",
  },
  ---Those of a score policy.
  standard_scores = {
    "never allow where max_score is unknown",
    "never allow where status is unknown",
    "never allow where a lookup failed",
  },
}

local breaks = {
  never = function(rank, set)
    return set[ACTIONS[rank]]
  end,
  at_least = function(rank, bound)
    return rank < bound
  end,
  at_most = function(rank, bound)
    return rank > bound
  end,
  always = function(rank, bound)
    return rank ~= bound
  end,
}

local options = {
  conditions.set_option("never", ACTIONS),
  build.choice("at_least", ACTIONS),
  build.choice("at_most", ACTIONS),
  build.choice("always", ACTIONS),
  { name = "where", type = "table", default = {} },
}

-- What `where` may name. Rules check the values of conditions.
local function where_options(domain)
  local kinds, list = {}, { { name = "error", type = "any" } }
  for index, name in ipairs(text.words(domain.fields)) do
    kinds[index] = build.choice(name, KINDS)
  end
  for _, condition in ipairs(domain.conditions) do
    list[#list + 1] = { name = condition.name, type = "any" }
  end
  return tables.concat(list, { conditions.set_option("failed", lookups.names), build.group("is", kinds, nil, {}) })
end

-- The value that a text stands for: a boolean, a text, or a list of texts.
local function value_of(written)
  local list = {}
  for word in (written:gsub(" or ", ",") .. ","):gmatch " *([^,]-) *," do
    list[#list + 1] = word
  end
  if #list > 1 then
    return list
  elseif written == "true" or written == "false" then
    return written == "true"
  end
  return written
end

-- Adds a term such as "type = sanction", "entity is absent" or "risk failed"; returns whether it is one.
local function add_term(where, term)
  local name, value = term:match "^([%w_.]+) ?= ?(.+)$"
  local group, member = (name or ""):match "^(%w+)%.(%w+)$"
  local field, kind = term:match "^([%w_]+) is (%w+)$"
  local failed = term:match "^([%w_]+) failed$"
  local is = where.is or {}
  if name and where[name] ~= nil or field and is[field] or failed and where.failed then
    return nil -- a second term would replace the first one
  elseif group then
    where[group] = tables.merge(where[group] or {}, { [member] = text.to_number(value) or value_of(value) })
  elseif name then
    where[name] = value_of(value)
  elseif field then
    where.is = tables.merge(is, { [field] = kind })
  elseif term == "a lookup failed" then
    where.error = true
  else
    where.failed = failed
  end
  return name or field or failed or where.error
end

-- The table that a text stands for, or nil.
local function parse(written)
  local line = text.trim(written):gsub("%s+", " ")
  local head, rest = line:match "^(.-) where (.+)$"
  head = head or line
  local never, action, bound = head:match "^never (.+)$", head:match "^(%w+) at (%w+)$"
  local claim = { where = {}, never = never and value_of(never) }
  if not never then
    claim[action and "at_" .. bound or "always"] = action or head
  end
  for term in (rest and rest .. " and " or ""):gmatch "(.-) and " do
    if not add_term(claim.where, term) then
      return nil
    end
  end
  return not line:find " and$" and claim or nil
end

-- The policy that blocks under conditions, in the view of another policy.
local function blocking(domain, policy, where)
  local settings = tables.merge(policy.settings, { rules = { tables.merge(where, { action = "block" }) } })
  local rules, message = rule.compile_all(settings, domain.conditions)
  local recognised = tables.copy(policy.recognised)
  for _, name in ipairs(rules and domain.named or {}) do
    recognised[name] = rule.named(rules, name, recognised[name])
  end
  return rules and domain.with_rules(policy, rules, recognised), message and message:gsub("rules%[1%]", "where")
end

---@class riskscreen.policy.CompiledClaim
---@field forbidden table<riskscreen.Action, true> the actions that break it
---@field is_lower boolean a worse action never breaks it
---@field policy? riskscreen.Policy it blocks the evidence that meets the conditions
---@field is table<string, string>
---@field failed? { lookups?: table<string, true>, kinds?: table<string, true> } a lookup must have failed

---Compiles a claim.
---@param domain riskscreen.policy.Domain
---@param policy riskscreen.Policy|riskscreen.ScorePolicy
---@param given string|riskscreen.PolicyClaim
---@return riskscreen.policy.CompiledClaim|nil
---@return string|nil message
function M.compile(domain, policy, given)
  local parsed = type(given) == "string" and parse(given) or given
  local checked, wrong = check.options(options, type(parsed) == "string" and {} or parsed)
  local where = checked and checked.where or {}
  local own, wrong_where = check.options(where_options(domain), where, "where.")
  local claim, count = { forbidden = {}, is_lower = true, is = own and own.is }, 0
  for name, is_broken in pairs(breaks) do
    local bound = checked and (name == "never" and checked.never or RANKS[checked[name]])
    count = count + (bound and 1 or 0)
    for rank, action in ipairs(bound and ACTIONS or {}) do
      claim.forbidden[action] = is_broken(rank, bound) or nil
      local is_next = rank == 1 or claim.forbidden[ACTIONS[rank - 1]]
      claim.is_lower = claim.is_lower and (is_next or not claim.forbidden[action])
    end
  end
  if count ~= 1 or not own then
    return nil, (wrong or wrong_where or { message = FORM }).message
  end
  local kinds, message
  local others = tables.without(where, "failed", "is", "error")
  if next(others) then
    claim.policy, message = blocking(domain, policy, others)
  end
  if where.error ~= nil and not message then
    kinds, message = blocking(domain, policy, { error = where.error })
  end
  claim.failed = (own.failed or kinds) and { lookups = own.failed, kinds = kinds and kinds.rules[1].errors } or nil
  return not message and claim or nil, message
end

return M
