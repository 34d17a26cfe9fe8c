-- One line of a journal: a decision as JSON, and the chain. A line ends with its part, its number, the hash of the line
-- before it and its own hash. The hash covers every byte before `,"hash":`, so nothing is encoded again to check it.

local addresses = require "riskscreen.address"
local calls = require "riskscreen.call"
local digest = require "riskscreen.address.digest"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local LONGEST_TEXT = 1000 -- bytes of an input or of a reason
local MOST_REASONS = 20
local POLICY_DIGITS = 16 -- of the fingerprint of a policy
local LONGEST_MEMBER = 31 * 1024 * 1024 -- bytes; the rest of a line has its place beside a record of this length
local LONGEST_LINE = 32 * 1024 * 1024 -- bytes
local FIRST = ("0"):rep(64) -- the previous hash of the first line
local HASH = "^" .. ("%x"):rep(64) .. "$"
local ENDING = ',"part":(%d+),"seq":(%d+),"prev":"(%x+)","hash":"(%x+)"}$'
local MOST_DIGITS = 15 -- of a number in an ending
-- The longest ending: two numbers and two hashes.
local LONGEST_ENDING = #',"part":,"seq":,"prev":"","hash":""}' + 2 * MOST_DIGITS + 2 * 64

---@class riskscreen.JournalHead the place in the chain after which the next line comes
---@field part integer the number of the file
---@field seq integer the number of the last line
---@field hash string the hash of the last line

---@class riskscreen.JournalEntry a decoded line
---@field id string
---@field time string UTC, such as 2026-01-31T12:00:00Z
---@field input any the address as the caller gave it
---@field network? any
---@field address? string the canonical address, where the input is one
---@field action riskscreen.Action
---@field reasons string[] the worst first
---@field source "service"|"sandbox"|"list"|"cache"|"none" none: nothing was asked, because there was no valid address
---@field policy? string the fingerprint of the policy
---@field identity? string of the decision: service, account, policy and options; 0.9.0 wrote none
---@field degraded? boolean
---@field stale? boolean
---@field outcome? "allow"|"review"|"block" of a gate: what the decision leads to at its location
---@field monitor? boolean the gate lets every request pass, whatever the outcome
---@field request_id? string|number as the caller gave it
---@field meta? table<string, string> such as the case and the analyst, as the caller gave them
---@field answer? string the SHA-256 of the answer of the service
---@field record? table the whole answer, with the option `record`
---@field lost? integer in place of a decision: how many decisions before this line could not be written
---@field version string of the library
---@field part integer
---@field seq integer
---@field prev string
---@field hash string

---@class riskscreen.JournalContext facts about a decision that the decision itself does not hold
---@field address? string the canonical address; otherwise the journal finds it
---@field policy? riskscreen.Policy
---@field identity? string of the decision, by riskscreen.call's identity
---@field source? "service"|"sandbox"|"list"|"cache"|"none"
---@field is_sandbox? boolean the sandbox answered, and no service
---@field outcome? "allow"|"review"|"block" what the decision leads to at a location of a gate
---@field monitor? boolean the location lets every request pass
---@field request_id? string|number
---@field meta? table<string, string>
---@field hide? fun(text: string): string removes the access key
---@field input? any the address as the caller gave it, where the decision has another spelling

local M = { FIRST = FIRST, LONGEST_ENDING = LONGEST_ENDING, LONGEST_LINE = LONGEST_LINE }

local hex = text.hex

---The function that hashes a line: SHA-256, or HMAC-SHA256 with a key. It returns 64 hexadecimal digits.
---@param key? string
---@return fun(text: string): string
function M.hasher(key)
  local hmac = key and digest.hmac(key)
  return function(content)
    return hex(hmac and hmac:code(content) or digest.sha256(content))
  end
end

---The SHA-256 of an answer as JSON with sorted members and without spaces: other programs can compute it, too.
---@param answer table
---@return string
function M.answer_digest(answer)
  return hex(digest.sha256(json.ordered(answer)))
end

-- The fields that a policy needs to decide again.
local function record_of(decision)
  local record = tables.pick(decision, { "entity", "freeze_events", "counterparties" })
  record.risk, record.not_offered = decision.record, decision.not_offered and tables.set(decision.not_offered)
  local errs = decision.errors
  if not errs and decision.error and not decision.record then
    errs = { risk = decision.error }
  end
  for name, err in pairs(errs or {}) do
    record.errors = record.errors or {}
    record.errors[name] = tables.pick(err, { "kind", "message", "status", "code", "absent", "operation" })
  end
  return record
end

-- A text as it came: it is looked for in `journal show`. JSON holds UTF-8 alone. A longer one is no address.
local function plain(value)
  if type(value) == "string" then
    return #value > LONGEST_TEXT and text.printable(value, LONGEST_TEXT) or text.utf8(value)
  elseif value == nil or type(value) == "boolean" then
    return value
  end
  return text.show(value)
