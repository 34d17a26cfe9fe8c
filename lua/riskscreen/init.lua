-- The public face: the table that `require "riskscreen"` returns.
if 2 ^ 53 - 1 == 2 ^ 53 or (math.maxinteger or 2 ^ 53) < 2 ^ 53 then -- luacheck: ignore 143
  error("riskscreen needs a Lua with 64-bit integers and doubles; this one has 32-bit numbers (LUA_32BITS)", 0)
end

local client = require "riskscreen.client"
local errors = require "riskscreen.errors"
local map = require "riskscreen.client.map"
local policy = require "riskscreen.policy"
local runtime = require "riskscreen.runtime"
local score_policy = require "riskscreen.policy.score"
local version = require "riskscreen.version"

-- Loaded when first used: few programs need it.
local lazy = {
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

local M = {
  _VERSION = version,
  new = client.new,
  policy = policy.new,
  score_policy = score_policy.new,
  errors = errors,
  map = map.map,
  run = runtime.tasks.run,
  spawn = runtime.tasks.spawn,
  gather = runtime.tasks.gather,
  sleep = runtime.tasks.sleep,
  defer = runtime.defer,
  loop = runtime.loop,
}

return setmetatable(M, {
  __index = function(self, name)
    if not lazy[name] then
      return nil
    end
    local module = require(lazy[name])
    rawset(self, name, module)
    return module
  end,
})
