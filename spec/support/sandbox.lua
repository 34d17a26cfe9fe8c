-- A service whose clock the test sets, and requests to it in one line.
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"

local M = { START = 1767225600 } -- 2026-01-01T00:00:00Z

---A service and its clock: the time is `clock.now`.
function M.service(settings)
  local clock = { now = M.START }
  local function read_clock()
    return clock.now
  end
  return sandbox.new(tables.merge({ clock = read_clock }, settings)), clock
end

local function query_of(parameters)
  local pairs_of_names = {}
  for name, value in pairs(parameters or {}) do
    table.insert(pairs_of_names, name .. "=" .. tostring(value))
  end
  return #pairs_of_names > 0 and "?" .. table.concat(pairs_of_names, "&") or ""
end

local function send(service, method, target, body, headers)
  local all = { ["x-access-key"] = sandbox.default_key }
  for name, value in pairs(headers or {}) do
    all[name] = value or nil
  end
  local response = service:handle { method = method, target = target, headers = all, body = body }
  return response.status, json.decode(response.body), response
end

---Status, decoded body and whole response of a GET.
function M.get(service, path, parameters, headers)
  return send(service, "GET", path .. query_of(parameters), nil, headers)
end

---Status, decoded body and whole response of a POST. A string is sent without encoding.
function M.post(service, path, body, headers)
  return send(service, "POST", path, type(body) == "string" and body or json.encode(body), headers)
end

---The risks of an address, as the service sees them.
function M.risks(service, address, network, headers)
  local _, body = M.get(service, M.path.risk, { address = address, network = network }, headers)
  return body.data.risks
end

local BASE = "/api/v1/tracker/"
M.path = {
  blacklist = BASE .. "address/blacklist",
  whitelist = BASE .. "address/whitelist",
  entities = BASE .. "kya/entities",
  risk = BASE .. "kya/risks",
  counterparties = BASE .. "kya/address/counterparties",
  basic = BASE .. "kya/address/basic",
  freeze_events = BASE .. "kya/address/freeze-events",
  usage = BASE .. "account/usage",
  submit = BASE .. "kyt/transfers/risk-screening",
}

---The two ways to reach a service. Each connects a client; `close` ends it. In-process no time passes. Requests are not
---repeated, so that each fault is seen.
M.ways = {
  {
    name = "in-process",
    connect = function()
      local waited = 0
      local client, service = sandbox.client {
        retry = false,
        sleep = function(seconds)
          waited = waited + seconds
        end,
      }
      return {
        client = client,
        service = service,
        waited = function()
          return waited
        end,
        close = function()
          client:close()
        end,
      }
    end,
  },
  {
    name = "over HTTP",
    connect = function()
      local server = assert(sandbox.serve())
      local client = riskscreen.new {
        base_url = server.url,
        access_key = server.access_key,
        endpoints = server.endpoints,
        retry = false,
      }
      return {
        client = client,
        service = server.service,
        server = server,
        close = function()
          client:close()
          server:close()
        end,
      }
    end,
  },
}

return M
