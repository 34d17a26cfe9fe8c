-- The options of one location, prepared before any request: readers of addresses, effective actions, answers to denied
-- requests.
local check = require "riskscreen.options.check"
local deny_response = require "riskscreen.nginx.deny_response"
local input = require "riskscreen.nginx.input"
local tables = require "riskscreen.util.tables"
local worst_action = require("riskscreen.policy.decision").worst

local ngx = _G.ngx

---@class riskscreen.nginx.Location
---@field monitor boolean
---@field exempt? fun(): boolean
---@field methods? fun(asked?: riskscreen.nginx.Asked): string|nil why the request's method is refused
---@field proxy { trusted: riskscreen.Network[], uri?: riskscreen.nginx.Reader, method?: riskscreen.nginx.Reader }
---@field timeout number seconds
---@field network? riskscreen.nginx.Reader
---@field subjects? riskscreen.nginx.SubjectReader[]
---@field actions table<riskscreen.Action, riskscreen.nginx.EffectiveAction>
---@field on_invalid riskscreen.nginx.EffectiveAction
---@field variables? table<string, string>
---@field log integer the level
---@field private answers table<string, fun(request_id: string|nil)> by effective action; also `unknown` and `invalid`
local Location = {}

---@alias riskscreen.nginx.EffectiveAction "allow"|"review"|"block"

---The action that a decision leads to here. Any other value blocks.
---@param decision riskscreen.Decision
---@param source string
---@return riskscreen.nginx.EffectiveAction
function Location:effective_action(decision, source)
  if source == "invalid" then
    return self.on_invalid
  end
  return self.actions[decision.action] or "block"
end

local function is_worse(action, other)
  return action ~= other and worst_action(action, other) == action
end

---The worst of several decisions. One that is missing raises: no subject passes unseen.
---@param decisions riskscreen.Decision[]
---@param sources string[]
---@param count integer
---@return integer index
function Location:worst(decisions, sources, count)
  local worst, worst_effect = 1, self:effective_action(decisions[1], sources[1])
  for index = 2, count do
    local action, effect = decisions[index].action, self:effective_action(decisions[index], sources[index])
    if is_worse(effect, worst_effect) or effect == worst_effect and is_worse(action, decisions[worst].action) then
      worst, worst_effect = index, effect
    end
  end
  return worst
end

---Answers a request that must not pass, and ends it.
---@param decision riskscreen.Decision
---@param source string
---@param action "review"|"block"
---@param request_id string|nil
function Location:deny(decision, source, action, request_id)
  local special
  if source == "invalid" then
    special = self.answers.invalid
  elseif decision.action == "unknown" then
    special = self.answers.unknown
  end
  return (special or self.answers[action])(request_id)
end

local function answers_of(checked)
  local answers = {}
  for _, name in ipairs { "block", "review", "unknown", "invalid" } do
    answers[name] = checked[name] and deny_response.sender(checked[name])
  end
  answers.block = answers.block or deny_response.sender(check.options(deny_response.options(300), {}))
  answers.review = answers.review or answers.block
  return answers
end

local function readers_of(checked)
  local given = checked.subjects or (checked.address and { { address = checked.address } })
  local readers = given and {}
  for index, subject in ipairs(given or {}) do
    readers[index] = input.subject_reader(subject.address, subject.network or checked.network)
  end
  return readers
end

local M = {}

---@param checked table the checked options of a gate or a location
---@return riskscreen.nginx.Location
function M.new(checked)
  return tables.object(Location, {
    monitor = checked.monitor,
    exempt = checked.exempt,
    methods = checked.methods,
    proxy = checked.proxy,
    timeout = checked.timeout,
    network = checked.network,
    subjects = readers_of(checked),
    actions = { allow = "allow", review = checked.on_review, block = "block", unknown = checked.on_unknown },
    on_invalid = checked.on_invalid,
    answers = answers_of(checked),
    variables = next(checked.variables) and checked.variables or nil,
    log = ngx[checked.log:upper()],
  })
end

return M
