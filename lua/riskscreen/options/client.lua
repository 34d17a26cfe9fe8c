-- The options of a client, with their defaults, and the checks that concern several options. More entries and the
-- values of HTTP are in http.lua, kyt.lua and reliability.lua.
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local enums = require "riskscreen.interface.enums"
local http = require "riskscreen.options.http"
local kyt = require "riskscreen.options.kyt"
local lists = require "riskscreen.options.lists"
local random = require "riskscreen.util.random"
local reliability = require "riskscreen.options.reliability"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MIB = 1024 * 1024

local M = {}

---@type riskscreen.Option
M.policy =
  build.object("policy", "riskscreen.Policy", "riskscreen.policy", "Policy of `screen`; by default the default policy.")

local function address_check(value)
  if value ~= "checksum" and value ~= "format" and value ~= false then
    return nil, ("must be 'checksum', 'format' or false (got %s)"):format(text.show(value))
  end
  return value
end

local ADDRESS_CHECK = "How addresses are checked before anything is sent: `checksum`, `format`, or false for any text. "
  .. "By default `checksum`, and `format` for the calls of `client.kya`."

-- How addresses are checked before anything is sent.
---@type riskscreen.Option
M.address_check = build.checked("address_check", "string|boolean", address_check, ADDRESS_CHECK)

local NAME = build.forms.name

local usage_parameters = {
  build.text("granularity", NAME, "Name on the wire of the period of a record.", "granularity"),
  build.text("start_date", NAME, "Name on the wire of the first day.", "startDate"),
  build.text("end_date", NAME, "Name on the wire of the last day.", "endDate"),
  build.text("group_by", NAME, "Name on the wire of the grouping list.", "groupBy"),
}

local transaction_parameters = {
  build.text("custom_id", NAME, "Name on the wire of the caller's own identifier of a transaction.", "customId"),
}

-- The functions that a runtime in place of this program's must offer.
local runtime_functions = { "now", "sleep" }
local task_functions = { "spawn", "gather", "signal", "on_end", "hold", "release" }

local function missing_function(owner, wanted)
  for _, name in ipairs(wanted) do
    if type(owner[name]) ~= "function" then
      return name
    end
  end
end

local function is_text(value)
  return type(value) == "string" and value ~= ""
end

local function names(value)
  local list, message = build.list_of(value, "texts", is_text)
  return list and tables.set(list), message
end

-- A list of networks, or a table from each to the network whose addresses look the same.
local function networks(value)
  if value[1] ~= nil then
    return names(value)
  end
  for network, like in pairs(value) do
    if not is_text(network) then
      return nil, "must be a list of texts, or map texts to known networks"
    elseif not enums.has("network", like) then
      return nil, ("must map %s to a known network such as eth (got %s)"):format(network, text.show(like))
    end
  end
  return tables.copy(value)
end

local NETWORK =
  "Networks: a list, or a table from each to a known network with the same form of addresses: { sonic = 'eth' }."

local extensions = {
  build.dictionary("network", networks, NETWORK),
  build.checked("risk_level", "table", names, "Values of riskLevel."),
  build.checked("risk_type", "table", names, "Values of riskType."),
  build.checked("risk_source", "table", names, "Values of riskSource."),
}

local function nothing() end

local function same(value)
  return value
end

-- The functions that a runtime may leave out.
local runtime_defaults = { refusal = nothing, problem = nothing, abortable = same }
local task_defaults = { contain = pcall, pcall = pcall, iterator = same, blocks = nothing }

-- A copy with defaults. Inherited fields count: a runtime may be another one with some functions of its own.
local function complete(given, defaults)
  local copy = setmetatable(tables.copy(given), getmetatable(given))
  for name, default in pairs(defaults) do
    copy[name] = copy[name] or default
  end
  return copy
end

-- A complete copy of the operator's runtime.
local function runtime(value)
  local tasks = type(value.tasks) == "table" and value.tasks or {}
  local missing, missing_task = missing_function(value, runtime_functions), missing_function(tasks, task_functions)
  if missing or missing_task then
    return nil, "must have the function " .. (missing or "tasks." .. missing_task)
  end
  local copy = complete(value, runtime_defaults)
  copy.tasks = complete(tasks, task_defaults)
  return copy
end

local BASE_URL = "URL of the service: https, or http to this machine. Required unless `transport` is given."
local PROXY = "URL of a proxy, with `@` as `%40` in a password; the environment's proxy variables are not read."
local ENDPOINTS = "Method and path (and envelope) of operations by name, such as kyt_result = { method = 'GET', path = "
  .. "'/…/{requestId}' }: for operations whose path is not published."
local EXTEND = "Values that the service has added to its enumerations, for requests and for decisions of this client."
local USAGE_PARAMETERS = "Names on the wire of the usage query's parameters, which the interface does not publish."
local TRANSACTION_PARAMETERS =
  "Name on the wire of a transaction's `custom_id`, which the interface shows in results alone."
local TRANSPORT = "Sends requests in place of the library's HTTP: transport(request) --> reply | nil, failure. What it "
  .. "raises fails the call."
local IDENTITY =
  "Name of the service behind a `transport` of your own. Whatever is kept of its answers is kept under this name."
local ACCOUNT = "Name of your account at the service, the same after the key is replaced. Required beside `store` and "
  .. "a queue, and wherever decisions are kept in Redis. Where `headers` choose one of several tenants, each has its "
  .. "own name."
