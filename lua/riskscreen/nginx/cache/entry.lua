-- An entry of the cache is a verdict and its times. Address and records are no part of it. In the shared dict an entry
-- is a short text with the digest of its verdict. The verdict's JSON is there once for all entries, under the digest.
-- Both are read strictly: an entry that is damaged or foreign, or whose verdict is lost, is no entry. This file also
-- says how long an entry is fresh or served stale, and which failures are kept.
local cjson = assert(require "riskscreen.util.optional" "cjson").new()
local decisions = require "riskscreen.policy.decision"
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local generations = require "riskscreen.util.generations"
local tables = require "riskscreen.util.tables"
local time = require "riskscreen.util.time"

local sub = string.sub

-- The parts of a text: kind, digest of the verdict, time of the fetch, end. A kind begins with the version of this
-- format. The times are milliseconds; the first is negative where another machine has fetched before this one has
-- started. They come last, because LuaJIT's hash of a long text reads little more than its end.
local FRESH, FAILED, STALE = "7v", "7f", "7s"
local TIMES = "%016.0f%016.0f"
local ID_AT, AT_AT, END_AT, SIZE = 3, 15, 31, 46

local MAX_KNOWN = 500 -- verdicts by their digest, and as many by their risk
local LONGEST_KNOWN = 4096 -- bytes of JSON
local REWRITE = 1 -- seconds after which a worker writes a verdict again: a full dict drops what is not used

local is_kind = { [FRESH] = true, [FAILED] = true, [STALE] = true }
local is_action = decisions.severity
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

-- The texts of a reason that are kept besides its action and its message.
local PARTS = { rule = { "name" }, risk = { "riskLevel", "riskType", "riskSource" }, error = { "kind", "message" } }

---@class riskscreen.nginx.Entry
---@field verdict riskscreen.nginx.Verdict
---@field kind string
---@field at number seconds when the service was asked; of a failure, when it failed
---@field expires_at number seconds until which it is served
---@field decision riskscreen.Decision|false made when it is first read, and shared: nobody changes it
---@field generation? any of the account's lists that did not have the address

---@class riskscreen.nginx.Verdict
---@field action riskscreen.Action
---@field degraded boolean
---@field reasons riskscreen.Reason[]
---@field error? riskscreen.Error
---@field errors? table<riskscreen.LookupName, riskscreen.Error> of every lookup that failed
---@field json string
---@field id string the digest of its JSON
---@field rewrite_at? number seconds; the dict has its JSON until then, unless it has dropped it

---@class riskscreen.nginx.Entries
---@field private dict riskscreen.nginx.CacheDict
---@field ttl table<riskscreen.Action, number> seconds
---@field private stale_ttl table<riskscreen.Action, number> seconds after that
---@field private verdicts riskscreen.Generations by their digest
---@field private of_risks riskscreen.Generations verdicts with one reason, by its risk
local Entries = {}

local M = { FAILED = FAILED, STALE = STALE }

local NOTHING = {}

-- The fields of a table that are texts; nil without one.
local function texts_of(fields, names)
  local texts
  for _, name in ipairs(type(fields) == "table" and names or NOTHING) do
    if type(fields[name]) == "string" then
      texts = texts or {}
      texts[name] = fields[name]
    end
  end
  return texts
end

local function kept_error(err)
  local texts = texts_of(err, PARTS.error)
  return texts and is_error_kind[texts.kind] and errors.new(texts.kind, texts.message or "") or nil
end

local function kept_reason(reason)
  if type(reason) ~= "table" or type(reason.message) ~= "string" or not is_action[reason.action] then
    return nil
  end
  local kept = { action = reason.action, message = reason.message, error = kept_error(reason.error) }
  kept.rule, kept.risk = texts_of(reason.rule, PARTS.rule), texts_of(reason.risk, PARTS.risk)
  if kept.rule then
    kept.rule.action = kept.action
  end
  return kept
end

