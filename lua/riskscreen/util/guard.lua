-- Calls functions of the operator's where a failure of theirs must change nothing else. Each call runs in a coroutine
-- of its own, so its waits block. A yield that is no wait of the library's is a failure like any other.
local text = require "riskscreen.util.text"

local LONGEST_MESSAGE = 200 -- bytes of a failure, as stderr has it
local LONGEST_NUMBER = 2 ^ 53 -- a date beyond it is none

local needs_lua_function = _VERSION == "Lua 5.1" -- a coroutine of PUC Lua 5.1 takes no function of C

local M = {}

local function finish(thread, ok, ...)
  if ok and coroutine.status(thread) ~= "dead" then
    return false, "it yielded by itself"
  end
  return ok, ...
end

---Calls a function.
---@param fn fun(...): any
---@return boolean ok as of pcall
---@return any ...
function M.call(fn, ...)
  local body = needs_lua_function and function(...)
    return fn(...)
  end or fn
  local ok, thread = pcall(coroutine.create, body)
  if not ok then
    return pcall(fn, ...) -- some phases of nginx have no coroutines, and nothing can wait there
  end
  return finish(thread, coroutine.resume(thread, ...))
end

-- A function that tells the operator of a function's first failure. The place may be called a thousand times a second.
local function reporter(name)
  local is_told = false
  return function(err)
    if not is_told then
      is_told = true
      local shown = text.printable(tostring(err), LONGEST_MESSAGE)
      io.stderr:write(("riskscreen: the function %s failed: %s\n"):format(name, shown))
    end
  end
end

---A function that only tells the operator something.
---@param name string for the message about its failure
---@param fn fun(...)
---@return fun(...)
function M.notice(name, fn)
  local report = reporter(name)
  return function(...)
    local ok, err = M.call(fn, ...)
    if not ok then
      report(err)
    end
  end
end

---A function that says yes by `true` alone. Where it fails, it says no.
---@param name string for the message about its failure
---@param fn fun(...): any
---@return fun(...): boolean
function M.test(name, fn)
  local report = reporter(name)
  return function(...)
    local ok, value = M.call(fn, ...)
    if not ok then
      report(value)
    end
    return ok and value == true
  end
end

---A function that returns a number from `least` on and below `bound`. Another function takes its place where it fails.
---@param name string for the message about its failure
---@param fn fun(): any
---@param instead fun(): number
---@param least? number
---@param bound? number
---@return fun(): number
function M.number(name, fn, instead, least, bound)
  local report = reporter(name)
  least, bound = least or -LONGEST_NUMBER, bound or LONGEST_NUMBER
  return function()
    local ok, value = M.call(fn)
    if ok and type(value) == "number" and value >= least and value < bound then
      return value
    end
    report(ok and "it returned " .. text.show(value) or value)
    return instead()
  end
end

return M
