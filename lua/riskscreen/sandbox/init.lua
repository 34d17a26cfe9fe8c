-- The sandbox: the whole service, simulated. In-process for prototypes and tests, over HTTP for everything else.
--   local client, service = sandbox.client {}
--   local server = sandbox.serve { port = 8080 }   -- server.url, server.access_key
local accounts = require "riskscreen.sandbox.accounts"
local calls = require "riskscreen.call"
local check = require "riskscreen.options.check"
local client = require "riskscreen.client"
local client_options = require "riskscreen.options"
local errors = require "riskscreen.errors"
local routes = require "riskscreen.sandbox.routes"
local runtime = require "riskscreen.runtime"
local scenarios = require "riskscreen.sandbox.scenarios"
local serve = require "riskscreen.sandbox.http"
local service = require "riskscreen.sandbox.service"
local settings = require "riskscreen.sandbox.settings"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local transport = require "riskscreen.sandbox.transport"
local virtual = require "riskscreen.runtime.virtual"
local webhooks = require "riskscreen.sandbox.webhooks"

local M = {
  default_key = accounts.default_key,
  lists_key = accounts.lists_key,
  endpoints = routes.endpoints,
  scenarios = scenarios,
}

local SERVICE_SETTINGS = tables.pluck(settings.service, "name")

local function new_service(options, level)
  local checked, message = settings.check(options)
  if not checked then
    error(message, level + 1)
  end
  return service.new(checked)
end

-- Splits options: the service, which is `service` or a new one of their settings, and the options that are no settings.
local function split(options, level)
  if type(options) ~= "table" then
    error("options must be a table (got " .. text.kind(options) .. ")", level + 1)
  elseif tables.inherits(options) then
    error("the table " .. tables.INHERITS, level + 1)
  end
  local given = options.service
  local of_service = tables.pick(options, SERVICE_SETTINGS)
  local rest = tables.without(options, "service", tables.unpack(SERVICE_SETTINGS))
  if not given then
    return new_service(of_service, level + 1), rest
  end
  of_service.clock = nil -- the client has a clock, too
  if not service.is(given) then
    error("service must be made by sandbox.new (got " .. text.kind(given) .. ")", level + 1)
  elseif next(of_service) then
    error("the given service has its own settings (got '" .. next(of_service) .. "')", level + 1)
  end
  return given, rest
end

---A service with its own accounts and state; `service:handle` answers requests.
---@param options? table the settings of riskscreen.sandbox.settings
---@return riskscreen.sandbox.Service
function M.new(options)
  return (new_service(options or {}, 2))
end

---The scenario of a name.
---@param name string
---@return riskscreen.sandbox.Scenario
function M.scenario(name)
  for _, scenario in ipairs(scenarios) do
    if scenario.name == name then
      return scenario
    end
  end
  error("there is no scenario '" .. tostring(name) .. "'", 2)
end

-- The sandbox's endpoints with the caller's changes; false removes one.
local function all_endpoints(changes)
  local all = tables.merge(routes.endpoints, changes)
  for name, endpoint in pairs(all) do
    all[name] = endpoint or nil
  end
  return all
end

-- Starts the delivery of webhooks, where the service has a receiver.
local function start_webhooks(its_service, inbox)
  local url, headers = its_service.webhook.url, its_service.webhook.headers
  if inbox then
    webhooks.start(its_service, webhooks.to_inbox(inbox, url, headers))
  elseif url then
    webhooks.start(its_service, webhooks.to_url(url, headers))
  end
end

---A client of a service in the same process, without a socket.
---@param options? table a client's options, the settings of a service (or `service`, an existing one), and `sleep`, a
---function for every wait of the service and the client (default: they really wait). With an `inbox` the service
---delivers its webhooks into it.
---@return riskscreen.Client
---@return riskscreen.sandbox.Service
function M.client(options)
  options = options or {}
  local its_service, given = split(options, 2)
  if given.transport then
    error("a sandbox client has its own transport", 2)
  end
  given.runtime = given.runtime or (given.sleep and virtual.new(0, given.sleep))
  given.transport = transport.new(its_service, (given.runtime or runtime).sleep)
  given.sleep = nil
  given.clock = options.clock
  given.access_key = given.access_key or M.default_key
  given.account, given.identity = given.account or "sandbox", given.identity or "sandbox"
  given.endpoints = all_endpoints(given.endpoints)
  if given.immediate_results == nil then
    given.immediate_results = its_service.results_at_once
  end
  local checked, message = client_options.check_client(given)
  if not checked then
    error(message, 2)
  end
  start_webhooks(its_service, checked.inbox)
  local made = client.new(given)
  calls.state_of(made).is_sandbox = true
  return made, its_service
end

---Serves a service over HTTP on this machine. Blocking calls in this process drive it; other programs call its `step`.
---@param options? table `host` (default 127.0.0.1), `port` (default 0: any free one), and the settings of a service, or
---`service`, an existing one
---@return riskscreen.sandbox.HttpServer? server `url`, `access_key`, `endpoints`, `service`, `close()`
---@return riskscreen.Error? err
function M.serve(options)
  local its_service, given = split(options or {}, 2)
  local place = check.arguments("sandbox.serve", settings.server, given)
  if not runtime.listen then
    local remedy = "sandbox.serve: not inside nginx; serve in another process, or use sandbox.client"
    return nil, errors.new("unsupported", remedy, { sent = false })
  end
  local server, err = serve(its_service, place)
  if not server then
    return nil, err
  end
  server.access_key = its_service:account(M.default_key) and M.default_key
  server.endpoints = routes.endpoints
  start_webhooks(its_service)
  return server
end

return M
