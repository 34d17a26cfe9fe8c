-- From a transport's reply to an operation's value, or to an error: pure. Nothing that is malformed, contradicts
-- itself or is about something else leaves here as a value.
local calendar = require "riskscreen.util.date"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local subject = require "riskscreen.interface.subject"
local text = require "riskscreen.util.text"

local LONGEST_QUOTE = 300 -- bytes of foreign text in a message
local LONGEST_WAIT = 1e9 -- seconds; hundreds of digits would make an infinite one

---@class riskscreen.Reply what a transport returns
---@field status integer
---@field headers table<string, string> lower-case names
---@field value? any the decoded body
---@field invalid? { message: string, position: integer } the body is there but is not JSON
---@field excerpt? string the beginning of such a body
---@field size? integer bytes of the body
---@field times? table<string, number> seconds
---@field http_version? string

---@class riskscreen.Response what accompanies a value
---@field status integer
---@field headers table<string, string>
---@field elapsed number seconds
---@field attempts integer
---@field pagination? table
---@field cached boolean
---@field times? table<string, number>

---@class riskscreen.Context
---@field clock fun(): number Unix seconds
---@field redact fun(text: string): string
---@field envelope? string the one in force, where it is not the operation's

-- What a status says, where the interface gives it a meaning or where a hint helps.
local statuses = {
  [400] = { kind = "bad_request", message = "the service found the request invalid" },
  [401] = { kind = "unauthorized", message = "the service refused the access key" },
  [403] = { message = "forbidden: probably by a proxy, or base_url is wrong" },
  [404] = { message = "not found: probably base_url is wrong, or a proxy answered" },
  [405] = { message = "method not allowed: probably base_url is wrong, or a proxy answered" },
  [407] = { message = "the proxy wants credentials" },
  [408] = { message = "request timeout: probably by a proxy" },
  [429] = { kind = "rate_limited", message = "the rate limit is reached or the quota exceeded" },
}

local function quote(context, foreign)
  return text.printable(context.redact(foreign), LONGEST_QUOTE)
end

-- Which code and which words an envelope carries, as far as it is one.
local function envelope_words(value)
  if not shape.is_object(value) then
    return nil, nil
  end
  local words = type(value.msg) == "string" and value.msg or value.message
  return shape.is_integer(value.code) and value.code or nil, type(words) == "string" and words or nil
end

-- ": <what the service said>", or what the body looks like, or nothing.
local function detail(reply, context)
  local _, words = envelope_words(reply.value)
  if words then
    return ": " .. quote(context, words)
  elseif reply.invalid and reply.excerpt then
    return (" (the body begins '%s')"):format(text.printable(context.redact(reply.excerpt), 80))
  end
  return ""
end

local function retry_after(reply, context)
  local value = reply.headers["retry-after"]
  if type(value) ~= "string" then
    return nil
  elseif value:find "^%d+$" then
    return math.min(tonumber(value), LONGEST_WAIT)
  end
  local at = calendar.parse_http_date(value)
  return at and math.max(0, at - context.clock())
end

local function status_error(reply, context)
  local status = reply.status
  local code = envelope_words(reply.value)
  local entry = statuses[status]
  local fields = { status = status, code = code }
  if entry then
    if status == 429 then
      fields.retry_after = retry_after(reply, context)
    end
    return errors.new(entry.kind or "http", entry.message .. detail(reply, context), fields)
  elseif status >= 500 and status < 600 then
    fields.retry_after = retry_after(reply, context)
    return errors.new("server", "the service failed" .. detail(reply, context), fields)
  elseif status >= 300 and status < 400 then
    local location = reply.headers.location
    local where = type(location) == "string" and (" to " .. quote(context, location)) or ""
    return errors.new("http", "the answer is a redirect" .. where .. ", which is not followed", fields)
  end
  return errors.new("http", "the status is not an answer of the service" .. detail(reply, context), fields)
end

local function protocol(reply, message)
  return errors.new("protocol", message, { status = reply.status })
end

-- The decoded body of a 200, or why there is none.
local function body_of(reply, context)
  if reply.invalid then
    local place = reply.invalid.position and (" at byte " .. reply.invalid.position) or ""
    local what = quote(context, tostring(reply.invalid.message))
    return nil, protocol(reply, ("the body is not JSON: %s%s%s"):format(what, place, detail(reply, context)))
  elseif reply.value == nil then
    return nil, protocol(reply, "the body is empty")
  end
  return reply.value
end

