-- riskscreen doctor --assumptions: asks the service what the interface leaves open.

local assumptions = require "riskscreen.sandbox.assumptions"
local json = require "riskscreen.json"
local operations = require("riskscreen.interface.operations").by_name
local tables = require "riskscreen.util.tables"

local LARGE_PAGE = 1000 -- items; longer than any page that a service is likely to give
local NETWORK = "eth"
local CLEAN = "0x00000000000000000000000000000000DeaDBeef" -- with capital letters, to see their case in the answer
local SECOND = "0x000000000000000000000000000000000000dEaD"
local SPENT = {} -- raised where the budget is used up

---@class riskscreen.cli.Measurement
---@field private client riskscreen.Client
---@field private given table address, risky_address, request_id
---@field seen table<string, any> what the service does, by assumption
---@field reasons table<string, string> why the rest is not known
---@field sent integer requests
local Measurement = {}
Measurement.__index = Measurement

function Measurement:spend()
  if self.sent >= self.budget then
    error(SPENT, 0)
  end
  self.sent = self.sent + 1
end

-- The body of an answer, with its nulls; or nil and the error.
function Measurement:ask(name, query, body)
  self:spend()
  local operation = operations[name]
  local options = { query = query, body = body, keep_null = true, retry = operation.http == "GET" and false or nil }
  return self.client:request(operation.http, operation.path, options)
end

function Measurement:settle(name, value, reason)
  if value == nil then
    self.reasons[name] = reason
  else
    self.seen[name] = value
  end
end

-- Whether the service found the request invalid, with whichever HTTP status.
local function is_refusal(err)
  return err.kind == "bad_request" or err.kind == "api"
end

-- The payload of a lookup of the clean address; without one the assumptions stay open.
function Measurement:lookup(name, ...)
  local answer, err = self:ask(name, { address = self.given.address, network = NETWORK })
  if answer == nil then
    for _, assumption in ipairs { ... } do
      self.reasons[assumption] = err.message
    end
  end
  return answer
end

-- The form in which a list is empty, or nil.
local function form_of(value)
  return value == nil and "absent" or value == json.null and "null" or value[1] == nil and "list" or nil
end

local probes = {}

function probes.risk(measured)
  local answer = measured:lookup("getAddressRisk", "empty_risks", "answered_address", "answered_network")
  if not answer then
    return
  end
  local record, asked = answer.data, measured.given.address
  local spellings = { [asked:lower()] = "lower case", [asked] = "as asked" }
  local spelling = asked ~= asked:lower() and spellings[record.address] or nil
  measured:settle("empty_risks", form_of(record.risks), "the address has risks: name another one with --address")
  measured:settle("answered_address", spelling, "the address has no capital letter, or came back in a third spelling")
  measured:settle("answered_network", record.network, "the answer has no network")
end

function probes.entity(measured)
  local answer = measured:lookup("getAddressEntity", "absent_entity")
  if answer then
    local form = form_of(answer.data.entity)
    form = form == "list" and (next(answer.data.entity) == nil and "empty" or nil) or form
    measured:settle("absent_entity", form, "the address has an owner: name another one with --address")
  end
end

function probes.counterparties(measured)
  local answer = measured:lookup("getAddressCounterparties", "empty_opponents")
  if answer then
    local form = form_of(answer.data.opponents)
    measured:settle("empty_opponents", form, "the address has counterparties: name another one with --address")
  end
end

function probes.freezes(measured)
  local answer = measured:lookup("getAddressFreezeEvents", "empty_freeze_events")
  if answer then
    measured:settle("empty_freeze_events", form_of(answer.data), "the address has freeze events: use another --address")
  end
end

function probes.provider(measured)
  local risky = measured.given.risky_address
  if not risky then
    measured.reasons.provider = "name an address with risks: --risky-address"
    return
  end
  local answer, err = measured:ask("getAddressRisk", { address = risky, network = NETWORK })
  local source
  for _, risk in ipairs(answer and type(answer.data.risks) == "table" and answer.data.risks or {}) do
    if risk.riskSource ~= "Community" and risk.riskSource ~= "User-Defined" then
      source = risk.riskSource
    end
  end
  measured:settle("provider", source, err and err.message or "no risk of the address is of the service's own")
