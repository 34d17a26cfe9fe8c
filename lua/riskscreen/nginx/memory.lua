-- What one worker remembers: decisions by address and network, the least recently used dropped first. Finding one must
-- cost next to nothing, so it makes no table and no new string, and uses nothing that LuaJIT does not compile.
local byte, lower, type = string.byte, string.lower, type

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"

---@class riskscreen.nginx.Remembered of an address on a network
---@field shown? riskscreen.Decision what is answered for now
---@field shown_until number Unix seconds
---@field source? string where it comes from
---@field verdict? riskscreen.nginx.Entry the last one that the service gave
---@field failure? riskscreen.nginx.Entry what the last look-up that failed came to
---@field refreshing? boolean a look-up is under way for which nobody waits

---@class riskscreen.nginx.Memory
---@field private lru table as resty.lrucache makes it
local Memory = {}
Memory.__index = Memory

---What is remembered of an address, in whatever spelling.
---@param address any
---@param network any
---@return riskscreen.nginx.Remembered|nil
function Memory:find(address, network)
  if type(address) ~= "string" then
    return nil
  end
  local first, second = byte(address, 1, 2)
  if first == ZERO and (second == SMALL_X or second == LARGE_X) then
    address = lower(address)
  end
  local by_network = self.lru:get(address)
  return by_network and by_network[network]
end

---The place for what is remembered of a subject. Afterwards it is found under this name of the network, too.
---@param subject riskscreen.nginx.Subject
---@param network string
---@return riskscreen.nginx.Remembered
function Memory:place(subject, network)
  -- Nothing but hexadecimal is found under another case than its own; what merely begins like it is not kept.
  if not subject.is_hexadecimal then
    local first, second = byte(subject.address, 1, 2)
    if first == ZERO and (second == SMALL_X or second == LARGE_X) then
      return { shown_until = 0 }
    end
  end
  local by_network = self.lru:get(subject.address)
  if not by_network then
    by_network = {}
    self.lru:set(subject.address, by_network)
  end
  local remembered = by_network[subject.network] or { shown_until = 0 }
  by_network[subject.network], by_network[network] = remembered, remembered
  return remembered
end

---@param subject riskscreen.nginx.Subject
function Memory:forget(subject)
  self.lru:delete(subject.address)
end

function Memory:clear()
  self.lru:flush_all()
end

local M = {}

---@param lru table with get, set, delete and flush_all
---@return riskscreen.nginx.Memory
function M.new(lru)
  return setmetatable({ lru = lru }, Memory)
end

return M
