-- Every option of a gate and of a location, once. The checks, the guide and the annotations are made from these tables.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local deny_response = require "riskscreen.nginx.deny_response"
local enums = require "riskscreen.interface.enums"
local input = require "riskscreen.nginx.input"
local ip = require "riskscreen.util.ip"
local local_lists = require "riskscreen.options.lists"
local options = require "riskscreen.options"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_TTL = 30 * 86400 -- seconds
local LONGEST_TIMEOUT = 3600 -- seconds
local MAX_SUBJECTS = 100
local MAX_ENTRIES = 1000000

local actions = { "block", "review", "allow" }

-- Callers take a 2xx for a success, and so does an `auth_request` before this gate.
local refusal = deny_response.options(300)
local levels = { "debug", "info", "notice", "warn", "err" }

local M = { ONE_PLACE = "address and subjects exclude each other" }

local function ttl(name, default, doc)
  return build.seconds(name, default, doc, 0, LONGEST_TTL)
end

local function timeout(default, doc)
  return build.seconds("timeout", default, doc, build.SHORTEST_WAIT, LONGEST_TIMEOUT)
end

local function source(name, doc)
  return build.checked(name, "string|table|function", input.compile, doc)
end

local subject = {
  build.required(source("address", "Where the address is.")),
  source("network", "Where the network is; by default the gate's."),
}

local function right_number(subjects)
  if #subjects < 1 or #subjects > MAX_SUBJECTS then
    return nil, ("must be a list of 1 to %d tables with an address"):format(MAX_SUBJECTS)
  end
  return subjects
end

local function variable(name, doc)
  local form = { pattern = "^[%a_][%w_]*$", message = "must be the name of a variable, without '$'" }
  return build.text(name, form, doc)
end

local function networks(value)
  return build.list_of(value, "addresses and networks such as 10.0.0.0/8", ip.network)
end

-- The proxies that ask gate:answer().
local proxy = {
  build.checked("trusted", "table", networks, "Their addresses and networks; this nginx itself is always trusted.", {}),
  source("uri", "Where the URL is that the client asked for; by default the header X-Forwarded-Uri."),
  source("method", "Where its method is; by default the header X-Forwarded-Method."),
}

---Options that a location can set.
---@type riskscreen.Option[]
M.location = {
  source(
    "address",
    "Where the address is: a text is the address itself; a table with one of `argument`, `header`, "
      .. "`variable`, `path`, `json` and `form` names a place in the request; a function returns it."
  ),
  source("network", "Where the network is, in the same way."),
  build.list(
    "subjects",
    build.group("subject", subject, ""),
    "Several addresses instead of `address`: { address = …, network = … } each. The worst decision counts.",
    nil,
    right_number
  ),
  options.policy,
  build.choice("on_unknown", actions, nil, "The effective action of an unknown decision; required."),
  build.choice(
    "on_invalid",
    actions,
    "block",
    "The effective action if the request has no address, or one that can be read in two ways."
  ),
  build.choice("on_review", actions, "review", "The effective action of review; `allow` leaves it to the application."),
  build.flag("monitor", false, "true: decides and logs, and lets every request pass."),
  build.checked(
    "exempt",
    "table|function",
    input.exempt,
    "Callers that pass without a lookup: addresses, networks, and functions that return true."
  ),
  build.checked(
    "methods",
    "table",
    input.methods,
    'Methods such as "POST"; a request with another one is invalid, and so is one with a header that overrides it. '
      .. "HEAD counts as GET. By default all methods are accepted."
  ),
  timeout(3, "How long a request may wait for its decision."),
  build.group("proxy", proxy, "The proxies that ask `gate:answer()` about their requests.", {}),
  build.group("block", refusal, "The answer to a blocked request."),
  build.group("review", deny_response.options(200), "The answer to a request for review; by default that of `block`."),
  build.group("unknown", refusal, "The answer to an unknown decision; by default by effective action."),
  build.group("invalid", refusal, "The answer if there is no address; by default by effective action."),
  build.group("variables", {
    variable("action", "The decision: allow, review, block or unknown."),
    variable("source", "Its source: lru, dict, redis, upstream, stale, list, exempt or invalid."),
    variable("outcome", "The effective action: allow, review or block; in monitor mode, the action it would be."),
    variable("reason", "The message of the first reason. Do not show it to the caller."),
  }, "Variables of nginx to set, for the access log. Each must exist: declare it with `set` or `map`.", {}),
  build.choice("log", levels, "notice", "The level of the error log's lines about denied requests."),
}

-- The master has its own environment. A worker, and a master that takes over by SIGUSR2, have what `env` lines name.
local ENV_HINT = " (got nil); if os.getenv returned nil: nginx began without the variable, as by sudo without -E; "
  .. "or this runs in a worker or after SIGUSR2, where only the variables are left that nginx.conf declares outside of "
  .. "http, such as `env RISKSCREEN_BASE_URL; env RISKSCREEN_ACCESS_KEY;`"

