-- Any bytes as an answer, for every operation. An input is a text such as
--   getAddressRisk 200
--   retry-after: 5
--
--   {"success":true, …}
-- The interpreter must give a value exactly where honest.lua finds the answer honest, else an error of the right kind.
-- The default policy must allow exactly the honest answers that it should.
local core = require "riskscreen.core"
local errors = require "riskscreen.errors"
local honest = require "spec.fuzz.honest"
local operations = require "riskscreen.interface.operations"
local policies = require "riskscreen.policy"
local access_key = require "riskscreen.call.access_key"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local KEY = "secret/key-0123"
local LONGEST_MESSAGE = 1000 -- bytes
local EXCERPT = 200 -- bytes of a body that is not JSON, as the runtime keeps them

local policy = policies.new()
local dropping, keeping = core.decoder { duplicates = "refuse" }, core.decoder { null = "keep", duplicates = "refuse" }
local published, parameters = {}, {}
for _, operation in ipairs(operations.list) do
  if operation.path then
    published[#published + 1] = operation
    parameters[operation.name] = samples.of(operation)
  end
end

local context = {
  clock = function()
    return 784111777
  end,
  redact = access_key.redactor(KEY),
}

local function split(input)
  local first, rest = input:match "^([^\n]*)\n?(.*)$"
  local headers = {}
  while rest ~= "" do
    local line, after = rest:match "^([^\n]*)\n?(.*)$"
    rest = after
    if line == "" then
      break
    end
    local name, value = line:match "^([^:]*):?%s*(.*)$"
    headers[name:lower()] = value
  end
  local name, status = first:match "^(%S*)%s*(%d*)"
  local operation = operations.by_name[name]
  if not (operation and operation.path) then
    operation = published[#input % #published + 1]
  end
  return operation, tonumber(status:sub(1, 4)) or 200, headers, rest
end

local function reply_of(decoder, status, headers, body)
  local reply = { status = status, headers = headers, size = #body }
  if #body > 0 then
    local value, message = decoder:decode(body)
    if value == nil then
      reply.invalid = { message = message }
      reply.excerpt = body:sub(1, EXCERPT)
    end
    reply.value = value
  end
  return reply
end

local status_kinds = { [400] = "bad_request", [401] = "unauthorized", [429] = "rate_limited" }

local function check_error(status, err)
  assert(errors.is(err), "neither a value nor an error")
  local message = tostring(err)
  assert(#message <= LONGEST_MESSAGE, "a message of " .. #message .. " bytes")
  assert(not message:find "%c", "control characters in a message")
  assert(not message:find(KEY, 1, true), "the key is in a message")
  if status == 200 then
    assert(err.kind == "protocol" or err.kind == "api", err.kind)
  else
    local wanted = status_kinds[status] or (status >= 500 and status < 600 and "server") or "http"
    assert(err.kind == wanted, err.kind .. " where it should be " .. wanted)
  end
  if err.retry_after then
    assert(err.retry_after >= 0 and err.retry_after < math.huge, "retry_after is " .. err.retry_after)
  end
end

local function check_policy(operation, value, err, judged)
  local decision = policy:decide {
    risk = operation.name == "getAddressRisk" and value or nil,
    errors = { risk = err },
  }
  local allows = operation.name == "getAddressRisk" and judged ~= nil and honest.allows(judged.data)
  assert((decision.action == "allow") == allows, "the decision is " .. decision.action)
  assert(not decision.degraded, "the decision is degraded")
end

return function(input)
  local operation, status, headers, body = split(input)
  local asked = parameters[operation.name]
  local kept = reply_of(keeping, status, headers, body)
  local judged = status == 200 and kept.value ~= nil and honest.judge(operation.name, asked, kept.value) or nil

  local reader = response.reader(operation)
  local value, result = response.interpret(reader, asked, reply_of(dropping, status, headers, body), context)
  assert((value ~= nil) == (judged ~= nil), judged and "an honest answer is refused" or "a false answer is taken")
  if value == nil then
    check_error(status, result)
    check_policy(operation, nil, result)
  else
    if operation.aligned then
      honest.check_aligned(asked[operation.aligned], value)
    end
    check_policy(operation, value, nil, judged)
  end

  -- A transport may keep nulls.
  value, result = response.interpret(response.reader(operation), asked, kept, context)
  assert(value == nil or judged, "a false answer is taken when nulls are kept")
  if value == nil then
    check_error(status, result)
  end
  value, result = response.raw(kept, context)
  if value == nil then
    check_error(status, result)
  end
end
