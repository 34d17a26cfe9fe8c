-- The different verdicts that entries of the shared dict name. There are few of them, so the dict has the text of each
-- once, under its digest; a worker reads it once, checks that digest, and goes by what it has read from then on.
local verdict_json = require "riskscreen.nginx.cache.verdict_json"

local MOST_BYTES = 1024 * 1024 -- of verdicts that a worker remembers
local READ_BYTES = 2048 -- of one that is read, about, beside its text
local TOLD_FOR = 60 -- seconds after which the dict is given a text again: it may have pushed that out
local MARGIN = 60 -- seconds for which a text outlives the last entry that names it, beside that

---@class riskscreen.nginx.KnownVerdict: riskscreen.nginx.Verdict
---@field text string
---@field told_at number Unix seconds when this worker last gave the text to the dict

---@class riskscreen.nginx.NamedVerdict a verdict with one reason and no error, and its digest
---@field digest string
---@field action riskscreen.Action
---@field degraded any
---@field reason_action riskscreen.Action
---@field name string|nil of the rule
---@field has_risk boolean
---@field level any
---@field kind any
---@field origin any

---@class riskscreen.nginx.Verdicts
---@field private dict? table an ngx.shared dict
---@field private digest fun(text: string): string
---@field private prefix string
---@field private lifetime number seconds
---@field private known table<string, riskscreen.nginx.KnownVerdict> by digest
---@field private named table<string, riskscreen.nginx.NamedVerdict> by the reason's message
---@field private bytes integer of those that are known, about
local Verdicts = {}
Verdicts.__index = Verdicts

local function keep(self, digest, text)
  local read = verdict_json.read(text)
  if not read then
    return nil
  end
  local bytes = #text + READ_BYTES
  if self.bytes + bytes > MOST_BYTES then
    self.known, self.named, self.bytes = {}, {}, 0
  end
  read.text, read.told_at = text, -math.huge
  self.known[digest], self.bytes = read, self.bytes + bytes
  return read
end

local function fetch(self, digest)
  local text = self.dict and self.dict:get(self.prefix .. digest)
  if type(text) == "string" and self.digest(text) == digest then
    return keep(self, digest, text)
  end
end

---The verdict that an entry names; nil where no worker's text of it is left.
---@param digest string
---@return riskscreen.nginx.Verdict|nil
function Verdicts:find(digest)
  return self.known[digest] or fetch(self, digest)
end

local function tell(self, digest, known, now)
  if self.dict and not (known.told_at <= now and now < known.told_at + TOLD_FOR) then
    known.told_at = self.dict:set(self.prefix .. digest, known.text, self.lifetime) and now or -math.huge
  end
end

local function read_anew(self, decision)
  local text = verdict_json.write(decision)
  local digest = text and self.digest(text)
  local known = digest and (self.known[digest] or keep(self, digest, text))
  return known and digest, known
end

local function is_table_or_nil(value)
  return value == nil or type(value) == "table"
end

-- The one reason of a decision that has no more to say; those are told apart without a text.
local function only_reason(decision)
  local reason = decision.reasons and decision.reasons[1]
  if not reason or decision.reasons[2] or reason.error or type(reason.message) ~= "string" then
    return nil
  end
  return is_table_or_nil(reason.rule) and is_table_or_nil(reason.risk) and reason or nil
end

local function is_named(named, decision, reason)
  local rule, risk = reason.rule, reason.risk
  return named.action == decision.action
    and named.degraded == decision.degraded
    and named.reason_action == reason.action
    and named.name == (rule and rule.name)
    and named.has_risk == (risk ~= nil)
    and named.level == (risk and risk.riskLevel)
    and named.kind == (risk and risk.riskType)
    and named.origin == (risk and risk.riskSource)
end

local function name_of(digest, decision, reason)
  local rule, risk = reason.rule, reason.risk
  return {
    digest = digest,
    action = decision.action,
    degraded = decision.degraded,
    reason_action = reason.action,
    name = rule and rule.name,
    has_risk = risk ~= nil,
    level = risk and risk.riskLevel,
    kind = risk and risk.riskType,
    origin = risk and risk.riskSource,
  }
end

local function identify(self, decision)
  local reason = only_reason(decision)
  if not reason then
    return read_anew(self, decision)
  end
  local named = self.named[reason.message]
  if named and is_named(named, decision, reason) then
    return named.digest, self.known[named.digest]
  end
  local digest, known = read_anew(self, decision)
  if digest then
    self.named[reason.message] = name_of(digest, decision, reason)
  end
  return digest, known
end

---What a decision's verdict is named by, and the verdict as all workers have it, who are told of it.
---@param decision riskscreen.Decision
---@param now number Unix seconds
---@return string|nil digest nil where the verdict cannot be written, or not be read again
---@return riskscreen.nginx.Verdict|nil
function Verdicts:name(decision, now)
  local digest, known = identify(self, decision)
  if digest then
    tell(self, digest, known, now)
  end
  return digest, known
end

local M = {}

---The decision that a verdict is about an address.
---@param verdict riskscreen.nginx.Verdict
---@param network string canonical
---@param address string canonical
---@return riskscreen.Decision
function M.decision(verdict, network, address)
  local decision = {
    action = verdict.action,
    reasons = verdict.reasons,
    address = address,
    network = network,
    degraded = verdict.degraded,
    cached = true,
    stale = false,
    elapsed = 0,
  }
  if verdict.error then
    decision.error = verdict.error
  end
  return decision
end

---@class riskscreen.nginx.VerdictSettings
---@field dict? table an ngx.shared dict
---@field prefix string of the texts' keys
---@field digest fun(text: string): string 20 bytes, the same for no two texts
---@field longest number seconds that any entry lives

---@param settings riskscreen.nginx.VerdictSettings
---@return riskscreen.nginx.Verdicts
function M.new(settings)
  return setmetatable({
    dict = settings.dict,
    prefix = settings.prefix,
    digest = settings.digest,
    lifetime = settings.longest + TOLD_FOR + MARGIN,
    known = {},
    named = {},
    bytes = 0,
  }, Verdicts)
end

return M
