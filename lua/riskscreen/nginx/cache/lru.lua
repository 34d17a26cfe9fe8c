-- What one worker remembers: decisions by address and network, the least recently used dropped first. Finding one must
-- cost next to nothing, so it makes no table and no new string, and uses nothing that LuaJIT does not compile.
local byte, lower, type = string.byte, string.lower, type

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"
local SIGHTS = 2 -- times as many addresses as it has room for are known to have been seen

---@class riskscreen.nginx.Remembered of an address on a network
---@field shown? riskscreen.Decision what is answered for now
---@field shown_until number Unix seconds
---@field source? string where it comes from
---@field verdict? riskscreen.nginx.Entry the last one that the service gave
---@field failure? riskscreen.nginx.Entry what the last look-up that failed came to
---@field refreshing_until? number Unix seconds: until then a look-up is under way for which nobody waits

---@class riskscreen.nginx.Memory
---@field private lru table as resty.lrucache makes it
---@field private size integer addresses
---@field private seen integer[] checksums, each in the place that it gives
local Memory = {}
Memory.__index = Memory

-- Nothing but hexadecimal is found under another case than its own.
local function begins_like_hexadecimal(address)
  local first, second = byte(address, 1, 2)
  return first == ZERO and (second == SMALL_X or second == LARGE_X)
end

---What is remembered of an address, in whatever spelling.
---@param address any
---@param network any
---@return riskscreen.nginx.Remembered|nil
function Memory:find(address, network)
  if type(address) ~= "string" then
    return nil
  elseif begins_like_hexadecimal(address) then
    address = lower(address)
  end
  local by_network = self.lru:get(address)
  return by_network and by_network[network]
end

---What is remembered of a subject, found under this name of the network from now on.
---@param subject riskscreen.nginx.Subject
---@param network string
---@return riskscreen.nginx.Remembered|nil
function Memory:of(subject, network)
  local by_network = self.lru:get(subject.address)
  local remembered = by_network and by_network[subject.network]
  if remembered then
    by_network[network] = remembered
  end
  return remembered
end

---Whether an address that is new may have a place: where another must go for it, only if it is seen again.
---@param checksum integer|nil the same for the same; nil where nothing else remembers it
---@return boolean
function Memory:admits(checksum)
  if self.size == 0 then
    return false
  elseif not checksum or self.lru:count() < self.size then
    return true
  end
  local seen, place = self.seen, checksum % (SIGHTS * self.size) + 1
  if seen[place] == checksum then
    return true
  end
  seen[place] = checksum
  return false
end

---Remembers a subject, found under this name of the network, too. What merely begins like hexadecimal is not kept.
---@param subject riskscreen.nginx.Subject
---@param network string
---@param remembered riskscreen.nginx.Remembered
function Memory:keep(subject, network, remembered)
  if not subject.is_hexadecimal and begins_like_hexadecimal(subject.address) then
    return
  end
  local by_network = self.lru:get(subject.address)
  if not by_network then
    by_network = {}
    self.lru:set(subject.address, by_network)
  end
  by_network[subject.network], by_network[network] = remembered, remembered
end

---@param subject riskscreen.nginx.Subject
function Memory:forget(subject)
  self.lru:delete(subject.address)
end

function Memory:clear()
  self.lru:flush_all()
end

local M = {}

---@param lru table with get, set, delete, flush_all and count
---@param size integer addresses that it has room for
---@return riskscreen.nginx.Memory
function M.new(lru, size)
  return setmetatable({ lru = lru, size = size, seen = {} }, Memory)
end

return M
