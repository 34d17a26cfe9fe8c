-- An addition of any number of items, with a report of each item's fate. Adding is not idempotent: what may have been
-- added is never sent again, and what was refused together is sent again in halves until the culprits stand alone.

local bulk = require "riskscreen.client.bulk"
local validate = require "riskscreen.interface.validate"
local errors = require "riskscreen.errors"

local EMPTY_RISK_TYPE = 3016 -- the service's code for an item that it finds invalid
local MAX_REFUSALS = 16 -- requests refused in a row, after which it is not the items: no more halves are tried

---@class riskscreen.Fate of one item that was not added
---@field index integer its position in the list
---@field item table as it was given
---@field error riskscreen.Error why

---@class riskscreen.Additions every item of the list is in exactly one of these
---@field added integer[] positions of the items that the service has taken
---@field refused riskscreen.Fate[] the service said no
---@field uncertain riskscreen.Fate[] sent, and no answer tells whether it was taken: it is not sent again
---@field unsent riskscreen.Fate[] never sent

---@class riskscreen.bulk.Addition one call and how far it is
---@field call riskscreen.bulk.Call
---@field parameters table checked
---@field items table[]
---@field fates table<integer, { fate: string, error?: riskscreen.Error }> by the item's position
---@field refusals integer requests refused since the last that was not
---@field tally table of its requests

local function fate_of(err)
  if err.sent == false then
    return "unsent"
  end
  return errors.is_uncertain(err) and "uncertain" or "refused"
end

-- Whether a request was refused for what is in it, so that half of it may be taken.
local function is_about_content(err)
  return err.kind == "bad_request" or (err.kind == "api" and err.code == EMPTY_RISK_TYPE)
end

local function send_again(fate)
  return fate.fate == "unsent" or (fate.fate == "refused" and fate.error.retryable)
end

local function request_of(addition, positions)
  local items = {}
  for index, position in ipairs(positions) do
    items[index] = addition.items[position]
  end
  return bulk.with_fields(addition.parameters, { [addition.call.list] = items })
end

-- Whether the request was refused for some of its items, which its halves may tell.
local function tell_apart(addition, positions, err)
  if not is_about_content(err) then
    return false
  end
  addition.refusals = addition.refusals + 1
  return #positions > 1 and addition.refusals <= MAX_REFUSALS
end

local function add(addition, positions)
  local value, other = addition.call.send(request_of(addition, positions))
  bulk.count(addition.tally, value, other)
  if value ~= nil then
    addition.refusals = 0
  elseif tell_apart(addition, positions, other) then
    for _, half in ipairs(bulk.parts(positions, math.ceil(#positions / 2))) do
      add(addition, half)
    end
    return
  end
  for _, position in ipairs(positions) do
    addition.fates[position] = value ~= nil and { fate = "added" } or { fate = fate_of(other), error = other }
  end
end

local function report_of(addition)
  local report = { added = {}, refused = {}, uncertain = {}, unsent = {} }
  local failed = {}
  for position, item in ipairs(addition.items) do
    local fate = addition.fates[position]
    local list = report[fate.fate]
    if fate.error then
      list[#list + 1] = { index = position, item = item, error = fate.error }
      failed[#failed + 1] = position
    else
      list[#list + 1] = position
    end
  end
  return report, failed
end

local attempt

local function failure(addition, report, failed)
  local retryable = false
  for _, position in ipairs(failed) do
    retryable = retryable or send_again(addition.fates[position])
  end
  local summary = ("of %d items %d were added, %d refused, %d are uncertain, %d were not sent"):format(
    #addition.items,
    #report.added,
    #report.refused,
    #report.uncertain,
    #report.unsent
  )
  return bulk.error(addition.fates[failed[1]].error, addition.tally, summary, {
    report = report,
    failed = failed,
    uncertain = #report.uncertain > 0 or nil,
    retryable = retryable,
    sent = #report.unsent < #addition.items,
    retry = function()
      return attempt(addition)
    end,
  })
end

-- Sends what has not been sent, or was refused for a reason that passes.
function attempt(addition)
  local started, positions = addition.call.runtime.now(), {}
  for position = 1, #addition.items do
    local fate = addition.fates[position]
    if not fate or send_again(fate) then
      positions[#positions + 1] = position
    end
  end
  bulk.each_part(addition.call, bulk.parts(positions, addition.call.limit), function(part)
    add(addition, part)
  end)
  addition.tally.elapsed = addition.tally.elapsed + addition.call.runtime.now() - started
  local report, failed = report_of(addition)
  if failed[1] then
    return nil, failure(addition, report, failed)
  end
  return report, bulk.response(addition.tally)
end

local M = {}

---The call of an operation that reports on each item of a list.
---@param operation riskscreen.Operation
---@return fun(runtime: table, parameters: table, concurrency: integer|nil, send: function): any, any
function M.of(operation)
  local name = operation.reported
  local unlimited, limit = bulk.unlimited(operation, name)
  return function(runtime, parameters, concurrency, send)
    local checked, err = validate.parameters(unlimited, parameters)
    if not checked then
      return nil, err
    end
    return attempt {
      call = { runtime = runtime, list = name, limit = limit, concurrency = concurrency, send = send },
      parameters = checked,
      items = checked[name],
      fates = {},
      refusals = 0,
      tally = bulk.tally(),
    }
  end
end

return M
