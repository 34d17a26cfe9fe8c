-- Whose turn it is to refresh the lists: one worker's at a time, over all workers. The turn of a worker that crashed
-- passes on when its time is over. What is done in a turn is not known here.

local SKEW = 60 -- seconds that a turn may seem to come from the future; after a clock was set back it would last long

---@class riskscreen.nginx.Turn
---@field private dict table an ngx.shared dict
---@field private key string
---@field private holder string this worker, and which of its turns
---@field private turns integer
---@field private identity fun(): string|number what no other worker has
---@field private now fun(): number Unix seconds
local Turn = {}
Turn.__index = Turn

-- Gives up a turn that was taken, or passed on, later than now.
local function forget_the_future(self)
  local text = self.dict:get(self.key)
  local since = type(text) == "string" and tonumber(text:match "%S+$")
  if since and since > self.now() + SKEW then
    self.dict:delete(self.key)
  end
end

---Takes the turn, if nobody has it and none was taken lately.
---@param seconds number after which it passes on
---@return boolean|nil
---@return string|nil message why nobody can take it
function Turn:take(seconds)
  self.turns = self.turns + 1
  self.holder = ("%s:%d %.3f"):format(self.identity(), self.turns, self.now())
  forget_the_future(self)
  local taken, message = self.dict:add(self.key, self.holder, seconds)
  if not taken and message ~= "exists" then
    return nil, message
  end
  return taken
end

---Whether it is still this worker's; if so, it is for longer.
---@param seconds number after which it passes on
---@return boolean
function Turn:keep(seconds)
  return self.dict:get(self.key) == self.holder and (self.dict:expire(self.key, seconds)) == true
end

---Gives it up; nobody takes the next one before the time is over.
---@param seconds number
function Turn:pass(seconds)
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
---@return riskscreen.nginx.Turn
function M.new(dict, key, identity, now)
  return setmetatable({ dict = dict, key = key, identity = identity, now = now, turns = 0 }, Turn)
end

return M
