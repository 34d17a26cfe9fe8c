-- The simulated service: request in, response out. Pure but for its own state; time comes from its clock.
-- Not here: sockets and sleeping (http.lua, transport.lua).
local validate = require "riskscreen.interface.validate"
local json = require "riskscreen.json"
local accounts = require "riskscreen.sandbox.accounts"
local envelope = require "riskscreen.sandbox.envelope"
local faults = require "riskscreen.sandbox.faults"
local handlers = require "riskscreen.sandbox.handlers"
local kyt = require "riskscreen.sandbox.kyt"
local routes = require "riskscreen.sandbox.routes"
local rules = require "riskscreen.sandbox.rules"
local webhooks = require "riskscreen.sandbox.webhooks"
local wire = require "riskscreen.sandbox.wire"

---@class riskscreen.sandbox.Request
---@field method string
---@field target string path and query as sent
---@field headers table<string, string> names in lower case
---@field body? string

---@class riskscreen.sandbox.Response
---@field status integer
---@field headers table<string, string> names in lower case
---@field body string
---@field fault? { kind: string, delay: number, bytes?: integer, every?: number } what the transport has to do to it

---@class riskscreen.sandbox.Seen what the service remembers of a request; never its key
---@field method string
---@field target string
---@field operation? string
---@field parameters? table
---@field status integer
---@field fault? string the kind of the fault it met

---@class riskscreen.sandbox.Service
---@field private accounts table<string, riskscreen.sandbox.Account> by key
local Service = {}
Service.__index = Service

local JSON_TYPE = "application/json"
local EMPTY_RISK_TYPE = 3016 -- the one failure code that the interface names

local function reply(status, body, headers)
  headers = headers or {}
  headers["content-type"] = JSON_TYPE
  return { status = status, headers = headers, body = assert(json.encode(body)) }
end

local function refuse(status, message, headers)
  return reply(status, envelope.failure(status, message), headers)
end

local function invalid(now, message, code, status)
  return reply(status or 400, envelope.failure(code or 400, message, math.floor(now * 1000)))
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

-- What the headers ask for that the service does not speak.
local function header_problem(headers)
  local content_type, accept = headers["content-type"], headers.accept
  if content_type and not is_json(content_type) then
    return "Content-Type must be " .. JSON_TYPE .. " (got '" .. content_type .. "')"
  elseif accept and not includes_json(accept) then
    return "Accept must be " .. JSON_TYPE .. " (got '" .. accept .. "')"
  end
end

local function cost_of(self, operation)
  return self.credits.by_operation[operation.name] or self.credits.every
end

-- The operation itself, for an account that may call it.
local function perform(self, operation, account, parameters, now, header)
  local checked, err = validate.parameters(operation, parameters)
  if not checked then
    return invalid(now, err.message)
  end
  local context = { account = account, tasks = self.tasks, now = now }
  if header then
    local wrong
    context.manner, wrong = webhooks.parse(header)
    if wrong then
      return invalid(now, wrong)
    end
  end
  local result, failure = handlers[operation.name](context, checked)
  if not result then
    local status = failure.code == EMPTY_RISK_TYPE and self.empty_risk_type_status or 400
    return invalid(now, failure.message, failure.code, status)
  end
  account.usage:count(operation, cost_of(self, operation), now)
  return reply(200, envelope.success(operation, result.data, result.pagination))
end

-- Everything that may keep a known operation from being performed.
local function admit(self, operation, account, request, now)
  local allowed, reason, retry_after = account:admit(cost_of(self, operation), now)
  if not allowed then
    return refuse(429, reason, { ["retry-after"] = retry_after and tostring(retry_after) })
  end
  local problem = header_problem(request.headers)
  return problem and invalid(now, problem)
end

local function answer(self, request, seen)
  local now = self.clock()
  local path, query = wire.split(request.target)
  local operation, allowed = routes.find(request.method, path)
  if not operation then
    if allowed then
      local message = path .. " answers " .. allowed .. " (got '" .. request.method .. "')"
      return refuse(405, message, { allow = allowed })
    end
    return refuse(404, "there is no " .. path)
  end
  local parameters, unreadable = wire.parameters(operation, request, query)
  seen.operation, seen.parameters = operation.name, parameters
  local account = self.accounts[request.headers["x-access-key"] or ""]
  if not account then
    local missing = not request.headers["x-access-key"]
    return refuse(401, missing and "X-Access-Key is missing" or "X-Access-Key is incorrect")
  end
  local fault, message = self.rules:match(request.headers["x-sandbox-fault"], operation, parameters or {})
  if message then
    return invalid(now, message)
  end
  seen.fault = fault and fault.kind
  local response
  if fault and fault.status and fault.status ~= 200 then
    response = refuse(fault.status, STATUS_TEXT[fault.status] or "a fault that was asked for")
  else
    response = admit(self, operation, account, request, now)
      or unreadable and invalid(now, unreadable)
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

---What the service has been asked, oldest first; of many the last `log_size`.
---@return riskscreen.sandbox.Seen[]
function Service:requests()
  local copy = {}
  for index, seen in ipairs(self.log) do
    copy[index] = seen
  end
  return copy
end

---The state of an account: its lists and usage.
---@param key string
---@return riskscreen.sandbox.Account?
function Service:account(key)
  return self.accounts[key]
end

---Makes requests fail: those that match, or all.
---@param fault riskscreen.sandbox.Fault
function Service:fault(fault)
  local ok, message = self.rules:add(fault)
  if not ok then
    error("fault: " .. message, 2)
  end
end

---Forgets the faults that `fault` was told, not those of the scenarios.
function Service:clear_faults()
  self.rules = rules.new()
end

---How the webhooks of transactions are delivered that are submitted from now on: late, twice, out of order, never, with
---something wrong.
---@param manner riskscreen.sandbox.Manner
function Service:deliver(manner)
  local ok, message = self.webhooks:deliver(manner)
  if not ok then
    error("deliver: " .. message, 2)
  end
end

---The webhooks that are due and were not taken before, in the order of delivery.
---@param now? number seconds since the Unix epoch (default: the service's clock)
---@return riskscreen.sandbox.Webhook[]
function Service:due_webhooks(now)
  return self.webhooks:take(now or self.clock())
end

---Delivers what is due into an inbox of this process, redeliveries included, and returns the statuses it answered.
---@param inbox riskscreen.Inbox
---@param headers? table<string, string>
---@param where? table as `inbox:deliver` takes it
---@return integer[]
function Service:deliver_to(inbox, headers, where)
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
  local service = setmetatable({
    clock = settings.clock,
    credits = settings.credits,
    empty_risk_type_status = settings.empty_risk_type_status,
    log_size = settings.log_size,
    log = {},
    accounts = {},
    rules = rules.new(),
    webhook = settings.webhook,
    webhooks = webhooks.new(settings.webhook),
  }, Service)
  service.tasks = kyt.new(settings.kyt_delay, service.webhooks)
  local now = settings.clock()
  for key, account in pairs(settings.accounts) do
    service.accounts[key] = accounts.new(account, now)
  end
  for _, fault in ipairs(settings.faults) do
    service.rules:add(fault)
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
