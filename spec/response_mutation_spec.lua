-- Random damage to good answers: whatever is broken, interpret gives an error; whatever it gives as a value still has
-- the shape and the subject that were asked for.
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local operations = require "riskscreen.operations"
local random = require "spec.support.random"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.response"
local samples = require "spec.support.samples"

local ROUNDS = 400

local context = {
  clock = function()
    return 0
  end,
  redact = function(text)
    return text
  end,
}

local function interpret(operation, parameters, body)
  return response.interpret(operation, parameters, recorder.reply(200, body), context)
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

-- Every table in a body and the key under which its parent holds it.
local function places(value, list)
  list = list or {}
  for key, member in pairs(value) do
    list[#list + 1] = { holder = value, key = key, name = tostring(key) }
    if type(member) == "table" then
      places(member, list)
    end
  end
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
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

    it("to " .. operation.name .. " is no value when its envelope is broken", function()
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
      it("to " .. operation.name .. " is no value when its data is of another type", function()
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

    if operation.subject then
      it("to " .. operation.name .. " is no value when it is about something else", function()
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
