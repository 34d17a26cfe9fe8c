-- The settings of a sandbox service and of its server.
local accounts = require "riskscreen.sandbox.accounts"
local addresses = require "riskscreen.address"
local assumptions = require "riskscreen.sandbox.assumptions"
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local cost = require "riskscreen.options.cost"
local enums = require "riskscreen.interface.enums"
local faults = require "riskscreen.sandbox.faults"
local files = require "riskscreen.util.files"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"
local webhooks = require "riskscreen.sandbox.webhooks"

local DEFAULT_CREDITS = 1
local MOST = 1000000000

local function check_list(value)
  for index, entry in ipairs(value) do
    local place = "[" .. index .. "]"
    if type(entry) ~= "table" or type(entry.address) ~= "string" then
      return nil, "must be a list of entries, each with an address (" .. place .. " has none)"
    elseif entry.network ~= nil and not enums.has("network", entry.network) then
      return nil, "must hold known networks only (" .. place .. " has '" .. tostring(entry.network) .. "')"
    end
  end
  return tables.copy(value)
end

local account_settings = {
  build.number("rate", "requests a second", nil, 0.001, MOST, "Above it the answer is 429; by default no limit."),
  build.number("burst", "requests", nil, 1, MOST, "Requests at once; by default those of a second, at least 1."),
  build.count("quota", "credits", nil, 0, MOST, "When they are used up the answer is 429; by default no quota."),
  build.checked("blacklist", "table", check_list, "The first entries of the blacklist."),
  build.checked("whitelist", "table", check_list, "The first entries of the whitelist."),
}

local answer_fields = {
  build.choice("level", enums.values.risk_level, nil, "The level of its risk; without one it has none."),
  { name = "type", type = "string", doc = "The type of the risk." },
  { name = "source", type = "string", default = "Provider", doc = "The source of the risk." },
  { name = "category", type = "string", doc = "The category of its entity." },
}

local function verdict_of(answer)
  local risk = { riskLevel = answer.level, riskType = answer.type, riskSource = answer.source }
  local category = answer.category
  local entity = category and { entityName = category, entityCode = category, entityCategory = category }
  return { risks = answer.level and { risk } or {}, entity = entity }
end

-- The table, or that of the JSON file at a path.
local function object_in(value)
  if type(value) ~= "string" then
    return value
  end
  local content, message = files.read(value)
  local decoded
  if content then
    decoded, message = json.decode(content)
  end
  if type(decoded) ~= "table" then
    return nil, "must be the path of a JSON object: " .. tostring(message or value)
  end
  return decoded
end

-- The verdicts by canonical address.
local function check_answers(value)
  local given, message = object_in(value)
  if not given then
    return nil, message
  end
  value = given
  local verdicts = {}
  for address, answer in pairs(value) do
    local spellings = addresses.keys(address)
    if not spellings or type(answer) ~= "table" then
      return nil, "must map addresses to answers, each a table"
    elseif not addresses.networks_of(address, "format")[1] then
      return nil, "must map addresses to answers: an address of no network is " .. text.show(address)
    end
    local checked, err = check.options(answer_fields, answer, "[" .. text.show(address) .. "].")
    if not checked then
      return nil, "has a wrong answer: " .. err.message
    elseif (checked.level == nil) ~= (checked.type == nil) then
      return nil, "has a wrong answer: level and type come together, for " .. text.show(address)
    end
    for _, spelling in ipairs(spellings) do
      if verdicts[spelling] then
        return nil, "has two answers for " .. spelling
      end
      verdicts[spelling] = verdict_of(checked)
    end
  end
  return verdicts
end

local function check_profile(value)
  local given, message = object_in(value)
  if not given then
    return nil, message
  end
  return assumptions.complete(given)
end

local function check_accounts(value)
  local copy = {}
  for key, account in pairs(value) do
    if type(key) ~= "string" or key == "" or type(account) ~= "table" then
      return nil, "must map access keys to tables"
    end
    local checked, err = check.options(account_settings, account)
    if not checked then
      return nil, "has a wrong account: " .. err.message
    end
    copy[key] = checked
  end
  return copy
end

-- One cost of all operations, or costs by operation; the others cost DEFAULT_CREDITS.
local function check_credits(value)
  local costs = { every = DEFAULT_CREDITS, by_operation = {} }
  if type(value) == "table" then
    local by_operation, message = cost.check(value)
    costs.by_operation = by_operation
    return by_operation and costs, message
  elseif value < 0 or value % 1 ~= 0 then
    return nil, ("must be a whole number of at least 0 (got '%s')"):format(tostring(value))
  end
  costs.every = value
  return costs
end

local function check_faults(value)
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

local M = {}

---@type riskscreen.Option[]
M.service = {
  build.dictionary(
    "accounts",
    check_accounts,
    "Accounts by access key, each with `rate`, `burst`, `quota`, `blacklist` and `whitelist`; "
      .. "by default sandbox-key, with empty lists, and sandbox-lists-key, with filled ones."
  ),
  build.checked(
    "answers",
    "table|string",
    check_answers,
    "Answers by address, each with `level`, `type`, `source` and `category`, or without any for an address without "
      .. "risks; or the path of a JSON file of them.",
    {}
  ),
  build.clock("Returns seconds since the Unix epoch; by default the time of day.", os.time),
  build.checked(
    "credits",
    "number|table",
    check_credits,
    "The cost of a call: one number, or numbers or { request = …, item = … } by operation; by default 1.",
    { every = DEFAULT_CREDITS, by_operation = {} }
  ),
  build.seconds("kyt_delay", 2, "The time for which a transaction task is pending.", 0),
  build.choice(
    "kyt_results",
    { "later", "at_once" },
    "later",
    "Whether the answer to a submission is a requestId or the result itself, with `risks`."
  ),
  webhooks.setting,
  build.checked("faults", "table", check_faults, "Faults, as `service:fault` takes them.", {}),
  build.checked(
    "profile",
    "table|string",
    check_profile,
    "What this service does where the interface leaves it open, by the names of `riskscreen doctor --assumptions`; or "
      .. "the path of a JSON file of it."
  ),
  build.count("log_size", "requests", 1000, 0, MOST, "The number of requests that the service remembers."),
}

---@type riskscreen.Option[]
M.server = {
  { name = "host", type = "string", default = "127.0.0.1", doc = "The address to listen on." },
  build.count("port", "", 0, 0, 65535, "The port to listen on; 0: any free one."),
}

---The checked settings of a service.
---@param given table
---@return table? settings
---@return string? message
function M.check(given)
  local settings, err = check.options(M.service, given)
  if not settings then
    return nil, err.message
  end
  settings.accounts = settings.accounts or accounts.defaults
  settings.clock = settings.clock or time.now
  settings.webhook = settings.webhook or check.options(webhooks.setting.fields, {})
  return settings
end

return M
