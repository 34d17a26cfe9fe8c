-- Finds rules of a policy that never decide. Says what the policy does where a lookup is not offered or a value is not
-- known.

local candidates = require "riskscreen.policy.candidates"
local enums = require "riskscreen.interface.enums"
local lookups = require "riskscreen.policy.lookups"
local prove = require "riskscreen.policy.prove"
local tables = require "riskscreen.util.tables"

-- The fields whose unknown values matter, by the condition that reads them.
local FIELDS = {
  source = "source",
  whitelist = "whitelist",
  contract = "contract",
  category = "category",
  frozen = "freeze_events",
  counterparty = "opponents",
}

---@class riskscreen.PolicyFinding
---@field about string a rule, or an unknown value
---@field message string
---@field is_fault boolean the policy does not do what it says

local M = {}

-- The rules that decide about some evidence; nil if there is too much of it.
local function deciding(policy, case_of)
  local track, found = prove.track_of(case_of, policy, 1), {}
  track.keeps_rules = true
  local elements = prove.enumerate({ track }, { is = {} }, 1)
  for _, element in ipairs(elements or {}) do
    for _, reason in ipairs(track.policy:decide(candidates.evidence(element.chain)).reasons) do
      found[reason.rule or false] = true
    end
  end
  return elements and found
end

local function with_rule(policy, compiled)
  return setmetatable(tables.merge(policy, { rules = { compiled }, cache = false }), getmetatable(policy))
end

-- What keeps a rule from deciding, if it never does.
local function fault_of(policy, case_of, compiled, found)
  if compiled.errors or found and found[compiled.rule] then
    return nil
  end
  local alone = deciding(with_rule(policy, compiled), case_of)
  if not found or not alone then
    return "not decided whether it ever decides"
  end
  return alone[compiled.rule] and "an earlier rule always decides in its place" or "no evidence meets its conditions"
end

local function networks_without(compiled)
  local missing = {}
  for _, lookup in ipairs(lookups.list) do
    for _, network in ipairs(compiled.lookups[lookup.name] and enums.values.network or {}) do
      missing[network] = not lookups.applies(lookup, network) or missing[network]
    end
  end
  return table.concat(tables.sorted_keys(missing), ", ")
end

---Checks the rules of a policy. See docs/policy-proofs.md.
---@param policy riskscreen.Policy
---@param case_of function as of prove
---@return riskscreen.PolicyFinding[]
function M.findings(policy, case_of)
  local findings, fields, found = {}, { level = true, type = true }, deciding(policy, case_of)
  local function add(about, message, is_fault)
    findings[#findings + 1] = { about = about, message = message, is_fault = is_fault }
  end
  for _, compiled in ipairs(policy.rules) do
    local fault, networks = fault_of(policy, case_of, compiled, found), networks_without(compiled)
    if fault then
      add(compiled.label, fault, true)
    end
    if networks ~= "" then
      local effect = compiled.not_offered == "skip" and "skipped" or "undetermined"
      add(compiled.label, ("it is %s on %s, where a lookup of it is not offered"):format(effect, networks), false)
    end
    for _, entry in ipairs(compiled.conditions) do
      fields[FIELDS[entry.condition.name] or "level"] = true
    end
  end
  for _, field in ipairs(tables.sorted_keys(fields)) do
    local proof = policy:prove(("never allow where %s is unknown"):format(field))
    local message = proof.holds and "never allowed" or proof.decision and "allowed: " .. tostring(proof.decision)
    add(("unknown %s"):format(field), message or "not decided whether it is ever allowed", false)
  end
  return findings
end

return M
