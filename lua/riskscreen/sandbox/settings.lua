-- Every setting of a sandbox service, once: name, type, range, default, meaning.
local check = require "riskscreen.options.check"
local runtime = require "riskscreen.runtime"
local enums = require "riskscreen.interface.enums"
local operations = require "riskscreen.interface.operations"
local faults = require "riskscreen.sandbox.faults"
local seeds = require "riskscreen.sandbox.seeds"
local webhooks = require "riskscreen.sandbox.webhooks"

local DEFAULT_CREDITS = 1
local MOST = 1000000000
local LONGEST_WAIT = 86400 -- seconds

local function list_entries(value)
  local copy = {}
  for index, entry in ipairs(value) do
    local place = "[" .. index .. "]"
    if type(entry) ~= "table" or type(entry.address) ~= "string" then
      return nil, "must be a list of entries, each with an address (" .. place .. " has none)"
    elseif entry.network ~= nil and not enums.has("network", entry.network) then
      return nil, "must hold known networks only (" .. place .. " has '" .. tostring(entry.network) .. "')"
    end
    copy[index] = entry
  end
  return copy
end

local account_settings = {
  {
    name = "rate",
    type = "number",
    minimum = 0.001,
    maximum = MOST,
    unit = "requests a second",
    doc = "Above it the answer is 429; without it there is no limit.",
  },
  {
    name = "burst",
    type = "number",
    minimum = 1,
    maximum = MOST,
    unit = "requests",
    doc = "How many may come at once; by default as many as in a second, at least 1.",
  },
  {
    name = "quota",
    type = "integer",
    minimum = 0,
    maximum = MOST,
    unit = "credits",
    doc = "When they are used up the answer is 429; without it there is no quota.",
  },
  { name = "blacklist", type = "table", check = list_entries, doc = "What the blacklist holds at the start." },
  { name = "whitelist", type = "table", check = list_entries, doc = "What the whitelist holds at the start." },
}

local function accounts(value)
  local copy = {}
  for key, account in pairs(value) do
    if type(key) ~= "string" or key == "" or type(account) ~= "table" then
      return nil, "must map access keys to tables"
    end
    local checked, wrong = check.options(account_settings, account)
    if not checked then
      return nil, "has an account of which " .. wrong.message
    end
    copy[key] = checked
  end
  return copy
end

local function is_cost(value)
  return type(value) == "number" and value >= 0 and value % 1 == 0
end

-- One cost of all operations, or costs by operation; those that are not named cost DEFAULT_CREDITS.
local function credits(value)
  local costs = { every = DEFAULT_CREDITS, by_operation = {} }
  if type(value) == "number" then
    if not is_cost(value) then
      return nil, "must be a whole number of at least 0 (got " .. tostring(value) .. ")"
    end
    costs.every = value
    return costs
  end
  for name, cost in pairs(value) do
    if not operations.by_name[name] then
      return nil, "must name operations of the interface (got '" .. tostring(name) .. "')"
    elseif not is_cost(cost) then
      return nil, "must give " .. name .. " a whole number of at least 0 (got '" .. tostring(cost) .. "')"
    end
    costs.by_operation[name] = cost
  end
  return costs
end

local function fault_list(value)
  local copy = {}
  for index, fault in ipairs(value) do
    local checked, message = faults.check(fault)
    if not checked then
      return nil, "has a bad fault at [" .. index .. "]: " .. message
    end
    copy[index] = checked
  end
  return copy
end

local M = {
  default_key = "sandbox-key", -- of an account with empty lists
  lists_key = "sandbox-lists-key", -- of an account whose lists are filled (seeds.lua)
}

---@type riskscreen.Option[]
M.service = {
  {
    name = "accounts",
    type = "table",
    check = accounts,
    doc = "Accounts by access key, each with `rate`, `burst`, `quota`, `blacklist` and `whitelist`; "
      .. "by default sandbox-key, with empty lists, and sandbox-lists-key, with filled ones.",
  },
  { name = "clock", type = "function", doc = "Seconds since the Unix epoch; by default the time of day." },
  {
    name = "credits",
    type = "number|table",
    default = { every = DEFAULT_CREDITS, by_operation = {} },
    check = credits,
    doc = "What a call costs: one number, or numbers by operation; by default 1.",
  },
  {
    name = "kyt_delay",
    type = "number",
    default = 2,
    minimum = 0,
    maximum = LONGEST_WAIT,
    unit = "seconds",
    doc = "How long a transaction task is pending.",
  },
  webhooks.setting,
  {
    name = "empty_risk_type_status",
    type = "integer",
    default = 400,
    values = { 200, 400 },
    doc = "The HTTP status beside code 3016, which the interface does not give.",
  },
  { name = "faults", type = "table", default = {}, check = fault_list, doc = "Faults, as `service:fault` takes them." },
  {
    name = "log_size",
    type = "integer",
    default = 1000,
    minimum = 0,
    maximum = MOST,
    unit = "requests",
    doc = "How many requests the service remembers.",
  },
}

---@type riskscreen.Option[]
M.server = {
  { name = "host", type = "string", default = "127.0.0.1", doc = "The address to listen on." },
  {
    name = "port",
    type = "integer",
    default = 0,
    minimum = 0,
    maximum = 65535,
    unit = "",
    doc = "The port to listen on; 0: any that is free.",
  },
}

-- The time of day, with the fractions that os.time lacks.
local function time_of_day()
  local epoch, started = os.time(), runtime.now()
  return function()
    return epoch + (runtime.now() - started)
  end
end

---The checked settings of a service.
---@param given table
---@return table? settings
---@return string? message what is wrong, for `error`
function M.check(given)
  local settings, wrong = check.options(M.service, given)
  if not settings then
    return nil, wrong.message
  end
  settings.clock = settings.clock or time_of_day()
  settings.webhook = settings.webhook or check.options(webhooks.setting.fields, {})
  settings.accounts = settings.accounts or { [M.default_key] = {}, [M.lists_key] = seeds }
  return settings
end

return M
