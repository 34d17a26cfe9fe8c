-- From a transport's reply to an operation's value, or to an error. Pure. A reply that is malformed, contradicts itself
-- or is about something else never becomes a value. The core reads a good body in one pass, by its shape. Every other
-- body is decoded and checked here, for the words of the error.
local addresses = require "riskscreen.address"
local date = require "riskscreen.util.date"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local records = require "riskscreen.interface.records"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local time = require "riskscreen.util.time"

local MAX_QUOTE = 300 -- bytes of foreign text in a message
local MAX_EXCERPT = 80 -- bytes of a body that is not JSON
local MAX_CLEANED = 200 -- bytes of it that are searched for the key
local MAX_WAIT = 1e9 -- seconds; hundreds of digits would make an infinite one
local NONE = {}

---@class riskscreen.Reply the result of a transport
---@field status integer
---@field headers table<string, string> lower-case names; a 200 has none where the request asked for the body only
---@field body? string
---@field times? table<string, number> seconds
---@field http_version? string

---@class riskscreen.Answer a reply whose body is decoded
---@field status integer
---@field headers table<string, string>
---@field body? string
---@field value? any the decoded body
---@field problem? string why the body is not JSON

---@class riskscreen.Decoders of a client's answers
---@field dropping riskscreen.json.Decoder drops null members
---@field keeping riskscreen.json.Decoder keeps them

---@class riskscreen.Response the second result of a call, beside its value
---@field status integer
---@field headers table<string, string>
---@field elapsed number seconds
---@field attempts integer
---@field pagination? table
---@field cached boolean
---@field times? table<string, number>
---@field is_sandbox? boolean the sandbox in this process answered, and no service

---@class riskscreen.Context
---@field clock fun(): number Unix seconds
---@field redact fun(text: string): string

-- The statuses that have a meaning in the interface, and those for which a hint helps.
local statuses = {
  [400] = { kind = "bad_request", message = "the service found the request invalid" },
  [401] = { kind = "unauthorized", message = "the service refused the access key" },
  [403] = { kind = "http", message = "forbidden: probably by a proxy, or base_url is wrong" },
  [404] = { kind = "http", message = "not found: probably base_url is wrong, or a proxy answered" },
  [405] = { kind = "http", message = "method not allowed: probably base_url is wrong, or a proxy answered" },
  [407] = { kind = "http", message = "the proxy wants credentials" },
  [408] = { kind = "http", message = "request timeout: probably by a proxy" },
  [429] = { kind = "rate_limited", message = "the rate limit is reached or the quota exceeded" },
}
-- The payload of an operation that keeps nulls.
local result_envelope = { type = "object", fields = { tables.merge(records.transaction_result, { name = "data" }) } }

-- The envelopes of an answer that succeeds, beside its payload. The first member tells whether it does.
local envelopes = {
  standard = {
    { name = "success", type = "boolean", value = true, required = true },
    { name = "code", type = "integer", value = 1, required = true },
    { name = "status", type = "string", value = "SUCCESS" },
    { name = "msg", type = "string", value = "SUCCESS" },
  },
  usage = {
    { name = "code", type = "integer", value = 200, required = true },
    { name = "success", type = "boolean", value = true },
  },
}

local server_failure = { kind = "server", message = "the service failed" }
local refusal = { kind = "http", message = "the service refused the request" }
local unknown_status = { kind = "http", message = "the status is not an answer of the service" }

local function quote(context, foreign)
  return text.printable(context.redact(foreign), MAX_QUOTE)
end

-- Whether the envelope of an answer that refuses says at the same time that the request succeeded.
local function claims_success(body)
  return body.success == true or body.code == 1 or body.status == "SUCCESS" or body.msg == "SUCCESS"
end

