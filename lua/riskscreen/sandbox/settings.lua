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

local list_entry = build.group("entry", {
  build.required { name = "address", type = "string", doc = "The address." },
  build.choice("network", enums.values.network, nil, "Its network; by default every network."),
  { name = "risks", type = "any", doc = "Its risks." },
  build.number("created_at", "Unix seconds", nil, 0, 2 ^ 40, "When it was added; by default now."),
}, "An entry of a list.")

local account_settings = {
  build.number("rate", "requests a second", nil, 0.001, MOST, "Above it the answer is 429; by default no limit."),
  build.number("burst", "requests", nil, 1, MOST, "Requests at once; by default those of a second, at least 1."),
  build.count("quota", "credits", nil, 0, MOST, "When they are used up the answer is 429; by default no quota."),
  build.list("blacklist", list_entry, "The first entries of the blacklist."),
  build.list("whitelist", list_entry, "The first entries of the whitelist."),
}

local answer = build.group("answer", {
  build.choice("level", enums.values.risk_level, nil, "The level of its risk; without one it has none."),
  { name = "type", type = "string", doc = "The type of the risk." },
  { name = "source", type = "string", default = "Provider", doc = "The source of the risk." },
  { name = "category", type = "string", doc = "The category of its entity." },
}, "An answer.")

-- The verdict for which an answer stands.
function answer.check(given)
  if (given.level == nil) ~= (given.type == nil) then
    return nil, "is incomplete: level and type come together"
  end
  local risk = { riskLevel = given.level, riskType = given.type, riskSource = given.source }
  local category = given.category
  local entity = category and { entityName = category, entityCode = category, entityCategory = category }
  return { risks = given.level and { risk } or {}, entity = entity }
end

-- The verdicts by canonical address.
local function by_canonical_address(verdicts)
  local by_address = {}
  for address, verdict in pairs(verdicts) do
    local spellings = addresses.keys(address)
    if not spellings or not addresses.networks_of(address, "format")[1] then
      return nil, "must map addresses to answers: an address of no network is " .. text.show(address)
    end
    for _, spelling in ipairs(spellings) do
      if by_address[spelling] then
        return nil, "has two answers for " .. spelling
      end
      by_address[spelling] = verdict
    end
  end
  return by_address
end

-- The same option, whose value may also be the path of a JSON file.
local function or_file(option)
  return build.checked(option.name, "table|string", function(value)
    if type(value) == "string" then
      local content, message = files.read(value)
      local decoded
      if content then
        decoded, message = json.decode(content)
      end
      if type(decoded) ~= "table" then
        return nil, "must be the path of a JSON object: " .. tostring(message or value)
      end
      value = decoded
    end
    local checked, err = check.value(option, value, "")
    return checked, err and (err.message:gsub("^ ", ""))
  end, option.doc .. "; or the path of a JSON file.", option.default)
end

-- One cost of all operations, or costs by operation; the others cost DEFAULT_CREDITS.
local function check_credits(value)
  local costs = { every = DEFAULT_CREDITS, by_operation = {} }
  if type(value) == "table" and tables.inherits(value) then
    return nil, tables.INHERITS
  elseif type(value) == "table" then
    local by_operation, message = cost.check(value)
    costs.by_operation = by_operation
    return by_operation and costs, message
  elseif value < 0 or value % 1 ~= 0 then
    return nil, ("must be a whole number of at least 0 (got '%s')"):format(tostring(value))
  end
  costs.every = value
  return costs
end

local function with_keys(by_name)
  if by_name[""] then
    return nil, "must have access keys: one is empty"
  end
  return by_name
end

local M = {}

local ACCOUNTS = "Accounts by access key, each with `rate`, `burst`, `quota`, `blacklist` and `whitelist`; by default "
  .. "sandbox-key, with empty lists, and sandbox-lists-key, with filled ones."
local ANSWERS =
  "Answers by address, each with `level`, `type`, `source` and `category`, or without any for an address without risks"
local CREDITS =
  "The cost of a call: one number, or numbers or { request = …, item = … } by operation; by default 1."
local KYT_RESULTS = "Whether the answer to a submission is a requestId or the result itself, with `risks`."
local PROFILE =
  "What this service does where the interface leaves it open, by the names of `riskscreen doctor --assumptions`"

local by_key = build.map("accounts", build.group("account", account_settings, "An account."), ACCOUNTS, nil, with_keys)
by_key.hides_names = true

---@type riskscreen.Option[]
M.service = {
  by_key,
  or_file(build.map("answers", answer, ANSWERS, {}, by_canonical_address)),
  build.clock("Returns seconds since the Unix epoch; by default the time of day.", os.time),
  build.checked("credits", "number|table", check_credits, CREDITS, { every = DEFAULT_CREDITS, by_operation = {} }),
  build.seconds("kyt_delay", 2, "The time for which a transaction task is pending.", 0),
  build.choice("kyt_results", { "later", "at_once" }, "later", KYT_RESULTS),
  webhooks.setting,
  build.list("faults", faults.option, "Faults, as `service:fault` takes them.", {}),
  or_file(build.group("profile", assumptions.options, PROFILE)),
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
