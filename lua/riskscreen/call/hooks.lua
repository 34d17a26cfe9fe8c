-- Hooks: the caller's functions that get a description of what happens to a call. The description is a table of the
-- hook's own: changing it does not change the call. An error that it raises is kept for
-- the statistics. A hook that waits blocks.

local text = require "riskscreen.util.text"

local LONGEST_MESSAGE = 200 -- bytes of the error that a hook raised

---@class riskscreen.Hooks
---@field given table<string, fun(description: table)> by name
---@field failures integer how often a hook raised
---@field last_failure? string the error of the last one
local Hooks = {}
Hooks.__index = Hooks

local M = {}

---@param given table<string, fun(description: table)>|nil
---@param contain fun(fn: function, ...): boolean, any calls a function and returns what pcall would
---@return riskscreen.Hooks
function M.new(given, contain)
  return setmetatable({ given = given or {}, contain = contain, failures = 0 }, Hooks)
end

---Calls the hook of a name with a description. The description holds no header, because one may hold a secret.
---@param name string
---@param call riskscreen.Call
---@param fields table given away: it gets the fields of the call, and becomes the description
function Hooks:tell(name, call, fields)
  fields.operation = call.route.name
  fields.method = call.request.method
  fields.path = call.target:match "^[^?]*"
  fields.traceparent = call.options.traceparent
  local ok, failure = self.contain(self.given[name], fields)
  if not ok then
    self.failures = self.failures + 1
    self.last_failure = text.printable(tostring(failure), LONGEST_MESSAGE)
  end
end

return M
