-- Decides about an address by the account's lists: its policy evaluates the entry.
local decisions = require "riskscreen.policy.decision"
local index = require "riskscreen.lists.index"

---The lists as one policy evaluates them.
---@class riskscreen.nginx.Lists
---@field private refresher riskscreen.nginx.ListRefresher
---@field private policy riskscreen.Policy
local Lists = {}
Lists.__index = Lists

local NO_REASON = { { action = "block", message = "the account has blacklisted the address without a reason" } }

local function evaluate(self, subject, record)
  record.address, record.network = subject.address, subject.network
  return self.policy:decide { risk = record }
end

-- The decision for an entry of the blacklist, if it is `block`. Any milder one is left to the service, which may know
-- more.
local function block_for(self, subject, entry)
  if not entry then
    return nil
  elseif not entry.risks then
    return decisions.new { action = "block", reasons = NO_REASON }
  end
  local decision = evaluate(self, subject, { risks = entry.risks })
  return decision.action == "block" and decision or nil
end

-- The decision for an address on the whitelist without any risk, if the policy lets it pass.
local function allow_for(self, subject)
  local decision = evaluate(self, subject, { whitelist = true, risks = {} })
  return decision.action == "allow" and not decision.degraded and decision or nil
end

local function listed(subject, decision, is_stale, valid_until)
  local fields = { address = subject.address, network = subject.network, cached = true, stale = is_stale }
  for _, name in ipairs { "action", "reasons", "error", "degraded" } do
    fields[name] = decision[name]
  end
  return { decision = decisions.new(fields), valid_until = valid_until }
end

---The decision of the lists about an address: block or allow. Nil where the service must be asked.
---@param subject riskscreen.nginx.Subject
---@param now number seconds
---@return { decision: riskscreen.Decision, valid_until: number }|nil
function Lists:find(subject, now)
  local store, settings = self.refresher.store, self.refresher.settings
  local valid_until = store:valid_until(now, settings.max_age)
  local any_key, own_key = index.keys(subject.address, subject.network)
  local everywhere, here = store:blacklisted(any_key), store:blacklisted(own_key)
  local block = block_for(self, subject, everywhere) or block_for(self, subject, here)
  if block then
    return listed(subject, block, not valid_until, now + settings.interval)
  elseif everywhere or here or not settings.whitelist or not valid_until then
    return nil
  end
  local allow = store:whitelisted(own_key) and allow_for(self, subject)
  return allow and listed(subject, allow, false, math.min(valid_until, now + settings.interval)) or nil
end

---A number that changes with the lists.
---@return number|nil
function Lists:generation()
  return self.refresher.store:changed()
end

---Starts refreshing in this worker.
function Lists:start()
  self.refresher:start()
end

local M = {}

---@param refresher riskscreen.nginx.ListRefresher
---@param policy riskscreen.Policy
---@return riskscreen.nginx.Lists
function M.new(refresher, policy)
  return setmetatable({ refresher = refresher, policy = policy }, Lists)
end

return M
