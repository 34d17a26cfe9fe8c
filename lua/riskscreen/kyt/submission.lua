-- The record of a submission. Its text is the ticket, by which another process, or this one later, resumes the
-- transaction. Here it is decided which answers and events belong to a submission, and which status ends a wait.

local addresses = require "riskscreen.address"
local calls = require "riskscreen.call"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local kept = require "riskscreen.json.kept"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local VERSION = 1
local LONGEST_ID = 1024 -- bytes
local LONGEST_TICKET = 16384 -- bytes

---@class riskscreen.Submission
---@field kind riskscreen.TransactionKind
---@field requestId? string absent until the service has given one
---@field customId? string
---@field hash? string of the transaction; absent in a record that was made of a requestId alone
---@field network? string
---@field at? number Unix seconds of the submission, by the clock of the inbox where there is one
---@field account? string the identity of the service and the account

local M = {
  ---The identity of a client's service and account.
  ---@type fun(state: riskscreen.State): string
  account_of = tables.memoize(calls.identity.account),
}

---A value of an answer; nil for null and for the empty text.
---@param value any
---@return any
function M.known(value)
  if value ~= json.null and value ~= "" then
    return value
  end
end

local known = M.known

---Whether a value may be a requestId or a customId.
---@param value any
---@return boolean
function M.is_id(value)
  local is_proper = type(value) == "string" and value ~= "" and #value <= LONGEST_ID
  return is_proper and not value:find "[%z\1-\31\127]" and kept.encode(value) ~= nil
end

-- Hexadecimal hashes are the same in any case, with or without `0x`; others are not.
local function canonical_hash(hash)
  local digits = type(hash) == "string" and (hash:match "^0[xX](%x+)$" or hash:match "^%x+$")
  return digits and digits:lower() or hash
end

local function same(id)
  return id
end

-- The fields that tell transactions apart, and the one spelling of each.
local fields = {
  { name = "requestId", canonical = same },
  { name = "customId", canonical = same },
  { name = "hash", canonical = canonical_hash },
  { name = "network", canonical = addresses.canonical_network },
}

---The parameters of a submission in one spelling: two that differ in it are the same. Those of a custom score are not
---published, so each whose name ends in "address" is one.
---@param parameters table
---@param extend? table the client's option
---@return table
function M.canonical(parameters, extend)
  local copy, like = tables.copy(parameters), addresses.alike(parameters.network, extend)
  for _, field in ipairs(fields) do
    copy[field.name] = field.canonical(parameters[field.name])
  end
  for name, value in pairs(parameters) do
    if type(value) == "string" and tostring(name):find "[aA]ddress$" then
      copy[name] = addresses.normalize(value, like)
    end
  end
  return copy
end

-- The first field in which two records name different things. A missing field agrees with any.
local function difference(one, other)
  for _, field in ipairs(fields) do
    local left, right = known(one[field.name]), known(other[field.name])
    if left ~= nil and right ~= nil and field.canonical(left) ~= field.canonical(right) then
      return field.name
    end
  end
end

---Whether an answer or an event belongs to a submission: nothing else may become its result. `false` is said of events
---alone: they may be about any transaction. An event about this one by its identifiers must fit in its other fields.
---@param submission riskscreen.Submission
---@param answer any the service's `data`
---@param source "submission"|"poll"|"webhook" where it comes from
---@return boolean|nil belongs nil: it should, and cannot be used
---@return string|nil message
function M.matches(submission, answer, source)
  local record = source == "submission" and records.submission or records.transaction_result
  local message = shape.check(record, answer, "data")
  if not shape.is_object(answer) then
    return nil, message
  end
  local request_id, field = known(answer.requestId), difference(submission, answer)
  if source == "webhook" then
    local by_request = submission.requestId and request_id
    local by_custom = submission.customId and known(answer.customId)
    if field == "requestId" or field == "customId" or not (by_request or by_custom) then
      return false
    end
  elseif source == "poll" and request_id == nil then
    field = "requestId"
  end
  if message then
    return nil, message
  elseif field then
    return nil, ("data.%s must be '%s' (got %s)"):format(field, submission[field], text.show(answer[field]))
  end
  return true
