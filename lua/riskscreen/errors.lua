-- The error kinds, as one table, and the one constructor. Every run-time failure of the library is such an object.
-- Misuse raises a string at the caller's line instead.
local tables = require "riskscreen.util.tables"

---@alias riskscreen.ErrorKind
---| "invalid_argument" | "unsupported" | "network" | "timeout" | "tls" | "unauthorized" | "rate_limited"
---| "bad_request" | "server" | "http" | "api" | "protocol" | "circuit_open" | "cancelled" | "list" | "storage"

---@class riskscreen.Error
---@field kind riskscreen.ErrorKind
---@field message string
---@field operation? string the interface's name of the operation
---@field asked? string what a screening asked for: the name of a lookup, or of a kind of transaction
---@field status? integer the HTTP status, only if there was one
---@field code? integer|string the service's own code; of Redis the first word of its error
---@field msg? string the service's own message
---@field envelope_status? string the `status` in the service's envelope, such as FAIL
---@field timestamp? integer of a validation failure, as the service gave it
---@field retryable boolean the same call may succeed later
---@field retry_after? number seconds that the service asked to wait
---@field attempts? integer requests sent
---@field elapsed? number seconds
---@field sent? boolean the request may have reached the service
---@field phase? "queue"|"name_lookup"|"connect"|"tls"|"first_byte"|"body" the phase in which a request failed
---@field field? string the parameter or option at fault
---@field allowed? any[] its valid values
---@field failed? integer[] of a bulk call: the positions that failed
---@field partial? table<integer, any> of a bulk lookup: the records found, by position
---@field report? riskscreen.Additions of a bulk addition
---@field retry? fun(): any, any of a bulk call: repeats the failed part, with the results of the call
---@field uncertain? boolean a request that may have taken effect is not sent again
---@field ticket? string of a transaction that may come later, for `client.kyt:resume`
---@field submission? { kind: riskscreen.TransactionKind, customId?: string, hash?: string, network?: string } of a
---transaction that the store keeps, and that cannot be awaited
---@field request_id? string of a result that did not come
---@field last? table the last answer about a result that did not come in time
---@field cause? any the failure behind this one
---@field failures? integer of a run that stopped: its failures in a row
---@field decision? riskscreen.Decision of a local list that forbids the request
---@field absent? boolean of a successful answer that leaves out the list it is about
---@field reason? string of a store, a journal or Redis: why it failed, such as "full" or "locked"
---@field is_sandbox? boolean the sandbox in this process failed, and no service
---@field page? integer of a list: the page at which the walk stopped

---@type { kind: riskscreen.ErrorKind, retryable: boolean, doc: string }[]
local kinds, by_kind = {}, {}

local function add(name, retryable, doc)
  by_kind[name] = { kind = name, retryable = retryable, doc = doc }
  table.insert(kinds, by_kind[name])
end

add("invalid_argument", false, "A parameter's value is wrong; nothing was sent.")
add("unsupported", false, "The interface does not publish something that this needs, or the runtime lacks it.")
add("network", true, "No connection, or a broken one.")
add("timeout", true, "No complete answer in time.")
add("tls", false, "The server's certificate or its TLS is not trusted.")
add("unauthorized", false, "The service refused the access key (401).")
add("rate_limited", true, "The rate limit or the quota is exceeded (429), or `rate_limit` allowed no request in time.")
add("bad_request", false, "The service found the request invalid (400).")
add("server", true, "The service failed (5xx).")
add("http", false, "A status that the service does not send: a proxy's 403, a redirect.")
add("api", false, "The service reports that the operation failed; `code` is its code.")
add("protocol", false, "The answer is malformed, contradicts itself, or is about something else.")
add("circuit_open", true, "Not sent, because the service has been failing.")
add("cancelled", false, "The caller cancelled the call or closed the client.")
add("list", false, "A local list forbids it, or cannot be read; nothing was sent.")
add("storage", false, "A store, a journal or Redis cannot be read or written; `reason` says why.")

local Error = {}
Error.__index = Error
Error.__name = "riskscreen.Error"

function Error:__tostring()
  local place = self.asked or self.operation -- the caller of a screening has named no operation
  place = place and (place .. ": ") or ""
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
---@param message string the value, the place and the remedy
---@param fields? table more fields of riskscreen.Error; `retryable` defaults to the kind's
---@return riskscreen.Error
function M.new(kind, message, fields)
  local entry = by_kind[kind] or error("unknown error kind '" .. tostring(kind) .. "'", 2)
  local err = tables.merge({ kind = kind, message = message, retryable = entry.retryable }, fields)
  return setmetatable(err, Error)
end

-- Failures that had no effect at the service, whether or not the request reached it.
local refusals =
  tables.set { "invalid_argument", "unsupported", "unauthorized", "rate_limited", "bad_request", "api", "circuit_open" }

---Whether a failed request may have taken effect: it may have been sent, and no answer refuses it without contradicting
---itself.
---@param err riskscreen.Error
---@return boolean
function M.is_uncertain(err)
  if err.sent ~= false and err.uncertain then
    return true
  elseif err.sent == false or refusals[err.kind] then
    return false
  end
  -- A redirect or a 4xx of a proxy refuses as well. A 408 is uncertain.
  local status = err.kind == "http" and err.status or 0
  return not (status >= 300 and status < 500 and status ~= 408)
end

local lasting = tables.set { "unauthorized", "tls", "unsupported", "cancelled", "storage", "list" }

---Whether every further item of a run would meet a failure too, such as a refused access key.
---@param err riskscreen.Error|nil
---@return boolean
function M.ends_run(err)
  return err ~= nil and lasting[err.kind] == true
end

---The result of a pcall: its value and error; or nil and the error object that was raised. Any other failure is
---raised again.
---@param ok boolean
---@param value any
---@param err? riskscreen.Error
---@return any value
---@return riskscreen.Error|nil err
function M.result(ok, value, err)
  if ok and err == nil then
    return value -- alone: a program may print what it gets
  elseif ok then
    return value, err
  elseif M.is(value) then
    return nil, value
  end
  error(value, 0)
end

---The opposite: a value, or nothing; an error in its place is raised. `assert` of Lua 5.1 takes no error objects.
---@generic T
---@param value T|nil
---@param err any
---@return T
function M.ensure(value, err)
  if value == nil and err ~= nil then
    error(err, 0)
  end
  return value
end

---Whether a failure is that of SIGINT: Lua's interpreter raises this text, with the line that was reached. A failure of
---a call has it at its end: an argument or the service may have the word, too.
---@param failure any
---@return boolean
function M.is_interrupt(failure)
  return (": " .. tostring(failure)):find ": interrupted!$" ~= nil
end

---The text of a failure without the library's name, for a line that begins with the name.
---@param failure any
---@return string
function M.text(failure)
  return (tostring(failure):gsub("^riskscreen: ", ""))
end

---Whether a value is one of the library's errors.
---@param value any
---@return boolean
function M.is(value)
  return getmetatable(value) == Error
end

return M
