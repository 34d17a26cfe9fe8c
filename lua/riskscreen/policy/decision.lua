-- The one constructor of decisions, and the order of their actions. A decision is a plain table that prints as a line
-- a person can read.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_LINE = 500 -- bytes of the reasons in a printed decision
local SIMULATED = "the sandbox answered: this is no real result"

---@alias riskscreen.Action "allow"|"review"|"block"|"unknown"

---@class riskscreen.Reason
---@field action riskscreen.Action
---@field message string for a person
---@field rule? riskscreen.Rule the operator's rule that decided
---@field risk? table riskLevel, riskType and riskSource of the risk that was decided, which the decisions of a client
---share; in a decision of a policy alone the risk as it was given
---@field error? riskscreen.Error the failure that was decided
---@field list? string the file of the local list that has the address
---@field entry? { address: string, network?: string, expires?: number } its entry there; Unix seconds
---@field note? string of that entry

---@class riskscreen.Decision
---@field action riskscreen.Action
---@field reasons riskscreen.Reason[] the worst first
---@field address? any as the caller gave it
---@field network? any as the caller gave it
---@field id? string|number the caller's own, of this request or item alone
---@field record? table the risk assessment, or the transaction's result
---@field entity? table the entity record, where it was looked up; likewise the next two
---@field freeze_events? table[]
---@field counterparties? table
---@field error? riskscreen.Error the failure that decided, or that left the decision undetermined
---@field errors? table<riskscreen.LookupName, riskscreen.Error> every lookup that failed
---@field not_offered? riskscreen.LookupName[] lookups that the service does not offer for the network
---@field source? "list"|"sandbox" a local list has decided, without a call; or a policy about what the sandbox answered
---@field degraded boolean a rule turned a failure or an unrecognised value into the action, or an allow list decided
---@field cached boolean
---@field stale boolean
---@field elapsed number seconds
local Decision = { __name = "riskscreen.Decision" }

-- An address as a line shows it. It is quoted unless it has letters and digits alone, so that it cannot look like a
-- reason.
local function shown(address)
  local whole = text.printable(tostring(address), 100)
  return (type(address) ~= "string" or text.is_plain(whole)) and whole or text.show(address)
end

-- "block 0x12… (eth): rule 'high risk' matches high / hack"
function Decision:__tostring()
  local subject = self.address ~= nil
      and (" %s (%s)"):format(shown(self.address), text.printable(tostring(self.network), 20))
    or ""
  local messages = tables.pluck(self.reasons, "message")
  local notes = (self.degraded and " [degraded]" or "") .. (self.stale and " [stale]" or "")
  return self.action .. subject .. ": " .. text.printable(table.concat(messages, "; "), LONGEST_LINE) .. notes
end

local best_first = { "allow", "review", "unknown", "block" }
local severity = {}
for index, action in ipairs(best_first) do
  severity[action] = index
end

local M = {
  ---@type riskscreen.Action[] the best first
  actions = best_first,
  ---@type table<riskscreen.Action, integer> the place of each in that order
  severity = severity,
}

---The worse of two actions.
---@param a riskscreen.Action
---@param b riskscreen.Action
---@return riskscreen.Action
function M.worst(a, b)
  return severity[a] >= severity[b] and a or b
end

---The reasons with the worst first; reasons of the same action keep their order.
---@param reasons riskscreen.Reason[]
---@return riskscreen.Reason[]
function M.worst_first(reasons)
  if not reasons[2] then
    return reasons
  end
  local sorted = {}
  for index = #best_first, 1, -1 do
    for _, reason in ipairs(reasons) do
      if reason.action == best_first[index] then
        sorted[#sorted + 1] = reason
      end
    end
  end
  return sorted
end

---Makes a table of fields a decision: it gets the fields that every decision has.
---@param fields table at least `action` and `reasons`; the caller gives the table away
---@return riskscreen.Decision
function M.new(fields)
  fields.degraded = fields.degraded or false
  fields.cached = fields.cached or false
  fields.stale = fields.stale or false
  fields.elapsed = fields.elapsed or 0
  -- No tail call: LuaJIT does not compile a tail call of a built-in function (`./dev bench layers`).
  setmetatable(fields, Decision)
  return fields
end

---The decision of a policy: the worst of its reasons.
---@param reasons riskscreen.Reason[]
---@param fields table of the decision; the caller gives the table away
---@param other? riskscreen.Response|riskscreen.Error of the call whose result was decided
---@return riskscreen.Decision
function M.of_reasons(reasons, fields, other)
  reasons = M.worst_first(reasons)
  fields.source = type(other) == "table" and other.is_sandbox and "sandbox" or nil
  fields.action, fields.reasons = reasons[1].action, reasons
  for index = 1, fields.error and 0 or #reasons do
    fields.error = fields.error or reasons[index].error
  end
  return M.new(fields)
end

---The decision about a failure that no rule handles.
---@param err riskscreen.Error
---@param address? any
---@param network? any
---@return riskscreen.Decision
function M.unknown(err, address, network)
  local reasons = { { action = "unknown", message = tostring(err), error = err } }
  return M.new { action = "unknown", reasons = reasons, address = address, network = network, error = err }
end

---The decision about an address that cannot be looked up. The error's kind tells it from a failure of the service.
---@param message string
---@param address? any
---@param network? any
---@return riskscreen.Decision
function M.invalid(message, address, network)
  return M.unknown(errors.new("invalid_argument", message, { sent = false }), address, network)
end

---The texts of a decision's reasons, the worst first.
---@param decision riskscreen.Decision
---@param is_sandbox? boolean the sandbox answered: the last text says so
---@return string[]
function M.reasons(decision, is_sandbox)
  local reasons = tables.pluck(decision.reasons, "message")
  if is_sandbox then
    reasons[#reasons + 1] = SIMULATED
  end
  return json.array(reasons)
end

---The risks of a decision as texts such as "high / hack", sorted, each once.
---@param decision riskscreen.Decision
---@param hide fun(text: string, decision: riskscreen.Decision): string removes the access key
---@return string[]
function M.risks(decision, hide)
  local risks = {}
  for _, risk in ipairs(type(decision.record) == "table" and decision.record.risks or {}) do
    if type(risk) == "table" then
      local pair = tostring(risk.riskLevel) .. " / " .. tostring(risk.riskType)
      risks[hide(pair, decision)] = true
    end
  end
  return json.array(tables.sorted_keys(risks))
end

---A copy of a decision, with reasons of its own. The record is the same table.
---@param decision riskscreen.Decision
---@return riskscreen.Decision
function M.copy(decision)
  local copy = setmetatable(tables.copy(decision), Decision)
  copy.reasons = {}
  for index, reason in ipairs(decision.reasons) do
    copy.reasons[index] = tables.copy(reason)
  end
  return copy
end

return M