-- The fields of an error about an answer, as far as its body reports a failure. The message is on one line, bounded and
-- without the key.
local function fields_of(answer, context)
  local body, fields = answer.value, { status = answer.status }
  if shape.is_object(body) then
    local message = type(body.msg) == "string" and body.msg or body.message
    fields.code = shape.is_integer(body.code) and body.code or nil
    fields.msg = type(message) == "string" and quote(context, message) or nil
    fields.envelope_status = type(body.status) == "string" and quote(context, body.status) or nil
    fields.timestamp = shape.is_integer(body.timestamp) and body.timestamp or nil
    -- A refusal that contradicts itself may have had an effect.
    fields.uncertain = claims_success(body) or nil
  end
  return fields
end

local function retry_after(answer, context)
  local value = answer.headers["retry-after"]
  if type(value) ~= "string" then
    return nil
  elseif value:find "^%d+$" then
    return math.min(tonumber(value), MAX_WAIT)
  end
  local at = date.parse_http_date(value)
  return at and time.wait(at, context.clock(), MAX_WAIT)
end

local function redirect_error(answer, context, fields)
  local location = answer.headers.location
  local place = type(location) == "string" and (" to " .. quote(context, location)) or ""
  return errors.new("http", "the answer is a redirect" .. place .. ", which is not followed", fields)
end

-- The end of a message: the service's own message, or the beginning of a body that is not JSON.
local function detail(answer, context, message)
  if message then
    return ": " .. message
  elseif answer.problem then
    local beginning = context.redact(answer.body:sub(1, MAX_CLEANED))
    return (" (the body begins '%s')"):format(text.printable(beginning, MAX_EXCERPT))
  end
  return ""
end

local function status_error(answer, context)
  local status, fields = answer.status, fields_of(answer, context)
  if status >= 300 and status < 400 then
    return redirect_error(answer, context, fields)
  end
  local entry = statuses[status] or (status >= 500 and status < 600 and server_failure) or unknown_status
  if entry.kind == "http" and fields.code and answer.value.success == false then
    entry = refusal
  end
  if entry.kind == "rate_limited" or entry.kind == "server" then
    fields.retry_after = retry_after(answer, context)
  end
  return errors.new(entry.kind, entry.message .. detail(answer, context, fields.msg), fields)
end

local function protocol_error(answer, message)
  return errors.new("protocol", message, { status = answer.status })
end

local function api_error(answer, context)
  local fields = fields_of(answer, context)
  local said = fields.msg and (": " .. fields.msg) or " without a message"
  return errors.new("api", "the service reports a failure" .. said, fields)
end

-- The decoded body of a 200.
local function body_of(answer, context)
  if answer.problem then
    local reason = quote(context, answer.problem)
    return nil, protocol_error(answer, ("the body is not JSON: %s%s"):format(reason, detail(answer, context)))
  elseif answer.value == nil then
    return nil, protocol_error(answer, "the body is empty")
  end
  return answer.value
end

-- A member of an envelope, for a message.
local function show(context, value)
  if type(value) == "string" then
    return "'" .. quote(context, value) .. "'"
  end
  local is_plain = type(value) == "number" or type(value) == "boolean"
  return is_plain and tostring(value) or json.kind(value)
end

-- The error of an answer whose envelope does not say that it succeeds, or contradicts itself; nil for a good one.
local function envelope_error(envelope, body, answer, context)
  for _, member in ipairs(envelope) do
    local name, value = member.name, body[member.name]
    if member.required and value == nil then
      return protocol_error(answer, ("the answer has no '%s'"):format(name))
    end
    local message = member.required and shape.check(member, value, "'" .. name .. "'")
    if message then
      return protocol_error(answer, message)
    end
  end
  local first, success = envelope[1], body.success
  if body[first.name] ~= first.value and not success then
    return api_error(answer, context)
  end
  for _, member in ipairs(envelope) do
    if body[member.name] ~= nil and body[member.name] ~= member.value then
      local name = member.name == "success" and "code" or member.name
      local message = "the answer contradicts itself: success is %s and %s is %s"
      return protocol_error(answer, message:format(show(context, success), name, show(context, body[name])))
    end
  end
end

