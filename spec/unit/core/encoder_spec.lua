-- core.encode beside lua-cjson with its corrections, which writes JSON where the core is not compiled.
local core = require "riskscreen.core"
local parity = require "spec.support.json_parity"
local random = require "spec.support.random"
local strict_cjson = require "riskscreen.json.strict_cjson"
local texts = require "spec.support.json_texts"

local function assert_alike(value)
  local difference = parity.written_difference(strict_cjson, value)
  assert.is_nil(difference, difference)
end

local function nested(depth, innermost)
  for _ = 1, depth do
    innermost = { innermost }
  end
  return innermost
end

describe("core.encode", function()
  it("writes strings byte for byte as lua-cjson does", function()
    for first = 0, 255 do
      for second = 0, 255 do
        local text = "a" .. string.char(first, second) .. "z"
        assert.equal(strict_cjson.encode(text), (core.encode(text)))
      end
    end
    assert.equal('""', core.encode "")
    assert.equal('"' .. ("x"):rep(100000) .. '"', core.encode(("x"):rep(100000)))
  end)

  it("writes numbers so that the same number is read", function()
    local generator = random.new(3)
    local list = { 0, -0.0, 0.1, 1 / 3, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 2 ^ 53, -2 ^ 63 }
    for exponent = -30, 30 do
      for _, digits in ipairs { 1, 1.5, 9.9999999999999, 1.2345678901234, 1.23456789012345, 1.2345678901234567 } do
        list[#list + 1] = digits * 10 ^ exponent
        list[#list + 1] = -digits * 10 ^ exponent
      end
    end
    for _ = 1, 2000 do
      list[#list + 1] = (generator.integer(2 ^ 30) - 2 ^ 29) * 2 ^ (generator.integer(120) - 60) / 3
    end
    for _, number in ipairs(list) do
      local text = core.encode(number)
      -- LuaJIT rounds a tie in the last of 17 digits in another way than the C library.
      if not rawget(_G, "jit") then
        assert.equal(strict_cjson.encode(number), text)
      end
      assert.equal(number, core.decode(text))
    end
  end)

  it("writes integers with all their digits", function()
    for _, case in ipairs(texts.valid) do
      local integer = type(case.value) == "table" and case.value.integer
      if integer and core.encode(integer) ~= core.encode(integer + 0.0) then
        assert.equal(case.text:match "%S+", core.encode(integer))
      end
    end
  end)

  it("writes the listed values as lua-cjson does", function()
    for _, case in ipairs(texts.valid) do
      local value = core.decode(case.text)
      if value ~= nil then
        assert_alike(value)
        assert_alike { value, member = value }
      end
    end
  end)

  it("writes lists with holes, and keys that are numbers, as lua-cjson does", function()
    for _, value in ipairs {
      { [1] = 1, [3] = 3 },
      { [10] = 1 },
      { [11] = 1 },
      { [1] = 1, [5] = 2, [11] = 3, [12] = 4, [13] = 5, [14] = 6, [15] = 7 },
      { [0] = "zero", [1] = "one" },
      { [-1] = true },
      { [0.5] = true },
      { [1e300] = 0.5, [5] = 1 },
      { [math.huge] = 0.5, [5] = 1 },
      { [2 ^ 31] = 0.5, name = 1 },
      { [1.0] = "one", [2.0] = "two" },
      { "one", name = "two" },
      { [true] = 1 },
      { [{}] = 1 },
      { [math.huge] = 1 },
      { { { setmetatable({}, core.empty_array_mt) } } },
      setmetatable({ 1 }, core.empty_array_mt),
      setmetatable({ a = 1 }, core.empty_array_mt),
      { core.null, core.null },
      { member = core.null },
      { io.stdout },
      { print },
      { coroutine.create(function() end) },
      { 0 / 0 },
      { -math.huge },
    } do
      assert_alike(value)
    end
  end)

  it("writes 100 tables within each other, and no more", function()
    for _, value in ipairs { 1, "text", true } do
      assert_alike(nested(100, value))
      assert_alike(nested(101, value))
    end
    assert.is_string(core.encode(nested(100, 1)))
    assert.same({ nil, "tables are nested deeper than 100 (or one contains itself)" }, { core.encode(nested(101, 1)) })
  end)

  it("looks past metamethods", function()
    local function fail()
      error "called"
    end
    local guarded = setmetatable({ 1, 2 }, { __index = fail, __len = fail, __pairs = fail, __tostring = fail })
    assert.equal("[1,2]", core.encode(guarded))
  end)

  it("works during the finalizers of another encoding", function()
    local seen = {}
    for i = 1, 300 do
      -- Before Lua 5.2 a table has no finalizer.
      local proxy = newproxy and newproxy(true) or setmetatable({}, {}) -- luacheck: ignore 113
      getmetatable(proxy).__gc = function()
        seen[#seen + 1] = core.encode { inner = i }
      end
      setmetatable({}, getmetatable(proxy))
      assert.equal('["' .. ("y"):rep(i) .. '"]', core.encode { ("y"):rep(i) })
    end
    collectgarbage()
    for _, text in ipairs(seen) do
      assert.matches('^{"inner":%d+}$', text)
    end
  end)
end)
