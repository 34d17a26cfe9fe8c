-- Calls over lists longer than one request may carry: which operations they are, and what both kinds share. How answers
-- and failures come together is bulk_lookup.lua's and bulk_addition.lua's.

local errors = require "riskscreen.errors"
local maps = require "riskscreen.client.map"

---@class riskscreen.bulk.Call what one call works with
---@field list string the parameter that is split
---@field limit integer items of one request
---@field concurrency integer requests under way
---@field runtime table the client's
---@field send fun(parameters: table): any, riskscreen.Response|riskscreen.Error one request

local M = {}

local function with_fields(original, fields)
  local copy = {}
  for name, value in pairs(original) do
    copy[name] = value
  end
  for name, value in pairs(fields) do
    copy[name] = value
  end
  return copy
end

M.with_fields = with_fields

---The operation without the limit of the list: a list of any length is checked before anything is sent.
---@param operation riskscreen.Operation
---@param name string the list's
---@return riskscreen.Operation unlimited
---@return integer limit
function M.unlimited(operation, name)
  local parameters, limit = {}, nil
  for index, parameter in ipairs(operation.parameters) do
    parameters[index] = parameter
    if parameter.name == name then
      limit = parameter.max_items
      parameters[index] = with_fields(parameter, {})
      parameters[index].max_items = nil
    end
  end
  return with_fields(operation, { parameters = parameters }), limit
end

---A list in parts of at most so many items.
---@param list any[]
---@param limit integer
---@return any[][]
function M.parts(list, limit)
  local parts = {}
  for index, item in ipairs(list) do
    local number = math.floor((index - 1) / limit) + 1
    parts[number] = parts[number] or {}
    table.insert(parts[number], item)
  end
  return parts
end

---Sends every part, several at a time; a single one needs no task, and where nothing can wait each says so.
---@param call { runtime: table, concurrency: integer }
---@param parts any[]
---@param send fun(part: any): any, any
---@return any[] values the first result for each part
---@return any[] others the second
function M.each_part(call, parts, send)
  local values, others = {}, {}
  if #parts == 1 or call.runtime.refusal() then
    for index, part in ipairs(parts) do
      values[index], others[index] = send(part)
    end
    return values, others
  end
  local run = assert(maps.new(call.runtime, parts, send, { concurrency = call.concurrency, ordered = false }))
  local index, value, other = run:next()
  while index do
    values[index], others[index] = value, other
    index, value, other = run:next()
  end
  return values, others
end

---The requests of a call, counted.
---@return { requests: integer, attempts: integer, first?: riskscreen.Response, elapsed: number }
function M.tally()
  return { requests = 0, attempts = 0, elapsed = 0 }
end

---Counts a request that was answered, or failed.
---@param tally table
---@param value any
---@param other riskscreen.Response|riskscreen.Error
function M.count(tally, value, other)
  tally.requests = tally.requests + 1
  tally.attempts = tally.attempts + (other.attempts or 0)
  if value ~= nil then
    tally.first = tally.first or other
  end
end

---The response of a call that took several requests.
---@param tally table
---@return riskscreen.Response
function M.response(tally)
  return with_fields(tally.first, { attempts = tally.attempts, elapsed = tally.elapsed })
end

---The error of a call of which parts failed: the first failure, with what it meant for the whole.
---@param first riskscreen.Error
---@param tally table
---@param summary string said where there was more than one request
---@param fields table
---@return riskscreen.Error
function M.error(first, tally, summary, fields)
  local all = with_fields(first, fields)
  all.kind, all.message = nil, nil
  all.attempts, all.elapsed = tally.attempts, tally.elapsed
  local message = first.message
  if tally.requests > 1 then
    message = summary .. "; the first: " .. message
  end
  return errors.new(first.kind, message, all)
end

return M
