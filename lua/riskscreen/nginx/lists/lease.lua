-- A lease on refreshing the lists: one worker has it at a time. The lease of a worker that crashed expires.

local SKEW = 60 -- seconds that a lease may seem to come from the future, after a clock was set back

---@class riskscreen.nginx.Lease
---@field private dict table an ngx.shared dict
---@field private key string
---@field private holder string this worker and the number of its lease
---@field private taken integer leases that this worker has taken
---@field private identity fun(): string|number what no other worker has
---@field private now fun(): number Unix seconds
local Lease = {}
Lease.__index = Lease

-- Deletes a lease that was taken later than now: after a clock was set back it would last for long.
local function forget_the_future(self)
  local text = self.dict:get(self.key)
  local since = type(text) == "string" and tonumber(text:match "%S+$")
  if since and since > self.now() + SKEW then
    self.dict:delete(self.key)
  end
end

---Takes the lease, unless another worker has it or one ended lately.
---@param seconds number after which it expires
---@return boolean|nil
---@return string|nil message why no worker can take it
function Lease:take(seconds)
  self.taken = self.taken + 1
  self.holder = ("%s:%d %.3f"):format(self.identity(), self.taken, self.now())
  forget_the_future(self)
  local taken, message = self.dict:add(self.key, self.holder, seconds)
  if not taken and message ~= "exists" then
    return nil, message
  end
  return taken
end

---Renews the lease. False where it is another worker's by now.
---@param seconds number after which it expires
---@return boolean
function Lease:renew(seconds)
  return self.dict:get(self.key) == self.holder and (self.dict:expire(self.key, seconds)) == true
end

---Ends the lease. No worker takes the next one before the time is over.
---@param seconds number
function Lease:finish(seconds)
  if self.dict:get(self.key) ~= self.holder then
    return
  elseif seconds > 0 then
    self.dict:set(self.key, ("%.3f"):format(self.now()), seconds)
  else
    self.dict:delete(self.key)
  end
end

local M = {}

---@param dict table an ngx.shared dict
---@param key string
---@param identity fun(): string|number what no other worker has
---@param now fun(): number Unix seconds
---@return riskscreen.nginx.Lease
function M.new(dict, key, identity, now)
  return setmetatable({ dict = dict, key = key, identity = identity, now = now, taken = 0 }, Lease)
end

return M
