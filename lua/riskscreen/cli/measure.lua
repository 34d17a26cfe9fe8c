-- riskscreen doctor --assumptions: asks the service what the interface leaves open.

local addresses = require "riskscreen.address"
local assumptions = require "riskscreen.sandbox.assumptions"
local calls = require "riskscreen.call"
local json = require "riskscreen.json"
local operations = require("riskscreen.interface.operations").by_name
local tables = require "riskscreen.util.tables"

local LARGE_PAGE = 1000 -- items; longer than any page that a service is likely to give
local LONGEST_TEXT = 40 -- bytes of a text that is shown
local NETWORK = "eth"
local CLEAN = "0x00000000000000000000000000000000DeaDBeef" -- with capital letters, to see their case in the answer
local SECOND = "0x000000000000000000000000000000000000dEaD"
local STOPPED = {} -- raised where a probe gets no answer
local OF_ANOTHER_FORM = "the answer is of another form"
local OTHER_ADDRESS = "the address has %s: name another one with --address"
local NO_NAME = "the service takes none of the names that were tried"

---@class riskscreen.cli.Measurement
---@field private client riskscreen.Client
---@field private given table address, risky_address, request_id, write
---@field private failure? string why the last probe got no answer
---@field seen table<string, any> what the service does, by assumption
---@field reasons table<string, string> why the rest is not known
---@field sent integer requests
local Measurement = {}
Measurement.__index = Measurement

local function list_of(value)
  return type(value) == "table" and value or {}
end

-- Ends a probe. The reason is for a table that others will read: the service may have put an address into its message.
function Measurement:stop(err)
  local status, code = err.status and ", HTTP " .. err.status or "", err.code and ", code " .. tostring(err.code) or ""
  self.failure = err.kind == "unsupported" and err.message or err.kind .. status .. code
  error(STOPPED, 0)
end

-- The answer to a call of the client, as a table; or nil and the error.
function Measurement:call(method, ...)
  if self.sent >= self.budget then
    self:stop { kind = "the budget was used up" }
  end
  local answer, err = self.client[method](self.client, ...)
  return answer ~= nil and list_of(answer) or nil, err
end

-- The body of an answer, with its nulls; or nil and the error.
function Measurement:try(name, query, body)
  local operation = operations[name]
  local options = { query = query, body = body, keep_null = true, retry = false }
  return self:call("request", operation.http, operation.path, options)
end

-- The body of an answer. Without one the probe ends.
function Measurement:ask(...)
  local answer, err = self:try(...)
  return answer or self:stop(err)
end

-- Notes what the service does, unless it is a text that may hold an address or the key, or is none of this assumption.
function Measurement:settle(assumption, value, reason)
  local shown = tostring(value)
  local is_shown = type(value) == type(assumption.values[1])
    and #shown <= LONGEST_TEXT
    and shown:find "^%w[%w _.-]*$"
    and not addresses.networks_of(shown, "format")[1]
    and self.hide_key(shown) == shown
  if is_shown then
    self.seen[assumption.name] = value
  else
    self.reasons[assumption.name] = value == nil and reason or OF_ANOTHER_FORM
  end
end

