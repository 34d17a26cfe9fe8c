-- A verdict as JSON text and back. Pure. What is kept has its action and its reasons, not the records it came from, nor
-- what it is about. What cannot be read in full is no verdict: damaged bytes never become one.
local cjson = require("cjson").new()
local errors = require "riskscreen.errors"
local worst_action = require("riskscreen.policy.decision").worst

---@class riskscreen.nginx.Verdict
---@field action riskscreen.Action
---@field reasons riskscreen.Reason[] at least one; none is worse than the action, which is the first one's
---@field error? riskscreen.Error
---@field degraded boolean

local is_action = { allow = true, review = true, block = true, unknown = true }

local is_error_kind = {}
for _, entry in ipairs(errors.kinds) do
  is_error_kind[entry.kind] = true
end

local function text_or_nil(value)
  return type(value) == "string" and value or nil
end

local function packed_reason(reason)
  local risk = type(reason.risk) == "table" and reason.risk
  return {
    a = reason.action,
    m = reason.message,
    n = reason.rule and text_or_nil(reason.rule.name),
    r = risk and {
      l = text_or_nil(risk.riskLevel),
      t = text_or_nil(risk.riskType),
      s = text_or_nil(risk.riskSource),
    } or nil,
    e = errors.is(reason.error) and { k = reason.error.kind, m = reason.error.message } or nil,
  }
end

local function packed_reasons(decision)
  local list = {}
  for index, reason in ipairs(decision.reasons or {}) do
    list[index] = packed_reason(reason)
  end
  if not list[1] then
    list[1] = { a = decision.action, m = "no reason was given" }
  end
  return list
end

local function unpacked_error(packed)
  if type(packed) ~= "table" or not is_error_kind[packed.k] or type(packed.m) ~= "string" then
    return nil
  end
  return errors.new(packed.k, packed.m)
end

local function unpacked_risk(packed)
  if type(packed) ~= "table" then
    return nil
  end
  return { riskLevel = text_or_nil(packed.l), riskType = text_or_nil(packed.t), riskSource = text_or_nil(packed.s) }
end

local function unpacked_reason(packed)
  if type(packed) ~= "table" or not is_action[packed.a] or type(packed.m) ~= "string" then
    return nil
  end
  return {
    action = packed.a,
    message = packed.m,
    rule = type(packed.n) == "string" and { name = packed.n, action = packed.a } or nil,
    risk = unpacked_risk(packed.r),
    error = unpacked_error(packed.e),
  }
end

-- All the reasons, or nil: one that is lost may have been the reason to block, and none is worse than the action, which
-- is the first one's. And the first error among them.
local function unpacked_reasons(packed, action)
  if type(packed) ~= "table" or not is_action[action] then
    return nil
  end
  local reasons, err = {}, nil
  for index = 1, #packed do
    local reason = unpacked_reason(packed[index])
    if not reason or worst_action(action, reason.action) ~= action then
      return nil
    end
    reasons[index] = reason
    err = err or reason.error
  end
  if reasons[1] and reasons[1].action == action then
    return reasons, err
  end
end

local M = {}

---What a text says; nil where that does not add up.
---@param text string
---@return riskscreen.nginx.Verdict|nil
function M.read(text)
  local ok, packed = pcall(cjson.decode, text)
  if not ok or type(packed) ~= "table" then
    return nil
  end
  local reasons, err = unpacked_reasons(packed.r, packed.a)
  return reasons and { action = packed.a, reasons = reasons, error = err, degraded = packed.d == true }
end

---The text of a decision; nil where none can be written.
---@param decision riskscreen.Decision
---@return string|nil
function M.write(decision)
  local ok, text = pcall(cjson.encode, {
    a = decision.action,
    d = decision.degraded == true or nil,
    r = packed_reasons(decision),
  })
  return ok and text or nil
end

return M
