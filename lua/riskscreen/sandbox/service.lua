-- The simulated service: a request in, a response out. Its time comes from its clock. Sockets and waiting are in
-- http.lua and transport.lua.
local accounts = require "riskscreen.sandbox.accounts"
local check = require "riskscreen.options.check"
local costs = require "riskscreen.options.cost"
local faults = require "riskscreen.sandbox.faults"
local handlers = require "riskscreen.sandbox.handlers"
local json = require "riskscreen.json"
local kyt = require "riskscreen.sandbox.kyt"
local profiles = require "riskscreen.sandbox.profile"
local routes = require "riskscreen.sandbox.routes"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local validate = require "riskscreen.interface.validate"
local webhooks = require "riskscreen.sandbox.webhooks"

---@class riskscreen.sandbox.Request
---@field method string
---@field target string path and query as sent
---@field headers table<string, string> names in lower case
---@field body? string

---@class riskscreen.sandbox.Response
---@field status integer
---@field headers table<string, string> names in lower case
---@field body string
---@field fault? { kind: string, delay: number, bytes?: integer, every?: number } for the transport to apply

---@class riskscreen.sandbox.Seen a request in the log, without its key
---@field method string
---@field target string
---@field operation? string
---@field parameters? table
---@field status integer
---@field fault? string the kind of its fault

---@class riskscreen.sandbox.Service
---@field private account_of fun(key: string): riskscreen.sandbox.Account|nil no field leads to the keys
local Service = {}
Service.__index = Service

local JSON_TYPE = "application/json"

-- The interface shows `status` in the answers of all operations but these.
local without_status = tables.set { "getAddressEntity", "listAddressEntities", "getAddressRisk", "getAddressBasic" }

local function reply(status, body, headers)
  headers = headers or {}
  headers["content-type"] = JSON_TYPE
  return { status = status, headers = headers, body = assert(json.encode(body)) }
end

local function success(operation, result)
  if operation.envelope == "usage" then
    return reply(200, { code = 200, message = "SUCCESS", data = result.data })
  end
  return reply(200, {
    success = true,
    code = 1,
    msg = "SUCCESS",
    status = not without_status[operation.name] and "SUCCESS" or nil,
    data = result.data,
    pagination = result.pagination,
  })
end

local function refuse(status, message, headers)
  return reply(status, { success = false, code = status, msg = message, status = "FAIL" }, headers)
end

local EMPTY_RISK_TYPE = 3016

-- Only the answer to an invalid request has a timestamp.
local function invalid(self, now, message, code)
  local timestamp, profile = math.floor(now * 1000), self.profile
  local status = profile and profile[code == EMPTY_RISK_TYPE and "empty_type_status" or "invalid_status"] or 400
  return reply(status, { success = false, code = code or 400, msg = message, status = "FAIL", timestamp = timestamp })
end

local STATUS_TEXT = {
  [400] = "the request is invalid",
  [401] = "the access key is incorrect",
  [429] = "the rate limit is reached or the quota exceeded",
  [500] = "internal server error",
}

local function is_json(content_type)
  return content_type:lower():match "^%s*([^;%s]*)" == JSON_TYPE
end

local function includes_json(accept)
  return accept:find(JSON_TYPE, 1, true) or accept:find("application/*", 1, true) or accept:find("*/*", 1, true)
end

-- The message about a media type that the service does not speak.
local function header_message(headers)
  local content_type, accept = headers["content-type"], headers.accept
  if content_type and not is_json(content_type) then
    return "Content-Type must be " .. JSON_TYPE .. " (got '" .. content_type .. "')"
  elseif accept and not includes_json(accept) then
    return "Accept must be " .. JSON_TYPE .. " (got '" .. accept .. "')"
  end
end

local function cost_of(self, operation, parameters)
  return costs.of(self.credits.by_operation, operation, parameters) or self.credits.every
end

-- Performs the operation for an account that may call it.
local function perform(self, operation, account, parameters, now, header)
  local message
  if self.profile then
    parameters, message = profiles.page(self.profile, operation.name, parameters)
  end
  local checked, err = validate.parameters(operation, parameters)
  message = message or err and err.message
  local delivery
  if header and not message then
    delivery, message = webhooks.parse(header)
  end
  if message then
    return invalid(self, now, message)
  end
  local result, refusal = handlers[operation.name]({
    account = account,
    tasks = self.tasks,
    answers = self.answers,
    now = now,
    results_at_once = self.results_at_once,
    delivery = delivery,
  }, checked)
  if not result then
    return invalid(self, now, refusal.message, refusal.code)
  end
  if self.profile then
    profiles.answer(self.profile, operation.name, result, checked)
  end
  account.usage:count(operation, cost_of(self, operation, checked), now)
  return success(operation, result)
end

-- Checks the limits of the account and the headers. The answer is nil when the operation may be performed.
local function admit(self, operation, account, request, parameters, now)
  local allowed, message, retry_after = account:admit(cost_of(self, operation, parameters), now)
  if not allowed then
    return refuse(429, message, { ["retry-after"] = retry_after and tostring(retry_after) })
  end
  message = header_message(request.headers)
  return message and invalid(self, now, message)
