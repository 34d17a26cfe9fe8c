-- The exit statuses of the command, and the failures that end it.

local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local missing = require "riskscreen.util.missing"

local M = {
  done = 0,
  allow = 0,
  review = 1,
  block = 2,
  unknown = 3, -- also: the service did not answer
  usage = 4, -- also: the configuration is wrong
  invalid_rows = 5,
  unrecorded = 7, -- whatever was decided
  interrupted = 130, -- 128 and the number of SIGINT, as shells count
}

---A script that has lost its configuration must not take an answer of the sandbox for a yes.
M.SIMULATED = "the status is 4, not 0, because no service is configured; --sandbox accepts simulated answers"

---The same for the help.
M.but_simulated = "; 4 instead where the sandbox answers without --sandbox"

---@type { status: integer, what: string }[] of `screen`, for its help
M.of_decisions = {
  { status = M.allow, what = "every address may pass (allow)" .. M.but_simulated },
  { status = M.review, what = "the worst decision is review" },
  { status = M.block, what = "the worst decision is block" },
  { status = M.unknown, what = "the worst decision is unknown" },
}

---@type { status: integer, what: string }[] of the other verbs, unless they say otherwise
M.of_others = {
  { status = M.done, what = "done" },
  { status = M.unknown, what = "the service did not answer, or refused" },
}

---@type { status: integer, what: string }[] of every verb
M.of_all = {
  { status = M.usage, what = "the arguments or the configuration are wrong" },
  { status = M.unrecorded, what = "a decision could not be recorded in the journal" },
  { status = M.interrupted, what = "interrupted" },
}

---The worse of two actions; the first may be absent.
---@param before riskscreen.Action|nil
---@param action riskscreen.Action
---@return riskscreen.Action
function M.worst(before, action)
  return before and decisions.worst(before, action) or action
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
---@param message string
function M.fail(status, message)
  error(setmetatable({ status = status, message = message }, Failure), 0)
end

---Ends the command because its arguments or its configuration are wrong.
---@param message string
function M.misuse(message)
  M.fail(M.usage, message)
end

---Ends the command if a write to the output has failed.
---@param ok any
---@param problem any
function M.ensure_written(ok, problem)
  if not ok then
    M.fail(M.unknown, "the output cannot be written: " .. tostring(problem))
  end
end

---A value that is not nil; raises the error that came in its place. `assert` of Lua 5.1 takes no error objects.
---@generic T
---@param value T|nil
---@param err any
---@return T
function M.ensure(value, err)
  if value == nil then
    error(err, 0)
  end
  return value
end

---The status and the message of a failure.
---@param failure any
---@return integer status
---@return string message
function M.of_failure(failure)
  local message = tostring(failure)
  -- Lua's interpreter raises this at SIGINT, also in a call whose failures become messages.
  if (" " .. message):find(" interrupted!", 1, true) then
    return M.interrupted, "interrupted"
  elseif M.is_failure(failure) then
    return failure.status, message
  elseif errors.is(failure) then
    message = message:gsub("^riskscreen: ", "")
    return failure.kind == "invalid_argument" and M.usage or M.unknown, message
  end
  return M.unknown, missing.explain(message) or "failed: " .. message
end

---@param value any
---@return boolean
function M.is_failure(value)
  return getmetatable(value) == Failure
end

return M
