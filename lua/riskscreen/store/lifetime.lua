-- The time by which the entries of a file expire. A date that was set forward must not end what is kept for 30 days. So
-- the time goes by the monotonic clock while a program runs, and from one program to the next by a day at most. The
-- programs that share the file keep it there, beside the date at which it was.

local INTERVAL = 60 -- seconds between two looks, and between two notes
local LONGEST_GAP = 86400 -- seconds
local SPACE, KEY = "store", "time"

---@class riskscreen.store.Lifetime
---@field private backend riskscreen.StoreBackend
---@field private date fun(): number Unix seconds
---@field private now fun(): number monotonic seconds
---@field private looked number when it last looked into the file
---@field private noted number when it last wrote there
---@field private base? number the time when it looked
local Lifetime = {}
Lifetime.__index = Lifetime

-- The time that programs of this file have left there; nil in a new file.
local function noted_time(self, date)
  local seen, time = (self.backend:get(SPACE, KEY, 0) or ""):match "^(%d+) (%d+)$"
  return seen and tonumber(time) + math.max(0, math.min(date - tonumber(seen), LONGEST_GAP))
end

---@return number seconds
function Lifetime:time()
  local now = self.now()
  if now - self.looked >= INTERVAL then
    local date, own = self.date(), self.base and self.base + now - self.looked
    self.base = math.min(own or math.huge, noted_time(self, date) or own or date)
    self.looked = now
  end
  return self.base + now - self.looked
end

---The change that keeps the time, if it is due.
---@return riskscreen.StoreChange|nil
function Lifetime:note()
  if self.now() - self.noted >= INTERVAL then
    self.noted = self.now()
    local value = ("%d %d"):format(math.floor(self.date()), math.floor(self:time()))
    return { kind = "put", space = SPACE, key = KEY, value = value }
  end
end

local M = {}

---@param backend riskscreen.StoreBackend
---@param date fun(): number Unix seconds
---@param now fun(): number monotonic seconds
---@return riskscreen.store.Lifetime
function M.new(backend, date, now)
  local settings = { backend = backend, date = date, now = now, looked = -math.huge, noted = -math.huge }
  return setmetatable(settings, Lifetime)
end

return M
