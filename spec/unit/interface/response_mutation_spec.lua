-- Random damage to good answers: `interpret` gives an error, or a value of the right shape about the right address.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local random = require "spec.support.random"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local ROUNDS = random.rounds(400)

local decoders = response.decoders()

local context = {
  clock = function()
    return 0
  end,
  redact = function(text)
    return text
  end,
}

local function interpret(operation, parameters, body)
  return response.interpret(
    response.reader(operation, nil, nil, decoders),
    parameters,
    recorder.reply(200, body),
    context
  )
end

local function published()
  local list = {}
  for _, operation in ipairs(operations.list) do
    if operation.path then
      list[#list + 1] = operation
    end
  end
  return list
end

local function sorted_keys(value)
  local keys = {}
  for key in pairs(value) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    return tostring(a) < tostring(b)
  end)
  return keys
end

-- Every place in a body: a table and a key of it. The order is the same in every run, so that the damage is.
local function places(value, list)
  list = list or {}
  for _, key in ipairs(sorted_keys(value)) do
    list[#list + 1] = { holder = value, key = key }
    if type(value[key]) == "table" then
      places(value[key], list)
    end
  end
  return list
end

-- The JSON text of a body, members in the same order in every run.
local function text_of(value)
  if type(value) ~= "table" then
    return json.encode(value)
  end
  local parts, is_array = {}, json.is_array(value)
  for i, key in ipairs(sorted_keys(value)) do
    parts[i] = (is_array and "" or json.encode(key) .. ":") .. text_of(value[key])
  end
  local list = table.concat(parts, ",")
  return is_array and "[" .. list .. "]" or "{" .. list .. "}"
end

local function junk(generator)
  return generator.pick {
    function()
      return json.null
    end,
    function()
      return json.empty_array()
    end,
    function()
      return {}
    end,
    function()
      return "text"
    end,
    function()
      return ""
    end,
    function()
      return -1.5
    end,
    function()
      return 0
    end,
    function()
      return 1e300
    end,
    function()
      return true
    end,
    function()
      return false
    end,
    function()
      return { { {} } }
    end,
    function() end,
  }()
end

-- The properties of every value that `interpret` gives, stated independently of its code.
local function assert_sound(operation, parameters, body, value)
  if operation.envelope == "usage" then
    assert.equal(200, body.code)
  else
    assert.is_true(body.success)
    assert.equal(1, body.code)
  end
  local wanted = { eth = true, ethereum = true }
  for _, record in ipairs(operation.repeats and (operation.aligned and value or { value }) or {}) do
    if record then
      assert.is_true(wanted[record.network])
    end
  end
  if operation.aligned then
    assert.equal(#parameters.addresses, #value)
    for i, record in ipairs(value) do
      assert.is_true(record == false or record.address:lower() == parameters.addresses[i]:lower())
    end
  elseif operation.repeats then
    assert.equal(parameters.address:lower(), value.address:lower())
  end
end

describe("an answer with damaged text", function()
  local pieces = { "", '"', "{", "}", "[", "]", ",", ":", "0", "1", "-", "e", "null", "true", "\\", " ", "\255" }

  for _, operation in ipairs(published()) do
    it("to " .. operation.name .. " is refused, or still about the right address", function()
      local generator = random.new(19)
      local accepted, refused = 0, 0
      for _ = 1, ROUNDS * 2 do
        local parameters, good = samples.of(operation)
        local text = text_of(good)
        local at = generator.integer(#text)
        text = text:sub(1, at - 1) .. generator.pick(pieces) .. text:sub(at + generator.integer(4) - 1)
        local body = json.decode(text)
        local value, err
        if body ~= nil then
          value, err = interpret(operation, parameters, body)
        end
        if value ~= nil then
          accepted = accepted + 1
          assert_sound(operation, parameters, body, value)
        else
          refused = refused + 1
          assert.is_true(body == nil or errors.is(err))
        end
      end
      assert.is_true(accepted > 0 and refused > 0)
    end)
  end
end)

describe("a damaged answer", function()
  for _, operation in ipairs(published()) do
    it("to " .. operation.name .. " never raises and gives a value or an error", function()
      local generator = random.new(7)
      for _ = 1, ROUNDS do
        local parameters, body = samples.of(operation)
        for _ = 1, generator.integer(3) do
          local place = generator.pick(places(body))
          place.holder[place.key] = junk(generator)
        end
        local value, err = interpret(operation, parameters, body)
        assert.is_true(value ~= nil or errors.is(err))
      end
    end)

    it("to " .. operation.name .. " is refused when its envelope is broken", function()
      local generator = random.new(11)
      local fields = operation.envelope == "usage" and { "code" } or { "success", "code" }
      for _ = 1, ROUNDS do
        local parameters, body = samples.of(operation)
        local field = generator.pick(fields)
        local good = body[field]
        body[field] = junk(generator)
        if body[field] ~= good then
          local value, err = interpret(operation, parameters, body)
          assert.is_nil(value)
          assert.is_true(errors.is(err))
        end
      end
    end)

    if operation.data then
      it("to " .. operation.name .. " is refused when its data has another type", function()
        local generator = random.new(13)
        for _ = 1, ROUNDS do
          local parameters, body = samples.of(operation)
          body.data = junk(generator)
          local kind = type(body.data) ~= "table" and "scalar" or json.is_array(body.data) and "array" or "object"
          local value = interpret(operation, parameters, body)
          assert.is_true(value == nil or kind == operation.data.type)
        end
      end)
    end

    if operation.repeats then
      it("to " .. operation.name .. " is refused when it is about another address", function()
        local generator = random.new(17)
        for _ = 1, ROUNDS do
          local parameters, body = samples.of(operation)
          local record = operation.data.type == "array" and generator.pick(body.data) or body.data
          local name = generator.pick { "address", "network" }
          record[name] = junk(generator)
          assert.is_nil((interpret(operation, parameters, body)))
        end
      end)
    end
  end
end)
