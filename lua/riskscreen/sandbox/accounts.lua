-- The sandbox's accounts: each has an access key, two lists, usage, a rate limit and a quota.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local canonical_address = require("riskscreen.address").normalize
local canonical_network = require("riskscreen.address").canonical_network
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"

---@class riskscreen.sandbox.ListEntry
---@field address string as it was added
---@field network? string an entry without one applies to every network
---@field risks? table[]|lightuserdata
---@field created_at integer seconds since the Unix epoch

---A blacklist or a whitelist: entries in the order of addition, one for each address and network.
---@class riskscreen.sandbox.List
---@field private entries riskscreen.sandbox.ListEntry[]
---@field private positions table<string, integer>
local List = {}
List.__index = List

local function key_of(address, network)
  return canonical_address(address, network) .. "\0" .. (canonical_network(network) or "")
end

local function new_list(entries, now)
  local list = setmetatable({ entries = {}, positions = {} }, List)
  for _, entry in ipairs(entries or {}) do
    list:add(entry, entry.created_at or now)
  end
  return list
end

---Adds an entry, or replaces the one for the same address and network.
---@param item { address: string, network?: string, risks?: table[] }
---@param now number seconds since the Unix epoch
---@param network? string of an item without one
function List:add(item, now, network)
  local entry = {
    address = item.address,
    network = item.network or network,
    risks = item.risks,
    created_at = math.floor(now),
  }
  local key = key_of(entry.address, entry.network)
  local position = self.positions[key] or #self.entries + 1
  self.entries[position], self.positions[key] = entry, position
end

---Removes the entry of an address.
---@param address string
---@param network? string
---@return boolean found
function List:remove(address, network)
  local position = self.positions[key_of(address, network)]
  if not position then
    return false
  end
  table.remove(self.entries, position)
  self.positions = {}
  for index, entry in ipairs(self.entries) do
    self.positions[key_of(entry.address, entry.network)] = index
  end
  return true
end

---The entry that applies to an address on a network.
---@param address string
---@param network string
---@return riskscreen.sandbox.ListEntry?
function List:find(address, network)
  return self.entries[self.positions[key_of(address, network)] or self.positions[key_of(address)]]
end

