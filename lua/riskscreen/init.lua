-- The public face: what a program takes from `require "riskscreen"`. Nothing is decided here.
local client = require "riskscreen.client"
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local map = require "riskscreen.map"
local native = require "riskscreen.runtime.native"
local policy = require "riskscreen.policy"
local score_policy = require "riskscreen.score_policy"

-- Loaded when first used: few programs need it.
local lazy = {
  sandbox = "riskscreen.sandbox",
  webhook = "riskscreen.webhook",
  decimal = "riskscreen.decimal",
}

local M = {
  _VERSION = core.version,
  new = client.new,
  policy = policy.new,
  score_policy = score_policy.new,
  errors = errors,
  map = map.map,
  run = native.tasks.run,
  spawn = native.tasks.spawn,
  gather = native.tasks.gather,
  sleep = native.tasks.sleep,
  loop = native.loop,
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
