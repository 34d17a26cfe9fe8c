-- Faults on demand: the kinds, how a header or a rule asks for one, which request meets which, and the changed answer.
-- The transports break the connection (transport.lua in-process, http.lua over sockets).

local build = require "riskscreen.options.build"
local canonical_address = require("riskscreen.address").normalize
local check = require "riskscreen.options.check"
local scenarios = require "riskscreen.sandbox.scenarios"
local tables = require "riskscreen.util.tables"

---@class riskscreen.sandbox.Fault
---@field kind "delay"|"status"|"hang"|"reset"|"truncate"|"drip"|"invalid-json"|"duplicate"|"html"|"empty"
---@field delay? number seconds before anything else happens
---@field status? integer the HTTP status; required by "status", optional for the kinds that replace the body
---@field retry_after? integer seconds, sent as Retry-After
---@field bytes? integer the part of the body that "truncate" sends, or the size of the pieces of "drip"
---@field every? number seconds between the pieces of "drip"
---@field count? integer the number of requests that it hits; absent: all
---@field nth? integer the first matching request that it hits (default 1)
---@field match? { operation?: string, address?: string } the requests that it hits; absent: all

local HTML_PAGE = "<!DOCTYPE html>\n<html><head><title>Please wait</title></head><body>Please wait</body></html>\n"

local kinds = { "delay", "status", "hang", "reset", "truncate", "drip", "invalid-json", "duplicate", "html", "empty" }
local is_kind = tables.set(kinds)
local breaks_connection = tables.set { "hang", "reset", "truncate", "drip" }

-- The field that a name in the header gives a value to.
local header_fields = {
  delay = "delay",
  status = "status",
  truncate = "bytes",
  drip = "bytes",
  ["retry-after"] = "retry_after",
  every = "every",
}

local MOST = 1000000000
local DEFAULT_BYTES = { truncate = 20, drip = 16 }
local DEFAULT_INTERVAL = 0.05 -- seconds

local match_fields = {
  { name = "operation", type = "string", doc = "The interface's name of the operation." },
  { name = "address", type = "string", doc = "An address in the request." },
}

local M = {}

---@type riskscreen.Option[]
M.fields = {
  build.required(build.choice("kind", kinds, nil, "The kind of the fault.")),
  build.seconds("delay", nil, "The wait before the answer.", 0),
  build.count("status", "", nil, 200, 599, "The HTTP status of the answer."),
  build.count("retry_after", "seconds", nil, 0, build.LONGEST_WAIT, "Sent as Retry-After."),
  build.count("bytes", "bytes", nil, 0, MOST, "The part of the body that `truncate` sends, or the pieces of `drip`."),
  build.seconds("every", nil, "The time between two pieces.", 0),
  build.count("count", "requests", nil, 1, MOST, "The number of requests that it hits; by default all."),
  build.count("nth", "requests", nil, 1, MOST, "The first matching request that it hits; by default 1."),
  build.group("match", match_fields, "The requests that it hits; by default all.", {}),
}

---@type riskscreen.Option
M.option = build.group("fault", M.fields, "A fault.")

-- Completes a fault whose fields are checked.
function M.option.check(fault)
  local kind = fault.kind
  if (kind == "delay" or kind == "status") and not fault[kind] then
    return nil, ("is incomplete: %s is required by the kind %s"):format(kind, kind)
  elseif kind == "drip" and fault.bytes == 0 then
    return nil, "is wrong: bytes must be at least 1 for drip"
  end
  fault.bytes = fault.bytes or DEFAULT_BYTES[kind]
  fault.every = fault.every or kind == "drip" and DEFAULT_INTERVAL or nil
  return fault
end

---The parts of a header such as "late=2; never": names and values. A name without a value has `true`.
---@param header string
---@return fun(): string|nil, string|number|true, string name, value, and the whole part
function M.parts(header)
  local next_part = header:gmatch "[^;]+"
  return function()
    local part = next_part()
    if part then
      local name, value = part:match "^%s*([%a-]*)%s*=?%s*(.-)%s*$"
      return name, value == "" or tonumber(value) or value, part
    end
  end
end

---Counts a request that a rule matches. Whether the rule hits it: from its `nth` match on, `count` times.
---@param rule { seen: integer }
---@param wanted { nth?: integer, count?: integer }
---@return boolean
function M.hits(rule, wanted)
  rule.seen = rule.seen + 1
  local first = wanted.nth or 1
  return rule.seen >= first and rule.seen < first + (wanted.count or math.huge)
end

-- Beside another kind "delay" and "status" are only its fields.
local function outranks(kind, other)
  return not other or other == "delay" or (other == "status" and kind ~= "delay")
end

