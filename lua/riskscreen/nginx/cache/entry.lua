-- An entry of the cache, and its value in the shared dict. The value has no records of the service, only the decision
-- and its reasons. Few decisions differ in their reasons. So the value is mostly a number, the time of the fetch. Its
-- flags refer to reasons and epoch. Any other entry is a text with its reasons as JSON. Both are read strictly: a
-- damaged or foreign value is no entry. This file also says how long an entry is fresh or served stale, and which
-- failures are kept.
local cjson = require("cjson").new()
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"

local byte, sub = string.byte, string.sub

-- The parts of a text: version and kind, time of the fetch, epoch, end of a stale entry, decision as JSON. The text to
-- which flags refer has the epoch and the JSON alone.
local FRESH, FAILED, STALE = "2v", "2f", "2s"
local TIME, EPOCH = "%014.3f", "%016.0f"
local TIME_AT, EPOCH_AT, JSON_AT, STALE_JSON_AT = 3, 17, 33, 47
local EPOCH_SIZE = 16

local MAX_EPOCH = 2 ^ 53
local LAG = 1 -- seconds that the clock of another worker may be ahead: nginx reads it once for many events
local MAX_KNOWN = 500 -- parsed decisions, and as many references
local LONGEST_KNOWN = 4096 -- bytes of their texts
local REFERENCES = 2 ^ 29

local action_numbers = { allow = 0, review = 1, block = 2, unknown = 3 }
local is_action = tables.set { "allow", "review", "block", "unknown" }

local is_error_kind = tables.set(tables.pluck(errors.kinds, "kind"))

-- Failures for lack of time: another caller may have more.
local lacks_time = tables.set { "timeout", "cancelled" }

-- Failures to ask the service, which may pass.
local is_outage_kind = { cancelled = true }
for _, entry in ipairs(errors.kinds) do
  is_outage_kind[entry.kind] = entry.retryable or is_outage_kind[entry.kind]
end

-- Failures that cost nothing and say nothing about the service.
local is_refusal = tables.set { "invalid_argument", "unsupported" }

---@class riskscreen.nginx.Entry
---@field decision? riskscreen.Decision shared: nobody changes it; `complete` adds that of a new entry
---@field expires_at number seconds until which the decision is served
---@field at number seconds when the service was asked; of a failure, when it failed
---@field known riskscreen.nginx.KnownDecision its action and its reasons
---@field source? "stale"|"list" of the decision, if it is not a fresh one
---@field failed? boolean the decision about a failure

---@class riskscreen.nginx.KnownDecision
---@field action riskscreen.Action
---@field degraded boolean
---@field reasons riskscreen.Reason[]
---@field error? riskscreen.Error
---@field json string
---@field hash integer of the JSON
---@field reference? riskscreen.nginx.Reference of the last epoch in which it was written

---@class riskscreen.nginx.Reference a known decision in one epoch
---@field known riskscreen.nginx.KnownDecision
---@field epoch number
---@field flags integer that refer to it: a hash, and the action
---@field text string in the dict
---@field kept_until number seconds until which the dict has the text, unless it loses it

---@class riskscreen.nginx.Entries
---@field private ttl table<riskscreen.Action, number> seconds
---@field private stale_ttl table<riskscreen.Action, number> seconds after that
---@field private known table<string, riskscreen.nginx.KnownDecision> by their JSON
---@field private by_message table<string, riskscreen.nginx.KnownDecision> of one reason, by its message
---@field private by_flags table<integer, riskscreen.nginx.Reference>
---@field private text_of fun(flags: integer): string|nil the text in the dict to which flags refer
---@field private known_count integer
---@field private reference_count integer
---@field private spare riskscreen.nginx.Entry|false an entry that nobody has
local Entries = {}

local NOTHING = {}

local function nothing() end

local function text_or_nil(value)
  return type(value) == "string" and value or nil
end

-- A reason as it is written: one flat table of texts. nil if it could not be read again.
local function packed_reason(reason)
  if type(reason.message) ~= "string" then
    return nil
  end
  local rule = type(reason.rule) == "table" and reason.rule or NOTHING
  local risk = type(reason.risk) == "table" and reason.risk or NOTHING
  local err = errors.is(reason.error) and reason.error or NOTHING
  return {
    action = reason.action,
    message = reason.message,
    rule = text_or_nil(rule.name),
    level = text_or_nil(risk.riskLevel),
    type = text_or_nil(risk.riskType),
    source = text_or_nil(risk.riskSource),
    kind = err.kind,
    error = err.message,
  }
