local json = require "riskscreen.json"
local locales = require "spec.support.locales"
local policies = require "riskscreen.policy"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"

local fingerprint = tables.fingerprint

describe("a fingerprint", function()
  local function of_rules(...)
    return fingerprint(policies.new({ rules = { ... } }).settings)
  end

  it("is the same for equal content in another order", function()
    local one, other = {}, {}
    for index = 1, 50 do
      one["k" .. index], other["k" .. 51 - index] = index, 51 - index
    end
    assert.equal(fingerprint(one), fingerprint(other))
    assert.equal(fingerprint(policies.new().settings), fingerprint(policies.new().settings))
  end)

  it("is the same in every locale of the program", function()
    finally(temporary.clean)
    local lines = locales.run({ "en_US", "de_DE" }, "fingerprint_in_locale")
    if lines[#lines] == "no locale" then
      pending "there is no localedef, or it lacks en_US or de_DE"
    else
      assert.same({ lines[1], lines[1], lines[1] }, lines)
    end
  end)

  it("differs for another policy", function()
    local seen = {}
    for _, text in ipairs {
      of_rules { level = "high", action = "block" },
      of_rules { level = "high", action = "review" },
      of_rules { level = "low", action = "block" },
      of_rules { level = { "high", "low" }, action = "block" },
      of_rules({ level = "high", action = "block" }, { no_risk = true, action = "allow" }),
      of_rules({ no_risk = true, action = "allow" }, { level = "high", action = "block" }),
      fingerprint(policies.new({ provider = "Other" }).settings),
      fingerprint(policies.new({ absent_entity = "none" }).settings),
    } do
      assert.is_nil(seen[text])
      seen[text] = true
    end
  end)

  it("differs between texts and numbers, and between split texts", function()
    assert.not_equal(fingerprint { "1" }, fingerprint { 1 })
    assert.not_equal(fingerprint { 0.1 }, fingerprint { 0.1 + 2 ^ -56 })
    assert.not_equal(fingerprint { "a", "b" }, fingerprint { "ab" })
    assert.not_equal(fingerprint { a = "b}" }, fingerprint { a = "b", "}" })
  end)

  it("differs between any two values that differ in meaning, and not between two forms of one number", function()
    local values = {
      false,
      true,
      0,
      1,
      -1,
      0.1,
      0.1 + 2 ^ -56,
      2 ^ 53,
      2 ^ 53 + 2,
      2 ^ 70,
      1 / 0,
      -1 / 0,
      0 / 0,
      "",
      "1",
      "nan",
      "true",
      "null",
      json.null,
      {},
      { {} },
      { { {} } },
      { 1 },
      { "1" },
      { 1, 1 },
      { { 1 }, 1 },
      { { 1, 1 } },
      { a = true },
      { a = false },
      { "a" },
      { a = 1 },
      { ["1"] = "a" },
      { [1.5] = "a" },
      { [false] = "a" },
      { ["false"] = "a" },
      { a = { b = 1 }, c = 2 },
      { a = { b = 1, c = 2 } },
      { a = { ["b"] = "1" }, c = 2 },
    }
    local seen = {}
    for index, value in ipairs(values) do
      local text = fingerprint(value)
      assert.is_nil(seen[text], ("values %s and %d"):format(tostring(seen[text]), index))
      seen[text] = index
    end
    for _, pair in ipairs { { 1, 1.0 }, { 0, -0.0 }, { 2 ^ 53 - 1, 9007199254740991 }, { 0 / 0, -(0 / 0) } } do
      assert.equal(fingerprint(pair[1]), fingerprint(pair[2]))
    end
  end)

  it("tells large integers apart, where Lua has them", function()
    local largest = tonumber "9223372036854775807"
    if largest ~= largest - 1 then
      assert.not_equal(fingerprint(largest), fingerprint(largest - 1))
    end
  end)

  it("has no text for a function: its address means nothing to another process", function()
    assert.has_error(function()
      fingerprint { on = function() end }
    end)
  end)
end)

describe("two values", function()
  it("are equal where their content is", function()
    for _, pair in ipairs { { 1, 1 }, { {}, {} }, { { 1, { a = "b" } }, { 1, { a = "b" } } } } do
      assert.is_true(tables.equal(pair[1], pair[2]))
    end
  end)

  it("differ in a value, a missing field and a further field, at any depth", function()
    local differing = {
      { 1, "1" },
      { {}, 1 },
      { 1, {} },
      { { a = 1 }, { a = 2 } },
      { { a = 1 }, { a = 1, b = 1 } },
      { { a = 1, b = false }, { a = 1 } },
      { { a = { 1, 2 } }, { a = { 2, 1 } } },
    }
    for _, pair in ipairs(differing) do
      assert.is_false(tables.equal(pair[1], pair[2]))
      assert.is_false(tables.equal({ x = pair[1] }, { x = pair[2] }))
    end
  end)
end)

describe("a sorted list", function()
  it("takes each element after those with the same value", function()
    local list, names = {}, {}
    for name, at in ("3a 1b 2c 3d 1e 0f"):gmatch "()(%d)" do
      tables.insert_sorted(list, "at", { at = tonumber(at), name = name })
    end
    for position, element in ipairs(list) do
      names[position] = ("3a 1b 2c 3d 1e 0f"):sub(element.name + 1, element.name + 1)
    end
    assert.equal("fbecad", table.concat(names))
  end)
end)

describe("the length of a list", function()
  it("is none where a position is missing, or a key is no position", function()
    for _, list in ipairs { {}, { "a" }, { "a", "b", "c" } } do
      assert.equal(#list, tables.sequence_length(list))
    end
    for _, other in ipairs { { [2] = 1 }, { 1, [3] = 1 }, { 1, a = 1 }, { [0] = 1 }, { 1, [1.5] = 1 }, { a = 1 } } do
      assert.is_nil(tables.sequence_length(other))
    end
  end)
end)
