-- Keeps submissions in a store, so that a program that starts again goes on waiting and never sends one twice. The
-- entry is written before the request is sent, and stays until the program has handled the result.

local calls = require "riskscreen.call"
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local kept = require "riskscreen.json.kept"
local random = require "riskscreen.util.random"
local submissions = require "riskscreen.kyt.submission"
local tables = require "riskscreen.util.tables"
local take = require "riskscreen.util.take"
local text = require "riskscreen.util.text"

local SPACE = "kyt"
local TTL = 30 * 86400 -- seconds
local KINDS = { "transaction", "custom_score" }

---@class riskscreen.kyt.Content
---@field state "sending"|"submitted"|"finished" sending: sent, or about to be; the answer is not known
---@field parameters string their fingerprint
---@field rest? string the fingerprint of the client's other options and of `extra`; entries of 0.9.0 have none
---@field token string tells this submission from any other
---@field submission riskscreen.Submission
---@field result? table of a finished transaction

---@class riskscreen.kyt.Entry
---@field content? riskscreen.kyt.Content what an earlier submission has left
---@field private value string the text that this submission has in the store
---@field private space riskscreen.StoreSpace
---@field private key string
---@field private old_fingerprint string
---@field private is_host_enough boolean whether the key of 0.9.0 can name no other service
---@field private fresh riskscreen.kyt.Content of this submission
local Entry = {}
Entry.__index = Entry

local M = {}

local function hash_of(content)
  return text.hex(digest.sha256(content))
end

local service_of = tables.memoize(calls.identity.service)

-- The key of a submission, and the key under which 0.9.0 kept it. The old key names the host alone, and the parameters
-- as they were spelled.
local function keys_of(state, kind, custom_id, fingerprint, old_fingerprint)
  local settings = state.settings
  local id = custom_id and "id " .. tostring(custom_id)
  local host = settings.base_url and settings.base_url.origin or ""
  return submissions.account_of(state) .. " " .. hash_of(kind .. " " .. (id or fingerprint)),
    hash_of(table.concat({ host, kind, id or old_fingerprint }, " "))
end

-- The fingerprints of parameters, that of 0.9.0, and that of the client's other options and of `extra`; or nil and the
-- error where no JSON could have the values.
local function fingerprints_of(state, parameters, extra)
  local hashes = {}
  for index, value in ipairs {
    submissions.canonical(parameters, state.settings.extend),
    parameters,
    { service_of(state), extra },
  } do
    local ok, fingerprint = pcall(tables.fingerprint, value)
    if not ok then
      local message = "the parameters cannot be sent as JSON: they hold a function, a thread or themselves"
      return nil, errors.new("invalid_argument", message, { sent = false, attempts = 0, elapsed = 0 })
    end
    hashes[index] = hash_of(fingerprint)
  end
  return hashes[1], hashes[2], hashes[3]
end

-- The content of an entry, or nil and an error. 0.9.0 kept a ticket, or beside a result its identifiers alone.
local function decode(key, value)
  local content = kept.decode(value)
  if type(content) == "table" and type(content.state) == "string" and type(content.parameters) == "string" then
    local submission = content.submission or kept.decode(content.ticket)
    if type(submission) ~= "table" then
      submission = { requestId = content.requestId, customId = content.customId }
    end
    submission.kind = submission.kind or "transaction"
    content.submission = submission
    if not submissions.check(submission) then
      return content
    end
  end
  local message = "the store's entry " .. text.printable(key, 200) .. " of a transaction is damaged"
  return nil, errors.new("storage", message, { reason = "damaged" })
end

local function conflict(message, field)
  return nil, errors.new("invalid_argument", message, { field = field, sent = false })
end

-- The entry of an earlier submission, if it is the same one.
local function found(self, key, value)
  local content, err = decode(key, value)
  if not content then
    return nil, err
  elseif content.parameters ~= self.fresh.parameters and content.parameters ~= self.old_fingerprint then
    local message = "customId names another transaction that was submitted; take another one, or forget that one"
    return conflict(message, "customId")
  elseif not content.rest and not self.is_host_enough then
    return conflict(
      "riskscreen 0.9.0 has kept this transaction, or one of another path of this host; it is not sent again: await it "
        .. "with client.kyt:kept(), or forget it"
    )
  elseif content.rest and content.rest ~= self.fresh.rest then
    return conflict(
      "the transaction was submitted with other options of the client, or another `extra`; it is not sent again: "
        .. "await it with client.kyt:kept(), or forget it"
    )
  end
  content.submission.kind = self.fresh.submission.kind -- an entry of 0.9.0 may not tell it
  self.key, self.value, self.content = key, value, content
  return self
