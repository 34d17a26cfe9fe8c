-- Notices a fork. The child has a copy of what its parent holds, such as locks and tokens, and owns none of it.

local system = require "riskscreen.util.optional" "riskscreen.system"
local process = system and system.process or function()
  return 0
end

---Whether a thing is used for the first time in this process.
---@param thing table gets the field `process`
---@return boolean
return function(thing)
  local before = thing.process
  thing.process = process()
  return thing.process ~= before
end