local function client(value)
  if type(value.screen) == "function" then
    return value
  elseif tables.inherits(value) then
    return nil, tables.INHERITS
  end
  local missing = {}
  for _, name in ipairs { "base_url", "access_key" } do
    if value[name] == nil and not (name == "base_url" and value.transport) then
      missing[#missing + 1] = "client." .. name
    end
  end
  if missing[1] then
    return nil, "needs " .. table.concat(missing, " and ") .. ENV_HINT
  end
  return value
end

local function dict(value)
  if not (_G.ngx and _G.ngx.shared[value]) then
    return nil, ("must be the name of a lua_shared_dict (got %s)"):format(text.show(value))
  end
  return value
end

local function inbox(value)
  if type(value.deliver) == "function" then
    return value
  end
  return require("riskscreen.nginx.inbox").make(value)
end

local ttl_by_action = {
  ttl("allow", 300, "Of allow."),
  ttl("review", 300, "Of review."),
  ttl("block", 3600, "Of block."),
  ttl("unknown", 1, "How long a failure is cached, so that not every request asks a service that is down."),
}

local stale_by_action = {
  ttl("allow", 0, "Of allow."),
  ttl("review", 0, "Of review."),
  ttl("block", 3600, "Of block."),
}

local account_lists = {
  build.seconds("interval", 60, "How often they are fetched, by one worker for all.", 0.1),
  ttl("max_age", 300, "How long a whitelist counts that cannot be fetched again; a blacklist goes on to count."),
  build.flag(
    "whitelist",
    false,
    "true: an address on the whitelist passes without a lookup unless it is blacklisted, too."
  ),
  build.count("page_size", "items", 100, 1, 10000, "Items of a page."),
  timeout(10, "How long a page may take."),
}

local of_gate = {
  build.required(build.checked("client", "table", client, "A client, or the options of one.")),
  build.checked("dict", "string", dict, "The lua_shared_dict in which all workers cache decisions."),
  build.count("lru", "addresses", 10000, 0, MAX_ENTRIES, "How many addresses each worker caches itself; 0: none."),
  build.group("ttl", ttl_by_action, "How long a decision is cached, by action."),
  build.group("stale", stale_by_action, "How long after that it may be used while the service fails, by action."),
  build.group(
    "account_lists",
    account_lists,
    "Keeps the account's blacklist in the dict and blocks without a lookup. {}: the defaults."
  ),
  build.late_group(
    "redis",
    "riskscreen.nginx.fleet",
    "Shares decisions and purges with the gates of other machines, by Redis."
  ),
  local_lists.option,
  build.checked("webhook", "table", inbox, "The inbox that `gate:webhook()` serves, or the options of one."),
  build.late_group(
    "journal",
    "riskscreen.nginx.journal",
    "Records every decision of the gate in a file: { path = … }."
  ),
  build.late_group(
    "decisions",
    "riskscreen.nginx.decisions",
    "Lets services in other languages ask `gate:decisions()`: { secret = … }."
  ),
  build.text(
    "name",
    build.forms.name,
    "The gate's name in metrics. Gates that share a dict need different names; they do not share decisions.",
    "default"
  ),
  {
    name = "version",
    type = "string",
    default = "",
    doc = "Decisions cached under another version are not used.",
  },
  tables.merge(options.address_check, {
    doc = "How addresses are checked: `checksum`, `format`, or false for any text. By default as the client does, "
      .. "or `checksum`.",
  }),
  build.callback(
    "is_address",
    "is_address(address, network) → true if it can be one; by default `address_check` decides."
  ),
}

---@type riskscreen.Option[]
M.gate = tables.copy(of_gate)

-- A gate's options have defaults. A location takes the rest from its gate.
for index, option in ipairs(M.location) do
  local of_location, of_its_gate = tables.copy(option), tables.copy(option)
  of_location.default = nil
  of_its_gate.required = option.name == "on_unknown"
  M.location[index] = of_location
  table.insert(M.gate, of_its_gate)
end

---The reason why options contradict each other, if they do.
---@param checked table
---@return string|nil message
function M.contradiction(checked)
  local wanted, decisions = checked.account_lists, checked.decisions
  if decisions and decisions.secret(rawget(checked.client, "access_key")) then
    return "decisions.secret must not be the access key"
  elseif checked.address and checked.subjects then
    return M.ONE_PLACE
  elseif checked.webhook and checked.dict and checked.webhook.dict == _G.ngx.shared[checked.dict] then
    return "the dict of webhook must be another one: decisions would push its events out"
  elseif checked.redis and not checked.dict then
    return "redis needs dict: the workers of a machine share there what they hear from other machines"
  elseif wanted and not checked.dict then
    return "account_lists needs dict: the worker that fetches them shares them there"
  elseif wanted and wanted.max_age <= wanted.interval then
    return "account_lists.max_age must be more than account_lists.interval"
  end
  for _, kind in ipairs(checked.lists and { "deny", "allow" } or {}) do
    for _, path in ipairs(checked.lists[kind]) do
      if not path:find(build.forms.absolute.pattern) then
        return ("lists.%s %s (got %s)"):format(kind, build.forms.absolute.message, text.show(path))
      end
    end
  end
end

---The reason why a constant network is refused. In a call the network may come from the request, so it is not checked.
---@param given table options of a gate or a location
---@return string|nil message
function M.network_problem(given)
  for _, one in ipairs(tables.concat({ given }, given.subjects or {})) do
    local network = one.network
    if type(network) == "string" and not enums.has("network", network) then
      local known = enums.values.network
      local hint = addresses.did_you_mean(network, known)
      return ("network must be one of %s (got %s%s)"):format(table.concat(known, ", "), text.show(network), hint)
    end
  end
end

return M