end

-- The second address twice: the answer reads differently from both ends.
function probes.bulk(measured)
  local first, second = measured.given.address, SECOND
  local body = { addresses = { first, second, second }, network = NETWORK }
  local answer, err = measured:ask("listAddressEntities", nil, body)
  local places, times = {}, 0
  for index, record in ipairs(answer and answer.data or {}) do
    local address = record.address:lower()
    places[address], times = places[address] or index, times + (address == second:lower() and 1 or 0)
  end
  local one, other = places[first:lower()], places[second:lower()]
  local reason = err and err.message or "the answer lacks an address"
  measured:settle("bulk_order", one and other and (one < other and "as asked" or "another") or nil, reason)
  measured:settle("bulk_repeats", ({ "once", "twice" })[times], reason)
end

function probes.whitelist(measured)
  local answer, err = measured:ask "listWhitelistAddresses"
  local pagination = answer and answer.pagination or {}
  local reason = err and err.message or "the answer has no pagination"
  measured:settle("first_page", pagination.current_page, reason)
  measured:settle("page_length", pagination.per_page, reason)
end

function probes.blacklist(measured)
  local answer, err = measured:ask("listBlacklistAddresses", { pageSize = LARGE_PAGE })
  if not answer and not is_refusal(err) then
    measured.reasons.longer_page, measured.reasons.largest_page = err.message, err.message
    return
  end
  local cut = answer and answer.pagination.per_page ~= LARGE_PAGE and "cut"
  measured:settle("longer_page", not answer and "refused" or cut or nil, ("%d items are taken"):format(LARGE_PAGE))
  for _, size in ipairs(answer and {} or { 100, 50, 20 }) do
    answer, err = measured:ask("listBlacklistAddresses", { pageSize = size })
    if answer then
      break
    end
  end
  measured:settle("largest_page", answer and answer.pagination.per_page, err and err.message)
end

function probes.invalid(measured)
  local answer, err = measured:ask("getAddressRisk", { network = NETWORK })
  local status = not answer and is_refusal(err) and err.status or nil
  measured:settle("invalid_status", status, answer and "a lookup without an address was answered" or err.message)
end

-- The days of usage records, sorted, and whether they are of single operations.
local function days_of(answer)
  local days, by_operation = {}, false
  for _, record in ipairs(answer and answer.data or {}) do
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

-- The name that a service takes which refuses unknown ones: asked for one by one.
local function taken_name(measured, name, value)
  for _, candidate in ipairs(assumptions.by_name[name].values) do
    if measured:ask("getAccountUsage", { [candidate] = value }) then
      return candidate
    end
  end
end

local NO_NAME = "the service takes none of the names that were tried"

