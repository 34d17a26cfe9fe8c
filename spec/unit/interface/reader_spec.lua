-- The core's reader of answers gives the value that the decoder and the checks give, or nothing.
local core = require "riskscreen.core"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local random = require "spec.support.random"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"
local shape = require "riskscreen.interface.shape"

local ROUNDS = random.rounds(4000)

local decoders = response.decoders()

local function reader_of(name)
  return response.reader(operations.by_name[name], nil, nil, decoders).read
end

-- The operations whose answers have a shape that the core reads.
local function readable()
  local list = {}
  for _, operation in ipairs(operations.list) do
    if operation.path and operation.data and not operation.keeps_null then
      list[#list + 1] = operation
    end
  end
  return list
end

local function has_good_envelope(operation, body)
  if operation.envelope == "usage" then
    return body.success ~= false and body.code == 200
  end
  local function is_absent_or_good(value)
    return value == nil or value == "SUCCESS"
  end
  return body.success == true and body.code == 1 and is_absent_or_good(body.msg) and is_absent_or_good(body.status)
end

-- The value by the decoder and the checks in Lua; nil for a text that they refuse.
local function thorough(operation, text)
  local body = decoders.dropping:decode(text)
  if
    shape.is_object(body)
    and has_good_envelope(operation, body)
    and body.data ~= nil
    and not shape.check(operation.data, body.data, "data")
  then
    return body
  end
end

-- One of the usual mistakes at a random place of a text.
local function damaged(text, generator)
  local first = generator.integer(#text)
  local last = math.min(first + generator.integer(12) - 1, #text)
  local piece = text:sub(first, last)
  local piece_instead = generator.pick {
    "",
    piece .. piece,
    generator.pick { "null", "1", "1.5", '""', "[]", "{}", "true", "-1", "1e400", "9007199254740993" },
    generator.pick { ",", ":", "}", "]", '"', "\\", " ", "\0", "\n", "\255", "\\u0061" },
    '"' .. generator.pick { "data", "address", "more", "m\\u006fre", "risks", "success" } .. '":' .. generator.pick {
      "null",
      "1",
      '"x"',
      "[]",
    } .. ",",
  }
  return text:sub(1, first - 1) .. piece_instead .. text:sub(last + 1)
end

describe("the reader of answers", function()
  for _, operation in ipairs(readable()) do
    local read = reader_of(operation.name)
    local text = json.encode(select(2, samples.of(operation)))

    it("reads a good answer to " .. operation.name, function()
      local body = json.decode(text)
      local data, pagination = read(text)
      assert.same({ body.data, operation.paginated and body.pagination or nil }, { data, pagination })
    end)

    it("agrees with the decoder and the checks about damaged answers to " .. operation.name, function()
      local generator = random.new(random.SEED + 11)
      local taken = 0
      for _ = 1, ROUNDS do
        local other = damaged(text, generator)
        for _ = 2, generator.integer(2) do
          other = damaged(other, generator)
        end
        local data, pagination = read(other)
        if data ~= nil then
          local body = thorough(operation, other)
          assert.is_table(body, other)
          assert.same(body.data, data, other)
          assert.same(operation.paginated and body.pagination or nil, pagination, other)
          taken = taken + 1
        end
      end
      assert.is_true(taken > 0)
    end)
  end

  local read = reader_of "getAddressRisk"

  local good = '"address":"0x1","network":"eth"'

  local function answer(data, before)
    return ("{%s"):format(before or '"success":true,"code":1,') .. '"data":{' .. data .. "}}"
  end

  it("keeps members that the shape does not name, and white space changes nothing", function()
    local text = ' {\n"code" : 1 ,"data": { "more" : {"a":[1,{}]} , "network":"eth" , "risks":[ ], "address":"0x1"}'
    local data = read(text .. ' ,\t"success":true,"status":"SUCCESS"} ')
    assert.same({ more = { a = { 1, {} } }, network = "eth", risks = {}, address = "0x1" }, data)
    assert.is_true(json.is_array(data.risks))
    assert.is_false(json.is_array(data.more.a[2]))
  end)

  it("reads an answer with unknown members beside its data", function()
    local data = read(answer(good, '"time":"now","success":true,"code":1,"more":{"data":{}},'))
    assert.same({ address = "0x1", network = "eth" }, data)
  end)

  it("takes a null for an absent member", function()
    assert.same({ address = "0x1", network = "eth" }, read(answer '"address":"0x1","risks":null,"network":"eth"'))
  end)

  for name, text in pairs {
    ["a required member that is absent"] = answer '"address":"0x1"',
    ["a required member that is null"] = answer '"address":"0x1","network":null',
    ["a member of another type"] = answer(good .. ',"whitelist":"no"'),
    ["a member that occurs twice"] = answer(good .. ',"address":"0x1"'),
    ["a member that occurs twice, once with an escape"] = answer(good .. ',"addr\\u0065ss":"0x2"'),
    ["a member without a shape that occurs twice"] = answer(good .. ',"more":1,"more":2'),
    ["a member with an escape"] = answer(good .. ',"whitel\\u0069st":true'),
    ["a null member without a shape"] = answer(good .. ',"more":null'),
    ["an object in place of an array"] = answer(good .. ',"risks":{}'),
    ["a null element"] = answer(good .. ',"risks":[null]'),
    ["an integer with a fraction"] = answer(good .. ',"time":1.5'),
    ["an integer that a double rounds"] = answer(good .. ',"time":9007199254740992'),
    ["an answer that fails"] = answer(good, '"success":false,"code":1,'),
    ["another code"] = answer(good, '"success":true,"code":10,'),
    ["a code with a fraction"] = answer(good, '"success":true,"code":1.0,'),
    ["another message"] = answer(good, '"success":true,"code":1,"msg":"SUCCESSFUL",'),
    ["no success"] = answer(good, '"code":1,'),
    ["an unknown member beside the data that occurs twice"] = answer(good, '"success":true,"code":1,"a":1,"a":1,'),
    ["an unknown null member beside the data"] = answer(good, '"success":true,"code":1,"more":null,'),
    ["data that occur twice"] = answer(good, '"success":true,"code":1,"data":{},'),
    ["no data"] = '{"success":true,"code":1}',
    ["data that are null"] = '{"success":true,"code":1,"data":null}',
    ["an array"] = '[{"success":true}]',
    ["nothing"] = "",
    ["a text after it"] = answer(good) .. "1",
    ["an end within a text"] = answer(good):sub(1, -3),
    ["a comma too many"] = answer(good .. ","),
    ["a NUL"] = answer(good) .. "\0",
  } do
    it("gives nothing for " .. name, function()
      assert.equal(0, select("#", read(text)))
    end)
  end

  it("gives nothing for usage with a code of success that says otherwise", function()
    local operation = operations.by_name.getAccountUsage
    local text = json.encode(select(2, samples.of(operation)))
    assert.is_not_nil((reader_of(operation.name)(text)))
    assert.is_nil((reader_of(operation.name)((text:gsub("^{", '{"success":false,')))))
  end)

  it("has the limits of its decoder", function()
    local operation, text = operations.by_name.getAddressRisk, answer(good .. ',"risks":[{"riskType":"a"}]')
    local function read_with(options)
      local dropping = core.decoder(options)
      return (response.reader(operation, nil, nil, { dropping = dropping, keeping = dropping }).read(text))
    end
    assert.is_table(read_with { max_size = #text, max_depth = 4, max_values = 9 })
    assert.is_nil(read_with { max_size = #text - 1 })
    assert.is_nil(read_with { max_depth = 3 })
    for values = 1, 8 do
      assert.is_nil(read_with { max_values = values })
      assert.is_nil((core.decoder({ max_values = values }):decode(text)))
    end
  end)

  it("is not made for a shape that it cannot read", function()
    local function reader(field)
      local nodes = shape.nodes { type = "object", fields = { field } }
      return nodes and decoders.dropping:reader(nodes)
    end
    assert.is_function(reader { name = "a", type = "string" })
    assert.is_nil(reader { name = "a", type = "string", decimal = true })
    assert.is_nil(reader { name = "a", type = "object", fields = {}, any_of = { "b" } })
    assert.is_nil(reader { name = "a\\b", type = "string" })
    assert.is_nil(reader { name = ("a"):rep(32), type = "string" })
    assert.is_nil(reader { type = "string" })
    assert.is_nil(reader { name = "a", type = "else" })
    assert.is_nil(decoders.dropping:reader(shape.nodes { type = "array", items = { type = "string" } }))
    local deep = { name = "a", type = "string" }
    for _ = 1, 63 do
      deep = { name = "a", type = "object", fields = { deep } }
    end
    assert.is_nil(reader(deep))
    local many = {}
    for number = 1, 64 do
      many[number] = { name = "a" .. number, type = "string" }
    end
    assert.is_nil(reader { name = "a", type = "object", fields = many })
  end)

  it("is not made of nodes in no order", function()
    local text = { name = "a", type = "string" }
    for _, places in ipairs { { 0, 1 }, { 1, 2 }, { 2, 1 }, { -1, 1 }, { 1, -1 }, { 1, 2 ^ 40 }, { 0.5, 1 } } do
      assert.is_nil(decoders.dropping:reader { { type = "object", first = places[1], count = places[2] }, text })
    end
    assert.is_nil(decoders.dropping:reader {})
    assert.is_nil(
      decoders.dropping:reader { { type = "object", first = 1, count = 1 }, { name = "a", type = "array" } }
    )
  end)

  it("raises for a text that is no string, and for a shape that is no table", function()
    assert.has_error(function()
      read(1)
    end)
    assert.has_error(function()
      decoders.dropping:reader "shape"
    end)
  end)
end)