-- The kept form of a decision, or of an entry that was read; nil if it is none. The reasons must agree with the action:
-- the first one has that action, and none has a worse one. A lost reason could be the reason to block.
local function kept_verdict(decision)
  local action, reasons, failures = decision.action, decision.reasons, decision.errors or NOTHING
  if type(reasons) ~= "table" or type(failures) ~= "table" or not is_action[action] then
    return nil
  end
  local verdict = { action = action, reasons = {}, degraded = decision.degraded == true or nil }
  for index = 1, #reasons do
    local reason = kept_reason(reasons[index])
    if not reason or decisions.worst(action, reason.action) ~= action then
      return nil
    end
    verdict.error = verdict.error or reason.error
    verdict.reasons[index] = reason
  end
  for lookup, failure in pairs(failures) do
    verdict.errors = verdict.errors or {}
    verdict.errors[lookup] = kept_error(failure)
    if not verdict.errors[lookup] then
      return nil
    end
  end
  return verdict.reasons[1] and verdict.reasons[1].action == action and verdict or nil
end

-- The verdict of a JSON text; nil if it is none. Few verdicts differ, so most have been read before.
local function read(self, json)
  local id = sub(digest.sha256(json), 1, AT_AT - ID_AT)
  local verdict = self.verdicts:get(id)
  if not verdict then
    local ok, value = pcall(cjson.decode, json)
    verdict = ok and type(value) == "table" and kept_verdict(value) or nil
    if verdict then
      verdict.json, verdict.id = json, id
      if #json <= LONGEST_KNOWN then
        self.verdicts:set(id, verdict)
      end
    end
  end
  return verdict
end

-- The verdict of a digest; nil if the dict has lost it.
local function find_verdict(self, id)
  local verdict = self.verdicts:get(id)
  if not verdict then
    local json = self.dict:get(self.dict.verdicts .. id)
    verdict = type(json) == "string" and read(self, json)
  end
  return verdict and verdict.id == id and verdict or nil
end

-- The verdict of a decision; nil if it could not be read again. Nearly every decision has one reason. Decisions share
-- the tables of its rule and its risk. Then the JSON is not written again: that would be 20 % of a miss.
local function verdict_of(self, decision)
  local reasons, degraded = decision.reasons, decision.degraded == true
  if not (reasons and reasons[1]) then
    reasons = { { action = decision.action, message = "no reason was given" } }
  end
  local reason = reasons[1]
  local risk = not (reasons[2] or decision.errors or reason.error) and type(reason.risk) == "table" and reason.risk
  local known = risk and self.of_risks:get(risk)
  if
    known
    and known.rule == reason.rule
    and known.message == reason.message
    and known.degraded == degraded
    and known.verdict.action == decision.action
    and reason.action == decision.action
  then
    return known.verdict
  end
  local verdict = kept_verdict(tables.merge(decision, { reasons = reasons }))
  verdict = verdict and read(self, cjson.encode(verdict))
  if verdict and risk and #verdict.json <= LONGEST_KNOWN then
    self.of_risks:set(risk, { rule = reason.rule, message = reason.message, degraded = degraded, verdict = verdict })
  end
  return verdict
end

local function usable_until(self, verdict, at)
  return at + self.ttl[verdict.action] + self.stale_ttl[verdict.action]
end

-- An entry that is served until `ends`, but not for longer than its kind is. A failure lives as long as the ttl of
-- unknown, whatever its action.
local function new(self, verdict, kind, at, ends)
  local latest = kind == STALE and usable_until(self, verdict, at)
    or at + self.ttl[kind == FAILED and "unknown" or verdict.action]
  return { verdict = verdict, kind = kind, at = at, expires_at = math.min(ends or latest, latest), decision = false }
end

---The entry of the service's decision.
---@param decision riskscreen.Decision
---@param at number seconds
---@param failed? boolean it is about a failure
---@return riskscreen.nginx.Entry|nil entry nil if the decision could not be read again
function Entries:of(decision, at, failed)
  local verdict = verdict_of(self, decision)
  return verdict and new(self, verdict, failed and FAILED or FRESH, at)
end

---The entry of a verdict that another machine has fetched.
---@param shared riskscreen.nginx.SharedVerdict
---@return riskscreen.nginx.Entry|nil entry nil if the JSON is no verdict
function Entries:restore(shared)
  local verdict = read(self, shared.json)
  -- The other machine may keep decisions for a shorter time.
  return verdict and new(self, verdict, FRESH, math.min(shared.at, shared.valid_until - self.ttl[verdict.action]))
end

---The entry of an expired verdict, which is served again because the service fails: for as long as the ttl of unknown,
---after each failed fetch.
---@param entry riskscreen.nginx.Entry
---@param now number seconds
---@return riskscreen.nginx.Entry
function Entries:stale(entry, now)
  return new(self, entry.verdict, STALE, entry.at, now + self.ttl.unknown)