-- All names at once, each with a day of its own: the first and the last day of the answer say which names count.
function probes.dates(measured)
  local answer, err = measured:ask "getAccountUsage"
  local days = days_of(answer)
  local query, starts, ends = {}, {}, {}
  for index = 1, 3 do
    local first, last = days[#days - 6 + index], days[#days - 3 + index]
    local start_name = assumptions.by_name.start_date.values[index]
    local end_name = assumptions.by_name.end_date.values[index]
    if #days >= 6 then
      query[start_name], query[end_name] = first, last
      starts[first], ends[last] = start_name, end_name
    end
  end
  if #days < 6 then
    local reason = err and err.message or "the account has usage on fewer than six days"
    for _, name in ipairs { "unknown_name", "start_date", "end_date", "granularity", "group_by" } do
      measured.reasons[name] = reason
    end
    return
  end
  answer, err = measured:ask("getAccountUsage", query)
  if answer then
    local found = days_of(answer)
    measured:settle("unknown_name", "ignored")
    measured:settle("start_date", starts[found[1]], NO_NAME)
    measured:settle("end_date", ends[found[#found]], NO_NAME)
  elseif is_refusal(err) then
    measured:settle("unknown_name", "refused")
    measured:settle("start_date", taken_name(measured, "start_date", days[#days - 5]), NO_NAME)
    measured:settle("end_date", taken_name(measured, "end_date", days[#days]), NO_NAME)
  else
    measured.reasons.unknown_name, measured.reasons.start_date = err.message, err.message
    measured.reasons.end_date = err.message
  end
end

-- Two answers to all names at once, in which each name has another pair of values.
local PAIRS = { [true] = { [true] = 1, [false] = 2 }, [false] = { [true] = 3 } }
local CHOICES = { { true, true, false }, { true, false, true } }

function probes.groups(measured)
  if measured.seen.unknown_name == "refused" then
    measured:settle("granularity", taken_name(measured, "granularity", "month"), NO_NAME)
    measured:settle("group_by", taken_name(measured, "group_by", "org"), NO_NAME)
    return
  elseif measured.seen.unknown_name == nil then
    return
  end
  local months, groups = {}, {}
  for round, choices in ipairs(CHOICES) do
    local query = {}
    for index, chosen in ipairs(choices) do
      query[assumptions.by_name.granularity.values[index]] = chosen and "month" or "day"
      query[assumptions.by_name.group_by.values[index]] = chosen and "org" or "endpoint"
    end
    local days, by_operation = days_of((measured:ask("getAccountUsage", query)))
    months[round], groups[round] = is_monthly(days), not by_operation
  end
  local function name_in(name, answers)
    return assumptions.by_name[name].values[PAIRS[answers[1]][answers[2]]]
  end
  measured:settle("granularity", name_in("granularity", months), NO_NAME)
  measured:settle("group_by", name_in("group_by", groups), NO_NAME)
end

function probes.result(measured)
  local id = measured.given.request_id
  if not id then
    measured.reasons.final_status = "name a transaction that has its result: --request-id"
    return
  end
  measured:spend()
  local result, err = measured.client:call("getAsynchronousResult", { requestId = id }, { retry = false })
  local is_final = result and type(result) == "table" and (result.dirData or result.risks or result.maxScore)
  measured:settle("final_status", is_final and result.status or nil, err and err.message or "the result is pending")
end

-- An item that the service refuses, by what the interface shows. One that does not refuse it writes it.
function probes.write(measured)
  if not measured.given.write then
    measured.reasons.empty_type_status = "this probe writes: --write allows it"
    return
  end
  local item = { address = measured.given.address, risks = { { riskLevel = "high" } } }
  local answer, err = measured:ask("addBlacklistAddresses", nil, { list = { item }, network = NETWORK })
  local status = not answer and err.code == 3016 and err.status or nil
  local written = "the service took the item: remove " .. measured.given.address .. " from the blacklist"
  measured:settle("empty_type_status", status, answer and written or err and err.message)
end

local M = {}

---Asks the service, by at most `budget` requests. What is cheap and matters for decisions comes first.
---@param client riskscreen.Client
---@param given { address?: string, risky_address?: string, request_id?: string, write?: boolean }
---@param budget integer requests
---@return riskscreen.cli.Measurement
function M.run(client, given, budget)
  given = tables.merge(given, { address = given.address or CLEAN })
  local self = setmetatable({ client = client, given = given, budget = budget, sent = 0 }, Measurement)
  self.seen, self.reasons = {}, {}
  local done = {}
  for _, assumption in ipairs(assumptions.list) do
    if not done[assumption.probe] then
      done[assumption.probe] = true
      local ok, problem = pcall(probes[assumption.probe], self)
      if not ok and problem ~= SPENT then
        error(problem, 0)
      end
    end
  end
  return self
end

---The rows of the table, and the profile of a sandbox that does as the service.
---@param measured riskscreen.cli.Measurement
---@return table[] rows assumption, assumed, seen, result and set
---@return table<string, any> profile
function M.rows(measured)
  local rows = {}
  for index, assumption in ipairs(assumptions.list) do
    local seen, assumed = measured.seen[assumption.name], assumption.values[1]
    local reason = measured.reasons[assumption.name] or "the budget was used up"
    local is_assumed = seen == assumed or assumption.at_least and seen ~= nil and seen >= assumed
    local result = seen == nil and "not known" or is_assumed and "as assumed" or "differs"
    rows[index] = {
      assumption = assumption.doc,
      assumed = tostring(assumed),
      seen = seen ~= nil and tostring(seen) or nil,
      result = result,
      set = seen == nil and reason or result == "differs" and assumption.set and assumption.set:format(seen) or nil,
    }
  end
  return rows, tables.copy(measured.seen)
end

return M
