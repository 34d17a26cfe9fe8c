-- Which request meets which fault: the header of the request first, then the rules in the order they were added,
-- then those of the scenario addresses. A rule counts the requests it matches.
local faults = require "riskscreen.sandbox.faults"
local scenarios = require "riskscreen.sandbox.scenarios"
local verdicts = require "riskscreen.sandbox.verdicts"

---@class riskscreen.sandbox.Rules
---@field private added { fault: riskscreen.sandbox.Fault, seen: integer }[]
---@field private scenarios table<string, { fault: riskscreen.sandbox.Fault, seen: integer }> by canonical address
local Rules = {}
Rules.__index = Rules

-- The addresses a request is about, in their one spelling.
local function addresses_of(parameters)
  local found = {}
  local function take(address)
    if type(address) == "string" then
      found[verdicts.canonical(address)] = true
    end
  end
  take(parameters.address)
  take(parameters.outputAddress)
  for _, name in ipairs { "addresses", "list" } do
    for _, item in ipairs(type(parameters[name]) == "table" and parameters[name] or {}) do
      take(type(item) == "table" and item.address or item)
    end
  end
  return found
end

local function matches(fault, operation, addresses)
  local match = fault.match or {}
  return (not match.operation or match.operation == operation.name)
    and (not match.address or addresses[verdicts.canonical(match.address)] == true)
end

-- Counts a matching request and tells whether it is one of those to hit.
local function strikes(rule)
  rule.seen = rule.seen + 1
  local first = rule.fault.nth or 1
  return rule.seen >= first and rule.seen < first + (rule.fault.count or math.huge)
end

---Adds a rule.
---@param fault riskscreen.sandbox.Fault
---@return boolean? ok
---@return string? message
function Rules:add(fault)
  local checked, message = faults.check(fault)
  if not checked then
    return nil, message
  end
  table.insert(self.added, { fault = checked, seen = 0 })
  return true
end

---The fault that a request meets.
---@param header? string the value of X-Sandbox-Fault
---@param operation riskscreen.Operation
---@param parameters table as they were read; not yet checked
---@return riskscreen.sandbox.Fault?
---@return string? message if the header cannot be understood
function Rules:match(header, operation, parameters)
  if header then
    return faults.parse(header)
  end
  local addresses = addresses_of(parameters)
  for _, rule in ipairs(self.added) do
    if matches(rule.fault, operation, addresses) and strikes(rule) then
      return rule.fault
    end
  end
  for _, rule in ipairs(self.scenarios) do
    if addresses[rule.address] and strikes(rule) then
      return rule.fault
    end
  end
end

local M = {}

---The rules of the scenarios alone.
---@return riskscreen.sandbox.Rules
function M.new()
  local rules = { added = {}, scenarios = {} }
  for _, scenario in ipairs(scenarios) do
    if scenario.fault then
      local fault = assert(faults.check(scenario.fault))
      table.insert(rules.scenarios, { fault = fault, seen = 0, address = verdicts.canonical(scenario.address) })
    end
  end
  return setmetatable(rules, Rules)
end

return M