local function object_of(reply, context)
  local body, err = body_of(reply, context)
  if err then
    return nil, err
  elseif not shape.is_object(body) then
    return nil, protocol(reply, "the body must be an object (got " .. json.kind(body) .. ")")
  end
  return body
end

local function api_error(reply, context)
  local code, words = envelope_words(reply.value)
  local said = words and (": " .. quote(context, words)) or " without a message"
  return errors.new("api", "the service reports a failure" .. said, { status = reply.status, code = code })
end

local function ill_typed(envelope, field, wanted)
  if envelope[field] == nil then
    return ("the answer has no '%s'"):format(field)
  end
  return ("'%s' must be %s (got %s)"):format(field, wanted, json.kind(envelope[field]))
end

local envelopes = {}

-- { success = true, code = 1, status = "SUCCESS" or absent }
function envelopes.standard(envelope, reply, context)
  local success, code, status = envelope.success, envelope.code, envelope.status
  if type(success) ~= "boolean" then
    return protocol(reply, ill_typed(envelope, "success", "a boolean"))
  elseif not shape.is_integer(code) then
    return protocol(reply, ill_typed(envelope, "code", "an integer"))
  elseif not success then
    return api_error(reply, context)
  elseif code ~= 1 then
    return protocol(reply, ("the answer contradicts itself: success is true and code is %s"):format(tostring(code)))
  elseif status ~= nil and status ~= "SUCCESS" then
    local shown = type(status) == "string" and ("'" .. quote(context, status) .. "'") or json.kind(status)
    return protocol(reply, "the answer contradicts itself: success is true and status is " .. shown)
  end
end

-- { code = 200 }, without `success`
function envelopes.usage(envelope, reply, context)
  local success, code = envelope.success, envelope.code
  if not shape.is_integer(code) then
    return protocol(reply, ill_typed(envelope, "code", "an integer"))
  elseif success ~= nil and success ~= (code == 200) then
    return protocol(reply, ("the answer contradicts itself: success is there and code is %s"):format(tostring(code)))
  elseif code ~= 200 then
    return api_error(reply, context)
  end
end

-- The records that must be about what was asked, with the path of each.
local function check_subjects(operation, parameters, data)
  if not operation.subject then
    return nil
  elseif operation.data.type ~= "array" then
    return subject.check(operation.subject, parameters, data, "data")
  end
  for i, record in ipairs(data) do
    local message = subject.check(operation.subject, parameters, record, "data[" .. i .. "]")
    if message then
      return message
    end
  end
end

-- The payload in its final form, or what is wrong with it.
local function payload(operation, parameters, envelope)
  local data = envelope.data
  if not operation.data then
    -- Where the interface shows no payload, an answer without one is still a success.
    if data == nil then
      return true
    end
    return data
  elseif data == nil then
    return nil, "data is missing"
  end
  local message = shape.check(operation.data, data, "data") or check_subjects(operation, parameters, data)
  if message then
    return nil, message
  elseif operation.aligned then
    return subject.align(parameters[operation.aligned], data, "data")
  end
  return data
end

local function accompany(reply, pagination)
  return {
    status = reply.status,
    headers = reply.headers,
    times = reply.times,
    pagination = pagination,
    attempts = 1,
    cached = false,
  }
end

local M = {}

---What a reply means for an operation. Either a value with its response, or nil and an error.
---@param operation riskscreen.Operation
---@param parameters table checked
---@param reply riskscreen.Reply
---@param context riskscreen.Context
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.interpret(operation, parameters, reply, context)
  if reply.status ~= 200 then
    return nil, status_error(reply, context)
  end
  local envelope, err = object_of(reply, context)
  if envelope then
    err = envelopes[context.envelope or operation.envelope](envelope, reply, context)
  end
  if err then
    return nil, err
  end
  local value, message = payload(operation, parameters, envelope)
  if not message and operation.paginated and envelope.pagination ~= nil then
    message = shape.check(records.pagination, envelope.pagination, "pagination")
  end
  if message then
    return nil, protocol(reply, quote(context, message))
  end
  return value, accompany(reply, operation.paginated and envelope.pagination or nil)
end

---What a reply means where no operation describes it: the body as it is, unless it reports a failure.
---@param reply riskscreen.Reply
---@param context riskscreen.Context
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.raw(reply, context)
  if reply.status ~= 200 then
    return nil, status_error(reply, context)
  end
  local body, err = body_of(reply, context)
  if err then
    return nil, err
  elseif type(body) == "table" and body.success == false then
    return nil, api_error(reply, context)
  end
  return body, accompany(reply)
end

return M