end

local function answer(self, request, seen)
  local now = self.clock()
  local path, query = routes.split(request.target)
  local operation, allowed = routes.find(request.method, path)
  if not operation then
    if allowed then
      local message = path .. " answers " .. allowed .. " (got '" .. request.method .. "')"
      return refuse(405, message, { allow = allowed })
    end
    return refuse(404, "there is no " .. path)
  end
  local parameters, unreadable = routes.parameters(operation, request, query, self.profile)
  seen.operation, seen.parameters = operation.name, parameters
  local key = request.headers["x-access-key"]
  local account = key and self.account_of(key)
  if not account then
    return refuse(401, key and "X-Access-Key is incorrect" or "X-Access-Key is missing")
  end
  local fault, message = self.faults:match(request.headers["x-sandbox-fault"], operation, parameters or {})
  if message then
    return invalid(self, now, message)
  end
  seen.fault = fault and fault.kind
  local response
  if fault and fault.status and fault.status ~= 200 then
    response = refuse(fault.status, STATUS_TEXT[fault.status] or "a requested fault")
  else
    response = admit(self, operation, account, request, parameters, now)
      or unreadable and invalid(self, now, unreadable)
      or perform(self, operation, account, parameters, now, request.headers["x-sandbox-webhook"])
  end
  return fault and faults.apply(fault, response) or response
end

---Answers one request.
---@param request riskscreen.sandbox.Request
---@return riskscreen.sandbox.Response
function Service:handle(request)
  local seen = { method = request.method, target = request.target }
  local response = answer(self, request, seen)
  seen.status = response.status
  table.insert(self.log, seen)
  if #self.log > self.log_size then
    table.remove(self.log, 1)
  end
  return response
end

---The last `log_size` requests, oldest first.
---@return riskscreen.sandbox.Seen[]
function Service:requests()
  text.expect_self(self, Service, "service:requests")
  return tables.copy(self.log)
end

---The state of an account: its lists and usage.
---@param key string
---@return riskscreen.sandbox.Account?
function Service:account(key)
  text.expect_self(self, Service, "service:account")
  return self.account_of(key)
end

-- The checked argument of a public method, whose caller's line raises misuse.
local function checked(option, value)
  local copy, err = check.value(option, value, option.name)
  return copy or error(err.message, 3)
end

---Makes all requests fail, or those that match.
---@param fault riskscreen.sandbox.Fault
function Service:fault(fault)
  text.expect_self(self, Service, "service:fault")
  self.faults:add(checked(faults.option, fault))
end

---Removes the faults that `fault` added. Those of the scenarios stay.
function Service:clear_faults()
  text.expect_self(self, Service, "service:clear_faults")
  self.faults = faults.new_rules()
end

---Sets how the webhooks of later transactions are delivered: late, twice, out of order, never, or with a wrong field.
---@param delivery riskscreen.sandbox.Delivery
function Service:deliver(delivery)
  text.expect_self(self, Service, "service:deliver")
  self.webhooks:deliver(checked(webhooks.option, delivery))
end

---Takes the webhooks that are due, in the order of delivery.
---@param now? number seconds since the Unix epoch (default: the service's clock)
---@return riskscreen.sandbox.Webhook[]
function Service:due_webhooks(now)
  text.expect_self(self, Service, "service:due_webhooks")
  return self.webhooks:take(now or self.clock())
end

---Delivers the due webhooks into an inbox of this process, with redeliveries, and returns the inbox's statuses.
---@param inbox riskscreen.Inbox
---@param headers? table<string, string>
---@param where? table the last argument of `inbox:deliver`
---@return integer[]
function Service:deliver_to(inbox, headers, where)
  text.expect_self(self, Service, "service:deliver_to")
  local statuses = {}
  for _, webhook in ipairs(self:due_webhooks()) do
    local status = inbox:deliver("POST", headers or {}, webhook.body, where)
    self.webhooks:answered(webhook, status, self.clock())
    statuses[#statuses + 1] = status
  end
  return statuses
end

local M = {}

---A service with its own accounts and state.
---@param settings table checked by settings.lua
---@return riskscreen.sandbox.Service
function M.new(settings)
  local now, by_key = settings.clock(), {}
  for key, account in pairs(settings.accounts) do
    by_key[key] = accounts.new(account, now)
  end
  local service = tables.merge(tables.without(settings, "accounts"), {
    log = {},
    results_at_once = settings.kyt_results == "at_once",
    account_of = function(key)
      return by_key[key]
    end,
    faults = faults.new_rules(),
    webhooks = webhooks.new(settings.webhook),
  })
  setmetatable(service, Service)
  service.tasks = kyt.new(settings.kyt_delay, service.webhooks, settings.answers)
  for _, fault in ipairs(settings.faults) do
    service.faults:add(fault)
  end
  return service
end

---Whether a value is a service.
---@param value any
---@return boolean
function M.is(value)
  return getmetatable(value) == Service
end

return M
