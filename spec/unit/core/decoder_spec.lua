local core = require("riskscreen.core")
local texts = require("spec.support.json_texts")

local math_type = rawget(math, "type") -- only where numbers have two types

-- Makes a test's name from a text: short and printable.
local function name_of(text)
  local shown = text:gsub("[^ -~]", function(char)
    return ("<%02X>"):format(char:byte())
  end)
  return #shown > 60 and ("%s… (%d bytes)"):format(shown:sub(1, 60), #text) or shown
end

local function assert_number(expected, actual)
  if type(expected) == "table" then
    local number = expected.float or expected.integer
    assert.are.equal(number, actual)
    assert.are.equal(1 / number, 1 / actual) -- tells 0.0 from -0.0
    if math_type then
      assert.are.equal(expected.float and "float" or "integer", math_type(actual))
    end
  else
    assert.are.equal(expected, actual)
  end
end

local assert_value

local function assert_table(expected, actual)
  assert.are.equal("table", type(actual))
  assert.are.equal(expected == texts.empty_array and core.empty_array_mt or nil, getmetatable(actual))
  for key, value in pairs(expected) do
    assert_value(value, actual[key])
  end
  for key in pairs(actual) do
    assert.is_not_nil(expected[key])
  end
end

function assert_value(expected, actual)
  if expected == texts.null then
    assert.are.equal(core.null, actual)
  elseif type(expected) == "number" or type(expected) == "table" and (expected.float or expected.integer) then
    assert_number(expected, actual)
  elseif type(expected) == "table" then
    assert_table(expected, actual)
  else
    assert.are.equal(expected, actual)
  end
end

describe("the decoder", function()
  describe("accepts", function()
    for i, case in ipairs(texts.valid) do
      it(("text %d: %s"):format(i, name_of(case.text)), function()
        local value, message = core.decode(case.text)
        assert.is_nil(message)
        assert_value(case.value, value)
      end)
    end
  end)

  describe("refuses", function()
    for i, case in ipairs(texts.invalid) do
      it(("text %d: %s"):format(i, name_of(case.text)), function()
        local value, message, position = core.decode(case.text)
        assert.is_nil(value)
        assert.are.equal("string", type(message))
        assert.are.equal(case.position, position)
      end)
    end
  end)

  it("gives the same values with keys and sizes in its cache", function()
    local decoder = core.decoder()
    for _ = 1, 4 do
      for _, case in ipairs(texts.valid) do
        local value, message = decoder:decode(case.text)
        assert.is_nil(message)
        assert_value(case.value, value)
      end
    end
  end)

  it("finds the same faults with keys and sizes in its cache", function()
    local decoder = core.decoder()
    for _ = 1, 4 do
      for _, case in ipairs(texts.invalid) do
        local value, _, position = decoder:decode(case.text)
        assert.is_nil(value)
        assert.are.equal(case.position, position)
      end
    end
  end)

  it("names the expected and the actual byte", function()
    local _, message = core.decode('{"a":1 "b":2}')
    assert.are.equal("expected ',' or '}' after a member, got '\"' at byte 8", message)
  end)

  it("names the end of the text", function()
    local _, message = core.decode("[1,")
    assert.are.equal("expected a value, got the end of the text at byte 4", message)
  end)

  it("keeps the message printable for every byte", function()
    local _, message = core.decode("[\1]")
    assert.are.equal("expected a value, got 0x01 at byte 2", message)
  end)
end)

