-- From method and path to operation: every operation of the interface that has a path, and the sandbox's own.
local operations = require "riskscreen.interface.operations"
local endpoints = require "riskscreen.sandbox.endpoints"

local by_path = {}

local function add(operation)
  if operation.path then
    by_path[operation.path] = by_path[operation.path] or {}
    by_path[operation.path][operation.http] = operation
  end
end

for _, operation in ipairs(operations.list) do
  add(operation)
end
for _, operation in ipairs(endpoints.operations) do
  add(operation)
end

local M = {}

---The operation at a path.
---@param method string
---@param path string
---@return riskscreen.Operation?
---@return string? allowed the methods that the path answers, if it answers others
function M.find(method, path)
  local methods = by_path[path]
  if not methods then
    return nil
  elseif methods[method] then
    return methods[method]
  end
  local allowed = {}
  for name in pairs(methods) do
    allowed[#allowed + 1] = name
  end
  table.sort(allowed)
  return nil, table.concat(allowed, ", ")
end

return M
