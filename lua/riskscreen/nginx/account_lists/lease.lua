-- The lease of the worker that fetches the account's lists. One worker has it at a time, and that of a worker that has
-- crashed expires.

local SLACK = 2 -- times a page's timeout: the length of a lease
local SKEW = 60 -- seconds that a lease may seem to come from the future, after a clock was set back

---@class riskscreen.nginx.ListLease
---@field length number seconds
---@field private settings riskscreen.nginx.ListSettings
---@field private key string
---@field private holder? string this worker and the number of its lease
---@field private count integer leases that this worker has taken
local Lease = {}
Lease.__index = Lease

-- Deletes a lease that was taken later than now: after a clock was set back it would last for long.
local function forget_future(self)
  local text = self.settings.dict:get(self.key)
  local since = type(text) == "string" and tonumber(text:match "%S+$")
  if since and since > self.settings.now() + SKEW then
    self.settings.dict:delete(self.key)
  end
end

---Takes the lease, unless another worker has it or one ended lately.
---@return boolean taken
---@return string|nil message if no worker can take it
function Lease:take()
  local settings = self.settings
  self.count = self.count + 1
  self.holder = ("%s:%d %.3f"):format(settings.identity(), self.count, settings.now())
  forget_future(self)
  local taken, message = settings.dict:add(self.key, self.holder, self.length)
  return taken, message ~= "exists" and message or nil
end

local function is_held(self)
  return self.settings.dict:get(self.key) == self.holder
end

---@return boolean renewed false where it is another worker's by now
function Lease:renew()
  return is_held(self) and (self.settings.dict:expire(self.key, self.length)) == true
end

---Ends the lease. No worker takes the next one before the time is over.
---@param seconds number
function Lease:finish(seconds)
  local settings = self.settings
  if not is_held(self) then
    return
  elseif seconds > 0 then
    settings.dict:set(self.key, ("%.3f"):format(settings.now()), seconds)
  else
    settings.dict:delete(self.key)
  end
end

local M = {}

---@param settings riskscreen.nginx.ListSettings
---@param key string in the dict
---@return riskscreen.nginx.ListLease
function M.new(settings, key)
  return setmetatable({ settings = settings, key = key, count = 0, length = settings.timeout * SLACK }, Lease)
end

return M
