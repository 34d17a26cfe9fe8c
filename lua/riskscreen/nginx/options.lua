-- Every option of a gate and of a location, once: name, type, range, default, meaning. Checks, the guide and the
-- annotations come from here. What a bad option raises is decided here; who raises it, in gate.lua.
local address = require "riskscreen.nginx.input.sources"
local check = require "riskscreen.options.check"
local tables = require "riskscreen.util.tables"
local exempt = require "riskscreen.nginx.input.exempt"
local inboxes = require "riskscreen.nginx.inbox"
local policy = require "riskscreen.policy"
local refusal = require "riskscreen.nginx.deny_response"
local text = require "riskscreen.util.text"

local LONGEST_LIFE = 30 * 86400 -- seconds
local MOST_SUBJECTS = 100
local MOST_ENTRIES = 1000000

local outcomes = { "block", "review", "allow" }
local levels = { "debug", "info", "notice", "warn", "err" }

local M = {}

local function seconds(name, default, minimum, maximum, doc)
  local unit = "seconds"
  return {
    name = name,
    type = "number",
    default = default,
    minimum = minimum,
    maximum = maximum,
    unit = unit,
    doc = doc,
  }
end

local function life(name, default, doc)
  return seconds(name, default, 0, LONGEST_LIFE, doc)
end

local function source(name, doc)
  return { name = name, type = "string|table|function", check = address.compile, doc = doc }
end

local subject = {
  source("address", "Where the address is."),
  source("network", "Where the network is; by default the gate's."),
}
subject[1].required = true

local function subjects(value)
  local count = tables.sequence_length(value)
  if not count or count == 0 or count > MOST_SUBJECTS then
    return nil, ("must be a list of 1 to %d tables with an address"):format(MOST_SUBJECTS)
  end
  local copy = {}
  for index, one in ipairs(value) do
    if type(one) ~= "table" then
      return nil, ("must hold tables with an address (got %s)"):format(text.kind(one))
    end
    local checked, problem = check.options(subject, one)
    if not checked then
      return nil, ("[%d]: %s"):format(index, problem.message)
    end
    copy[index] = checked
  end
  return copy
end

local function outcome(name, default, doc)
  return { name = name, type = "string", values = outcomes, default = default, doc = doc }
end

local function answer(name, doc)
  return { name = name, type = "table", fields = refusal.options, doc = doc }
end

local function variable(name, doc)
  return {
    name = name,
    type = "string",
    check = function(value)
      if not value:find "^[%a_][%w_]*$" then
        return nil, ("must be the name of a variable, without '$' (got %s)"):format(text.show(value))
      end
      return value
    end,
    doc = doc,
  }
end

M.variables = {
  variable("action", "The verdict: allow, review, block or unknown."),
  variable("source", "Where it comes from: lru, dict, upstream, stale, list, exempt or invalid."),
  variable("outcome", "What the gate does: allow, review or block; in monitor mode, what it would do."),
  variable("reason", "The message of the first reason; keep it from the caller."),
}

---What may be different from place to place.
---@type riskscreen.Option[]
M.location = {
  source(
    "address",
    "Where the address is: a text is the address itself; a table with one of `argument`, `header`, "
      .. "`variable`, `path`, `json` and `form` says where the request has it; a function returns it."
  ),
  source("network", "Where the network is, in the same way."),
  {
    name = "subjects",
    type = "table",
    check = subjects,
    doc = "Several addresses instead of `address`: { address = …, network = … } each. The worst verdict counts.",
  },
  policy.option,
  outcome("on_unknown", nil, "What a request comes to when there is no verdict; required."),
  outcome("on_invalid", "block", "The same when the request names no address, or one that can be read in two ways."),
  outcome("on_review", "review", "The same when the verdict is review; `allow` leaves acting to what is behind."),
  { name = "monitor", type = "boolean", default = false, doc = "true: decides and logs, and lets everyone pass." },
  {
    name = "exempt",
    type = "table|function",
    check = exempt.check,
    doc = "Callers that pass without a look: addresses and networks of theirs, and functions that return true.",
  },
  seconds("timeout", 3, 0.001, 3600, "How long a request may wait for its verdict."),
  answer("block", "What is answered instead: `status`, `body`, `content_type`, `headers`."),
  answer("review", "The same where the outcome is review; by default that of `block`."),
  answer("unknown", "The same where there is no verdict; by default that of the outcome."),
  answer("invalid", "The same where there is no address; by default that of the outcome."),
  {
    name = "variables",
    type = "table",
    fields = M.variables,
    default = {},
    doc = "Variables of nginx to set for the log: `action`, `source`, `outcome`, `reason`. Each must exist.",
  },
  {
    name = "log",
    type = "string",
    values = levels,
    default = "notice",
    doc = "The level at which the error log is told whom the gate does not let pass, or would not.",
  },
}