local JOURNAL = "The record of the decisions of `screen` and `screen_all`."

---@type riskscreen.Option[]
M.options = tables.concat({
  build.checked("base_url", "string", http.base_url, BASE_URL),
  build.required(
    build.checked(
      "access_key",
      "string|function",
      http.access_key,
      "The access key, of at least 8 bytes, or a function that returns it before every request."
    ),
    build.NO_VARIABLE
  ),
  build.seconds("timeout", 10, "Time limit of a whole call."),
  build.seconds("attempt_timeout", nil, "Time limit of one request of a call; by default that of the call."),
  build.seconds("connect_timeout", 3, "Time limit of connecting, name lookup and TLS included."),
  build.concurrency("requests", 32, "Maximum at a time. Further requests wait, and the wait counts as their time."),
  build.count("max_response_size", "bytes", 16 * MIB, 1024, 1024 * MIB, "Longest answer, after decompression."),
  build.dictionary("headers", http.headers, "More headers for every request."),
  build.checked("user_agent", "string", http.user_agent, "The client's name; by default riskscreen and its version."),
  build.choice("http_version", { "auto", "1.1", "2" }, "auto", "HTTP version; auto takes 2 where TLS offers it."),
  build.flag("compression", true, "Whether compressed answers are accepted."),
  build.checked("proxy", "string", http.proxy, PROXY),
  build.text("ca_file", build.forms.file, "PEM file of the trusted authorities."),
  build.text("client_cert", build.forms.file, "PEM file of the client's certificate."),
  build.text("client_key", build.forms.file, "PEM file of that certificate's key, which needs no pass phrase."),
  build.text("unix_socket", build.forms.file, "Unix-domain socket to connect to."),
  build.group("endpoints", http.endpoints, ENDPOINTS, {}),
  build.group("extend", extensions, EXTEND),
  build.group("usage_parameters", usage_parameters, USAGE_PARAMETERS, {}),
  build.group("transaction_parameters", transaction_parameters, TRANSACTION_PARAMETERS, {}),
  build.callback("transport", TRANSPORT),
  build.text("identity", NAME, IDENTITY),
  build.text("account", NAME, ACCOUNT),
  M.policy,
  M.address_check,
  lists.option,
  build.clock("Returns Unix seconds, for dates in answers and the age of lists; by default os.time.", os.time),
  build.checked("random", "function", function(value)
    return require("riskscreen.util.guard").number("random", value, random.jitter(), 0, 1)
  end, "Returns a number from 0 up to 1, for the jitter of waits; by default its own generator."),
  build.object("journal", "riskscreen.Journal", "riskscreen.journal.file or .store", JOURNAL),
  {
    name = "runtime",
    type = "table",
    check = runtime,
    doc = "The runtime of everything that belongs to this client, in place of the program's: now(), sleep(seconds) "
      .. "and tasks with spawn, gather, signal, on_end, hold and release. transport(settings) is optional.",
  },
}, kyt.client, reliability.client)

local function shared_dict(name, client_runtime)
  if not client_runtime.shared_dict then
    return nil, "shared_dict is for clients inside nginx"
  end
  local dict = client_runtime.shared_dict(name)
  if not dict then
    return nil, ("shared_dict must name a lua_shared_dict of the configuration (got %s)"):format(text.show(name))
  end
  return dict
end

local function is_exposed_by_proxy(settings)
  local base_url, proxy = settings.base_url, settings.proxy
  return base_url and proxy and base_url.origin:find "^http:" and not http.is_local_proxy(proxy)
end

-- An event names no account: those of another one could be about a transaction with the same requestId.
local function has_foreign_inbox(settings)
  local owner = settings.inbox and settings.inbox.account
  return owner and settings.account and owner ~= settings.account
end

---The checked options of a client.
---@param options table
---@param client_runtime? { name?: string, shared_dict?: fun(name: string): table|nil } for defaults and shared state
---@return table|nil settings `base_url` is a riskscreen.BaseUrl, `shared_dict` the dict
---@return string|nil message for `error`
function M.check(options, client_runtime)
  client_runtime = client_runtime or {}
  local settings, err = check.options(M.options, options)
  if not settings then
    return nil, err.message
  elseif not settings.base_url and not settings.transport then
    return nil, "base_url is required" .. build.NO_VARIABLE
  elseif is_exposed_by_proxy(settings) then
    return nil, "a proxy on another machine needs an https base_url: it would be sent the access key in plain text"
  elseif settings.client_key and not settings.client_cert then
    return nil, "client_key needs client_cert"
  elseif settings.identity and not settings.transport and not (settings.runtime and settings.runtime.transport) then
    return nil, "identity names the service behind a transport of your own; without one, base_url is its name"
  elseif has_foreign_inbox(settings) then
    local message = "inbox has the events of the account %s, and this client's account is %s"
    return nil, message:format(text.show(settings.inbox.account), text.show(settings.account))
  elseif settings.shared_as and not settings.shared_dict then
    return nil, "shared_as needs shared_dict"
  elseif settings.shared_dict then
    local dict, message = shared_dict(settings.shared_dict, client_runtime)
    if not dict then
      return nil, message
    end
    settings.shared_dict = dict
  end
  local message = reliability.complete(settings, client_runtime.name == "nginx")
  if message then
    return nil, message
  end
  return settings
end

return M
