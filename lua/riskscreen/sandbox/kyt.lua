-- Transaction tasks: pending until their delay has passed by the service's clock, then done. The score is that of the
-- output address, or of the transaction's hash when there is no such address.
local address_data = require "riskscreen.sandbox.address_data"
local decimal = require "riskscreen.util.decimal"
local json = require "riskscreen.json"

-- The interface shows one status, 1003, and does not explain it. Here it means done.
local PENDING, DONE = 1001, 1003
local STRATEGY = "1"
local NO_RISK = "0.00"

local scores = { high = "95.00", ["generally-high"] = "70.00", low = "25.00" }

---@class riskscreen.sandbox.Task
---@field request_id string
---@field account riskscreen.sandbox.Account
---@field parameters table
---@field ready_at number seconds since the Unix epoch

---@class riskscreen.sandbox.Tasks
---@field private delay number
---@field private count integer
---@field private by_id table<string, riskscreen.sandbox.Task>
---@field private webhooks riskscreen.sandbox.Webhooks
---@field private answers table<string, riskscreen.sandbox.Verdict>
local Tasks = {}
Tasks.__index = Tasks

local M = {}

---The score of an address or a transaction, which is the highest of its details' scores.
---@param subject string an address or a transaction's hash
---@param network? string
---@param answers table<string, riskscreen.sandbox.Verdict>
---@return string score a decimal
---@return table[] details as the interface spells them
function M.score(subject, network, answers)
  local risks = address_data.verdict(subject, network, answers).risks
  local highest, details = NO_RISK, json.empty_array()
  for _, risk in ipairs(type(risks) == "table" and risks or {}) do
    local score = scores[risk.riskLevel]
    if score then
      details[#details + 1] = { score = score, code = risk.riskType, name = risk.riskType }
      highest = decimal.compare(score, highest) == 1 and score or highest
    end
  end
  return highest, details
end

-- The interface shows the direction "received" in requests, and "in" and "out" in results.
local canonical_direction = { received = "in", sent = "out" }

local function result(self, task)
  local parameters = task.parameters
  local score, details = M.score(parameters.outputAddress or parameters.hash, parameters.network, self.answers)
  local strategy = {
    [STRATEGY] = { strategyNo = STRATEGY, strategyName = "Sandbox strategy", score = score, details = details },
  }
  local direction = canonical_direction[parameters.direction] or parameters.direction
  return {
    requestId = task.request_id,
    customId = parameters.customId or "",
    maxScore = score,
    status = DONE,
    dirData = { ["in"] = direction == "out" and {} or strategy, out = direction == "in" and {} or strategy },
  }
end

---The result at once, without a requestId.
---@param parameters table
---@param context riskscreen.sandbox.Context
---@return table
function M.immediate_result(parameters, context)
  local subject = parameters.outputAddress or parameters.hash
  local risks = address_data.verdict(subject, parameters.network, context.answers).risks
  return {
    network = parameters.network,
    hash = parameters.hash,
    customId = parameters.customId,
    time = math.floor(context.now * 1000),
    status = DONE,
    risks = address_data.array(risks),
  }
end

---Takes a task.
---@param account riskscreen.sandbox.Account
---@param parameters table
---@param now number
---@param delivery? riskscreen.sandbox.Delivery of its webhook
---@return string request_id
function Tasks:submit(account, parameters, now, delivery)
  self.count = self.count + 1
  local task = {
    request_id = string.format("sandbox-request-%06d", self.count),
    account = account,
    parameters = parameters,
    ready_at = now + self.delay,
  }
  self.by_id[task.request_id] = task
  local webhook_id = string.format("sandbox-webhook-%06d", self.count)
  self.webhooks:add(account, webhook_id, task.ready_at, result(self, task), delivery)
  return task.request_id
end

---The task of a requestId.
---@param request_id string
---@return riskscreen.sandbox.Task?
function Tasks:find(request_id)
  return self.by_id[request_id]
end

---The answer to polling a task; nil if the account has no such task.
---@param account riskscreen.sandbox.Account
---@param request_id string
---@param now number
---@return table?
function Tasks:result(account, request_id, now)
  local task = self.by_id[request_id]
  if not task or task.account ~= account then
    return nil
  elseif now < task.ready_at then
    return { requestId = request_id, status = PENDING }
  end
  return result(self, task)
end

---No tasks yet.
---@param delay number seconds until a task is done
---@param webhooks riskscreen.sandbox.Webhooks gets an event of every task
---@param answers table<string, riskscreen.sandbox.Verdict> of the service
---@return riskscreen.sandbox.Tasks
function M.new(delay, webhooks, answers)
  return setmetatable({ delay = delay, count = 0, by_id = {}, webhooks = webhooks, answers = answers }, Tasks)
end

return M
