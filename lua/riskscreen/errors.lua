-- The error kinds, as one table, and the one constructor. Every run-time failure of the library is such an object.
-- Misuse by the programmer is not: it raises a string at the caller's line.

---@alias riskscreen.ErrorKind
---| "invalid_argument" | "unsupported" | "network" | "timeout" | "tls" | "unauthorized" | "rate_limited"
---| "bad_request" | "server" | "http" | "api" | "protocol" | "circuit_open" | "cancelled"

---@class riskscreen.Error
---@field kind riskscreen.ErrorKind
---@field message string
---@field operation? string the interface's name of the operation
---@field status? integer the HTTP status, only if there was one
---@field code? integer the service's own code
---@field retryable boolean the same call may succeed later
---@field retry_after? number seconds after which the service asked to be called again
---@field attempts? integer requests sent
---@field elapsed? number seconds
---@field sent? boolean the request may have reached the service
---@field phase? string how far a request got that failed: queue, name_lookup, connect, tls, first_byte or body
---@field field? string the parameter or option at fault
---@field allowed? any[] the values it may have
---@field failed? integer[] of a call over a list: the positions that failed
---@field partial? table<integer, any> of a bulk lookup: what was found, by position
---@field report? riskscreen.Additions of a bulk addition
---@field retry? fun(): any, any of a call over a list: asks for what failed, and returns as the call does
---@field uncertain? boolean something was sent that may have taken effect, and is not sent again
---@field ticket? string of a transaction whose submission is uncertain: `client.kyt:resume` takes it up
---@field request_id? string of a result that did not come in time
---@field last? table what a result that did not come in time last was
---@field cause? riskscreen.Error what kept a result from coming in time
---@field page? integer of a list that was walked: where the walk stopped

---@type { kind: riskscreen.ErrorKind, retryable: boolean, doc: string }[]
local kinds = {
  { kind = "invalid_argument", retryable = false, doc = "A parameter's value is wrong; nothing was sent." },
  {
    kind = "unsupported",
    retryable = false,
    doc = "The interface does not publish what this needs, or the runtime lacks it.",
  },
  { kind = "network", retryable = true, doc = "No connection, or it broke." },
  { kind = "timeout", retryable = true, doc = "No complete answer in time." },
  { kind = "tls", retryable = false, doc = "The server's certificate or its TLS could not be trusted." },
  { kind = "unauthorized", retryable = false, doc = "The service refused the access key (401)." },
  {
    kind = "rate_limited",
    retryable = true,
    doc = "Rate limit reached or quota exceeded (429), or no turn under `rate_limit` in time.",
  },
  { kind = "bad_request", retryable = false, doc = "The service found the request invalid (400)." },
  { kind = "server", retryable = true, doc = "The service failed (5xx)." },
  { kind = "http", retryable = false, doc = "A status that is no answer of the service: a proxy's 403, a redirect." },
  { kind = "api", retryable = false, doc = "An answer that says the operation failed; `code` is the service's." },
  {
    kind = "protocol",
    retryable = false,
    doc = "An answer that is malformed, contradicts itself, or is about something else.",
  },
  { kind = "circuit_open", retryable = true, doc = "Not sent: the service has been failing." },
  { kind = "cancelled", retryable = false, doc = "The caller gave up." },
}

local by_kind = {}
for _, entry in ipairs(kinds) do
  by_kind[entry.kind] = entry
end

local Error = {}
Error.__index = Error
Error.__name = "riskscreen.Error"

function Error:__tostring()
  local place = self.operation and (self.operation .. ": ") or ""
  local status = self.status and (" [HTTP " .. self.status .. "]") or ""
  local code = self.code and (" [code " .. tostring(self.code) .. "]") or ""
  return "riskscreen: " .. self.kind .. ": " .. place .. self.message .. status .. code
end

function Error.__concat(left, right)
  return tostring(left) .. tostring(right)
end

local M = { kinds = kinds }

---A new error of a kind.
---@param kind riskscreen.ErrorKind
---@param message string for a person: the value, the place and the remedy
---@param fields? table more fields of riskscreen.Error; `retryable` defaults to the kind's
---@return riskscreen.Error
function M.new(kind, message, fields)
  local entry = by_kind[kind] or error("unknown error kind '" .. tostring(kind) .. "'", 2)
  local err = { kind = kind, message = message, retryable = entry.retryable }
  for name, value in pairs(fields or {}) do
    err[name] = value
  end
  return setmetatable(err, Error)
end

-- Failures after which nothing has happened at the service, whether or not the request reached it.
local refusals = {
  invalid_argument = true,
  unsupported = true,
  unauthorized = true,
  rate_limited = true,
  bad_request = true,
  api = true,
  circuit_open = true,
}

---Whether a request that failed may have taken effect: it may have been sent, and no answer says that it was refused.
---@param err riskscreen.Error
---@return boolean
function M.is_uncertain(err)
  if err.sent == false or refusals[err.kind] then
    return false
  end
  -- A redirect or a 4xx of whoever answered in the service's place refuses as well; after a 408 nobody knows.
  local status = err.kind == "http" and err.status or 0
  return not (status >= 300 and status < 500 and status ~= 408)
end

---Whether a value is one of the library's errors.
---@param value any
---@return boolean
function M.is(value)
  return getmetatable(value) == Error
end

return M
