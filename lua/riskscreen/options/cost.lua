-- The cost of a request: by operation, and by the items of a request that has many. Credits are not published, so the
-- operator says what a call counts for.
local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local operations = require "riskscreen.interface.operations"

local MAX_COST = 1000000000

---@alias riskscreen.Cost number|{ request?: number, item?: number } of a request, and of each of its items

-- An entry for each operation. Only the requests of some have items.
local entries = {}
for index, operation in ipairs(operations.list) do
  local has_items = operation.aligned or operation.reported
  entries[index] = build.group(operation.name, {
    build.number("request", "for a request", 0, 0, MAX_COST, "The cost of a request."),
    has_items and build.number("item", "for an item", 0, 0, MAX_COST, "The cost of each item.") or nil,
  }, "The cost of a request.")
  entries[index].type = "number|table"
end

local M = {}

---Checks costs by operation.
---@param value table<string, riskscreen.Cost>
---@return table<string, { request: number, item?: number }>|nil checked
---@return string|nil message
function M.check(value)
  local full = {}
  for name, cost in pairs(value) do
    full[name] = type(cost) == "number" and { request = cost } or cost
  end
  local checked, err = check.options(entries, full)
  return checked, err and "is wrong: " .. err.message
end

---The cost of a request.
---@param costs table<string, { request: number, item?: number }> checked
---@param operation riskscreen.Operation
---@param parameters? table
---@return number|nil nil where the operation has no cost of its own
function M.of(costs, operation, parameters)
  local cost = costs[operation.name]
  if not cost then
    return nil
  end
  local items = parameters and parameters[operation.aligned or operation.reported or false]
  return cost.request + (cost.item or 0) * (type(items) == "table" and #items or 0)
end

return M