---Parses the header X-Sandbox-Fault, such as "delay=2; status=503; retry-after=1" or "drip=10; every=0.1".
---@param header string
---@return riskscreen.sandbox.Fault?
---@return string? message
function M.parse(header)
  local fault = {}
  for name, value, part in M.parts(header) do
    local field = header_fields[name]
    if not field and not is_kind[name] then
      local known = table.concat(kinds, ", ") .. ", retry-after, every"
      return nil, "X-Sandbox-Fault knows " .. known .. " (got '" .. part .. "')"
    elseif value ~= true then
      fault[field or name] = value
    end
    if is_kind[name] and outranks(name, fault.kind) then
      fault.kind = name
    end
  end
  local checked, err = check.value(M.option, fault, "X-Sandbox-Fault")
  return checked, err and err.message
end

---Applies a fault to an answer. The part that only a transport can do stays in the answer's `fault`.
---@param fault riskscreen.sandbox.Fault
---@param response riskscreen.sandbox.Response
---@return riskscreen.sandbox.Response
function M.apply(fault, response)
  local headers, body, kind = tables.copy(response.headers), response.body, fault.kind
  if kind == "invalid-json" then
    body = body:sub(1, -2) .. ",]"
  elseif kind == "duplicate" then
    body = body:gsub("^{", '{"success":false,"success":false,', 1)
  elseif kind == "html" then
    body, headers["content-type"] = HTML_PAGE, "text/html; charset=utf-8"
  elseif kind == "empty" then
    body = ""
  end
  headers["retry-after"] = fault.retry_after and tostring(fault.retry_after) or headers["retry-after"]
  local changed = { status = fault.status or response.status, headers = headers, body = body }
  if breaks_connection[kind] or fault.delay then
    changed.fault = {
      kind = breaks_connection[kind] and kind or "delay",
      delay = fault.delay or 0,
      bytes = fault.bytes,
      every = fault.every,
    }
  end
  return changed
end

---@class riskscreen.sandbox.FaultRule
---@field fault riskscreen.sandbox.Fault
---@field address? string the canonical address that it hits
---@field seen integer the requests that it has matched

---@class riskscreen.sandbox.FaultRules
---@field private list riskscreen.sandbox.FaultRule[] in the order of addition, then those of the scenarios
---@field private added integer
local FaultRules = {}
FaultRules.__index = FaultRules

local function new_rule(fault)
  local address = fault.match.address
  return { fault = fault, address = address and canonical_address(address), seen = 0 }
end

-- The canonical addresses of a request.
local function addresses_of(parameters)
  local found = {}
  local function take(address)
    if type(address) == "string" then
      found[canonical_address(address)] = true
    end
  end
  take(parameters.address)
  take(parameters.outputAddress)
  for _, name in ipairs { "addresses", "list" } do
    for _, item in ipairs(type(parameters[name]) == "table" and parameters[name] or {}) do
      take(type(item) == "table" and item.address or item)
    end
  end
  return found
end

local function matches(rule, operation, addresses)
  local wanted = rule.fault.match.operation
  return (not wanted or wanted == operation.name) and (not rule.address or addresses[rule.address] ~= nil)
end

---Adds a rule.
---@param fault riskscreen.sandbox.Fault checked
function FaultRules:add(fault)
  self.added = self.added + 1
  table.insert(self.list, self.added, new_rule(fault))
end

---The fault that a request meets: the header's, or that of the first rule that hits it.
---@param header? string the value of X-Sandbox-Fault
---@param operation riskscreen.Operation
---@param parameters table not checked yet
---@return riskscreen.sandbox.Fault?
---@return string? message if the header is malformed
function FaultRules:match(header, operation, parameters)
  if header then
    return M.parse(header)
  end
  local addresses = addresses_of(parameters)
  for _, rule in ipairs(self.list) do
    if matches(rule, operation, addresses) and M.hits(rule, rule.fault) then
      return rule.fault
    end
  end
end

-- The rules of the scenario addresses, checked once: their checks took most of the time of a new service.
local scenario_rules

local function make_scenario_rules()
  local list = {}
  for _, scenario in ipairs(scenarios) do
    if scenario.fault then
      local fault = tables.merge(scenario.fault, { match = { address = scenario.address } })
      list[#list + 1] = new_rule(assert(check.value(M.option, fault, scenario.name)))
    end
  end
  return list
end

---The rules of the scenario addresses alone.
---@return riskscreen.sandbox.FaultRules
function M.new_rules()
  scenario_rules = scenario_rules or make_scenario_rules()
  local list = {}
  for index, rule in ipairs(scenario_rules) do
    list[index] = tables.copy(rule)
  end
  return setmetatable({ list = list, added = 0 }, FaultRules)
end

return M