-- Whether the answer leaves out the list that the operation is about: its payload, or that member of the payload.
local function lacks_list(operation, data)
  local list = operation.may_lack
  if list and list ~= "data" and shape.is_object(data) then
    data = data[list]
  end
  return list ~= nil and (data == nil or data == json.null)
end

local canonical_address = addresses.normalize
local canonical = { address = canonical_address, network = addresses.canonical_network }

-- The message about the first of the named fields in which a record differs from the parameters.
local function differs(names, parameters, record, path, extend)
  for index = 1, #names do
    local name = names[index]
    local asked, answered = parameters[name], record[name]
    if answered ~= asked then
      local network = addresses.alike(parameters.network, extend)
      if type(answered) ~= "string" then
        return ("%s.%s is missing"):format(path, name)
      elseif canonical[name](answered, network) ~= canonical[name](asked, network) then
        return ("%s.%s must be '%s', which was asked (got '%s')"):format(path, name, asked, answered)
      end
    end
  end
end

-- The records in the order of the addresses asked, `false` where the service left one out; or nil and a message.
local function align(wanted, answered, network)
  local asked, found = {}, {}
  for _, address in ipairs(wanted) do
    asked[canonical_address(address, network)] = true
  end
  for index, record in ipairs(answered) do
    local key = canonical_address(record.address, network)
    if not asked[key] then
      return nil, ("data[%d].address is '%s', which was not asked"):format(index, record.address)
    elseif found[key] and not tables.equal(found[key], record) then
      return nil, ("data[%d].address is '%s' again, with other content"):format(index, record.address)
    end
    found[key] = found[key] or record
  end
  local aligned = {}
  for index, address in ipairs(wanted) do
    aligned[index] = found[canonical_address(address, network)] or false
  end
  return aligned
end

-- Names the entry of a list that a message is about: its number alone is that on one page.
local function entry_at(data, message)
  local entry = type(data) == "table" and data[tonumber(message:match "^data%[(%d+)%]")]
  local address = type(entry) == "table" and entry.address
  return type(address) == "string" and ", in the entry of " .. text.show(address) or ""
end

-- The payload in its final form, or nil and a message. Its shape is good, and its records must repeat the parameters.
local function settle(reader, parameters, data)
  local names, message = reader.repeats, nil
  if names then
    message = differs(names, parameters, data, "data", reader.extend)
    return not message and data or nil, message
  end
  local operation = reader.operation
  names = operation.repeats
  for index, record in ipairs(names and data or NONE) do
    message = message or differs(names, parameters, record, "data[" .. index .. "]", reader.extend)
  end
  if not message and operation.aligned then
    return align(parameters[operation.aligned], data, addresses.alike(parameters.network, reader.extend))
  end
  return not message and data or nil, message
end

-- The checked payload of an answer, or nil and a message.
local function payload_of(reader, parameters, data)
  local wanted = reader.operation.data
  if not wanted then
    -- Where the interface shows no payload, an answer without one is still a success.
    return data == nil and true or data
  elseif data == nil then
    return nil, "data is missing"
  end
  local message = shape.check(wanted, data, "data")
  if message then
    return nil, message .. entry_at(data, message)
  end
  return settle(reader, parameters, data)
end

-- The error of an answer without a good envelope, or nil.
local function envelope_err(reader, answer, context)
  local body, err = body_of(answer, context)
  if err then
    return err
  elseif type(body) ~= "table" or body[1] ~= nil or (body.success == nil and not shape.is_object(body)) then
    return protocol_error(answer, "the body must be an object (got " .. json.kind(body) .. ")")
  elseif reader.operation.keeps_null then
    shape.drop_nulls(result_envelope, body)
  end
  return envelope_error(reader.envelope, body, answer, context)
end

-- The reply with its body decoded.
local function open(reply, decoder)
  local answer = { status = reply.status, headers = reply.headers, body = reply.body, value = nil }
  if answer.body and answer.body ~= "" then
    local message
    answer.value, message = decoder:decode(answer.body)
    answer.problem = answer.value == nil and message or nil
  end
  return answer
end