---One page of the list.
---@param number integer
---@param size integer
---@return riskscreen.sandbox.ListEntry[] entries
---@return table pagination as the interface spells it
function List:page(number, size)
  local page = {}
  for index = (number - 1) * size + 1, math.min(number * size, #self.entries) do
    page[#page + 1] = self.entries[index]
  end
  local count = #self.entries
  local pagination = {
    current_page = number,
    per_page = size,
    total_pages = math.ceil(count / size),
    total_items = count,
  }
  return page, pagination
end

---The calls and credits of each operation on each day (UTC).
---@class riskscreen.sandbox.Usage
---@field credits integer used so far
---@field private days table<string, table<string, { path: string, calls: integer, credits: integer }>>
local Usage = {}
Usage.__index = Usage

---Counts one call.
---@param operation { name: string, path: string }
---@param credits integer its cost
---@param now number seconds since the Unix epoch
function Usage:count(operation, credits, now)
  local day = os.date("!%Y-%m-%d", math.floor(now))
  self.days[day] = self.days[day] or {}
  local row = self.days[day][operation.name] or { path = operation.path, calls = 0, credits = 0 }
  row.calls, row.credits = row.calls + 1, row.credits + credits
  self.days[day][operation.name] = row
  self.credits = self.credits + credits
end

---The records of a span of days, oldest first. A month's record has its first day. Without `group_by`, or with
---"endpoint" in it, each operation has a record; otherwise all operations of the account share one.
---@param query { granularity?: string, start_date?: string, end_date?: string, group_by?: string[] }
---@return table[] records as the interface spells them
function Usage:records(query)
  local by_endpoint = not query.group_by or tables.set(query.group_by).endpoint
  local sums, records = {}, json.empty_array()
  for day, rows in pairs(self.days) do
    if day >= (query.start_date or "") and day <= (query.end_date or "9999-12-31") then
      local time = query.granularity == "month" and day:sub(1, 7) .. "-01" or day
      for name, row in pairs(rows) do
        local key = time .. " " .. (by_endpoint and name or "")
        local record = sums[key]
        if not record then
          record = { time = time, totalCalls = 0, useCredits = 0 }
          if by_endpoint then
            record.methodName, record.methodUrl = name, row.path
          end
          sums[key], records[#records + 1] = record, record
        end
        record.totalCalls, record.useCredits = record.totalCalls + row.calls, record.useCredits + row.credits
      end
    end
  end
  table.sort(records, function(left, right)
    if left.time ~= right.time then
      return left.time < right.time
    end
    return (left.methodName or "") < (right.methodName or "")
  end)
  return records
end

---@class riskscreen.sandbox.AccountSettings
---@field rate? number requests a second, above which the answer is 429; without it there is no limit
---@field burst? number requests at once (default: the rate, at least 1)
---@field quota? integer credits, above which the answer is 429
---@field blacklist? riskscreen.sandbox.ListEntry[] the first entries of the list
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
---@param credits integer the cost of the request
---@param now number seconds
---@return boolean allowed
---@return string? message
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

local M = {
  default_key = "sandbox-key", -- of an account with empty lists
  lists_key = "sandbox-lists-key", -- of an account with filled lists
}

---An account.
---@param settings riskscreen.sandbox.AccountSettings
---@param now number seconds
---@return riskscreen.sandbox.Account
function M.new(settings, now)
  local account = {
    blacklist = new_list(settings.blacklist, now),
    whitelist = new_list(settings.whitelist, now),
    usage = setmetatable({ credits = 0, days = {} }, Usage),
    quota = settings.quota,
  }
  if settings.rate then
    local burst = settings.burst or math.max(1, settings.rate)
    account.bucket = { rate = settings.rate, burst = burst, tokens = burst, at = now }
  end
  return setmetatable(account, Account)
end

local FIRST_ENTRY = 1735689600 -- 2025-01-01, in seconds since the Unix epoch
local HOUR = 3600

local function entry(name, network, risks)
  return { address = addresses[name], network = network, risks = risks }
end

local function high(kind)
  return { riskLevel = "high", riskType = kind }
end

-- The lists have several pages and an item of every form that the service may send.
local function filled_lists()
  local blacklist, whitelist = {}, {}
  for index, kind in ipairs(enums.values.risk_type) do
    blacklist[index] = entry("type-" .. kind, "eth", { high(kind) })
  end
  blacklist = tables.concat(blacklist, {
    entry("blacklist-1", nil, { high "scam" }),
    entry("blacklist-2", "eth", json.null),
    entry("blacklist-3", "eth"),
    entry("blacklist-4", "tron", { high "hack", high "launder-money" }),
    entry "blacklist-5",
    entry("blacklist-6", "tron", { { riskLevel = "low", riskType = "online-gambling" } }),
  })
  for index, network in ipairs { "eth", "bsc", "tron" } do
    whitelist[index] = entry("whitelist-" .. index, network)
  end
  for _, name in ipairs { "exchange", "mixer", "defi", "no-category" } do
    table.insert(whitelist, entry("entity-" .. name, "eth"))
  end
  for _, network in ipairs { "eth", "tron", "btc", "solana", "doge", "ltc" } do
    table.insert(whitelist, entry("clean-" .. network, network))
  end
  for _, list in ipairs { blacklist, whitelist } do
    for index, one in ipairs(list) do
      one.created_at = FIRST_ENTRY + index * HOUR
    end
  end
  return { blacklist = blacklist, whitelist = whitelist }
end

---The settings of the accounts that a service has by default, by access key.
---@type table<string, riskscreen.sandbox.AccountSettings>
M.defaults = { [M.default_key] = {}, [M.lists_key] = filled_lists() }

return M