end

local function seconds_in(text, first, last)
  local number = tonumber(sub(text, first, last))
  return number and number % 1 == 0 and number / 1000 or nil
end

-- Seconds for which the dict needs a verdict. Failures have many messages, such as those of an open circuit. They must
-- not fill the dict: in an outage the verdicts from before are needed.
local function lifetime_of(self, verdict)
  local is_failure = verdict.error or verdict.action == "unknown"
  return is_failure and self.ttl.unknown or usable_until(self, verdict, 0)
end

---Writes an entry to the dict.
---@param key string
---@param entry riskscreen.nginx.Entry usable for longer than now
---@param now number seconds
function Entries:save(key, entry, now)
  local dict, verdict = self.dict, entry.verdict
  if now >= (verdict.rewrite_at or now) then
    verdict.rewrite_at = now + REWRITE
    dict:set(dict.verdicts .. verdict.id, lifetime_of(self, verdict) + REWRITE, verdict.json)
  end
  local times = TIMES:format(entry.at * 1000, entry.expires_at * 1000)
  dict:set(key, self:usable_until(entry) - now, entry.kind .. verdict.id .. times)
end

---Reads an entry in the dict.
---@param key string
---@param now number seconds
---@return riskscreen.nginx.Entry|nil
function Entries:load(key, now)
  local text = self.dict:get(key)
  if type(text) ~= "string" or #text ~= SIZE then
    return nil
  end
  local kind, at, ends = sub(text, 1, ID_AT - 1), seconds_in(text, AT_AT, END_AT - 1), seconds_in(text, END_AT, SIZE)
  local is_read = is_kind[kind] and at and ends and at <= now + time.LAG
  local verdict = is_read and find_verdict(self, sub(text, ID_AT, AT_AT - 1))
  return verdict and new(self, verdict, kind, at, ends) or nil
end

---The decision of an entry for its readers.
---@param entry riskscreen.nginx.Entry
---@param address string canonical
---@param network string canonical
---@return riskscreen.Decision
function M.decision(entry, address, network)
  local verdict = entry.verdict
  local decision = decisions.new {
    action = verdict.action,
    reasons = verdict.reasons,
    address = address,
    network = network,
    degraded = verdict.degraded,
    cached = true,
    stale = entry.kind == STALE,
    elapsed = 0,
  }
  if verdict.error or verdict.errors then
    decision.error, decision.errors = verdict.error, verdict.errors
  end
  return decision
end

---Whether a failure is kept for other callers.
---@param failure riskscreen.Error
---@return boolean is_kept
---@return boolean is_private it counts for the caller that fetched alone, because another caller may have more time
function M.is_kept(failure)
  local kind = failure.kind
  local is_private = lacks_time[kind] or (kind == "rate_limited" and not failure.status) or false
  return not is_private and not is_refusal[kind], is_private
end

---The end of an entry: until then its decision may be served, if the service fails.
---@param entry riskscreen.nginx.Entry
---@return number seconds
function Entries:usable_until(entry)
  return entry.kind == FAILED and entry.expires_at or usable_until(self, entry.verdict, entry.at)
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

---Whether a verdict of the service may be served instead of the decision about a failure: if it is as bad, or if the
---service could not be asked.
---@param entry riskscreen.nginx.Entry|nil
---@param failed riskscreen.Decision|riskscreen.nginx.Verdict|nil nil: the time was up
---@param now number seconds
---@return boolean
function Entries:stands_in(entry, failed, now)
  if not entry or now >= self:usable_until(entry) then
    return false
  end
  local own = entry.verdict.action
  return not failed or decisions.worst(own, failed.action) == own or is_outage(failed)
end

---@param ttl table<riskscreen.Action, number> seconds
---@param stale_ttl table<riskscreen.Action, number> seconds after that
---@param dict riskscreen.nginx.CacheDict
---@return riskscreen.nginx.Entries
function M.new(ttl, stale_ttl, dict)
  return tables.object(Entries, {
    dict = dict,
    ttl = ttl,
    stale_ttl = stale_ttl,
    verdicts = generations.new(MAX_KNOWN / 2),
    of_risks = generations.new(MAX_KNOWN / 2),
  })
end

return M
