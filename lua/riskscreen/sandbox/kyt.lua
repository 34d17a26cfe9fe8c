-- Asynchronous transaction tasks: pending until their delay has passed by the service's clock, then done. The verdict
-- is that of the output address, or of the transaction's hash if there is none.
local json = require "riskscreen.json"
local verdicts = require "riskscreen.sandbox.verdicts"

-- The interface shows one status, 1003, and does not explain it. Here it means done.
local PENDING, DONE = 1001, 1003
local STRATEGY = "1"

local scores = { high = "95.00", ["generally-high"] = "70.00", low = "25.00" }
local weights = { high = 3, ["generally-high"] = 2, low = 1 }

---@class riskscreen.sandbox.Task
---@field request_id string
---@field account riskscreen.sandbox.Account
---@field parameters table
---@field ready_at number seconds since the Unix epoch

---@class riskscreen.sandbox.Tasks
---@field private delay number
---@field private by_id table<string, riskscreen.sandbox.Task>
---@field private webhooks riskscreen.sandbox.Webhooks
local Tasks = {}
Tasks.__index = Tasks

local function worst(risks)
  local found
  for _, risk in ipairs(type(risks) == "table" and risks or {}) do
    if weights[risk.riskLevel] and (not found or weights[risk.riskLevel] > weights[found.riskLevel]) then
      found = risk
    end
  end
  return found
end

---The score of an address or a transaction, and the details it comes from.
---@param subject string an address or a transaction's hash
---@return string score a decimal
---@return table[] details as the interface spells them
function Tasks.score(subject)
  local risks = verdicts.of(subject).risks
  local details = json.empty_array()
  for _, risk in ipairs(type(risks) == "table" and risks or {}) do
    if scores[risk.riskLevel] then
      details[#details + 1] = { score = scores[risk.riskLevel], code = risk.riskType, name = risk.riskType }
    end
  end
  local top = worst(risks)
  return top and scores[top.riskLevel] or "0.00", details
end

local function result(task)
  local parameters = task.parameters
  local score, details = Tasks.score(parameters.outputAddress or parameters.hash)
  local strategy = {
    [STRATEGY] = { strategyNo = STRATEGY, strategyName = "Sandbox strategy", score = score, details = details },
  }
  local direction = parameters.direction
  return {
    requestId = task.request_id,
    customId = parameters.customId or "",
    maxScore = score,
    status = DONE,
    dirData = { ["in"] = direction == "out" and {} or strategy, out = direction == "in" and {} or strategy },
  }
end

---Takes a task.
---@param account riskscreen.sandbox.Account
---@param parameters table
---@param now number
---@param manner? riskscreen.sandbox.Manner how its webhook is delivered
---@return string request_id
function Tasks:submit(account, parameters, now, manner)
  self.count = self.count + 1
  local task = {
    request_id = string.format("sandbox-request-%06d", self.count),
    account = account,
    parameters = parameters,
    ready_at = now + self.delay,
  }
  self.by_id[task.request_id] = task
  local webhook_id = string.format("sandbox-webhook-%06d", self.count)
  self.webhooks:add(account, webhook_id, task.ready_at, result(task), manner)
  return task.request_id
end

---What polling a task answers; nil if the account has no such task.
---@param account riskscreen.sandbox.Account
---@param request_id string
---@param now number
---@return table?
function Tasks:result(account, request_id, now)
  local task = self.by_id[request_id]
  if not task or task.account ~= account then
    return nil
  end
  if now < task.ready_at then
    return { requestId = request_id, status = PENDING }
  end
  return result(task)
end

local M = { score = Tasks.score }

---No tasks yet.
---@param delay number seconds until a task is done
---@param webhooks riskscreen.sandbox.Webhooks told of every task
---@return riskscreen.sandbox.Tasks
function M.new(delay, webhooks)
  return setmetatable({ delay = delay, count = 0, by_id = {}, webhooks = webhooks }, Tasks)
end

return M
