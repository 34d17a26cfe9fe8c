-- The checks of answers give what the reference gives, for good answers and for damaged ones.
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local random = require "spec.support.random"
local records = require "riskscreen.interface.records"
local reference = require "spec.support.shape_reference"
local samples = require "spec.support.samples"
local shape = require "riskscreen.interface.shape"
local tables = require "riskscreen.util.tables"

local ROUNDS = random.rounds(2000)

local transaction = {
  requestId = "r-1",
  status = 1003,
  customId = "mine",
  maxScore = "12.50",
  dirData = {
    ["in"] = { ["1"] = { strategyNo = "1", score = "3", details = { { score = "3", code = "c", name = "n" } } } },
    out = {},
  },
  risks = { { riskLevel = "low", riskType = "scam", riskSource = "Provider" } },
  time = 1767225600000,
}

---@type { name: string, shape: riskscreen.Shape, make: fun(): any }[]
local cases = {
  {
    name = "a pagination",
    shape = records.pagination,
    make = function()
      return { current_page = 1, per_page = 10, total_pages = 1, total_items = 2 }
    end,
  },
  {
    name = "a webhook's event",
    shape = records.webhook_event,
    make = function()
      return { webhookId = "w", eventType = "t", timestamp = "2026-01-01 00:00:00", data = { any = true } }
    end,
  },
}
for _, name in ipairs { "transaction_result", "submission" } do
  cases[#cases + 1] = {
    name = "a " .. name:gsub("_", " "),
    shape = records[name],
    make = function()
      return json.decode(json.encode(transaction))
    end,
  }
end
for _, operation in ipairs(operations.list) do
  if operation.data then
    cases[#cases + 1] = {
      name = "the data of " .. operation.name,
      shape = operation.data,
      make = function()
        return select(2, samples.of(operation)).data
      end,
    }
  end
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
      return { {} }
    end,
    function()
      return { one = "text" }
    end,
    function()
      return generator.pick { "", "text", "12.5", "1e5", "1." }
    end,
    function()
      return generator.pick { 0, -1, 1.5, 2 ^ 53, -2 ^ 53, 2 ^ 53 - 1, 1e300, 1 / 0, -1 / 0, 0 / 0, 9007199254740993 }
    end,
    function()
      return generator.pick { true, false }
    end,
    function() end,
  }()
end

-- Every place in a value: a table and a key of it, in the same order in every run.
local function places(value, list)
  for _, key in ipairs(type(value) == "table" and tables.sorted_keys(value) or {}) do
    list[#list + 1] = { holder = value, key = key }
    places(value[key], list)
  end
  return list
end

describe("the check of a shape", function()
  for _, case in ipairs(cases) do
    it("agrees with the reference about " .. case.name, function()
      assert.is_nil(shape.check(case.shape, case.make(), "data"))
      local generator = random.new(7)
      local refused = 0
      for _ = 1, ROUNDS do
        local root = { data = case.make() }
        for _ = 1, generator.integer(3) do
          local place = generator.pick(places(root, {}))
          place.holder[place.key] = junk(generator)
          root.data = root.data == nil and {} or root.data
        end
        local message = reference(case.shape, root.data, "data")
        assert.equal(message, (shape.check(case.shape, root.data, "data")))
        refused = refused + (message and 1 or 0)
      end
      assert.is_true(refused > ROUNDS / 10)
    end)
  end

  it("has a function for each type that the records use", function()
    for _, name in ipairs { "string", "boolean", "number", "integer", "object", "array", "map" } do
      local one = { type = name, fields = {}, items = { type = "string" } }
      assert.equal(reference(one, json.null, "data"), (shape.check(one, json.null, "data")))
    end
  end)
end)
