-- Tickets: the text by which another process, or this one later, resumes a transaction.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local VERSION = 1
local LONGEST_ID = 1024 -- bytes
local LONGEST_TICKET = 16384 -- bytes

---@class riskscreen.Ticket
---@field requestId? string
---@field customId? string
---@field hash? string of the transaction, as is the network: the result must not name another one
---@field network? string
---@field kind? riskscreen.TransactionKind absent for the usual one

local M = {}

---Whether a value may be a requestId or a customId.
---@param value any
---@return boolean
function M.is_id(value)
  return type(value) == "string" and value ~= "" and #value <= LONGEST_ID and not value:find "[%z\1-\31\127]"
end

local function is_absent_or_id(value)
  return value == nil or M.is_id(value)
end

---@param content riskscreen.Ticket
---@return string ticket
function M.encode(content)
  return assert(json.encode(tables.merge(content, { version = VERSION })))
end

---@param ticket any
---@return riskscreen.Ticket|nil
---@return riskscreen.Error|nil err
function M.decode(ticket)
  local content = type(ticket) == "string" and #ticket <= LONGEST_TICKET and json.decode(ticket)
  local message
  if type(content) ~= "table" or content.version ~= VERSION then
    message = "the ticket must be one that transaction:ticket() returned (got " .. text.show(ticket) .. ")"
  else
    local request_id, custom_id = content.requestId, content.customId
    if not (is_absent_or_id(request_id) and is_absent_or_id(custom_id)) or (request_id == nil and custom_id == nil) then
      message = "the ticket names no valid requestId or customId"
    elseif not (is_absent_or_id(content.hash) and is_absent_or_id(content.network)) then
      message = "the ticket names no valid hash or network"
    elseif content.kind ~= nil and content.kind ~= "custom_score" then
      message = "the ticket is of a kind that is not known: " .. text.show(content.kind)
    end
  end
  if message then
    return nil, errors.new("invalid_argument", message, { field = "ticket", sent = false })
  end
  return content
end

return M
