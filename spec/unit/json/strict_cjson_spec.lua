-- The decoder that stands in for the compiled core, side by side with the core.
local parity = require "spec.support.json_parity"
local random = require "spec.support.random"
local strict_cjson = require "riskscreen.json.strict_cjson"
local texts = require "spec.support.json_texts"

local function assert_alike(text, options)
  local difference = parity.difference(strict_cjson, text, options)
  assert.is_nil(difference, difference)
end

local function corpus()
  local list = {}
  local directory = "spec/fuzz/corpus/decoder/"
  local names = assert(io.popen("ls " .. directory))
  for name in names:lines() do
    local file = assert(io.open(directory .. name, "rb"))
    list[#list + 1] = file:read "*a"
    file:close()
  end
  names:close()
  return list
end

-- From 2.1.0.14 on, so in OpenResty, lua-cjson makes 64 bits of a number without fraction and exponent.
local function lua_cjson_of_integers()
  local cjson = require "cjson"
  return setmetatable({
    new = function()
      local parser = cjson.new()
      local decode = parser.decode
      function parser.decode(text)
        local value = decode(text)
        if text:find "^%[%-?%d+%]$" then
          value[1] = math.max(-2 ^ 63, math.min(value[1], 2 ^ 63))
        end
        return value
      end
      return parser
    end,
  }, { __index = cjson })
end

local function decoder_over(cjson)
  local loaded = {}
  for _, name in ipairs { "cjson", "riskscreen.json.strict_cjson" } do
    loaded[name], package.loaded[name] = package.loaded[name], nil
  end
  package.loaded.cjson = cjson
  local decoder = require "riskscreen.json.strict_cjson"
  for name, module in pairs(loaded) do
    package.loaded[name] = module
  end
  return decoder
end

describe("decoding without the core", function()
  it("gives the core's values of the listed texts", function()
    for _, case in ipairs(texts.valid) do
      assert_alike(case.text)
      assert_alike(" [" .. case.text .. " ]\n")
    end
  end)

  it("refuses the listed texts that the core refuses", function()
    for _, case in ipairs(texts.invalid) do
      assert_alike(case.text)
      assert_alike("[" .. case.text .. "]")
    end
  end)

  it("keeps the sign of a zero, as the core does", function()
    for _, text in ipairs { "-0", "-0.0", "-0e5" } do
      assert.equal(-math.huge, 1 / strict_cjson.decode(text))
    end
    assert.equal(math.huge, 1 / strict_cjson.decode "0")
  end)

  it("shows no path of a file in its messages", function()
    for _, text in ipairs { "[1", "[01]", '{"a":tru}', "" } do
      assert.matches("^Expected ", (select(2, strict_cjson.decode(text))))
    end
    assert.matches("^Cannot serialise function", (select(2, strict_cjson.encode { print })))
  end)

  it("refuses whole numbers of more than 64 bits where lua-cjson clamps them", function()
    local decoder = decoder_over(lua_cjson_of_integers())
    for _, digits in ipairs { "1" .. ("0"):rep(31), ("7"):rep(308) } do
      for _, text in ipairs { "[" .. digits .. "]", "[-" .. digits .. "]" } do
        assert.same({ nil, "a number is out of range" }, { decoder.decode(text) })
      end
    end
    assert.same({ 123456789012345 }, decoder.decode "[123456789012345]")
  end)

  it("agrees with the core about the fuzzers' seeds", function()
    local list = corpus()
    assert.is_true(#list > 50)
    for _, text in ipairs(list) do
      assert_alike(text)
    end
  end)

  it("agrees with the core about seeds with bytes changed, removed and inserted", function()
    local generator = random.new(7)
    local seeds = corpus()
    for _, case in ipairs(texts.valid) do
      seeds[#seeds + 1] = #case.text < 300 and case.text or nil
    end
    local pieces =
      { '"', "\\", "{", "}", "[", "]", ",", ":", "0", "-", ".", "e", "\\u", "d8", "\195", "null", "\0", " " }
    for _ = 1, 4000 do
      local text = generator.pick(seeds)
      for _ = 1, generator.integer(3) do
        local at = generator.integer(#text + 1)
        local piece = generator.integer(2) == 1 and generator.pick(pieces) or string.char(generator.integer(256) - 1)
        text = text:sub(1, at - 1) .. piece .. text:sub(at + generator.integer(3) - 1)
      end
      assert_alike(text)
    end
  end)

  it("agrees with the core about every byte in every place", function()
    local frames =
      { "%s", "[%s]", "[1%s", "{%s", '{"a"%s', '{"a":1%s', '"%s"', '"\\%s"', '"\\u00%s0"', "-%s", "1.%s", "[1%s2]" }
    for code = 0, 255 do
      for _, frame in ipairs(frames) do
        assert_alike((frame:gsub("%%s", function()
          return string.char(code)
        end)))
      end
    end
  end)

  it("tells empty objects from empty arrays in one text", function()
    for _, text in ipairs {
      '{"a":{},"b":[],"c":[{},[ ],{ \n}]}',
      '["{}","[]","\\"{}",{},"\\\\",[]]',
      '{"":null,"a":{"":1},"b":{}}',
    } do
      assert_alike(text)
    end
  end)

  it("refuses objects with duplicate names where the core does", function()
    for _, text in ipairs {
      '{"a":1,"a":1}',
      '{"a":1,"b":{"a":2}}',
      '{"a":null,"a":1}',
      '{"a":1,"a":null}',
      '{"a":1,"\\u0061":2}',
      '[{"a":{},"b":[]},{"a":{},"a":{}}]',
      '{"":1,"":null}',
      '{"a:":{ },"b":": \\" {} :"}',
    } do
      assert_alike(text, { duplicates = "refuse" })
      assert_alike(text, { duplicates = "keep" })
    end
  end)

  it("keeps null members where the core does", function()
    for _, text in ipairs { '{"a":null}', '{"a":{"b":null,"c":[null,{}]}}', "null", "[null]" } do
      assert_alike(text, { null = "keep" })
      assert_alike(text, { null = "keep", duplicates = "refuse" })
    end
  end)

  it("keeps the core's limits of depth and size", function()
    for depth = 510, 514 do
      assert_alike(("["):rep(depth) .. ("]"):rep(depth))
      assert_alike(('{"a":'):rep(depth) .. "1" .. ("}"):rep(depth))
    end
    assert_alike(("["):rep(100000))
    for depth = 1, 4 do
      assert_alike('[{"a":[1,{}]},[]]', { max_depth = depth })
    end
    for count = 1, 8 do
      assert_alike('[1,{"a":2,"b":[null,3]},"x"]', { max_values = count })
      assert_alike('[[],{},{"a":[ ],"b":{"c":{ }}}]', { max_values = count })
    end
    for size = 1, 7 do
      assert_alike("[1,23]", { max_size = size })
    end
  end)

  it("raises when the text is no string", function()
    local decoder = strict_cjson.decoder()
    assert.has_error(function()
      decoder:decode {}
    end)
    assert.has_error(function()
      decoder.decode "1"
    end)
  end)
end)
