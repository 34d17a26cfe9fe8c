-- What checked options come to, settled before any request comes: where the addresses are, and what each verdict leads
-- to. What is done about a request is in gate.lua.
local check = require "riskscreen.options.check"
local refusal = require "riskscreen.nginx.deny_response"
local addresses = require "riskscreen.nginx.input.sources"
local worst_action = require("riskscreen.policy.decision").worst

local ngx = _G.ngx

local severity = { allow = 1, review = 2, block = 3 }

local M = {}

local levels = { debug = "DEBUG", info = "INFO", notice = "NOTICE", warn = "WARN", err = "ERR" }

local function senders(checked)
  local block = refusal.sender(checked.block or check.options(refusal.options, {}))
  return {
    block = block,
    review = checked.review and refusal.sender(checked.review) or block,
    unknown = checked.unknown and refusal.sender(checked.unknown),
    invalid = checked.invalid and refusal.sender(checked.invalid),
  }
end

local function subjects_of(checked)
  local given = checked.subjects or (checked.address and { { address = checked.address } })
  local list = given and {}
  for index, subject in ipairs(given or {}) do
    list[index] = addresses.pair(subject.address, subject.network or checked.network)
  end
  return list
end

---@class riskscreen.nginx.Plan
---@field monitor boolean
---@field exempt? fun(): boolean
---@field timeout number seconds
---@field network? riskscreen.nginx.Reader
---@field subjects? (fun(): any, any, string|nil)[] what reads an address and a network each
---@field outcomes table<string, "allow"|"review"|"block"> by action
---@field on_invalid "allow"|"review"|"block"
---@field refusals table<string, fun()> by outcome, and for `unknown` and `invalid` where they have their own
---@field variables? table<string, string>
---@field log integer the level

---@param checked table the options of a gate or a location
---@return riskscreen.nginx.Plan
function M.of(checked)
  return {
    monitor = checked.monitor,
    exempt = checked.exempt,
    timeout = checked.timeout,
    network = checked.network,
    subjects = subjects_of(checked),
    outcomes = { allow = "allow", review = checked.on_review, block = "block", unknown = checked.on_unknown },
    on_invalid = checked.on_invalid,
    refusals = senders(checked),
    variables = next(checked.variables) and checked.variables or nil,
    log = ngx[levels[checked.log]],
  }
end

---What a decision comes to; an action that nobody has heard of is none that lets pass.
---@param plan riskscreen.nginx.Plan
---@param decision riskscreen.Decision
---@param source string
---@return "allow"|"review"|"block"
function M.outcome(plan, decision, source)
  if source == "invalid" then
    return plan.on_invalid
  end
  return plan.outcomes[decision.action] or "block"
end

---Which of several decisions comes to the worst.
---@param plan riskscreen.nginx.Plan
---@param decisions riskscreen.Decision[]
---@param sources string[]
---@return integer index
function M.worst(plan, decisions, sources)
  local worst, its_severity = 0, 0
  for index, decision in ipairs(decisions) do
    local its = severity[M.outcome(plan, decision, sources[index])]
    if
      its > its_severity
      or (its == its_severity and worst_action(decisions[worst].action, decision.action) ~= decisions[worst].action)
    then
      worst, its_severity = index, its
    end
  end
  return worst
end

---What answers a request that must not pass.
---@param plan riskscreen.nginx.Plan
---@param decision riskscreen.Decision
---@param source string
---@param outcome "review"|"block"
---@return fun()
function M.refusal(plan, decision, source, outcome)
  if source == "invalid" then
    return plan.refusals.invalid or plan.refusals[outcome]
  elseif decision.action == "unknown" then
    return plan.refusals.unknown or plan.refusals[outcome]
  end
  return plan.refusals[outcome]
end

return M