-- The value of an answer and its pagination, or nil and the error.
local function interpret(reader, parameters, answer, context)
  if answer.status ~= 200 then
    return nil, status_error(answer, context)
  end
  local operation, body = reader.operation, answer.value
  local err = envelope_err(reader, answer, context)
  if err then
    return nil, err
  end
  local value, message = payload_of(reader, parameters, body.data)
  local pagination
  if operation.paginated then
    pagination = body.pagination
  end
  if not message and pagination ~= nil then
    message = shape.check(records.pagination, pagination, "pagination")
  end
  if message then
    err = protocol_error(answer, quote(context, message))
    err.absent = lacks_list(operation, body.data) or nil
    return nil, err
  end
  return value, pagination
end

-- A function that gives the payload and the pagination of a usual good body, or nothing. There is none without the
-- core, and none for an operation that keeps nulls or whose payload has no shape.
local function quick_reader(operation, envelope, decoder)
  if not operation.data or operation.keeps_null or not decoder.reader then
    return nil
  end
  local fields = {
    tables.merge(operation.data, { name = "data", required = true }),
    operation.paginated and tables.merge(records.pagination, { name = "pagination" }) or nil,
  }
  for _, member in ipairs(envelope) do
    fields[#fields + 1] = tables.merge(member, { literal = json.encode(member.value) })
  end
  local nodes = shape.nodes { type = "object", fields = fields }
  return nodes and decoder:reader(nodes)
end

local M = {}

---The decoders of a client's answers. A member that occurs twice makes an answer invalid.
---@param max_size? integer bytes of a body
---@return riskscreen.Decoders
function M.decoders(max_size)
  return {
    dropping = json.decoder { max_size = max_size, duplicates = "refuse" },
    keeping = json.decoder { max_size = max_size, duplicates = "refuse", null = "keep" },
  }
end

---@class riskscreen.Reader how the replies to an operation are interpreted
---@field operation? riskscreen.Operation
---@field extend? table the client's option
---@field envelope? table[] the members of the answer beside its payload
---@field repeats? string[] the parameters that its one record repeats
---@field read? fun(body: string): any, table|nil
---@field decoder riskscreen.json.Decoder

---@param operation riskscreen.Operation
---@param envelope? string in place of the operation's
---@param extend? table the client's option
---@param decoders riskscreen.Decoders
---@return riskscreen.Reader
function M.reader(operation, envelope, extend, decoders)
  local members = envelopes[envelope or operation.envelope]
  return {
    operation = operation,
    extend = extend,
    envelope = members,
    repeats = operation.data and operation.data.type ~= "array" and operation.repeats or nil,
    read = quick_reader(operation, members, decoders.dropping),
    decoder = operation.keeps_null and decoders.keeping or decoders.dropping,
  }
end

---The value of an operation and its pagination, or nil and an error.
---@param reader riskscreen.Reader
---@param parameters? table checked
---@param reply riskscreen.Reply
---@param context riskscreen.Context
---@return any value
---@return table|riskscreen.Error|nil
function M.interpret(reader, parameters, reply, context)
  local read = reader.read
  if read and reply.status == 200 and reply.body then
    local data, pagination = read(reply.body)
    if data ~= nil then
      local value = settle(reader, parameters, data)
      if value ~= nil then
        return value, pagination
      end
    end
  end
  if not reader.operation then
    return M.raw(reply, context, reader.decoder)
  end
  return interpret(reader, parameters, open(reply, reader.decoder), context)
end

---The body of a reply that no operation describes, unless it reports a failure.
---@param reply riskscreen.Reply
---@param context riskscreen.Context
---@param decoder riskscreen.json.Decoder
---@return any value
---@return riskscreen.Error|nil
function M.raw(reply, context, decoder)
  local answer = open(reply, decoder)
  if answer.status ~= 200 then
    return nil, status_error(answer, context)
  end
  local body, err = body_of(answer, context)
  if err then
    return nil, err
  elseif type(body) == "table" and body.success == false then
    return nil, api_error(answer, context)
  end
  return body
end

return M