end

local function unpacked_reason(packed)
  if type(packed) ~= "table" or type(packed.message) ~= "string" or not is_action[packed.action] then
    return nil
  end
  local rule, level = text_or_nil(packed.rule), text_or_nil(packed.level)
  local kind, source = text_or_nil(packed.type), text_or_nil(packed.source)
  return {
    action = packed.action,
    message = packed.message,
    rule = rule and { name = rule, action = packed.action },
    risk = (level or kind or source) and { riskLevel = level, riskType = kind, riskSource = source },
    error = is_error_kind[packed.kind] and errors.new(packed.kind, text_or_nil(packed.error) or "") or nil,
  }
end

-- The decision as JSON; nil if it could not be read again.
local function written(decision)
  local reasons = {}
  for index, reason in ipairs(decision.reasons or NOTHING) do
    reasons[index] = packed_reason(reason)
    if not reasons[index] then
      return nil
    end
  end
  if not reasons[1] then
    reasons[1] = { action = decision.action, message = "no reason was given" }
  end
  local degraded = decision.degraded == true or nil
  local ok, json = pcall(cjson.encode, { action = decision.action, degraded = degraded, reasons = reasons })
  return ok and json or nil
end

local function hash_of(json)
  local hash = 0
  for index = 1, #json do
    hash = (hash * 31 + byte(json, index)) % REFERENCES
  end
  return hash
end

-- The reasons must agree with the action: the first reason has that action, and none has a worse one. A lost reason
-- could be the reason to block.
local function read(json)
  local ok, packed = pcall(cjson.decode, json)
  if not ok or type(packed) ~= "table" or not is_action[packed.action] or type(packed.reasons) ~= "table" then
    return nil
  end
  local action, reasons, first_error = packed.action, {}, nil
  for index = 1, #packed.reasons do
    local reason = unpacked_reason(packed.reasons[index])
    if not reason or decisions.worst(action, reason.action) ~= action then
      return nil
    end
    first_error = first_error or reason.error
    reasons[index] = reason
  end
  if not reasons[1] or reasons[1].action ~= action then
    return nil
  end
  return {
    action = action,
    degraded = packed.degraded == true,
    reasons = reasons,
    error = first_error,
    json = json,
    hash = hash_of(json),
  }
end

-- Few decisions differ in their reasons, so most have been parsed before.
local function known_decision(self, json)
  local known = self.known[json]
  if not known then
    known = read(json)
    if known and #json <= LONGEST_KNOWN then
      if self.known_count == MAX_KNOWN then
        self.known, self.by_message, self.known_count = {}, {}, 0
      end
      self.known[json], self.known_count = known, self.known_count + 1
    end
  end
  return known
end

local function number_in(text, first, behind, maximum)
  local number = tonumber(sub(text, first, behind - 1))
  return number and number >= 0 and number <= maximum and number or nil
end

-- The action is in the flags, so that no other decision of the same hash can change it.
local function new_reference(known, epoch)
  return {
    known = known,
    epoch = epoch,
    flags = (known.hash + epoch) % REFERENCES * 4 + action_numbers[known.action],
    text = EPOCH:format(epoch) .. known.json,
    kept_until = 0,
  }
end

---The reference of a fresh entry; nil for an entry that must be written as a text.
---@param entry riskscreen.nginx.Entry
---@param epoch number in which the service was asked
---@return riskscreen.nginx.Reference|nil
function Entries.reference(entry, epoch)
  local known = entry.known
  if entry.failed or entry.source then
    return nil
  elseif not known.reference or known.reference.epoch ~= epoch then
    known.reference = new_reference(known, epoch)
  end
  return known.reference
end

---Lets the flags of entries refer to a decision, whose text is in the dict.
---@param reference riskscreen.nginx.Reference
function Entries:refer(reference)
  if self.by_flags[reference.flags] == reference or not self.known[reference.known.json] then
    return
  elseif self.reference_count == MAX_KNOWN then
    self.by_flags, self.reference_count = {}, 0
  end
  self.by_flags[reference.flags], self.reference_count = reference, self.reference_count + 1
end

-- The reference behind the flags of an entry.
local function referred(self, flags)
  local reference = self.by_flags[flags]
  if reference then
    return reference
  end
  local text = self.text_of(flags)
  local epoch = text and number_in(text, 1, EPOCH_SIZE + 1, MAX_EPOCH)
  local known = epoch and known_decision(self, sub(text, EPOCH_SIZE + 1))
  reference = known and new_reference(known, epoch)
  if reference and reference.flags == flags then
    self:refer(reference)
    return reference
  end
