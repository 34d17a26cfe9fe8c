-- The decoder that stands in for the compiled core, side by side with the core.
local cjson_decoder = require "riskscreen.json.cjson_decoder"
local core = require "riskscreen.core"
local parity = require "spec.support.json_parity"
local random = require "spec.support.random"
local texts = require "spec.support.json_texts"

local function assert_alike(text, options)
  local difference = parity.difference(parity.side(core, options), parity.side(cjson_decoder, options), text)
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

-- The decoder as it is over another lua-cjson.
local function decoder_over(cjson)
  local names = { "cjson", "riskscreen.json.reader", "riskscreen.json.cjson_decoder" }
  local loaded = {}
  for _, name in ipairs(names) do
    loaded[name], package.loaded[name] = package.loaded[name], nil
  end
  package.loaded.cjson = cjson
  local decoder = require "riskscreen.json.cjson_decoder"
  for _, name in ipairs(names) do
    package.loaded[name] = loaded[name]
  end
  return decoder
end

describe("decoding without the core", function()
  it("gives the core's values of the listed texts", function()
    for _, case in ipairs(texts.valid) do
      assert_alike(case.text)
      assert_alike(case.text, { null = "keep" })
      assert_alike(" [" .. case.text .. " ]\n")
    end
  end)

  it("gives the core's values where lua-cjson makes integers of whole numbers", function()
    local decoder = decoder_over(lua_cjson_of_integers())
    for _, digits in ipairs { "1" .. ("0"):rep(31), ("7"):rep(308), ("9"):rep(400) } do
      for _, text in ipairs { digits, "[-" .. digits .. "]" } do
        local difference = parity.difference(parity.side(core), parity.side(decoder), text)
        assert.is_nil(difference, difference)
      end
    end
  end)

  it("refuses the listed texts with the core's words at the core's byte", function()
    for _, case in ipairs(texts.invalid) do
      assert_alike(case.text)
      assert_alike("[" .. case.text .. "]")
    end
  end)

  it("does as the core with the fuzzers' seeds", function()
    local list = corpus()
    assert.is_true(#list > 50)
    for _, text in ipairs(list) do
      assert_alike(text)
    end
  end)

  it("does as the core with seeds in which bytes were changed, lost, and put together", function()
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

  it("tells what every byte is where a value, a name or an escape should be", function()
    for code = 0, 255 do
      local byte = string.char(code)
      for _, frame in ipairs {
        "%s",
        "[%s]",
        "[1%s",
        "{%s",
        '{"a"%s',
        '{"a":1%s',
        '"%s"',
        '"\\%s"',
        '"\\u00%s0"',
        "-%s",
        "1.%s",
      } do
        assert_alike((frame:gsub("%%s", function()
          return byte
        end)))
      end
    end
  end)

  it("has the core's limits", function()
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
    end
    for size = 1, 7 do
      assert_alike("[1,23]", { max_size = size })
    end
  end)

  it("refuses the options that the core refuses, in the same words", function()
    local wrong = {
      { depth = 1 },
      { 1 },
      { max_depth = 0 },
      { max_depth = 2049 },
      { max_size = -1 },
      { max_values = 1.5 },
      { max_values = true },
      { max_size = {} },
      { null = "maybe" },
      { null = 1 },
    }
    for _, options in ipairs(wrong) do
      local core_ok, core_message = pcall(core.decoder, options)
      local ok, message = pcall(cjson_decoder.decoder, options)
      assert.is_false(core_ok or ok)
      assert.equal(core_message, (message:gsub("^%S+:%d+: ", "")))
    end
    assert.is_false((pcall(cjson_decoder.decoder, 1)))
  end)

  it("raises on misuse", function()
    local decoder = cjson_decoder.decoder()
    for _, call in ipairs {
      function()
        cjson_decoder.decode()
      end,
      function()
        cjson_decoder.decode(1)
      end,
      function()
        decoder:decode {}
      end,
      function()
        decoder.decode "1"
      end,
    } do
      local ok, message = pcall(call)
      assert.is_false(ok)
      assert.matches("cjson_decoder_spec", message)
    end
  end)
end)
