-- The exit statuses of the command, and the failures that end it.

local build = require "riskscreen.options.build"
local errors = require "riskscreen.errors"
local missing = require "riskscreen.util.missing"
local tables = require "riskscreen.util.tables"

local FAIL_ON = "The mildest outcome that is not 0. A failure of the service counts as unknown."

local M = {
  done = 0,
  allow = 0,
  review = 1,
  block = 2,
  unknown = 3, -- also: a file, Redis or the output failed
  usage = 4, -- also: the configuration is wrong
  invalid_rows = 5,
  service_failed = 6,
  unrecorded = 7, -- whatever was decided
  interrupted = 130, -- 128 and the number of SIGINT, as shells count
}

---A script that has lost its configuration must not take an answer of the sandbox for a yes.
M.SIMULATED = "the status is 4, not 0, because no service is configured; --sandbox accepts simulated answers"

---@type table<string, string> of the verbs that decide, for their help: the meanings by the names above
M.of_decisions = {
  allow = "every decision is allow; 4 instead where the sandbox answers without --sandbox",
  review = "the worst decision is review",
  block = "the worst decision is block",
  unknown = "the worst decision is unknown",
}

---@type table<string, string> of the verbs that serve until they are interrupted
M.of_servers = { unknown = "the address or the port cannot be listened on" }

---@type table<string, string> of the other verbs, unless they say otherwise
M.of_others = { done = "done" }

---@type table<string, string> of every verb, as far as it calls and decides
M.of_all = {
  usage = "the arguments or the configuration are wrong",
  service_failed = "the service did not answer, or refused; a decision is unknown for that reason",
  unrecorded = "a decision could not be recorded in the journal",
  interrupted = "interrupted",
}

---The statuses of meanings by their names, in order.
---@param meanings table<string, string>
---@return { status: integer, what: string }[]
function M.list(meanings)
  local list = {}
  for name, what in pairs(meanings) do
    tables.insert_sorted(list, "status", { status = M[name], what = what })
  end
  return list
end

-- How bad an outcome is, for the status of several.
local severity = {}
for rank, outcome in ipairs { M.allow, M.invalid_rows, M.review, M.unknown, M.service_failed, M.block } do
  severity[outcome] = rank
end

---The option of the verbs whose status is a verdict.
---@type riskscreen.cli.Option
M.fail_on = build.choice("fail_on", { "invalid", "review", "unknown", "block" }, "invalid", FAIL_ON)

---The status of a run, where milder outcomes than that of --fail-on are none.
---@param outcome integer
---@param fail_on? "invalid"|"review"|"unknown"|"block"
---@return integer
function M.failing(outcome, fail_on)
  local least = fail_on and severity[M[fail_on] or M.invalid_rows]
  return least and severity[outcome] and severity[outcome] < least and M.done or outcome
end

---The worse of two outcomes.
---@param before integer
---@param outcome integer
---@return integer
function M.worse(before, outcome)
  return severity[outcome] > severity[before] and outcome or before
end

-- Failures on this machine, and of arguments. All other kinds are the service's.
local is_local = { invalid_argument = true, unsupported = true, list = true, storage = true }

---The status of a decision.
---@param action riskscreen.Action
---@param kind? riskscreen.ErrorKind of its error
---@return integer
function M.of_decision(action, kind)
  return action == "unknown" and kind and not is_local[kind] and M.service_failed or M[action]
end

---A failure that ends the command.
---@class riskscreen.cli.Failure
---@field status integer
---@field message string
local Failure = { __name = "riskscreen.cli.Failure" }

function Failure:__tostring()
  return self.message
end

---Ends the command with a message on stderr and a status.
---@param status integer
---@param message string a format, where values follow
---@param ... any
function M.fail(status, message, ...)
  message = select("#", ...) > 0 and message:format(...) or message
  error(setmetatable({ status = status, message = message }, Failure), 0)
end

---Ends the command because its arguments or its configuration are wrong.
---@param message string a format, where values follow
---@param ... any
function M.misuse(message, ...)
  M.fail(M.usage, message, ...)
end

---Ends the command if a write to the output has failed.
---@param ok any
---@param problem any
function M.ensure_written(ok, problem)
  if not ok then
    M.fail(M.unknown, "the output cannot be written: " .. tostring(problem))
  end
end

---A value; an error in its place ends the command.
M.ensure = errors.ensure

---The status and the message of a failure.
---@param failure any
---@return integer status
---@return string message
---@return boolean|nil is_missing no other arguments would help
function M.of_failure(failure)
  local message = tostring(failure)
  local names_package = message:find(": apt install ", 1, true) ~= nil
  if errors.is_interrupt(failure) then
    return M.interrupted, "interrupted"
  elseif getmetatable(failure) == Failure then
    return failure.status, message, names_package
  elseif errors.is(failure) then
    message = message:gsub("^riskscreen: ", "")
    -- A package or a part of the configuration is missing; Redis gives the kind as its reason.
    local is_missing = names_package or failure.kind == "unsupported" or failure.reason == "unsupported"
    local is_usage = is_missing or failure.kind == "invalid_argument"
    return is_usage and M.usage or M.of_decision("unknown", failure.kind), message, is_missing
  end
  local lacking = missing.explain(message)
  return lacking and M.usage or M.unknown, lacking or "failed: " .. message, lacking and true
end

---The value that a function of the library has made. Its misuse is one of the command, and other failures are this
---machine's.
---@param make fun(...): any, any
---@param ... any
---@return any made
function M.made(make, ...)
  local ok, made, err = pcall(make, ...)
  if not ok and M.of_failure(made) == M.unknown then
    M.misuse((tostring(made):gsub("^[^ ]+:%d+: ", "")))
  elseif not ok or err and err.kind == "unsupported" then
    error(ok and err or made, 0)
  elseif err then
    M.fail(M.unknown, (tostring(err):gsub("^riskscreen: ", "")))
  end
  return made
end

return M
