-- An entry of the cache, and its text in the shared dict. The text has no records of the service, only the time, the
-- epoch, the decision, its reasons and failures as JSON. It is read strictly: a damaged or foreign value is no entry.
-- This file also says how long an entry is fresh or served stale, and which failures are kept.
local cjson = require("cjson").new()
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local generations = require "riskscreen.util.generations"
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local sub = string.sub

-- The parts of a text: version and kind, time of the fetch, end of a stale entry, epoch, decision as JSON.
local FRESH, FAILED, STALE = "2v", "2f", "2s"
local EPOCH = "%016.0f"
local TIME = 1e13 -- plus the milliseconds: always 14 digits, which LuaJIT writes faster than a format
local TIME_AT, TAIL_AT, STALE_TAIL_AT = 3, 17, 31
local JSON_AT = 17 -- in the tail, which begins with the epoch

local MAX_EPOCH = 2 ^ 53
local MAX_KNOWN = 500 -- parsed decisions, and as many tails of texts
local LONGEST_KNOWN = 4096 -- bytes of their texts

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
---@field errors? table<riskscreen.LookupName, riskscreen.Error> of every lookup that failed
---@field json string

---@class riskscreen.nginx.Entries
---@field ttl table<riskscreen.Action, number> seconds
---@field private stale_ttl table<riskscreen.Action, number> seconds after that
---@field private known riskscreen.Generations of KnownDecision, by their JSON
---@field private by_message riskscreen.Generations of KnownDecision of one reason, by its message
---@field private tails riskscreen.Generations of what was read, by the tails of texts
---@field private epoch? number whose text is known
---@field private epoch_text string
local Entries = {}

local NOTHING = {}

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

local function unpacked_error(kind, message)
  return is_error_kind[kind] and errors.new(kind, text_or_nil(message) or "") or nil
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
    error = unpacked_error(packed.kind, packed.error),
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
  local failures
  for lookup, err in pairs(decision.errors or NOTHING) do
    failures = failures or {}
    failures[lookup] = { kind = err.kind, error = err.message }
  end
  local degraded = decision.degraded == true or nil
  local packed = { action = decision.action, degraded = degraded, reasons = reasons, errors = failures }
  local ok, json = pcall(cjson.encode, packed)
  return ok and json or nil
end

-- The reasons must agree with the action: the first reason has that action, and none has a worse one. A lost reason
-- could be the reason to block.
local function read(json)
  local ok, packed = pcall(cjson.decode, json)
  if not ok or type(packed) ~= "table" or not is_action[packed.action] or type(packed.reasons) ~= "table" then
    return nil
  elseif packed.errors ~= nil and type(packed.errors) ~= "table" then
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
  local failures = packed.errors and {}
  for lookup, failure in pairs(packed.errors or NOTHING) do
    failures[lookup] = type(failure) == "table" and unpacked_error(failure.kind, failure.error)
    if not failures[lookup] then
      return nil
    end
  end
  return {
    action = action,
    degraded = packed.degraded == true,
    reasons = reasons,
    error = first_error,
    errors = failures,
    json = json,
  }
end

-- Few decisions differ in their reasons, so most have been parsed before.
local function known_decision(self, json)
  local known = self.known:get(json)
  if not known then
    known = read(json)
    if known and #json <= LONGEST_KNOWN then
      self.known:set(json, known)
    end
  end
  return known
end

local function digits(seconds)
  return math.floor(TIME + seconds * 1000 + 0.5)
end

local function number_in(text, first, behind, maximum)
  local number = tonumber(sub(text, first, behind - 1))
  return number and number >= 0 and number <= maximum and number or nil
end

local function time_in(text, first, behind, latest)
  local number = number_in(text, first, behind, math.huge)
  local seconds = number and (number - TIME) / 1000
  return seconds and seconds >= 0 and seconds <= latest and seconds or nil
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
    and decision.errors == nil
    and known.errors == nil
end

