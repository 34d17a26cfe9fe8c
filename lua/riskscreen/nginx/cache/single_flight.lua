-- The fetches of this worker that are under way, one for each key. A second caller waits for the result of the first by
-- a semaphore, until its own deadline. The lock across workers is in init.lua (`fetch_locked`).

local tables = require "riskscreen.util.tables"

local TICK = 0.001 -- seconds; nginx's clock shows no shorter time, and a shorter wait does not let time pass
local GRACE = 0.25 -- seconds after its deadline until a fetch counts as dead

---@class riskscreen.nginx.Flight the request that leads it
---@field key string
---@field epoch number in which it began
---@field dead_at number seconds
---@field waiting integer callers
---@field semaphore? table
---@field is_begun boolean
---@field result? any once it is over; false if it failed with an error

---@class riskscreen.nginx.Flights
---@field private under_way table<string, riskscreen.nginx.Flight> weak: a flight ends with the request that leads it
---@field private clock fun(): number seconds
---@field private new_semaphore fun(): table
local Flights = {}

---The flight to wait for, if there is one. A fetch of an earlier epoch may return an answer from before a purge.
---@param key string
---@param epoch number
---@return riskscreen.nginx.Flight|nil
function Flights:find(key, epoch)
  local flight = self.under_way[key]
  if flight and flight.epoch == epoch and flight.dead_at - self.clock() >= TICK then
    return flight
  end
end

---@param flight riskscreen.nginx.Flight
---@param deadline number seconds
function Flights:begin(flight, deadline)
  flight.dead_at = deadline + GRACE
  self.under_way[flight.key] = flight
end

---@param flight riskscreen.nginx.Flight
---@param result any nil if it failed with an error
function Flights:finish(flight, result)
  if self.under_way[flight.key] == flight then
    self.under_way[flight.key] = nil
  end
  flight.result = result or false
  if flight.waiting > 0 then
    flight.semaphore:post(flight.waiting)
  end
end

---Waits for the result of another caller.
---@param flight riskscreen.nginx.Flight
---@param deadline number seconds
---@return any result nil if there is none
function Flights:wait(flight, deadline)
  local remaining = math.min(deadline, flight.dead_at) - self.clock()
  if flight.result ~= nil or remaining <= 0 then
    return flight.result or nil
  end
  flight.waiting = flight.waiting + 1
  flight.semaphore = flight.semaphore or self.new_semaphore()
  flight.semaphore:wait(remaining)
  flight.waiting = flight.waiting - 1
  return flight.result or nil
end

local M = { TICK = TICK, GRACE = GRACE }

---@param clock fun(): number seconds
---@param new_semaphore fun(): table
---@return riskscreen.nginx.Flights
function M.new(clock, new_semaphore)
  return tables.object(Flights, {
    under_way = setmetatable({}, { __mode = "v" }),
    clock = clock,
    new_semaphore = new_semaphore,
  })
end

return M
