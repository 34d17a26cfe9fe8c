-- The sandbox's accounts: each has a key, its own lists, usage, rate limit and quota.
local lists = require "riskscreen.sandbox.lists"
local usage = require "riskscreen.sandbox.usage"

---@class riskscreen.sandbox.AccountSettings
---@field rate? number requests a second, above which the answer is 429; without it there is no limit
---@field burst? number requests at once (default: the rate, at least 1)
---@field quota? integer credits, above which the answer is 429
---@field blacklist? riskscreen.sandbox.ListEntry[] what the list holds at the start
---@field whitelist? riskscreen.sandbox.ListEntry[]

---@class riskscreen.sandbox.Account
---@field blacklist riskscreen.sandbox.List
---@field whitelist riskscreen.sandbox.List
---@field usage riskscreen.sandbox.Usage
---@field private bucket? { rate: number, burst: number, tokens: number, at: number }
---@field private quota? integer
local Account = {}
Account.__index = Account

---Takes one request from the account's allowance.
---@param credits integer what the request costs
---@param now number seconds
---@return boolean allowed
---@return string? why not
---@return integer? retry_after whole seconds, where waiting helps
function Account:admit(credits, now)
  if self.quota and self.usage.credits + credits > self.quota then
    return false, "the quota of " .. self.quota .. " credits is exceeded"
  end
  local bucket = self.bucket
  if not bucket then
    return true
  end
  bucket.tokens = math.min(bucket.burst, bucket.tokens + math.max(0, now - bucket.at) * bucket.rate)
  bucket.at = now
  if bucket.tokens >= 1 then
    bucket.tokens = bucket.tokens - 1
    return true
  end
  return false, "the rate limit is reached", math.ceil((1 - bucket.tokens) / bucket.rate)
end

local function filled(entries, now)
  local list = lists.new()
  for _, entry in ipairs(entries or {}) do
    list:add {
      address = entry.address,
      network = entry.network,
      risks = entry.risks,
      created_at = entry.created_at or math.floor(now),
    }
  end
  return list
end

local M = {}

---An account.
---@param settings riskscreen.sandbox.AccountSettings
---@param now number seconds
---@return riskscreen.sandbox.Account
function M.new(settings, now)
  local account = {
    blacklist = filled(settings.blacklist, now),
    whitelist = filled(settings.whitelist, now),
    usage = usage.new(),
    quota = settings.quota,
  }
  if settings.rate then
    local burst = settings.burst or math.max(1, settings.rate)
    account.bucket = { rate = settings.rate, burst = burst, tokens = burst, at = now }
  end
  return setmetatable(account, Account)
end

return M
