-- Takes a key of a store's space, or finds what another has put there.

---@param space { add: function, get: function } a space of a store, or what has its methods
---@param key string
---@param value string which nobody else puts there
---@param ttl number seconds
---@return string|nil value the given one if the key is taken, also where the reply about it was lost
---@return any err
return function(space, key, value, ttl)
  local found, err
  repeat
    local added
    added, err = space:add(key, value, ttl)
    if added then
      return value
    elseif not err or err.uncertain then
      found, err = space:get(key)
    end
  until found or err -- without any it was removed in between
  return found, err
end
