-- Webhook events: decodes and checks a delivered body. inbox.lua handles the event.

local date = require "riskscreen.util.date"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local MAX_SIZE = 64 * 1024 -- bytes of a body
local MAX_DEPTH = 32 -- arrays and objects inside each other
local MAX_VALUES = 10000 -- values in a body
local MAX_NAME = 256 -- bytes of an identifier or a type

---@class riskscreen.WebhookEvent
---@field webhookId string
---@field eventType string the interface shows getTxHashCustomRiskScore; the data of others may be anything but null
---@field timestamp string YYYY-MM-DD HH:mm:ss; its zone is not published
---@field data table

-- The shape of `data` by type of event. The data of an unknown type may be anything.
local data_shapes = { getTxHashCustomRiskScore = records.transaction_result }

-- Nulls are those of a result, whatever the type of the event: a transaction may take its data as one.
local nulls = { fields = { tables.merge(records.transaction_result, { name = "data" }) } }

local decoder = json.decoder {
  max_size = MAX_SIZE,
  max_depth = MAX_DEPTH,
  max_values = MAX_VALUES,
  duplicates = "refuse",
  null = "keep",
}

local function malformed(message, field)
  return nil, errors.new("protocol", "webhook: " .. message, { field = field })
end

-- Whether a text is a valid date and time.
local function is_timestamp(value)
  local day, hour, second = value:match "^(%d%d%d%d%-%d%d%-%d%d) (%d%d):[0-5]%d:(%d%d)$"
  -- 60 is a leap second.
  return day ~= nil and date.parse_date(day) ~= nil and tonumber(hour) < 24 and tonumber(second) <= 60
end

local function name_message(event, field)
  local value = event[field]
  if value == "" then
    return field .. " must not be empty"
  elseif #value > MAX_NAME then
    return ("%s must be at most %d bytes long (got %d)"):format(field, MAX_NAME, #value)
  elseif value:find "[%z\1-\31\127]" then
    return ("%s must not contain control characters (got %s)"):format(field, text.show(value))
  end
end

-- The fault of an event, and the field that has it.
local function message_of(event)
  local message = shape.check(records.webhook_event, event, "event")
  if message then
    return message
  end
  for _, field in ipairs { "webhookId", "eventType" } do
    message = name_message(event, field)
    if message then
      return message, field
    end
  end
  if not is_timestamp(event.timestamp) then
    return "timestamp must be written YYYY-MM-DD HH:mm:ss (got " .. text.show(event.timestamp) .. ")", "timestamp"
  end
  local wanted = data_shapes[event.eventType]
  return wanted and shape.check(wanted, event.data, "data"), "data"
end

local M = { MAX_SIZE = MAX_SIZE }

---Decodes and checks the body of a delivery. Unknown fields and unknown types of events are kept, and
---null members of objects are dropped.
---@param body string
---@param headers? table<string, string> of the request
---@return riskscreen.WebhookEvent|nil event
---@return riskscreen.Error|nil err of kind protocol; `field` is the field at fault
function M.parse(body, headers)
  text.expect("webhook.parse: body", body, "string")
  text.expect("webhook.parse: headers", headers, "table", true)
  if #body > MAX_SIZE then
    return malformed(("the body is %d bytes long; at most %d are read"):format(#body, MAX_SIZE))
  end
  local encoding = text.lower_names(headers or {})["content-encoding"]
  if encoding and encoding ~= "identity" then
    return malformed("the body is encoded as " .. text.show(encoding))
  end
  local event, message = decoder:decode(body)
  if event == nil then
    return malformed("the body is not JSON: " .. message)
  elseif not shape.is_object(event) then
    return malformed("the body must be an object (got " .. json.kind(event) .. ")")
  end
  shape.drop_nulls(nulls, event)
  local field
  message, field = message_of(event)
  if message then
    return malformed(text.printable(message, 200), field)
  end
  return event
end

return M
