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
local SPENT = {} -- raised where the budget is used up
local OF_ANOTHER_FORM = "the answer is of another form"

---@class riskscreen.cli.Measurement
---@field private client riskscreen.Client
---@field private given table address, risky_address, request_id, write
---@field seen table<string, any> what the service does, by assumption
---@field reasons table<string, string> why the rest is not known
---@field sent integer requests
local Measurement = {}
Measurement.__index = Measurement

-- The reason of a failure for a table that others will read: the service may have put an address into its message.
local function reason_of(err)
  local status, code = err.status and ", HTTP " .. err.status or "", err.code and ", code " .. tostring(err.code) or ""
  return err.kind == "unsupported" and err.message or err.kind .. status .. code
end

-- A value of an answer; or nil, a reason and the error.
local function answered(answer, err)
  if answer == nil then
    return nil, reason_of(err), err
  end
  return type(answer) == "table" and answer or {}
end

function Measurement:spend()
  return self.sent < self.budget or error(SPENT, 0)
end

-- The body of an answer, with its nulls.
function Measurement:ask(name, query, body)
  self:spend()
  local operation = operations[name]
  local options = { query = query, body = body, keep_null = true, retry = false }
  return answered(self.client:request(operation.http, operation.path, options))
end

-- Notes what the service does, unless it is a text that may hold an address or the key, or is none of this assumption.
function Measurement:settle(name, value, reason)
  local shown, wanted = tostring(value), assumptions.by_name[name].values[1]
  local is_shown = type(value) == type(wanted)
    and #shown <= LONGEST_TEXT
    and shown:find "^%w[%w _.-]*$"
    and not addresses.networks_of(shown, "format")[1]
    and self.hide_key(shown) == shown
  if value ~= nil and is_shown then
    self.seen[name] = value
  else
    self.reasons[name] = value ~= nil and OF_ANOTHER_FORM or reason
  end
end

local function list_of(value)
  return type(value) == "table" and value or {}
end