local function client(value)
  if next(value) == nil then
    return nil, "must hold a client's options"
  end
  return value
end

local function dict(value)
  if not (_G.ngx and _G.ngx.shared[value]) then
    return nil, ("must be the name of a lua_shared_dict (got %s)"):format(text.show(value))
  end
  return value
end

local ttl = {
  life("allow", 300, "Of allow."),
  life("review", 300, "Of review."),
  life("block", 3600, "Of block."),
  life("unknown", 1, "How long a failure is an answer, so that a service that is down is not asked without end."),
}

local stale = {
  life("allow", 0, "Of allow."),
  life("review", 0, "Of review."),
  life("block", 3600, "Of block."),
}

local lists = {
  seconds("interval", 60, 0.1, 86400, "How often they are fetched, by one worker for all."),
  life("max_age", 300, "How long a whitelist that cannot be fetched again counts; a blacklist goes on to."),
  {
    name = "whitelist",
    type = "boolean",
    default = false,
    doc = "true: who is on the whitelist passes without a look-up, unless he is on the blacklist, too.",
  },
  {
    name = "page_size",
    type = "integer",
    default = 100,
    minimum = 1,
    maximum = 10000,
    unit = "items",
    doc = "How many are fetched at once.",
  },
  seconds("timeout", 10, 0.001, 3600, "How long a page may take."),
}

local of_gate = {
  { name = "client", type = "table", required = true, check = client, doc = "A client, or the options of one." },
  { name = "dict", type = "string", check = dict, doc = "The lua_shared_dict in which all workers remember verdicts." },
  {
    name = "lru",
    type = "integer",
    default = 10000,
    minimum = 0,
    maximum = MOST_ENTRIES,
    unit = "addresses",
    doc = "How many addresses each worker remembers besides; 0: none. When that many are, one that "
      .. "the dict has comes in for another only if it is asked for twice.",
  },
  { name = "ttl", type = "table", fields = ttl, doc = "How long a verdict is remembered, by action." },
  {
    name = "stale",
    type = "table",
    fields = stale,
    doc = "How long after that it may be used while the service cannot be asked, by action.",
  },
  {
    name = "lists",
    type = "table",
    fields = lists,
    doc = "Keeps the account's blacklist in the dict: who is on it is refused without a look-up. {}: as follows.",
  },
  {
    name = "webhook",
    type = "table",
    check = function(value)
      if type(value.deliver) == "function" then
        return value
      end
      return inboxes.make(value)
    end,
    doc = "The inbox that `gate:webhook()` serves, or the options of one of nginx.inbox.",
  },
  {
    name = "name",
    type = "string",
    default = "default",
    check = function(value)
      if not value:find "^[%w_.-]+$" then
        return nil, ("must be made of letters, digits, '_', '.' and '-' (got %s)"):format(text.show(value))
      end
      return value
    end,
    doc = "What the metrics call the gate. Gates that share a dict need different names, and remember apart.",
  },
  { name = "version", type = "string", default = "", doc = "Verdicts remembered under another version are not used." },
  {
    name = "is_address",
    type = "function",
    doc = "is_address(address, network) → true if it can be one; by default by the networks' own spellings.",
  },
}

---@type riskscreen.Option[]
M.gate = {}

-- The same without defaults: what is not given is the gate's.
local function bare(option)
  local copy = {}
  for name, value in pairs(option) do
    copy[name] = value
  end
  copy.default = nil
  return copy
end

for _, option in ipairs(of_gate) do
  table.insert(M.gate, option)
end
for index, option in ipairs(M.location) do
  local own = bare(option)
  own.default, own.required = option.default, option.name == "on_unknown"
  table.insert(M.gate, own)
  M.location[index] = bare(option)
end

---What is wrong with options of a gate that are right each by itself.
---@param checked table
---@return string|nil message
function M.contradiction(checked)
  local lists_wanted = checked.lists
  if checked.address and checked.subjects then
    return "address and subjects exclude each other"
  elseif checked.webhook and checked.dict and checked.webhook.dict == _G.ngx.shared[checked.dict] then
    return "the dict of webhook must be another: verdicts push out what is in the gate's"
  elseif lists_wanted and not checked.dict then
    return "lists needs dict: in which all workers find what one has fetched"
  elseif lists_wanted and lists_wanted.max_age <= lists_wanted.interval then
    return "lists.max_age must be more than lists.interval"
  end
end

return M
