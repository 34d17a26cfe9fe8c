-- The cost of a request: by operation, and by the items of a request that has many. Credits are not published, so the
-- operator says what a call counts for.
local operations = require "riskscreen.interface.operations"
local text = require "riskscreen.util.text"

---@alias riskscreen.Cost number|{ request?: number, item?: number } of a request, and of each of its items

local M = {}

local function is_cost(value)
  return type(value) == "number" and value >= 0 and value < math.huge
end

local function check_one(name, cost)
  local operation = operations.by_name[name]
  if not operation then
    return "must name operations of the interface (got " .. text.show(name) .. ")"
  elseif is_cost(cost) then
    return nil
  elseif type(cost) ~= "table" then
    return ("must give %s a number of at least 0, or { request = …, item = … } (got %s)"):format(
      name,
      text.show(cost)
    )
  end
  for field, value in pairs(cost) do
    if field ~= "request" and field ~= "item" then
      return ("must give %s no field but request and item (got %s)"):format(name, text.show(field))
    elseif not is_cost(value) then
      return ("must give %s.%s a number of at least 0 (got %s)"):format(name, field, text.show(value))
    end
  end
  if cost.item and not (operation.aligned or operation.reported) then
    return ("must give %s no cost by item, because its requests have one (set request)"):format(name)
  end
end

---Checks costs by operation.
---@param value table<string, riskscreen.Cost>
---@return table<string, { request: number, item: number }>|nil checked
---@return string|nil message
function M.check(value)
  local checked = {}
  for name, cost in pairs(value) do
    local message = check_one(name, cost)
    if message then
      return nil, message
    elseif type(cost) == "number" then
      checked[name] = { request = cost, item = 0 }
    else
      checked[name] = { request = cost.request or 0, item = cost.item or 0 }
    end
  end
  return checked
end

---The cost of a request.
---@param costs table<string, { request: number, item: number }> checked
---@param operation riskscreen.Operation
---@param parameters? table
---@return number|nil nil where the operation has no cost of its own
function M.of(costs, operation, parameters)
  local cost = costs[operation.name]
  if not cost then
    return nil
  end
  local items = parameters and parameters[operation.aligned or operation.reported or false]
  return cost.request + cost.item * (type(items) == "table" and #items or 0)
end

return M
