-- Any bytes as an answer, for every operation. An input is a text such as
--   getAddressRisk 200
--   retry-after: 5
--
--   {"success":true, …}
-- The interpreter must give a value exactly where honest.lua finds the answer honest, else an error of the right kind.
-- The default policy must allow exactly the honest answers that it should.
local errors = require "riskscreen.errors"
local honest = require "spec.fuzz.honest"
local operations = require "riskscreen.interface.operations"
local policies = require "riskscreen.policy"
local access_key = require "riskscreen.call.access_key"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"
local tables = require "riskscreen.util.tables"

local KEY = "secret/key-0123"
local LONGEST_MESSAGE = 1000 -- bytes

local policy = policies.new()
local decoders = response.decoders()
-- Without the core's reader every answer is decoded and checked.
local thorough = { keeping = decoders.keeping, dropping = {} }
function thorough.dropping:decode(text)
  return decoders.dropping:decode(text)
end

local readers = {} -- of each operation: by its shape, and without
local published, parameters = {}, {}
for _, operation in ipairs(operations.list) do
  if operation.path then
    published[#published + 1] = operation
    parameters[operation.name] = samples.of(operation)
    readers[operation.name] = {
      quick = response.reader(operation, nil, nil, decoders),
      slow = response.reader(operation, nil, nil, thorough),
    }
  end
end

local context = {
  clock = function()
    return 784111777
  end,
  redact = access_key.redactor(KEY),
}

-- Whether two values are of one kind: an empty array is no object, and 1 is not 1.0.
local function is_alike(left, right)
  local type_of = math.type or type -- luacheck: ignore 143
  return type_of(left) == type_of(right) and getmetatable(left) == getmetatable(right)
end

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
  local kept = body ~= "" and decoders.keeping:decode(body) or nil
  local judged = status == 200 and kept ~= nil and honest.judge(operation.name, asked, kept) or nil

  local reply = { status = status, headers = headers, body = body }
  local value, result = response.interpret(readers[operation.name].quick, asked, reply, context)
  assert((value ~= nil) == (judged ~= nil), judged and "an honest answer is refused" or "a false answer is taken")
  local slow, slow_result = response.interpret(readers[operation.name].slow, asked, reply, context)
  assert(tables.equal(value, slow, is_alike), "the reader's value is another one")
  if value ~= nil then
    assert(tables.equal(result, slow_result, is_alike), "the reader's pagination is another one")
  end
  if value == nil then
    check_error(status, result)
    check_policy(operation, nil, result)
  else
    if operation.aligned then
      honest.check_aligned(asked[operation.aligned], value)
    end
    check_policy(operation, value, nil, judged)
  end

  value, result = response.raw(reply, context, decoders.dropping)
  if value == nil then
    check_error(status, result)
  end
end
