-- Keeps submissions in a store, so that a program that starts again goes on waiting and never sends one twice. The
-- entry is written before the request is sent, and stays until the program has handled the result.

local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SPACE = "kyt"
local TTL = 30 * 86400 -- seconds
local SENDING = "sending" -- sent, or about to be: the answer is not known

---@class riskscreen.kyt.Content
---@field state "sending"|"submitted"|"finished"
---@field parameters string their fingerprint
---@field ticket? string of a submitted transaction, or of one whose submission is uncertain
---@field result? table of a finished transaction
---@field requestId? string of a finished transaction
---@field customId? string of a finished transaction

---@class riskscreen.kyt.Entry
---@field content? riskscreen.kyt.Content what an earlier submission has left
---@field private space riskscreen.StoreSpace
---@field private key string
---@field private parameters string
local Entry = {}
Entry.__index = Entry

local M = {}

local function hash_of(content)
  return text.hex(digest.sha256(content))
end

local function damaged(key)
  return errors.new("storage", "the store's entry " .. key .. " of a transaction is damaged", { reason = "damaged" })
end

-- The content of an entry, or nil and an error.
local function decode(key, value)
  local content = json.decode(value)
  if type(content) ~= "table" or type(content.state) ~= "string" or type(content.parameters) ~= "string" then
    return nil, damaged(key)
  end
  return content
end

-- Reads what an earlier submission has left, or marks this one as being sent.
local function claim(self, ticket)
  local mark = json.encode { state = SENDING, parameters = self.parameters, ticket = ticket }
  local added, err = self.space:add(self.key, mark, TTL)
  if added then
    return self
  elseif err then
    return nil, err
  end
  local value
  value, err = self.space:get(self.key)
  if err then
    return nil, err
  elseif not value then
    return claim(self, ticket) -- it was removed in between
  end
  self.content, err = decode(self.key, value)
  if not self.content then
    return nil, err
  elseif self.content.parameters ~= self.parameters then
    local message = "customId names another transaction that was submitted; take another one, or forget that one"
    return nil, errors.new("invalid_argument", message, { field = "customId", sent = false })
  end
  return self
end

-- The entry of a submission.
local function entry_of(state, kind, parameters)
  local settings = state.settings
  local fingerprint = hash_of(tables.fingerprint(parameters))
  local service = settings.base_url and settings.base_url.origin or ""
  local id = parameters.customId and "id " .. tostring(parameters.customId) or fingerprint
  return setmetatable({
    space = settings.store:space(SPACE),
    key = hash_of(table.concat({ service, kind, id }, " ")),
    parameters = fingerprint,
  }, Entry)
end

---Removes what the store keeps of a submission.
---@param state riskscreen.State
---@param kind riskscreen.TransactionKind
---@param parameters table
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function M.forget(state, kind, parameters)
  return entry_of(state, kind, parameters):forget()
end

---Begins a submission: nothing is sent before this has succeeded.
---@param state riskscreen.State
---@param kind riskscreen.TransactionKind
---@param parameters table
---@param ticket? string by which the result may come although the answer to the submission is lost
---@return riskscreen.kyt.Entry|nil entry its `content` is that of an earlier submission, which is not sent again
---@return riskscreen.Error|nil err
function M.begin(state, kind, parameters, ticket)
  return claim(entry_of(state, kind, parameters), ticket)
end

---Notes the outcome of a submission. Where that fails the entry says that the outcome is not known, which is safe.
---@param content table
function Entry:note(content)
  self.space:put(self.key, json.encode(tables.merge(content, { parameters = self.parameters })), TTL)
end

---Removes the entry: the transaction may be submitted again.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Entry:forget()
  local removed, err = self.space:delete(self.key)
  return removed ~= nil or nil, err
end

---Iterates over what is kept: entries with their content.
---@param state riskscreen.State
---@return fun(): riskscreen.kyt.Entry|nil
function M.each(state)
  local space = state.settings.store:space(SPACE)
  local each = space:each()
  return function()
    local key, value = each()
    if not key then
      return nil
    end
    local content, err = decode(key, value)
    if not content then
      error(err, 0)
    end
    return setmetatable({ space = space, key = key, parameters = content.parameters, content = content }, Entry)
  end
end

---The error of a submission whose outcome is not known.
---@param content riskscreen.kyt.Content
---@return riskscreen.Error
function M.uncertain(content)
  local message = "the transaction may have been submitted: another program or task submits it, or ended meanwhile"
  return errors.new("cancelled", message, { uncertain = true, sent = true, ticket = content.ticket })
end

return M