end

---How far a transaction is, by the status of its result.
---@param settings table the client's
---@param answer table
---@return "final"|"pending"|"missing"|"unknown"
function M.progress(settings, answer)
  local status = known(answer.status)
  return status == nil and "missing"
    or tables.set(settings.final_statuses)[status] and "final"
    or tables.set(settings.pending_statuses)[status] and "pending"
    or "unknown"
end

---The name of a submission among those that may be awaited at the same time. Two accounts may have one requestId.
---@param submission riskscreen.Submission
---@return string
function M.name(submission)
  if submission.requestId then
    return ("%s:%s %s"):format(submission.kind, submission.requestId, submission.account or "")
  end
  return tables.fingerprint(submission)
end

---Whether one record covers another one: it has all that the other one knows.
---@param record riskscreen.Submission
---@param wanted riskscreen.Submission
---@return boolean
function M.covers(record, wanted)
  for name, value in pairs(wanted) do
    if name ~= "account" and record[name] ~= value then
      return false
    end
  end
  return true
end

---The record of the parameters of a submission. Identifiers that could not be kept are refused.
---@param kind riskscreen.TransactionKind
---@param parameters table
---@param at number
---@param account string
---@return riskscreen.Submission|nil
---@return riskscreen.Error|nil err
function M.new(kind, parameters, at, account)
  local submission = { kind = kind, at = at, account = account }
  for _, name in ipairs { "customId", "hash", "network" } do
    local value = known(parameters[name])
    if M.is_id(value) then
      submission[name] = value
    elseif type(value) == "string" or name == "customId" and value ~= nil then
      local wanted = "%s must be a UTF-8 text of at most %d bytes without control characters"
      local facts = { field = name, sent = false, attempts = 0, elapsed = 0 }
      return nil, errors.new("invalid_argument", wanted:format(name, LONGEST_ID), facts)
    end
  end
  return submission
end

---@param submission riskscreen.Submission
---@return string|nil ticket
---@return string|nil message
function M.encode(submission)
  -- Tickets without a kind are those of transactions.
  local kind = submission.kind ~= "transaction" and submission.kind or nil
  local content = tables.merge(submission, { version = VERSION })
  content.kind = kind
  return kept.encode(content)
end

---Why a record that was kept cannot be used, or nil.
---@param submission table
---@return string|nil message
function M.check(submission)
  for _, field in ipairs(fields) do
    local value = submission[field.name]
    if value ~= nil and not M.is_id(value) then
      return "the ticket names no valid " .. field.name
    end
  end
  if submission.at ~= nil and type(submission.at) ~= "number" then
    return "the ticket names no valid time"
  elseif submission.kind ~= nil and submission.kind ~= "transaction" and submission.kind ~= "custom_score" then
    return "the ticket is of a kind that is not known: " .. text.show(submission.kind)
  end
end

local function check_ticket(content, account)
  local message = M.check(content)
  if message then
    return message
  elseif content.requestId == nil and content.customId == nil then
    return "the ticket names no valid requestId or customId"
  elseif content.account ~= nil and content.account ~= account then
    return "the ticket is of another service or account than this client's"
  end
end

---@param ticket any
---@param account string the identity of the client's service and account
---@return riskscreen.Submission|nil
---@return riskscreen.Error|nil err
function M.decode(ticket, account)
  local content = type(ticket) == "string" and #ticket <= LONGEST_TICKET and json.decode(ticket)
  local message
  if type(content) ~= "table" or content.version ~= VERSION then
    message = "the ticket must be one that transaction:ticket() returned (got " .. text.show(ticket) .. ")"
  else
    message = check_ticket(content, account)
  end
  if message then
    return nil, errors.new("invalid_argument", message, { field = "ticket", sent = false })
  end
  local submission = tables.pick(content, { "requestId", "customId", "hash", "network", "at", "account" })
  submission.kind = content.kind or "transaction"
  return submission
end

return M