-- The tables of a list.
local function records_of(answer)
  local records = {}
  for _, record in ipairs(list_of(answer.data)) do
    records[#records + 1] = type(record) == "table" and record or nil
  end
  return records
end

-- Whether the service found the request invalid, with whichever HTTP status.
local function is_refusal(err)
  local kind = err and err.kind
  return kind == "bad_request" or kind == "api" or kind == "http" and err.code ~= nil and err.status < 500
end

-- The answer about the clean address, and its record.
function Measurement:look_up(name)
  local answer = self:ask(name, { address = self.given.address, network = NETWORK })
  return answer, list_of(answer.data)
end

-- The form of a field without content; nil if it has some, and false if it is of another type, or its record is.
local function form_of(record, field, empty)
  local value = type(record) == "table" and record[field]
  if value == nil or value == json.null then
    return value == nil and "absent" or "null"
  elseif type(value) == "table" then
    return next(value) == nil and empty or nil
  end
  return false
end

-- By name. A probe puts what it sees into `found`, by the assumption; false stands for an answer of another form. It
-- returns the reason why the answer may leave the rest open.
local probes = {}

function probes.risk(measured, found)
  local answer, record = measured:look_up "getAddressRisk"
  local asked = measured.given.address
  local lower = asked:lower()
  found.empty_risks = form_of(answer.data, "risks", "list")
  if asked ~= lower then
    found.answered_address = record.address == asked and "as asked" or record.address == lower and "lower case"
  end
  found.answered_network = record.network or false
  return OTHER_ADDRESS:format "risks, or no capital letter"
end

function probes.entity(measured, found)
  found.absent_entity = form_of(measured:look_up("getAddressEntity").data, "entity", "empty")
  return OTHER_ADDRESS:format "an owner"
end

function probes.counterparties(measured, found)
  found.empty_opponents = form_of(measured:look_up("getAddressCounterparties").data, "opponents", "list")
  return OTHER_ADDRESS:format "counterparties"
end

function probes.freezes(measured, found)
  found.empty_freeze_events = form_of(measured:look_up "getAddressFreezeEvents", "data", "list")
  return OTHER_ADDRESS:format "freeze events"
end

function probes.provider(measured, found)
  local risky = measured.given.risky_address
  if not risky then
    return "name an address with risks: --risky-address"
  end
  local record = list_of(measured:ask("getAddressRisk", { address = risky, network = NETWORK }).data)
  for _, risk in ipairs(list_of(record.risks)) do
    local source = list_of(risk).riskSource
    if source ~= "Community" and source ~= "User-Defined" then
      found.provider = source
    end
  end
  return "no risk of the address is of the service's own"
end

-- The second address twice: the answer reads differently from both ends.
function probes.bulk(measured, found)
  local first, second = measured.given.address:lower(), SECOND:lower()
  local body = { addresses = { measured.given.address, SECOND, SECOND }, network = NETWORK }
  local places, times = {}, 0
  for index, record in ipairs(records_of(measured:ask("listAddressEntities", nil, body))) do
    local address = tostring(record.address):lower()
    places[address], times = places[address] or index, times + (address == second and 1 or 0)
  end
  local one, other = places[first], places[second]
  found.bulk_order = one and other and (one < other and "as asked" or "another") or nil
  found.bulk_repeats = ({ "once", "twice" })[times]
  return "the answer lacks an address"
end

function probes.whitelist(measured, found)
  local pagination = list_of(measured:ask("listWhitelistAddresses").pagination)
  found.first_page, found.page_length = pagination.current_page, pagination.per_page
  return "the answer has no pagination"
end

function probes.blacklist(measured, found)
  local answer, err
  for index, size in ipairs { LARGE_PAGE, 100, 50, 20 } do
    answer, err = measured:try("listBlacklistAddresses", { pageSize = size })
    if not is_refusal(err) then
      break
    end
    found.longer_page = index == 1 and "refused" or found.longer_page
  end
  local length = list_of((answer or measured:stop(err)).pagination).per_page
  found.largest_page = length
  if not found.longer_page and type(length) == "number" and length < LARGE_PAGE then
    found.longer_page = "cut"
  end
  return length and LARGE_PAGE .. " items are taken" or "the answer has no pagination"
end

function probes.invalid(measured, found)
  local answer, err = measured:try("getAddressRisk", { network = NETWORK })
  if answer == nil then
    found.invalid_status = is_refusal(err) and err.status or measured:stop(err)
  end
  return "a lookup without an address was answered"
end

-- The days of usage records, sorted; whether each time is a month, or its first day; and whether none is of a single
-- operation.
local function days_of(answer)
  local days, is_monthly, is_total = {}, true, true
  for _, record in ipairs(records_of(answer)) do
    local day = tostring(record.time):sub(1, 10)
    days[day], is_monthly = true, is_monthly and (#day <= 7 or day:sub(-3) == "-01")
    is_total = is_total and record.methodName == nil
  end
  return tables.sorted_keys(days), is_monthly, is_total
end

-- The one of an assumption's names that a service takes which refuses the others.
local function find_name(measured, name, value)
  for _, candidate in ipairs(assumptions.by_name[name].values) do
    local answer, err = measured:try("getAccountUsage", { [candidate] = value })
    if answer then
      return candidate
    elseif not is_refusal(err) then
      measured:stop(err)
    end
  end
end

-- All names at once, each with a day of its own: the first and the last day of the answer say which names count.
function probes.dates(measured, found)
  local days = days_of(measured:ask "getAccountUsage")
  if #days < 6 then
    return "the account has usage on fewer than six days"
  end
  local query, starts, ends = {}, {}, {}
  for index = 1, 3 do
    local first, last = days[#days - 6 + index], days[#days - 3 + index]
    starts[first], ends[last] = assumptions.by_name.start_date.values[index], assumptions.by_name.end_date.values[index]
    query[starts[first]], query[ends[last]] = first, last
  end
  local answer, err = measured:try("getAccountUsage", query)
  if answer then
    local seen = days_of(answer)
    found.unknown_name, found.start_date, found.end_date = "ignored", starts[seen[1]], ends[seen[#seen]]
  elseif is_refusal(err) then
    found.unknown_name = "refused"
    found.start_date = find_name(measured, "start_date", days[#days - 5])
    found.end_date = find_name(measured, "end_date", days[#days])
  else
    measured:stop(err)
  end
  return NO_NAME
end

-- Two answers to all names at once, in which each name has another pair of values.
local PAIRS = { [true] = { [true] = 1, [false] = 2 }, [false] = { [true] = 3 } }
local CHOICES = { { true, true, false }, { true, false, true } }

function probes.groups(measured, found)
  local periods, groups = assumptions.by_name.granularity.values, assumptions.by_name.group_by.values
  local is_period, is_group = {}, {}
  if measured.seen.unknown_name == "refused" then
    found.granularity = find_name(measured, "granularity", "month")
    found.group_by = find_name(measured, "group_by", "org")
    return NO_NAME
  elseif not measured.seen.unknown_name then
    return measured.reasons.unknown_name
  end
  for round, choices in ipairs(CHOICES) do
    local query = {}
    for index, chosen in ipairs(choices) do
      query[periods[index]], query[groups[index]] = chosen and "month" or "day", chosen and "org" or "endpoint"
    end
    local days, is_monthly, is_total = days_of(measured:ask("getAccountUsage", query))
    if not days[1] then
      return OF_ANOTHER_FORM
    end
    is_period[round], is_group[round] = is_monthly, is_total
  end
  found.granularity = periods[PAIRS[is_period[1]][is_period[2]]]
  found.group_by = groups[PAIRS[is_group[1]][is_group[2]]]
  return NO_NAME
end

function probes.result(measured, found)
  local id = measured.given.request_id
  if not id then
    return "name a transaction that has its result: --request-id"
  end
  local result, err = measured:call("call", "getAsynchronousResult", { requestId = id }, { retry = false })
  result = result or measured:stop(err)
  found.final_status = (result.dirData or result.risks or result.maxScore) and result.status or nil
  return "the result is pending"
end

-- An item that the service refuses, as the interface shows. One that does not refuse it writes it.
function probes.write(measured, found)
  if not measured.given.write then
    return "this probe writes: --write allows it"
  end
  local item = { address = measured.given.address, risks = { { riskLevel = "high" } } }
  local answer, err = measured:try("addBlacklistAddresses", nil, { list = { item }, network = NETWORK })
  if answer == nil then
    found.empty_type_status = err.code == 3016 and err.status or measured:stop(err)
  end
  return "the service took the item: remove it from the blacklist"
end

local M = {}

---Asks the service, by at most `budget` requests. Cheap probes that matter for decisions come first.
---@param client riskscreen.Client
---@param given { address?: string, risky_address?: string, request_id?: string, write?: boolean }
---@param budget integer requests
---@return riskscreen.cli.Measurement
function M.run(client, given, budget)
  given = tables.merge(given, { address = given.address or CLEAN })
  local state = calls.state_of(client)
  local self = setmetatable({ client = client, given = given, budget = budget, sent = 0 }, Measurement)
  self.seen, self.reasons, self.hide_key = {}, {}, state.hide_key
  local send = state.transport
  -- Hedges, and requests that are sent again on a new connection, count as well.
  function state.transport(...)
    if self.sent >= budget then
      return nil, { kind = "cancelled", message = "the budget is used up", sent = false }
    end
    self.sent = self.sent + 1
    return send(...)
  end
  local found, reasons = {}, {} -- by probe
  for _, assumption in ipairs(assumptions.list) do
    local probe = assumption.probe
    if not found[probe] then
      found[probe] = {}
      local ok, reason = pcall(probes[probe], self, found[probe])
      reasons[probe] = ok and reason or reason == STOPPED and self.failure or error(reason, 0)
    end
    self:settle(assumption, found[probe][assumption.name], reasons[probe])
  end
  state.transport = send
  return self
end

---The rows of the table, and the profile of a sandbox that does as the service.
---@param measured riskscreen.cli.Measurement
---@return table[] rows assumption, assumed, seen, result and set
---@return table<string, any> profile
function M.rows(measured)
  local rows, profile = {}, {}
  for index, assumption in ipairs(assumptions.list) do
    local name, assumed = assumption.name, assumption.values[1]
    local seen, result, set = measured.seen[name], "differs", nil
    if seen == nil then
      result, set = "not known", measured.reasons[name]
    elseif seen == assumed or assumption.at_least and seen >= assumed then
      result = "as assumed"
    else
      set = assumption.set and assumption.set:format(seen)
    end
    seen = seen ~= nil and tostring(seen) or nil
    rows[index] = { assumption = assumption.doc, assumed = tostring(assumed), seen = seen, result = result, set = set }
    profile[name] = assumptions.is_possible(assumption, measured.seen[name]) and measured.seen[name] or nil
  end
  return rows, profile
end

return M
