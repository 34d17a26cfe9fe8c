-- What a cache asks the service, once for all who want to know: what it says is counted, and remembered unless the
-- address was purged meanwhile.

-- Failures that one with more time need not share.
local is_lack_of_time = { timeout = true, rate_limited = true, cancelled = true }

-- Failures that say nothing about the service: they cost nothing and are not remembered.
local is_refusal = { invalid_argument = true, unsupported = true }

local is_action = { allow = true, review = true, block = true, unknown = true }

---What flights are asked for.
---@class riskscreen.nginx.Inquiry: riskscreen.nginx.Request
---@field private cache riskscreen.nginx.Cache
---@field private subject riskscreen.nginx.Subject
---@field private remembered riskscreen.nginx.Remembered
---@field private address any as it was given
---@field private network any as it was given
---@field private began number Unix seconds
---@field private epoch any as it was then
local Inquiry = {}
Inquiry.__index = Inquiry

local function checked(decision)
  if type(decision) ~= "table" or not is_action[decision.action] then
    error("look_up must return a decision", 0)
  end
  return decision
end

local function count(cache, ok, decision, seconds)
  local metrics = cache.metrics
  local failure = ok and type(decision) == "table" and decision.error or nil
  -- Where nothing was sent, the service took no time.
  if not failure or (failure.attempts or 0) > 0 then
    metrics:upstream(seconds)
  end
  if failure then
    metrics:error(failure.kind)
  end
end

local M = {}

---Asks the service, and has that counted.
---@param cache riskscreen.nginx.Cache
---@param token table by which it is known among those under way
---@param address any
---@param network any
---@param seconds number
---@return riskscreen.Decision
function M.consult(cache, token, address, network, seconds)
  local metrics, started = cache.metrics, cache.waits.now()
  if metrics then
    metrics:begin(token)
  end
  local ok, decision = cache.waits.contain(cache.look_up, address, network, seconds)
  if metrics then
    metrics:finish(token)
    count(cache, ok, decision, cache.waits.now() - started)
  end
  if not ok then
    error(decision, 0)
  end
  return checked(decision)
end

-- What a decision is remembered as: kind, and the seconds that were too few. Nil where it is not remembered.
local function kind_of(decision, seconds)
  local failure = decision.error and decision.error.kind
  if is_refusal[failure] then
    return nil
  elseif failure or decision.action == "unknown" then
    return "failure", is_lack_of_time[failure] and seconds or nil
  end
  return "verdict"
end

-- A decision as all workers have it, kept for them unless it was purged; nil where it cannot be kept. A verdict is as
-- old as the question; a failure counts from when it is known, or a slow one would never be kept.
local function keep(self, kind, decision, patience)
  local cache, subject = self.cache, self.subject
  local at = kind == "failure" and cache.now() or self.began
  local bytes, kept = cache.store:encode(subject, decision, at, patience)
  if not bytes then
    return nil
  elseif cache.store:was_purged(subject.address, self.epoch, self.began) then
    return kept
  end
  local lifetime = cache.expiry:lifetime(kind, decision)
  local checksum = cache.store:set(kind, subject.key, bytes, lifetime)
  -- Again: the purge may have come in between.
  if cache.store:was_purged(subject.address, self.epoch, self.began) then
    cache.store:forget(kind, subject.key)
  else
    cache:remember(subject, self.network, kind, { decision = kept, at = at, patience = patience }, checksum)
  end
  return kept
end

---Asks for at most so long; remembers what it learns.
---@param seconds number
---@return riskscreen.nginx.Outcome
function Inquiry:ask(seconds)
  local decision = M.consult(self.cache, self, self.address, self.network, seconds)
  local kind, patience = kind_of(decision, seconds)
  return {
    decision = kind and keep(self, kind, decision, patience) or decision,
    own = decision,
    source = "upstream",
    failed = kind ~= "verdict",
    patience = patience,
  }
end

---What others have learnt, if it helps one who has so much time left.
---@param seconds number
---@return riskscreen.nginx.Outcome|nil
function Inquiry:recall(seconds)
  local decision, source, failure = self.cache:recall(self.subject, self.remembered, seconds)
  return decision
    and {
      decision = decision,
      source = source,
      failed = failure ~= nil,
      patience = failure and failure.patience,
    }
end

---Whether the answer to an earlier one is an answer to this one, too.
---@param earlier riskscreen.nginx.Inquiry
---@return boolean
function Inquiry:may_join(earlier)
  return not self.cache.store:was_purged(self.subject.address, earlier.epoch, earlier.began)
end

---@param cache riskscreen.nginx.Cache
---@param subject riskscreen.nginx.Subject
---@param remembered riskscreen.nginx.Remembered
---@param address any as it was given
---@param network any as it was given
---@return riskscreen.nginx.Inquiry
function M.new(cache, subject, remembered, address, network)
  local inquiry = {
    key = subject.key,
    cache = cache,
    subject = subject,
    remembered = remembered,
    address = address,
    network = network,
    began = cache.now(),
    epoch = cache.store.epoch,
  }
  -- Not as a tail call: LuaJIT does not compile a function that ends in one of a built-in function.
  setmetatable(inquiry, Inquiry)
  return inquiry
end

return M