-- The tables of a list.
local function records_of(answer)
  local records = {}
  for _, record in ipairs(list_of(answer and answer.data)) do
    records[#records + 1] = type(record) == "table" and record or nil
  end
  return records
end

-- Whether the service found the request invalid, with whichever HTTP status.
local function is_refusal(err)
  local kind = err and err.kind
  return kind == "bad_request" or kind == "api" or kind == "http" and err.code ~= nil and err.status < 500
end

-- Asks about the clean address, and settles the form of an empty field, or of an empty answer. `what` is what the
-- address must not have. Returns a reason if nothing came, and the record.
function Measurement:lookup(name, field, assumption, what, empty)
  local answer, reason = self:ask(name, { address = self.given.address, network = NETWORK })
  local value = answer and answer.data
  if not answer or field and type(value) ~= "table" then
    return reason or OF_ANOTHER_FORM
  elseif field then
    value = value[field]
  end
  local form = value == nil and "absent" or value == json.null and "null"
  form = form or type(value) == "table" and next(value) == nil and empty or nil
  reason = ("the address has %s: name another one with --address"):format(what)
  self:settle(assumption, form, type(value) == "table" and reason or OF_ANOTHER_FORM)
  return nil, answer.data
end

-- By name. A probe returns the reason why it has settled nothing.
local probes = {}

function probes.risk(measured)
  local reason, record = measured:lookup("getAddressRisk", "risks", "empty_risks", "risks", "list")
  if not record then
    return reason
  end
  local asked = measured.given.address
  local spelling = record.address == asked and "as asked" or record.address == asked:lower() and "lower case" or nil
  spelling = asked ~= asked:lower() and spelling or nil
  reason = "the address has no capital letter, or came back in a third spelling"
  measured:settle("answered_address", spelling, reason)
  measured:settle("answered_network", record.network, "the answer has no network")
end

function probes.entity(measured)
  return (measured:lookup("getAddressEntity", "entity", "absent_entity", "an owner", "empty"))
end

function probes.counterparties(measured)
  return (measured:lookup("getAddressCounterparties", "opponents", "empty_opponents", "counterparties", "list"))
end

function probes.freezes(measured)
  return (measured:lookup("getAddressFreezeEvents", nil, "empty_freeze_events", "freeze events", "list"))
end

function probes.provider(measured)
  local risky = measured.given.risky_address
  if not risky then
    return "name an address with risks: --risky-address"
  end
  local answer, reason = measured:ask("getAddressRisk", { address = risky, network = NETWORK })
  local source
  for _, risk in ipairs(answer and list_of(list_of(answer.data).risks) or {}) do
    local its_source = list_of(risk).riskSource
    if its_source ~= "Community" and its_source ~= "User-Defined" then
      source = its_source
    end
  end
  measured:settle("provider", source, reason or "no risk of the address is of the service's own")
end

-- The second address twice: the answer reads differently from both ends.
function probes.bulk(measured)
  local first, second = measured.given.address:lower(), SECOND:lower()
  local body = { addresses = { measured.given.address, SECOND, SECOND }, network = NETWORK }
  local answer, reason = measured:ask("listAddressEntities", nil, body)
  local places, times = {}, 0
  for index, record in ipairs(records_of(answer)) do
    local address = tostring(record.address):lower()
    places[address], times = places[address] or index, times + (address == second and 1 or 0)
  end
  local one, other = places[first], places[second]
  reason = reason or "the answer lacks an address"
  measured:settle("bulk_order", one and other and (one < other and "as asked" or "another") or nil, reason)
  measured:settle("bulk_repeats", ({ "once", "twice" })[times], reason)
end

function probes.whitelist(measured)
  local answer, reason = measured:ask "listWhitelistAddresses"
  local pagination = list_of(answer and answer.pagination)
  measured:settle("first_page", pagination.current_page, reason or "the answer has no pagination")
  measured:settle("page_length", pagination.per_page, reason or "the answer has no pagination")
end

function probes.blacklist(measured)
  local answer, reason, err
  for index, size in ipairs { LARGE_PAGE, 100, 50, 20 } do
    answer, reason, err = measured:ask("listBlacklistAddresses", { pageSize = size })
    if not is_refusal(err) then
      break
    elseif index == 1 then
      measured:settle("longer_page", "refused")
    end
  end
  local length = list_of(answer and answer.pagination).per_page
  reason = reason or "the answer has no pagination"
  measured:settle("largest_page", length, reason)
  if not measured.seen.longer_page then
    local is_cut = measured.seen.largest_page and length < LARGE_PAGE
    measured:settle("longer_page", is_cut and "cut" or nil, length and LARGE_PAGE .. " items are taken" or reason)
  end
end

function probes.invalid(measured)
  local _, reason, err = measured:ask("getAddressRisk", { network = NETWORK })
  local status = is_refusal(err) and err.status or nil
  measured:settle("invalid_status", status, reason or "a lookup without an address was answered")
end

-- The days of usage records, sorted, and whether they are of single operations.
local function days_of(answer)
  local days, by_operation = {}, false
  for _, record in ipairs(records_of(answer)) do
    days[tostring(record.time):sub(1, 10)] = true
    by_operation = by_operation or record.methodName ~= nil
  end
  return tables.sorted_keys(days), by_operation
end

-- Whether each of the records' times is a month, or its first day.
local function is_monthly(days)
  for _, day in ipairs(days) do
    if #day > 7 and day:sub(-3) ~= "-01" then
      return false
    end
  end
  return days[1] ~= nil
end

local NO_NAME = "the service takes none of the names that were tried"

-- Settles a name by a service that refuses unknown ones: asks for one by one.
local function settle_name(measured, name, value)
  local taken, why = nil, NO_NAME
  for _, candidate in ipairs(assumptions.by_name[name].values) do
    local answer, reason, err = measured:ask("getAccountUsage", { [candidate] = value })
    if answer then
      taken = candidate
      break
    elseif not is_refusal(err) then
      why = reason
    end
  end
  measured:settle(name, taken, why)
end

-- All names at once, each with a day of its own: the first and the last day of the answer say which names count.
function probes.dates(measured)
  local usage, failure = measured:ask "getAccountUsage"
  local days = days_of(usage)
  if #days < 6 then
    return failure or "the account has usage on fewer than six days"
  end
  local query, starts, ends = {}, {}, {}
  for index = 1, 3 do
    local first, last = days[#days - 6 + index], days[#days - 3 + index]
    starts[first], ends[last] = assumptions.by_name.start_date.values[index], assumptions.by_name.end_date.values[index]
    query[starts[first]], query[ends[last]] = first, last
  end
  local answer, reason, err = measured:ask("getAccountUsage", query)
  if answer then
    local found = days_of(answer)
    measured:settle("unknown_name", "ignored")
    measured:settle("start_date", starts[found[1]], NO_NAME)
    measured:settle("end_date", ends[found[#found]], NO_NAME)
  elseif is_refusal(err) then
    measured:settle("unknown_name", "refused")
    settle_name(measured, "start_date", days[#days - 5])
    settle_name(measured, "end_date", days[#days])
  end
  return reason
end

-- Two answers to all names at once, in which each name has another pair of values.
local PAIRS = { [true] = { [true] = 1, [false] = 2 }, [false] = { [true] = 3 } }
local CHOICES = { { true, true, false }, { true, false, true } }

function probes.groups(measured)
  if measured.seen.unknown_name == "refused" then
    settle_name(measured, "granularity", "month")
    settle_name(measured, "group_by", "org")
    return
  elseif not measured.seen.unknown_name then
    return measured.reasons.unknown_name
  end
  local periods, groups = assumptions.by_name.granularity.values, assumptions.by_name.group_by.values
  local is_period, is_group = {}, {}
  for round, choices in ipairs(CHOICES) do
    local query = {}
    for index, chosen in ipairs(choices) do
      query[periods[index]], query[groups[index]] = chosen and "month" or "day", chosen and "org" or "endpoint"
    end
    local answer, reason = measured:ask("getAccountUsage", query)
    local days, by_operation = days_of(answer)
    if not days[1] then
      return reason or OF_ANOTHER_FORM
    end
    is_period[round], is_group[round] = is_monthly(days), not by_operation
  end
  measured:settle("granularity", periods[PAIRS[is_period[1]][is_period[2]]], NO_NAME)
  measured:settle("group_by", groups[PAIRS[is_group[1]][is_group[2]]], NO_NAME)
end

function probes.result(measured)
  local id = measured.given.request_id
  if not id then
    return "name a transaction that has its result: --request-id"
  end
  measured:spend()
  local call = { retry = false }
  local result, reason = answered(measured.client:call("getAsynchronousResult", { requestId = id }, call))
  local is_final = result and (result.dirData or result.risks or result.maxScore)
  measured:settle("final_status", is_final and result.status or nil, reason or "the result is pending")
end

-- An item that the service refuses, by what the interface shows. One that does not refuse it writes it.
function probes.write(measured)
  if not measured.given.write then
    return "this probe writes: --write allows it"
  end
  local item = { address = measured.given.address, risks = { { riskLevel = "high" } } }
  local _, reason, err = measured:ask("addBlacklistAddresses", nil, { list = { item }, network = NETWORK })
  local status = err and err.code == 3016 and err.status or nil
  measured:settle("empty_type_status", status, reason or "the service took the item: remove it from the blacklist")
end

local M = {}

---Asks the service, by at most `budget` requests. What is cheap and matters for decisions comes first.
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
  local reasons = {} -- by probe; false: none
  for _, assumption in ipairs(assumptions.list) do
    local name, probe = assumption.name, assumption.probe
    if reasons[probe] == nil then
      local ok, reason = pcall(probes[probe], self)
      reasons[probe] = ok and reason or not ok and reason ~= SPENT and error(reason, 0)
    end
    self.reasons[name] = self.seen[name] == nil and (self.reasons[name] or reasons[probe]) or nil
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
      result, set = "not known", measured.reasons[name] or "the budget was used up"
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