end

-- Whether a decision has this one reason, and so this JSON.
local function is_same(known, decision, reason)
  local own = known.reasons[1]
  local rule, risk = reason.rule, reason.risk
  local own_rule, own_risk = own.rule or NOTHING, own.risk or NOTHING
  return decision.action == known.action
    and (decision.degraded == true) == known.degraded
    and reason.action == own.action
    and reason.message == own.message
    and type(rule) == "table"
    and type(risk) == "table"
    and rule.name == own_rule.name
    and risk.riskLevel == own_risk.riskLevel
    and risk.riskType == own_risk.riskType
    and risk.riskSource == own_risk.riskSource
    and reason.error == nil
end

-- The known decision of a decision of the service; nil if it could not be read again. Nearly every decision has one
-- reason, whose message differs where anything differs: then the JSON need not be written again.
local function known_of(self, decision)
  local reasons = decision.reasons
  local reason = reasons and reasons[1]
  local is_single = reason and reasons[2] == nil and type(reason.message) == "string"
  local known = is_single and self.by_message[reason.message]
  if known and is_same(known, decision, reason) then
    return known
  end
  local json = written(decision)
  known = json and known_decision(self, json)
  if known and is_single and self.known[json] then
    self.by_message[reason.message] = known
  end
  return known
end