end

-- Reads what an earlier submission has left, or marks this one as being sent.
local function claim(self, old_key)
  local key, value, err = old_key, self.space:get(old_key)
  if not value and not err then
    key, self.value = self.key, assert(kept.encode(self.fresh))
    value, err = take(self.space, key, self.value, TTL)
  end
  if err then
    err.sent, err.uncertain = false, nil -- of the request
    return nil, err
  elseif value == self.value then
    return self
  end
  return found(self, key, value)
end

---Begins a submission: nothing is sent before this has succeeded.
---@param state riskscreen.State
---@param submission riskscreen.Submission
---@param parameters table
---@param extra? table of the call
---@return riskscreen.kyt.Entry|nil entry its `content` is that of an earlier submission, which is not sent again
---@return riskscreen.Error|nil err
function M.begin(state, submission, parameters, extra)
  local fingerprint, old_fingerprint, rest = fingerprints_of(state, parameters, extra)
  if not fingerprint then
    return nil, old_fingerprint
  end
  local key, old_key = keys_of(state, submission.kind, parameters.customId, fingerprint, old_fingerprint)
  local settings = state.settings
  local entry = setmetatable({
    space = settings.store:space(SPACE),
    key = key,
    old_fingerprint = old_fingerprint,
    is_host_enough = not settings.unix_socket and (not settings.base_url or settings.base_url.prefix == ""),
    fresh = {
      state = "sending",
      parameters = fingerprint,
      rest = rest,
      submission = submission,
      token = random.token(),
    },
  }, Entry)
  return claim(entry, old_key)
end

---Removes what the store keeps of a submission.
---@param state riskscreen.State
---@param kind riskscreen.TransactionKind
---@param parameters table
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function M.forget(state, kind, parameters)
  local space = state.settings.store:space(SPACE)
  local fingerprint, old_fingerprint = fingerprints_of(state, parameters)
  if not fingerprint then
    return nil, old_fingerprint
  end
  for _, key in ipairs { keys_of(state, kind, parameters.customId, fingerprint, old_fingerprint) } do
    local removed, err = space:delete(key)
    if removed == nil then
      return nil, err
    end
  end
  return true
end

---Notes the outcome of a submission. Where that fails the entry says that the outcome is not known, which is safe.
---@param state "submitted"|"finished"
---@param result? table
function Entry:note(state, result)
  local content = kept.encode(tables.merge(self.fresh, { state = state, result = result }))
  if not content then
    return
  end
  -- Another program may have forgotten this submission meanwhile, and made the next one.
  local noted, err = self.space:replace(self.key, self.value, content, TTL)
  if noted or err and err.uncertain and self.space:get(self.key) == content then
    self.value = content
  end
end

---Removes the entry: the transaction may be submitted again. The entry of a later submission stays.
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Entry:forget()
  local removed, err = self.space:delete(self.key, self.value)
  return removed ~= nil or nil, err
end

-- Whether 0.9.0 has kept an entry for a client of this one's host.
local function is_old(state, key, content)
  for _, kind in ipairs(KINDS) do
    if select(2, keys_of(state, kind, content.submission.customId, "", content.parameters)) == key then
      content.submission.kind = kind
      return true
    end
  end
end

---Iterates over what is kept for the client's account: entries with their content; false and an error for one that
---is damaged, or that another program has put there.
---@param state riskscreen.State
---@return fun(): riskscreen.kyt.Entry|false|nil, riskscreen.Error|nil
function M.each(state)
  local space = state.settings.store:space(SPACE)
  local account = submissions.account_of(state) .. " "
  local each = space:each()
  return function()
    for key, value in each do
      local is_own = key:sub(1, #account) == account
      if is_own or not key:find(" ", 1, true) then
        local content, err = decode(key, value)
        if not content then
          return false, err
        elseif is_own or is_old(state, key, content) then
          return setmetatable({ space = space, key = key, value = value, content = content }, Entry)
        end
      end
    end
  end
end

---An entry that is looked for when it is forgotten, for a submission that is known by its ticket alone.
---@param state riskscreen.State
---@param submission riskscreen.Submission
---@return { forget: fun(): boolean|nil, riskscreen.Error|nil }
function M.of_submission(state, submission)
  return {
    forget = function()
      return errors.result(state.runtime.tasks.pcall(function()
        for entry in M.each(state) do
          if entry and submissions.covers(entry.content.submission, submission) then
            return entry:forget()
          end
        end
        return true
      end))
    end,
  }
end

return M
