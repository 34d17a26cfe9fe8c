-- The public face: what a program takes from `require "riskscreen"`. Nothing is decided here.
local client = require "riskscreen.client"
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local native = require "riskscreen.runtime.native"

-- Loaded when first used: few programs need all of them.
local lazy = { policy = "riskscreen.policy", sandbox = "riskscreen.sandbox" }

local M = {
  _VERSION = core.version,
  new = client.new,
  errors = errors,
  sleep = native.sleep,
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
