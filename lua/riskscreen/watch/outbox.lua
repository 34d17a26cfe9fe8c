-- Changes on their way to one receiver. They are kept in the store until the receiver has taken them, in their order.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local runtime = require "riskscreen.runtime"
local text = require "riskscreen.util.text"

local FIRST_PAUSE = 5 -- seconds after a failed delivery; each further one doubles it
local LONGEST_PAUSE = 3600 -- seconds

---@class riskscreen.watch.Outbox
---@field name string of its space
---@field private space riskscreen.StoreSpace
---@field private deliver fun(change: table, text: string): any, any
---@field private failures integer in a row
---@field private next_at number monotonic seconds: when it may try again
local Outbox = {}
Outbox.__index = Outbox

---Delivers one change.
---@param body string
---@return string|nil message of a delivery that failed
function Outbox:attempt(body)
  local ok, taken, message = runtime.tasks.pcall(self.deliver, json.decode(body), body)
  if not ok or taken == false or (taken == nil and message ~= nil) then
    return tostring(not ok and taken or message or "the change was refused")
  end
end

---Delivers what waits. It ends at the first failure, because the order matters.
---@param now number monotonic seconds
---@param at_once? boolean do not wait for the end of a pause
---@return string|nil message of a delivery that failed
function Outbox:flush(now, at_once)
  if now < self.next_at and not at_once then
    return nil
  end
  for key, content in self.space:each() do
    local body = text.utf8(content) -- a source may name bytes that no receiver can decode
    local message = self:attempt(body)
    if message then
      self.failures = self.failures + 1
      self.next_at = now + math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ^ (self.failures - 1))
      return message
    end
    self.failures, self.next_at = 0, -math.huge
    errors.ensure(self.space:delete(key))
  end
end

---When it may try again, if something waits after a failure.
---@return number|nil
function Outbox:retry_at()
  return self.failures > 0 and self.next_at or nil
end

---@return integer
function Outbox:waiting()
  return errors.ensure(self.space:count())
end

local M = {}

---@param store riskscreen.Store
---@param name string
---@param deliver fun(change: table, text: string): any, any a failure raises, or returns false, or nil and a reason
---@return riskscreen.watch.Outbox
function M.new(store, name, deliver)
  local self = { name = name, space = store:space(name), deliver = deliver, failures = 0, next_at = -math.huge }
  return setmetatable(self, Outbox)
end

return M