local function new_decision(known, address, network)
  local decision = decisions.new {
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

local function new(self, known, at, decision)
  return { decision = decision, expires_at = at + self.ttl[known.action], at = at, known = known }
end

local function make_failure(self, entry)
  entry.failed, entry.expires_at = true, entry.at + self.ttl.unknown
  return entry
end

local function make_stale(entry, expires_at)
  entry.source, entry.decision.stale, entry.expires_at = "stale", true, expires_at
  return entry
end

---The entry of the service's decision, which is not complete.
---@param decision riskscreen.Decision
---@param at number seconds
---@return riskscreen.nginx.Entry|nil entry nil if the decision cannot be written
function Entries:fresh(decision, at)
  local known, entry = known_of(self, decision), self.spare
  if not known then
    return nil
  elseif not entry then
    return new(self, known, at)
  end
  self.spare = false
  entry.known, entry.at, entry.expires_at = known, at, at + self.ttl[known.action]
  return entry
end

---Takes back an entry, unless it is complete: then the LRU or a caller may have it. Most never are, and the next fresh
---entry is the same table (`./dev bench nginx`).
---@param entry riskscreen.nginx.Entry
function Entries:recycle(entry)
  if not entry.decision and not entry.failed then
    self.spare = entry
  end
end

---Adds to an entry the decision that callers get, if it has none.
---@param entry riskscreen.nginx.Entry
---@param address string canonical
---@param network string canonical
---@return riskscreen.nginx.Entry
function Entries.complete(entry, address, network)
  entry.decision = entry.decision or new_decision(entry.known, address, network)
  return entry
end

---The entry of a verdict that another machine has fetched.
---@param verdict riskscreen.nginx.SharedVerdict
---@param address string canonical
---@param network string canonical
---@return riskscreen.nginx.Entry|nil entry nil if the JSON is no decision
function Entries:restore(verdict, address, network)
  local known = known_decision(self, verdict.json)
  if not known then
    return nil
  end
  -- The other machine may keep decisions for a shorter time.
  local at = math.min(verdict.at, verdict.valid_until - self.ttl[known.action])
  return new(self, known, at, new_decision(known, address, network))
end

---Whether a failure is kept for other callers.
---@param failure riskscreen.Error
---@return boolean is_kept
---@return boolean is_private it counts for the caller that fetched alone, because another caller may have more time
function Entries.is_kept(failure)
  local kind = failure.kind
  local is_private = lacks_time[kind] or (kind == "rate_limited" and not failure.status)
  return not is_private and not is_refusal[kind], is_private or false
end

---The entry of a decision about a failure, which is not complete. It lives as long as the ttl of unknown, whatever its
---action.
---@param decision riskscreen.Decision
---@param at number seconds
---@return riskscreen.nginx.Entry|nil entry nil if the decision cannot be written
function Entries:failure(decision, at)
  local entry = self:fresh(decision, at)
  return entry and make_failure(self, entry)
end

---The entry of an expired decision, which is served again for a moment because the service fails.
---@param entry riskscreen.nginx.Entry
---@param now number seconds
---@return riskscreen.nginx.Entry
function Entries:stale(entry, now)
  local decision = new_decision(entry.known, entry.decision.address, entry.decision.network)
  local copy = new(self, entry.known, entry.at, decision)
  return make_stale(copy, math.min(now + self.ttl.unknown, self:usable_until(entry)))
end

---The text of an entry that no reference describes.
---@param entry riskscreen.nginx.Entry
---@param epoch number in which the service was asked
---@return string text
function Entries.encode(entry, epoch)
  local head, json = TIME:format(entry.at) .. EPOCH:format(epoch), entry.known.json
  if entry.failed then
    return FAILED .. head .. json
  elseif entry.source == "stale" then
    return STALE .. head .. TIME:format(entry.expires_at) .. json
  end
  return FRESH .. head .. json
end

local function decode_text(self, text, now, address, network)
  local kind, json_at, expires_at = sub(text, 1, 2), JSON_AT, 0
  local at = number_in(text, TIME_AT, EPOCH_AT, now + LAG)
  local epoch = number_in(text, EPOCH_AT, JSON_AT, MAX_EPOCH)
  if kind == STALE then
    expires_at, json_at = number_in(text, JSON_AT, STALE_JSON_AT, math.huge), STALE_JSON_AT
  elseif kind ~= FRESH and kind ~= FAILED then
    return nil, 0
  end
  if not at or not epoch or not expires_at then
    return nil, 0
  end
  local known = known_decision(self, sub(text, json_at))
  local entry = known and new(self, known, at, new_decision(known, address, network))
  if entry and kind == FAILED then
    make_failure(self, entry)
  elseif entry and kind == STALE then
    make_stale(entry, math.min(expires_at, now + self.ttl.unknown, self:usable_until(entry)))
  end
  return entry, epoch
end

---@param value any in the dict
---@param now number seconds
---@param address string canonical
---@param network string canonical
---@param flags integer|nil
---@return riskscreen.nginx.Entry|nil
---@return number epoch
function Entries:decode(value, now, address, network, flags)
  if type(value) == "string" then
    return decode_text(self, value, now, address, network)
  elseif type(value) ~= "number" then
    return nil, 0
  end
  local reference = value >= 0 and value <= now + LAG and referred(self, flags or 0)
  if not reference then
    return nil, 0
  end
  local decision = new_decision(reference.known, address, network)
  return new(self, reference.known, value, decision), reference.epoch
end

---The end of an entry: until then its decision may be served, if the service fails.
---@param entry riskscreen.nginx.Entry
---@return number seconds
function Entries:usable_until(entry)
  if entry.failed or entry.source == "list" then
    return entry.expires_at
  end
  local action = entry.known.action
  return entry.at + self.ttl[action] + self.stale_ttl[action]
end

-- Whether a decision is unknown because the service could not be asked. An answer that is not understood is an answer.
local function is_outage(decision)
  for _, reason in ipairs(decision.reasons) do
    if reason.action == "unknown" and not (reason.error and is_outage_kind[reason.error.kind]) then
      return false
    end
  end
  for _, err in pairs(decision.errors or NOTHING) do
    if not is_outage_kind[err.kind] then
      return false
    end
  end
  return decision.action == "unknown"
end

---Whether a decision of the service may be served instead of the decision about a failure: if it is as bad, or if the
---service could not be asked.
---@param entry riskscreen.nginx.Entry|nil
---@param failed riskscreen.Decision|nil nil: the time was up
---@param now number seconds
---@return boolean
function Entries:stands_in(entry, failed, now)
  if not entry or entry.source == "list" or now >= self:usable_until(entry) then
    return false
  end
  local own = entry.decision.action
  return not failed or decisions.worst(own, failed.action) == own or is_outage(failed)
end

---@param action riskscreen.Action
---@return number seconds for which a fresh decision is served
function Entries:lifetime(action)
  return self.ttl[action]
end

local M = { LAG = LAG }

---@param ttl table<riskscreen.Action, number> seconds
---@param stale_ttl table<riskscreen.Action, number> seconds after that
---@param text_of? fun(flags: integer): string|nil the text to which flags refer
---@return riskscreen.nginx.Entries
function M.new(ttl, stale_ttl, text_of)
  return tables.object(Entries, {
    ttl = ttl,
    stale_ttl = stale_ttl,
    text_of = text_of or nothing,
    known = {},
    by_message = {},
    by_flags = {},
    known_count = 0,
    reference_count = 0,
    spare = false,
  })
end

return M
