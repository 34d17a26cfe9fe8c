-- The names of parameters and fields as the most lenient programs compare them. Pure.

local M = {}

---The name without case, "_" and "-". grpc-gateway takes "to_address" for "toAddress". Programs that turn names into
---camelCase take "to-address" for it. Some programs take the long s, the Kelvin sign and the dotted or dotless i
---for ASCII letters.
---@param name string
---@return string
function M.folded(name)
  name = name:gsub("\197\191", "s"):gsub("\226\132\170", "k"):gsub("\196[\176\177]", "i"):lower()
  return (name:gsub("[_-]", ""))
end

return M