-- The known decision of a decision of the service; nil if it could not be read again. Nearly every decision has one
-- reason, whose message differs where anything differs: then the JSON need not be written again.
local function known_of(self, decision)
  local reasons = decision.reasons
  local reason = reasons and reasons[1]
  local is_single = reason and reasons[2] == nil and type(reason.message) == "string"
  local known = is_single and self.by_message:get(reason.message)
  if known and is_same(known, decision, reason) then
    return known
  end
  local json = written(decision)
  known = json and known_decision(self, json)
  if known and is_single and #json <= LONGEST_KNOWN then
    self.by_message:set(reason.message, known)
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
  if known.error or known.errors then
    decision.error, decision.errors = known.error, known.errors
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
---@param failed? boolean it is about a failure: it lives as long as the ttl of unknown, whatever its action
---@return riskscreen.nginx.Entry|nil entry nil if the decision cannot be written
function Entries:fresh(decision, at, failed)
  local known = known_of(self, decision)
  local entry = known and new(self, known, at)
  return entry and failed and make_failure(self, entry) or entry
end

---Adds to an entry the decision that callers get. Most entries never need one: 10 % of a miss (`./dev bench nginx`).
---@param entry riskscreen.nginx.Entry
---@param address string canonical
---@param network string canonical
function Entries.complete(entry, address, network)
  entry.decision = entry.decision or new_decision(entry.known, address, network)
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

---The entry of an expired decision, which is served again for a moment because the service fails.
---@param entry riskscreen.nginx.Entry
---@param now number seconds
---@return riskscreen.nginx.Entry
function Entries:stale(entry, now)
  local decision = new_decision(entry.known, entry.decision.address, entry.decision.network)
  local copy = new(self, entry.known, entry.at, decision)
  return make_stale(copy, math.min(now + self.ttl.unknown, self:usable_until(entry)))
end

---The text of an entry.
---@param entry riskscreen.nginx.Entry
---@param epoch number in which the service was asked
---@return string text
function Entries:encode(entry, epoch)
  if epoch ~= self.epoch then
    self.epoch, self.epoch_text = epoch, EPOCH:format(epoch)
  end
  local kind = entry.failed and FAILED or entry.source == "stale" and STALE or FRESH
  local expires_at = kind == STALE and digits(entry.expires_at) or ""
  return kind .. digits(entry.at) .. expires_at .. self.epoch_text .. entry.known.json
end

-- The epoch and the decision in the tail of a text. Few texts differ in it.
local function read_tail(self, tail)
  local found = self.tails:get(tail)
  if not found then
    local epoch = number_in(tail, 1, JSON_AT, MAX_EPOCH)
    local known = epoch and known_decision(self, sub(tail, JSON_AT))
    found = known and { epoch = epoch, known = known }
    if found and #tail <= LONGEST_KNOWN then
      self.tails:set(tail, found)
    end
  end
  return found
end

---@param text any in the dict
---@param now number seconds
---@param address string canonical
---@param network string canonical
---@return riskscreen.nginx.Entry|nil
---@return number epoch
function Entries:decode(text, now, address, network)
  if type(text) ~= "string" then
    return nil, 0
  end
  local kind, tail_at, expires_at = sub(text, 1, 2), TAIL_AT, 0
  if kind == STALE then
    tail_at, expires_at = STALE_TAIL_AT, time_in(text, TAIL_AT, STALE_TAIL_AT, math.huge)
  elseif kind ~= FRESH and kind ~= FAILED then
    return nil, 0
  end
  local at, tail = time_in(text, TIME_AT, TAIL_AT, now + time.LAG), read_tail(self, sub(text, tail_at))
  if not at or not expires_at or not tail then
    return nil, 0
  end
  local entry = new(self, tail.known, at, new_decision(tail.known, address, network))
  if kind == FAILED then
    make_failure(self, entry)
  elseif kind == STALE then
    make_stale(entry, math.min(expires_at, now + self.ttl.unknown, self:usable_until(entry)))
  end
  return entry, tail.epoch
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

local M = {}

---@param ttl table<riskscreen.Action, number> seconds
---@param stale_ttl table<riskscreen.Action, number> seconds after that
---@return riskscreen.nginx.Entries
function M.new(ttl, stale_ttl)
  local self = tables.object(Entries, { ttl = ttl, stale_ttl = stale_ttl })
  for _, name in ipairs { "known", "by_message", "tails" } do
    self[name] = generations.new(MAX_KNOWN / 2)
  end
  return self
end

return M