end

local function texts_of(meta)
  local texts = {}
  for name, value in pairs(meta) do
    texts[text.printable(tostring(name), LONGEST_TEXT)] = plain(value)
  end
  return texts
end

local function messages_of(decision)
  local messages = json.empty_array()
  for index = 1, math.min(#decision.reasons, MOST_REASONS) do
    messages[index] = text.printable(tostring(decision.reasons[index].message), LONGEST_TEXT)
  end
  return messages
end

local names = text.words(
  "id time lost input network address action reasons source policy degraded stale outcome monitor request_id meta "
    .. "answer version record"
)

-- The members in one order, without the closing brace. A value that cannot be written, such as NaN, is left out, and
-- one that would make the line too long to be read again.
local function encode(values)
  local members = {}
  for _, name in ipairs(names) do
    local encoded = values[name] ~= nil and json.encode(values[name])
    if encoded and #encoded <= LONGEST_MEMBER then
      members[#members + 1] = ('"%s":%s'):format(name, encoded)
    end
  end
  return "{" .. table.concat(members, ",")
end

local function source_of(decision, is_sandbox)
  local err = decision.error
  if err and err.kind == "invalid_argument" and err.sent == false then
    return "none"
  end
  return decision.source or (is_sandbox and "sandbox") or (decision.cached and "cache") or "service"
end

---The text of a decision up to the chain.
---@param decision riskscreen.Decision
---@param context riskscreen.JournalContext
---@param id string
---@param time string
---@param keep_record boolean
---@return string body
function M.body(decision, context, id, time, keep_record)
  local body = encode {
    id = id,
    time = time,
    input = plain(context.input == nil and decision.address or context.input),
    network = plain(decision.network),
    address = context.address or addresses.validate(decision.address, decision.network, "format"),
    action = decision.action,
    reasons = messages_of(decision),
    source = context.source or source_of(decision, context.is_sandbox),
    policy = context.policy and calls.identity.policy(context.policy):sub(1, POLICY_DIGITS) or nil,
    degraded = decision.degraded or nil,
    stale = decision.stale or nil,
    outcome = context.outcome,
    monitor = context.monitor or nil,
    request_id = type(context.request_id) == "number" and context.request_id or plain(context.request_id),
    meta = context.meta and texts_of(context.meta) or nil,
    answer = type(decision.record) == "table" and M.answer_digest(decision.record) or nil,
    version = version,
    record = keep_record and record_of(decision) or nil,
  }
  body = context.hide and context.hide(body, decision) or body
  -- It has no key in it: looking for one would cost a tenth of a line.
  return context.identity and ('%s,"identity":"%s"'):format(body, context.identity) or body
end

---The text of a line that says how many decisions were lost before it.
---@param count integer
---@param id string
---@param time string
---@return string body
function M.lost_body(count, id, time)
  return encode { id = id, time = time, lost = count, version = version }
end

local function is_count(value)
  return type(value) == "number" and value >= 0 and value < 10 ^ MOST_DIGITS and value % 1 == 0
end

---Whether a value from outside is a head: of a file, of a store or of the caller.
---@param value any
---@return boolean
function M.is_head(value)
  return type(value) == "table"
    and is_count(value.part)
    and is_count(value.seq)
    and type(value.hash) == "string"
    and value.hash:find(HASH) ~= nil
end

---Adds the chain to bodies.
---@param bodies string[]
---@param head riskscreen.JournalHead
---@param hash fun(text: string): string
---@return string[] lines without line breaks
---@return riskscreen.JournalHead head after the last line
function M.seal(bodies, head, hash)
  local sealed, seq, own = {}, head.seq, head.hash
  for index, body in ipairs(bodies) do
    seq = seq + 1
    local content = ('%s,"part":%d,"seq":%d,"prev":"%s"'):format(body, head.part, seq, own)
    own = hash(content)
    sealed[index] = content .. ',"hash":"' .. own .. '"}'
  end
  return sealed, { part = head.part, seq = seq, hash = own }
end

---The chain's values at the end of a line: part, number, previous hash, own hash and the text that the hash covers; or
---nil.
---@param line string
---@return table|nil
function M.chain(line)
  local part, seq, prev, hash = line:sub(-LONGEST_ENDING):match(ENDING)
  if not part or #prev ~= 64 or #hash ~= 64 or #part > MOST_DIGITS or #seq > MOST_DIGITS then
    return nil
  end
  return {
    part = tonumber(part),
    seq = tonumber(seq),
    prev = prev,
    hash = hash,
    content = line:sub(1, -(#',"hash":""}' + 64 + 1)),
  }
end

return M
