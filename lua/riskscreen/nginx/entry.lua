-- A decision as the shared dict holds it: text and back. Pure. A remembered decision has its action and its reasons,
-- not the records it came from. What cannot be read in full is no entry: damaged bytes never become a verdict.
local cjson = require("cjson").new()
local errors = require "riskscreen.errors"
local verdict = require "riskscreen.verdict"

local byte, find, floor, sub = string.byte, string.find, math.floor, string.sub

local COLON, LINE_FEED = byte ":", byte "\n"

-- Time in milliseconds, patience and key, a line each, then the verdict as JSON: of few different verdicts there are
-- many entries.
local FORMAT = "%d\n%s\n%s:%s\n%s"
local MOST_MILLISECONDS = 1e15
local LONGEST_KEPT = 1024 -- bytes of a verdict's text that is remembered
local MOST_KEPT = 256 -- verdicts that are remembered

---@class riskscreen.nginx.Entry
---@field decision riskscreen.Decision shared: nobody changes it
---@field at number Unix seconds when the service was asked; of a failure, when that had failed
---@field patience? number of a failure that more time might have avoided: the seconds that the look-up had

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
    if not reason or verdict.worst(action, reason.action) ~= action then
      return nil
    end
    reasons[index] = reason
    err = err or reason.error
  end
  if reasons[1] and reasons[1].action == action then
    return reasons, err
  end
end

-- The verdict that a JSON text is, or nil.
local function parse(text)
  local ok, packed = pcall(cjson.decode, text)
  if not ok or type(packed) ~= "table" then
    return nil
  end
  local reasons, err = unpacked_reasons(packed.r, packed.a)
  return reasons and { action = packed.a, reasons = reasons, error = err, degraded = packed.d == true }
end

local verdicts, kept = {}, 0

local function verdict_of(text)
  local known = verdicts[text]
  if known then
    return known
  end
  known = parse(text)
  if known and #text <= LONGEST_KEPT then
    if kept == MOST_KEPT then
      verdicts, kept = {}, 0
    end
    verdicts[text], kept = known, kept + 1
  end
  return known
end

-- A finite number, or nil. What is empty is told apart first: LuaJIT does not compile a conversion that fails.
local function number_of(text)
  local number = text ~= "" and tonumber(text)
  return number and number - number == 0 and number + 0.0 or nil
end

local function written(decision)
  local ok, text = pcall(cjson.encode, {
    a = decision.action,
    d = decision.degraded == true or nil,
    r = packed_reasons(decision),
  })
  return ok and text or nil
end

-- Texts of verdicts with one reason and no error, by the reason's message, with all else that is in them.
local texts, kept_texts = {}, 0

local function is_written_as(known, decision, reason, rule, risk)
  return known.action == decision.action
    and known.degraded == decision.degraded
    and known.reason_action == reason.action
    and known.name == (rule and rule.name)
    and known.has_risk == (risk ~= nil)
    and known.level == (risk and risk.riskLevel)
    and known.kind == (risk and risk.riskType)
    and known.origin == (risk and risk.riskSource)
end

local function keep_text(decision, reason, rule, risk)
  local text = written(decision)
  if text and #text <= LONGEST_KEPT then
    if kept_texts == MOST_KEPT then
      texts, kept_texts = {}, 0
    end
    kept_texts = kept_texts + 1
    texts[reason.message] = {
      action = decision.action,
      degraded = decision.degraded,
      reason_action = reason.action,
      name = rule and rule.name,
      has_risk = risk ~= nil,
      level = risk and risk.riskLevel,
      kind = risk and risk.riskType,
      origin = risk and risk.riskSource,
      text = text,
    }
  end
  return text
end

local function is_table_or_nil(value)
  return value == nil or type(value) == "table"
end

local function verdict_text(decision)
  local reason = decision.reasons and decision.reasons[1]
  if not reason or decision.reasons[2] or reason.error or type(reason.message) ~= "string" then
    return written(decision)
  end
  local rule, risk, known = reason.rule, reason.risk, texts[reason.message]
  if not is_table_or_nil(rule) or not is_table_or_nil(risk) then
    return written(decision)
  elseif known and is_written_as(known, decision, reason, rule, risk) then
    return known.text
  end
  return keep_text(decision, reason, rule, risk)
end

local function milliseconds_of(text)
  local number = number_of(text)
  return number and number >= 0 and number < MOST_MILLISECONDS and number == floor(number) and number or nil
end

-- Where the verdict begins in a text, if what is before it is the key's line; without making a text of that.
local function after_key(text, from, network, address)
  local address_at = from + #network + 1
  local line_end = address_at + #address
  if
    find(text, network, from, true) == from
    and byte(text, address_at - 1) == COLON
    and find(text, address, address_at, true) == address_at
    and byte(text, line_end) == LINE_FEED
  then
    return line_end + 1
  end
end

local function decision_of(known, network, address)
  local decision = {
    action = known.action,
    reasons = known.reasons,
    address = address,
    network = network,
    degraded = known.degraded,
    cached = true,
    stale = false,
    elapsed = 0,
  }
  if known.error then
    decision.error = known.error
  end
  return decision
end

local M = {}

---The text of a decision, and what is read from that.
---@param network string canonical, of what it is a decision about
---@param address string likewise
---@param decision riskscreen.Decision
---@param at number Unix seconds, of which milliseconds are kept
---@param patience? number seconds
---@return string|nil text nil where it cannot be written, or not be read again
---@return riskscreen.Decision|nil decision
function M.encode(network, address, decision, at, patience)
  local text = verdict_text(decision)
  local known = text and verdict_of(text)
  if not known then
    return nil, nil
  end
  local head = patience and ("%.17g"):format(patience) or ""
  return FORMAT:format(floor(at * 1000 + 0.5), head, network, address, text), decision_of(known, network, address)
end

---The decision that a text is, or nil.
---@param text any
---@param network string that it must be about
---@param address string likewise
---@return riskscreen.Decision|nil decision
---@return number at Unix seconds, as in an entry
---@return number|nil patience likewise
function M.decode(text, network, address)
  if type(text) ~= "string" then
    return nil, 0
  end
  local at_end = find(text, "\n", 1, true)
  local patience_end = at_end and find(text, "\n", at_end + 1, true)
  local at = patience_end and milliseconds_of(sub(text, 1, at_end - 1))
  local start = at and after_key(text, patience_end + 1, network, address)
  local known = start and verdict_of(sub(text, start))
  if not known then
    return nil, 0
  end
  return decision_of(known, network, address), at / 1000, number_of(sub(text, at_end + 1, patience_end - 1))
end

return M
