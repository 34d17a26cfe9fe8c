-- Faults on demand: what they are, how a request header or a rule asks for one, and what they make of an answer.
-- Breaking a connection is the transport's part (transport.lua in-process, http.lua over sockets).

local check = require "riskscreen.options.check"

---@class riskscreen.sandbox.Fault
---@field kind "delay"|"status"|"hang"|"reset"|"truncate"|"drip"|"invalid-json"|"html"|"empty"
---@field delay? number seconds before anything else happens
---@field status? integer the HTTP status; of "status" required, of the kinds that replace the body optional
---@field retry_after? integer seconds, sent as Retry-After
---@field bytes? integer how much of the body "truncate" sends, or the size of the pieces of "drip"
---@field every? number seconds between the pieces of "drip"
---@field count? integer how many requests it hits; absent: all
---@field nth? integer the first matching request it hits (default 1)
---@field match? { operation?: string, address?: string } which requests it hits; absent: all

local HTML_PAGE = "<!DOCTYPE html>\n<html><head><title>Please wait</title></head><body>Please wait</body></html>\n"

local kinds = { "delay", "status", "hang", "reset", "truncate", "drip", "invalid-json", "html", "empty" }

-- In a header a kind may have a value: the field it stands for.
local header_fields = {
  delay = "delay",
  status = "status",
  truncate = "bytes",
  drip = "bytes",
  ["retry-after"] = "retry_after",
  every = "every",
}

local is_kind = {}
for _, kind in ipairs(kinds) do
  is_kind[kind] = true
end

local MOST = 1000000000
local LONGEST_WAIT = 86400 -- seconds
local DEFAULT_BYTES = { truncate = 20, drip = 16 }
local DEFAULT_INTERVAL = 0.05 -- seconds

local function number(name, type, minimum, maximum, unit, doc)
  return { name = name, type = type, minimum = minimum, maximum = maximum, unit = unit, doc = doc }
end

local match_fields = {
  { name = "operation", type = "string", doc = "The interface's name of the operation." },
  { name = "address", type = "string", doc = "An address the request names." },
}

local M = {}

---@type riskscreen.Option[]
M.fields = {
  { name = "kind", type = "string", required = true, values = kinds, doc = "What happens." },
  number("delay", "number", 0, LONGEST_WAIT, "seconds", "How long nothing happens before that."),
  number("status", "integer", 200, 599, "", "The HTTP status of the answer."),
  number("retry_after", "integer", 0, LONGEST_WAIT, "seconds", "Sent as Retry-After."),
  number("bytes", "integer", 0, MOST, "bytes", "How much is sent before the end, or at a time."),
  number("every", "number", 0, LONGEST_WAIT, "seconds", "The time between two pieces."),
  number("count", "integer", 1, MOST, "requests", "How many requests are hit; by default all."),
  number("nth", "integer", 1, MOST, "requests", "The first matching request that is hit; by default 1."),
  { name = "match", type = "table", fields = match_fields, default = {}, doc = "Which requests; by default all." },
}

---A checked copy of a fault.
---@param fault riskscreen.sandbox.Fault
---@return riskscreen.sandbox.Fault?
---@return string? message
function M.check(fault)
  local checked, wrong = check.options(M.fields, fault)
  if not checked then
    return nil, wrong.message
  end
  local kind = checked.kind
  if (kind == "delay" or kind == "status") and not checked[kind] then
    return nil, kind .. " is required by the kind " .. kind
  end
  if kind == "drip" and checked.bytes == 0 then
    return nil, "bytes must be at least 1 for drip"
  end
  checked.bytes = checked.bytes or DEFAULT_BYTES[kind]
  checked.every = checked.every or kind == "drip" and DEFAULT_INTERVAL or nil
  return checked
end

-- "delay" and "status" only qualify another kind.
local function stronger(kind, other)
  return not other or other == "delay" or (other == "status" and kind ~= "delay")
end

---The fault that a request header asks for, such as "delay=2; status=503; retry-after=1" or "drip=10; every=0.1".
---@param header string
---@return riskscreen.sandbox.Fault?
---@return string? message
function M.parse(header)
  local fault = {}
  for part in header:gmatch "[^;]+" do
    local name, value = part:match "^%s*([%a-]+)%s*=?%s*(.-)%s*$"
    local field = header_fields[name]
    if not field and not is_kind[name] then
      local known = table.concat(kinds, ", ") .. ", retry-after, every"
      return nil, "X-Sandbox-Fault knows " .. known .. " (got '" .. part .. "')"
    elseif value ~= "" then
      fault[field or name] = tonumber(value) or value
    end
    if is_kind[name] and stronger(name, fault.kind) then
      fault.kind = name
    end
  end
  local checked, message = M.check(fault)
  if not checked then
    return nil, "X-Sandbox-Fault: " .. message
  end
  return checked
end

---What a fault leaves of an answer. What cannot be said by status, headers and body stays in the answer's `fault`.
---@param fault riskscreen.sandbox.Fault
---@param response riskscreen.sandbox.Response
---@return riskscreen.sandbox.Response
function M.apply(fault, response)
  local headers, body, status = {}, response.body, fault.status or response.status
  for name, value in pairs(response.headers) do
    headers[name] = value
  end
  if fault.kind == "invalid-json" then
    body = body:sub(1, -2) .. ",]"
  elseif fault.kind == "html" then
    body, headers["content-type"] = HTML_PAGE, "text/html; charset=utf-8"
  elseif fault.kind == "empty" then
    body = ""
  end
  if fault.retry_after then
    headers["retry-after"] = tostring(fault.retry_after)
  end
  local breaks = fault.kind == "hang" or fault.kind == "reset" or fault.kind == "truncate" or fault.kind == "drip"
  return {
    status = status,
    headers = headers,
    body = body,
    fault = (breaks or fault.delay) and {
      kind = breaks and fault.kind or "delay",
      delay = fault.delay or 0,
      bytes = fault.bytes,
      every = fault.every,
    } or nil,
  }
end

return M
