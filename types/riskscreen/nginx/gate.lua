---@meta
-- Written by tools/generate.lua, for editors.

local gates = {}

---A gate. It sends nothing and waits for nothing: make it in init_by_lua.
---@param given riskscreen.nginx.GateOptions
---@return riskscreen.nginx.Gate
function gates.new(given) end

return gates