describe("nulls", function()
  it("are dropped from objects by default", function()
    assert.are.same({ b = 1 }, (core.decode('{"a":null,"b":1}')))
  end)

  it("are kept in objects on request", function()
    local decoder = core.decoder({ null = "keep" })
    assert.are.same({ a = core.null, b = 1 }, (decoder:decode('{"a":null,"b":1}')))
  end)

  it("count as a member's last value when kept", function()
    local decoder = core.decoder({ null = "keep" })
    assert.are.same({ a = core.null }, (decoder:decode('{"a":1,"a":null}')))
  end)

  it("keep their places in arrays", function()
    local decoded = core.decode("[null,1,null]")
    assert.are.equal(3, #decoded)
    assert.are.equal(core.null, decoded[1])
    assert.are.equal(core.null, decoded[3])
  end)

  it("equal lua-cjson's null", function()
    assert.are.equal(require("cjson").null, core.null)
  end)

  it("remove an earlier member whose name had an escape", function()
    assert.are.same({}, (core.decode('{"\\u0061":1,"a":null}')))
  end)
end)

describe("duplicate names", function()
  -- Decodes the text with a new decoder, and then again with keys, sizes and plans in its cache.
  local function each_decode(text, check)
    for _, null in ipairs({ "drop", "keep" }) do
      local decoder = core.decoder({ duplicates = "refuse", null = null })
      for _ = 1, 20 do
        check(null, decoder:decode(text))
      end
    end
  end

  local function assert_refused(text, position)
    each_decode(text, function(_, value, message, at)
      assert.is_nil(value)
      assert.equal(("duplicate name at byte %d"):format(position), message)
      assert.equal(position, at)
    end)
  end

  local function assert_accepted(text)
    each_decode(text, function(null, value, message)
      assert.is_nil(message)
      assert.are.same(core.decoder({ null = null }):decode(text), value)
    end)
  end

  it("are kept by default, and the last value counts", function()
    assert.are.same({ a = 2 }, (core.decode('{"a":1,"a":2}')))
    assert.are.same({ a = 2 }, (core.decoder({ duplicates = "keep" }):decode('{"a":1,"a":2}')))
  end)

  it("are refused on request, at the second name", function()
    assert_refused('{"a":1,"a":2}', 8)
    assert_refused('{"a":1, "b":2, "a":3}', 16)
    assert_refused('[1,{"a":true,"b":{},"b":[]}]', 21)
    assert_refused('{"":1,"":2}', 7)
  end)

  it("are refused before a later fault", function()
    assert_refused('{"a":1,"a":tru}', 8)
    assert_refused('{"a":1,"a" 2}', 8)
    assert_refused('{"a":1,"a"', 8)
  end)

  it("are compared without their escapes", function()
    assert_refused('{"a":1,"\\u0061":2}', 8)
    assert_refused('{"\\u0061":1,"a":2}', 13)
    assert_refused('{"\\u0061":1,"\\u0061":2}', 13)
    assert_refused('{"\\u00e9":1,"é":2}', 13)
    assert_refused('{"/":1,"\\/":2}', 8)
    assert_refused('{"\\"":1,"\\u0022":2}', 9)
    assert_refused('{"\\u0000":1,"\\u0000":2}', 13)
    assert_accepted('{"a":1,"\\u0062":2,"\\u0000":3,"":4,"a\\u0000":5}')
  end)

  it("are found when the first value was null", function()
    assert_refused('{"a":null,"a":1}', 11)
    assert_refused('{"a":null,"a":null}', 11)
    assert_refused('{"a":null,"\\u0061":1}', 11)
    assert_refused('{"\\u0061":null,"a":null}', 16)
    assert_refused('{"b":1,"a":null,"c":[],"a":null}', 24)
  end)

  it("may be of any length", function()
    for length = 28, 40 do
      local name = ("n"):rep(length)
      assert_refused(('{"%s":1,"%s":2}'):format(name, name), length + 7)
      assert_refused(('{"%s":null,"\\u006E%s":2}'):format(name, name:sub(2)), length + 10)
      assert_accepted(('{"%s":1,"%sn":2,"%s":3}'):format(name, name, name:sub(2)))
    end
  end)

  it("are allowed in different objects", function()
    assert_accepted('{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}],"c":{"b":null,"a":null}}')
  end)

  it("are found around nested objects", function()
    assert_refused('{"a":{"b":1},"b":2,"a":3}', 20)
    assert_refused('{"x":1,"o":[{"x":1},{"x":2},{"x":3}],"x":3}', 38)
    assert_refused('{"x":null,"o":[{"x":1},{"x":2},{"x":3}],"x":3}', 41)
    local depth = 500
    local open = ('{"a":'):rep(depth)
    assert_refused(open .. '{"b":1,"b":1}' .. ("}"):rep(depth), #open + 8)
    assert_accepted(open .. '{"b":1}' .. ("}"):rep(depth))
    assert_refused(open .. "1" .. ("}"):rep(depth - 1) .. ',"a":1}', #open + depth + 2)
  end)

  it("are found among many names", function()
    local members = {}
    for i = 1, 2000 do
      members[i] = ('"name %d":%s'):format(i, i % 3 == 0 and "null" or i)
    end
    local text = "{" .. table.concat(members, ",")
    assert_accepted(text .. "}")
    for _, i in ipairs({ 1, 2, 3, 999, 1000, 2000 }) do
      assert_refused(('%s,"name %d":0}'):format(text, i), #text + 2)
    end
  end)

  it("are found where an object leaves its plan", function()
    local alike = ('{"p":1,"q":null},'):rep(20)
    for _, object in ipairs({
      '{"p":1,"q":2,@"p":3}',
      '{"p":1,@"p":2}',
      '{"p":null,"q":2,@"p":3}',
      '{"p":1,"q":null,@"q":3}',
      '{"p":1,"r":2,@"\\u0070":3}',
    }) do
      local at = object:find("@", 1, true)
      assert_refused("[" .. alike .. object:gsub("@", "") .. "]", 1 + #alike + at)
    end
    assert_accepted("[" .. alike .. '{"p":1,"q":2,"r":3},{"q":1,"p":2},{"p":1}]')
  end)

  it("do not leave a dropped null member behind", function()
    local decoder = core.decoder({ duplicates = "refuse" })
    assert.are.same({ b = 1 }, (decoder:decode('{"new":null,"b":1,"other":null}')))
    local value = decoder:decode('{"only":null}')
    assert.is_nil(next(value))
    assert.is_nil(getmetatable(value))
  end)
end)

describe("empty arrays and objects", function()
  it("can be told apart", function()
    local decoded = core.decode('{"list":[],"map":{}}')
    assert.are.equal(core.empty_array_mt, getmetatable(decoded.list))
    assert.is_nil(getmetatable(decoded.map))
  end)

  it("print as tables", function()
    assert.matches("^table: ", tostring((core.decode("[]"))))
  end)

  it("are a new table each", function()
    local decoded = core.decode("[[],[]]")
    assert.are_not.equal(decoded[1], decoded[2])
  end)
end)

describe("limits", function()
  local function nested(depth)
    return ("["):rep(depth) .. ("]"):rep(depth)
  end

  it("allow 512 levels by default", function()
    assert.is_table((core.decode(nested(512))))
    local _, message, position = core.decode(nested(513))
    assert.are.equal("nested too deeply at byte 513", message)
    assert.are.equal(513, position)
  end)

  it("count objects as levels", function()
    local decoder = core.decoder({ max_depth = 2 })
    assert.is_table((decoder:decode('[{"a":1}]')))
    assert.are.equal(7, (select(3, decoder:decode('[{"a":{}}]'))))
  end)

  it("count levels, not brackets", function()
    local decoder = core.decoder({ max_depth = 2 })
    assert.is_table((decoder:decode("[[],[],{},[]]")))
  end)

  it("refuse hundreds of thousands of levels without a crash", function()
    local decoder = core.decoder({ max_depth = 2048 })
    for _, open in ipairs({ "[", '{"a":', '[{"a":', "[1,2,3,4,5,6,7,[" }) do
      local value, message = decoder:decode(open:rep(300000))
      assert.is_nil(value)
      assert.is_truthy(message:find("nested too deeply", 1, true))
    end
  end)

  it("bound the text's size", function()
    local decoder = core.decoder({ max_size = 5 })
    assert.are.same({ 1, 2 }, (decoder:decode("[1,2]")))
    local value, message, position = decoder:decode("[1,23]")
    assert.is_nil(value)
    assert.are.equal("the text is longer than 5 bytes", message)
    assert.are.equal(6, position)
  end)

  it("leave room for every escape in a text of the largest size", function()
    for size = 4, 300, 2 do
      local decoder = core.decoder({ max_size = size })
      local text = '"' .. ("\\n"):rep(size / 2 - 1) .. '"'
      assert.are.equal(("\n"):rep(size / 2 - 1), (decoder:decode(text)))
    end
  end)

  it("bound the number of values", function()
    local decoder = core.decoder({ max_values = 4 })
    assert.are.same({ 1, { a = 2 } }, (decoder:decode('[1,{"a":2}]')))
    local value, message, position = decoder:decode('[1,{"a":2},3]')
    assert.is_nil(value)
    assert.are.equal("too many values at byte 12", message)
    assert.are.equal(12, position)
  end)

  it("count again for each text", function()
    local decoder = core.decoder({ max_values = 2, max_depth = 1 })
    for _ = 1, 10 do
      assert.is_nil((decoder:decode("[[1]]")))
      assert.are.same({ 1 }, (decoder:decode("[1]")))
    end
  end)
end)

describe("a decoder's options", function()
  local function refusal(options)
    local ok, message = pcall(core.decoder, options)
    assert.is_false(ok)
    return message
  end

  it("are refused by name when unknown", function()
    assert.equal("unknown decoder option 'depth'", refusal({ depth = 1 }))
  end)

  it("are refused outside their range", function()
    assert.is_truthy(refusal({ max_depth = 0 }):find("max_depth must be an integer in its range", 1, true))
    assert.is_truthy(refusal({ max_size = -1 }):find("max_size", 1, true))
    assert.is_truthy(refusal({ max_values = 1.5 }):find("max_values", 1, true))
    assert.is_truthy(refusal({ max_values = 0 / 0 }):find("max_values", 1, true))
    assert.is_truthy(refusal({ max_size = math.huge }):find("max_size", 1, true))
  end)

  it("are refused with a wrong type", function()
    assert.is_truthy(refusal({ max_depth = "10" }):find("max_depth", 1, true))
    assert.equal("null must be one of its choices (got a string)", refusal({ null = "maybe" }))
    assert.equal("null must be one of its choices (got a boolean)", refusal({ null = true }))
    assert.is_truthy(refusal({ null = "keep\0" }):find("null must be one of", 1, true))
    assert.is_truthy(refusal({ duplicates = "drop" }):find("duplicates must be one of", 1, true))
    assert.is_false(pcall(core.decoder, 1))
    assert.is_false(pcall(core.decoder, { "x" }))
  end)

  it("leave the caller's table as it was", function()
    local options = { null = "keep", max_depth = 3 }
    core.decoder(options)
    assert.are.same({ null = "keep", max_depth = 3 }, options)
  end)
end)

describe("misuse", function()
  it("raises when the text is not a string", function()
    assert.is_false(pcall(core.decode))
    assert.is_false(pcall(core.decode, 1))
    assert.is_false(pcall(core.decode, {}))
    local decoder = core.decoder()
    assert.is_false(pcall(decoder.decode, decoder, 1))
  end)

  it("raises when the method is called on something else", function()
    local decoder = core.decoder()
    assert.is_false(pcall(decoder.decode, io.stdout, "1"))
    assert.is_false(pcall(decoder.decode, "1"))
  end)
end)

describe("keys", function()
  it("may be more than the cache holds", function()
    local decoder = core.decoder()
    for round = 1, 20 do
      local members, expected = {}, {}
      for i = 1, 1000 do
        local key = ("key %d"):format(i + round * 10)
        members[i] = ('"%s":%d'):format(key, i)
        expected[key] = i
      end
      local text = "{" .. table.concat(members, ",") .. "}"
      assert.are.same(expected, (decoder:decode(text)))
    end
  end)

  it("with the same beginning are different", function()
    local text = '[{"a":1,"ab":2,"abcdefgh":3,"abcdefghi":4},{"a":1,"ab":2,"abcdefgh":3,"abcdefghi":4}]'
    local decoder = core.decoder()
    for _ = 1, 4 do
      local decoded = decoder:decode(text)
      assert.are.same({ a = 1, ab = 2, abcdefgh = 3, abcdefghi = 4 }, decoded[2])
    end
    assert.are.same({ { abc = 1 } }, (decoder:decode('[{"abc":1}]')))
    assert.are.same({ { [""] = 1 } }, (decoder:decode('[{"":1}]')))
  end)

  it("are not taken from the cache with bytes that need an escape", function()
    local decoder = core.decoder()
    for _ = 1, 4 do
      assert.are.same({ ['a"b'] = 1 }, (decoder:decode('{"a\\"b":1}')))
      assert.are.same({ ["a\nb"] = 1 }, (decoder:decode('{"a\\nb":1}')))
      assert.equal(5, (select(3, decoder:decode('{"a"b":1}'))))
      assert.equal(4, (select(3, decoder:decode('{"a\nb":1}'))))
    end
  end)

  it("are the same with and without escapes", function()
    local decoder = core.decoder()
    for _ = 1, 4 do
      assert.are.same({ address = 1 }, (decoder:decode('{"address":1}')))
      assert.are.same({ address = 1 }, (decoder:decode('{"\\u0061ddress":1}')))
    end
  end)
end)

describe("sizes cached from large texts", function()
  it("do not make the tables of small texts large", function()
    local decoder = core.decoder()
    decoder:decode("[" .. ("1,"):rep(1000000) .. "1]")
    local small = "[1,2,3,4,5,6,7,8,9]"
    local decoded, least = {}, math.huge
    for round = 1, 3 do
      collectgarbage()
      collectgarbage()
      local before = collectgarbage("count")
      decoded[round] = decoder:decode(small)
      -- Lua's string table may grow once.
      least = math.min(least, collectgarbage("count") - before)
    end
    assert.are.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9 }, decoded[3])
    assert.is_true(least < 64)
  end)
end)

describe("a decode within a decode", function()
  it("from a finalizer harms neither", function()
    local decoder = core.decoder()
    local element = '{"text":"\\u0041bcdefghijklmnopqrstuvwxyz","list":[1,2,3,4,5,6,7,8,9,10],"none":[]}'
    local text = "[" .. (element .. ","):rep(200) .. element .. "]"
    local inner_runs = 0
    local function finalize()
      inner_runs = inner_runs + 1
      assert(decoder:decode('{"other":"\\u0042\\u0042\\u0042","list":[[],[{}]]}').other == "BBB")
    end
    local function litter()
      for _ = 1, 50 do
        if newproxy then -- luacheck: ignore
          getmetatable(newproxy(true)).__gc = finalize -- luacheck: ignore
        else
          setmetatable({}, { __gc = finalize })
        end
      end
    end
    local rounds = 0
    -- With a large heap, finalizers run late.
    while rounds < 30 or (inner_runs == 0 and rounds < 3000) do
      rounds = rounds + 1
      litter()
      local decoded = decoder:decode(text)
      assert.are.equal(201, #decoded)
      for _, item in ipairs(decoded) do
        assert.are.equal("Abcdefghijklmnopqrstuvwxyz", item.text)
        assert.are.equal(10, #item.list)
      end
    end
    assert.is_true(inner_runs > 0)
  end)
end)
