-- The public face: the table that `require "riskscreen"` returns.
if 2 ^ 53 - 1 == 2 ^ 53 or (math.maxinteger or 2 ^ 53) < 2 ^ 53 then -- luacheck: ignore 143
  error("riskscreen needs a Lua with 64-bit integers and doubles; this one has 32-bit numbers (LUA_32BITS)", 0)
end

local client = require "riskscreen.client"
local errors = require "riskscreen.errors"
local policy = require "riskscreen.policy"
local runtime = require "riskscreen.runtime"
local version = require "riskscreen.version"

-- Modules that are loaded when they are first named, because few programs need them; of some, one function.
local modules = {
  map = "riskscreen.client.map",
  score_policy = "riskscreen.policy.score",
  watch = "riskscreen.watch",
  explore = "riskscreen.explore",
  report = "riskscreen.report",
  sandbox = "riskscreen.sandbox",
  queue = "riskscreen.queue",
  webhook = "riskscreen.webhook",
  store = "riskscreen.store",
  journal = "riskscreen.journal",
  address = "riskscreen.address",
  decimal = "riskscreen.util.decimal",
  lists = "riskscreen.lists",
  redis = "riskscreen.redis",
}

local functions = { map = "map", score_policy = "new", watch = "new" }

local M = {
  _VERSION = version,
  new = client.new,
  policy = policy.new,
  errors = errors,
  run = runtime.tasks.run,
  spawn = runtime.tasks.spawn,
  gather = runtime.tasks.gather,
  sleep = runtime.tasks.sleep,
  defer = runtime.defer,
  loop = runtime.loop,
}

return setmetatable(M, {
  __index = function(self, name)
    if not modules[name] then
      return nil
    end
    local found, value = pcall(require, modules[name])
    if not found then
      error(require("riskscreen.util.missing").explain(value) or value, 2)
    end
    value = functions[name] and value[functions[name]] or value
    rawset(self, name, value)
    return value
  end,
})
