-- The errors of Redis: from an error reply, or from a connection that failed. All are of kind `storage`.

local errors = require "riskscreen.errors"
local text = require "riskscreen.util.text"

local LONGEST = 300 -- bytes of a text of Redis

---@class riskscreen.redis.Refusal
---@field reason string
---@field retryable? boolean
---@field advice? string

-- By the first word of an error reply.
---@type table<string, riskscreen.redis.Refusal>
local refusals = {
  NOAUTH = { reason = "auth", advice = "set a password" },
  WRONGPASS = { reason = "auth", advice = "check user name and password" },
  NOPERM = { reason = "auth", advice = "the user's ACL must allow the command and the keys" },
  READONLY = { reason = "read_only", retryable = true, advice = "this server is a replica; connect to the master" },
  WRONGTYPE = { reason = "wrong_type", advice = "another program uses this key; choose another prefix" },
  OOM = { reason = "full", retryable = true, advice = "Redis has reached maxmemory" },
  MISCONF = { reason = "io", retryable = true, advice = "Redis cannot write to its disk" },
  LOADING = { reason = "busy", retryable = true },
  BUSY = { reason = "busy", retryable = true, advice = "a script runs for too long" },
  TRYAGAIN = { reason = "busy", retryable = true },
  CLUSTERDOWN = { reason = "busy", retryable = true },
  MASTERDOWN = { reason = "busy", retryable = true },
  NOREPLICAS = { reason = "busy", retryable = true, advice = "too few replicas are connected" },
  MOVED = { reason = "moved", retryable = true, advice = "the Cluster moves its slots" },
  ASK = { reason = "moved", retryable = true, advice = "the Cluster moves its slots" },
  CROSSSLOT = { reason = "moved", advice = "all keys of a command must be in one slot" },
}
local other = { reason = "other" }
local too_many = { reason = "busy", retryable = true, advice = "maxclients of the server is reached" }

-- By the kind of a transport's failure.
local reasons = {
  network = { reason = "unreachable", retryable = true },
  timeout = { reason = "timeout", retryable = true },
  cancelled = { reason = "closed" },
  protocol = { reason = "protocol", advice = "is this a Redis server?" },
  tls = { reason = "tls" },
  unsupported = { reason = "unsupported" },
}

local M = {}

---@param reply any
---@return boolean
function M.is_error(reply)
  return type(reply) == "table" and reply.err ~= nil
end

-- The text of an error, without the password.
local function shown(place, message, advice, secret)
  if secret then
    message = message:gsub(secret():gsub("%W", "%%%0"), "[redacted]")
  end
  message = text.printable(message, LONGEST)
  return ("redis %s: %s%s"):format(place, message, advice and "; " .. advice or "")
end

---The error of an error reply.
---@param place string the server
---@param message string such as "WRONGTYPE Operation against a key holding the wrong kind of value"
---@param secret? fun(): string a password, which the message must not show
---@return riskscreen.Error
function M.of_reply(place, message, secret)
  local code = message:match "^(%u[%u%d_]*)%f[^%w_]" or message:match "^(%u[%u%d_]*)$"
  local refusal = message:find "^ERR max number of clients" and too_many or refusals[code] or other
  return errors.new("storage", shown(place, message, refusal.advice, secret), {
    reason = refusal.reason,
    code = code,
    retryable = refusal.retryable,
    uncertain = false,
  })
end

---The error of a refused user name or password. It does not show Redis' text, which may repeat the command.
---@param place string
---@param message string
---@return riskscreen.Error
function M.of_login(place, message)
  local code = message:match "^%u+" or "ERR"
  return errors.new("storage", ("redis %s: the login was refused (%s)"):format(place, code), {
    reason = "auth",
    code = code,
    uncertain = false,
  })
end

---The error of a server that removes keys when its memory is full, for what must last.
---@param info string the reply to INFO memory
---@return riskscreen.Error|nil err nil where it keeps all keys
function M.eviction_problem(info)
  local limit, policy = info:match "maxmemory:(%d+)", info:match "maxmemory_policy:(%S+)"
  if limit and limit ~= "0" and policy ~= "noeviction" then
    local message = "redis: the server removes keys when its memory is full: its maxmemory-policy is %s, "
      .. "set it to noeviction"
    return errors.new("storage", message:format(policy), { reason = "evicting", uncertain = false })
  end
end

---The error of a failed connection.
---@param place string
---@param failure { kind: string, message: string, sent?: boolean }
---@param secret? fun(): string
---@return riskscreen.Error
function M.of_transport(place, failure, secret)
  local known = reasons[failure.kind] or reasons.network
  local sent = failure.sent ~= false
  local message = failure.message .. (sent and " (the command may have taken effect)" or "")
  return errors.new("storage", shown(place, message, known.advice, secret), {
    reason = known.reason,
    retryable = known.retryable,
    uncertain = sent,
    sent = sent,
  })
end

return M
