-- Hooks: functions of the caller's that are told what happens to a call. They are told and nothing more: a description
-- cannot be changed, what a hook raises is kept, and a hook cannot wait without blocking.

local text = require "riskscreen.util.text"

local LONGEST_MESSAGE = 200 -- bytes of what a hook raised

local function refuse(_, name)
  error(("the description of a call cannot be changed (field %s)"):format(text.show(name)), 2)
end

-- The fields can be read, and walked by `pairs` where the Lua lets a table say how.
local function read_only(fields)
  for name, value in pairs(fields) do
    if type(value) == "table" then
      fields[name] = read_only(value)
    end
  end
  local function following(_, name)
    return next(fields, name)
  end
  return setmetatable({}, {
    __index = fields,
    __newindex = refuse,
    __pairs = function(description)
      return following, description, nil
    end,
    __metatable = "read-only",
  })
end

---@class riskscreen.Hooks
---@field private given table<string, fun(description: table)>
---@field failures integer how often a hook raised
---@field last_failure? string what the last one raised
local Hooks = {}
Hooks.__index = Hooks

local M = {}

---@param given table<string, fun(description: table)>|nil
---@param contain fun(fn: function, ...): boolean, any calls a function and returns what pcall would
---@return riskscreen.Hooks
function M.new(given, contain)
  return setmetatable({ given = given or {}, contain = contain, failures = 0 }, Hooks)
end

---Whether anyone wants to be told.
---@param name string
---@return boolean
function Hooks:has(name)
  return self.given[name] ~= nil
end

---Tells the hook of a name.
---@param name string
---@param fields table given away: it belongs to the description
function Hooks:tell(name, fields)
  local ok, failure = self.contain(self.given[name], read_only(fields))
  if not ok then
    self.failures = self.failures + 1
    self.last_failure = text.printable(tostring(failure), LONGEST_MESSAGE)
  end
end

return M
