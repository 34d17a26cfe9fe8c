-- JSON for programs: the members of an object always come in the same order.

local json = require "riskscreen.json"

local slashes = { ["/"] = "/" }

local M = {}

---The text of a value on one line.
---@param value any
---@param order? string[] the first members of an object; the others follow by name
---@return string
function M.encode(value, order)
  -- The encoder escapes each slash, which JSON does not ask for.
  return (json.ordered(value, order):gsub("\\(.)", slashes))
end

return M
