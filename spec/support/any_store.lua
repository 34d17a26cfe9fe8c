-- The store at a place: a path, or the URL of Redis.
local riskscreen = require "riskscreen"

local LOCK_TTL = 0.3 -- seconds that a killed program keeps others waiting

---@param place string
---@return riskscreen.Store
return function(place)
  if place:find "^redis:" then
    return assert(riskscreen.store.redis { redis = place, lock_ttl = LOCK_TTL })
  end
  return assert(riskscreen.store.sqlite { path = place, synchronous = "normal" })
end
