-- The sandbox: the whole service, simulated. In-process for prototypes and tests, over HTTP for everything else.
--   local client, service = sandbox.client {}
--   local server = sandbox.serve { port = 8080 }   -- server.url, server.access_key
local check = require "riskscreen.options.check"
local client_options = require "riskscreen.options"
local endpoints = require "riskscreen.sandbox.endpoints"
local http = require "riskscreen.sandbox.http"
local scenarios = require "riskscreen.sandbox.scenarios"
local service = require "riskscreen.sandbox.service"
local settings = require "riskscreen.sandbox.settings"
local time = require "riskscreen.sandbox.time"
local transport = require "riskscreen.sandbox.transport"

local M = {
  default_key = settings.default_key,
  lists_key = settings.lists_key,
  endpoints = endpoints.client,
  scenarios = scenarios,
}

local is_service_setting = {}
for _, setting in ipairs(settings.service) do
  is_service_setting[setting.name] = true
end

local function make(options, level)
  local checked, message = settings.check(options)
  if not checked then
    error(message, level + 1)
  end
  return service.new(checked)
end

-- The service that a table of options asks for, a new one or `service`, and the options that are not its settings.
local function part(options, level)
  local of_service, rest = {}, {}
  for name, value in pairs(options) do
    if is_service_setting[name] and not (name == "clock" and options.service) then
      of_service[name] = value
    elseif name ~= "service" then
      rest[name] = value
    end
  end
  local given = options.service
  if not given then
    return make(of_service, level + 1), rest
  elseif not service.is(given) then
    error("service must be one that sandbox.new made (got a " .. type(given) .. ")", level + 1)
  elseif next(of_service) then
    error("the service that is given has its own settings (got '" .. next(of_service) .. "')", level + 1)
  end
  return given, rest
end

---A service with its own accounts and state; `service:handle` answers requests.
---@param options? table the settings of riskscreen.sandbox.settings
---@return riskscreen.sandbox.Service
function M.new(options)
  return (make(options or {}, 2))
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

-- The caller's endpoints over the sandbox's own; false takes one away.
local function all_endpoints(given)
  local all = {}
  for name, endpoint in pairs(endpoints.client) do
    all[name] = endpoint
  end
  for name, endpoint in pairs(given or {}) do
    all[name] = endpoint or nil
  end
  return all
end

-- Has the service deliver its webhooks, where it knows where to.
local function deliver(its_service, inbox)
  local url, headers = its_service.webhook.url, its_service.webhook.headers
  if not (inbox or url) then
    return
  end
  local deliverer = require "riskscreen.sandbox.deliverer"
  deliverer.start(its_service, inbox and deliverer.inbox(inbox, url, headers) or deliverer.http(url, headers))
end

---A client of a service in the same process, with no socket.
---@param options? table a client's options, the settings of a service (or `service`, one that exists), and `sleep`,
---how delays and the client's own pauses pass (default: they take their time). With an `inbox` the service delivers its
---webhooks into that.
---@return riskscreen.Client
---@return riskscreen.sandbox.Service
function M.client(options)
  options = options or {}
  local its_service, given = part(options, 2)
  if given.transport then
    error("a sandbox client brings its own transport", 2)
  end
  given.runtime = given.runtime or (given.sleep and time.new(given.sleep))
  given.transport = transport.new(its_service, (given.runtime or require "riskscreen.runtime").sleep)
  given.sleep = nil
  given.clock = options.clock
  given.access_key = given.access_key or M.default_key
  given.endpoints = all_endpoints(given.endpoints)
  local checked, message = client_options.check_client(given)
  if not checked then
    error(message, 2)
  end
  deliver(its_service, checked.inbox)
  return require("riskscreen.client").new(given), its_service
end

---Serves a service over HTTP on this machine. Blocking calls in this process drive it; anyone else calls its step.
---@param options? table `host` (default 127.0.0.1), `port` (default 0: any free one), and the settings of a service,
---or `service`, one that exists
---@return riskscreen.sandbox.HttpServer? server `url`, `access_key`, `endpoints`, `service`, `close()`
---@return string? message why it cannot listen
function M.serve(options)
  local its_service, given = part(options or {}, 2)
  local place, wrong = check.options(settings.server, given)
  if not place then
    error(wrong.message, 2)
  end
  local native = require "riskscreen.runtime"
  if native.name ~= "native" then
    return nil, "nothing can be served inside nginx; serve it in another process, or use sandbox.client"
  end
  local server, message
  server, message = http.new(its_service, {
    host = place.host,
    port = place.port,
    now = native.now,
    on_close = function()
      native.detach(server)
    end,
  })
  if not server then
    return nil, message
  end
  server.access_key = its_service:account(M.default_key) and M.default_key
  server.endpoints = endpoints.client
  native.attach(server)
  deliver(its_service)
  return server
end

return M
