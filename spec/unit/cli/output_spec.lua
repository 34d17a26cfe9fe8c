local cjson = require "cjson"
local json = require "riskscreen.json"
local outputs = require "riskscreen.cli.output"

local columns = {
  { name = "address", whole = true },
  { name = "action", colour = true },
  { name = "reason" },
}

local function rows(...)
  local list = {}
  for index, record in ipairs { ... } do
    list[index] = outputs.columns.cells(columns, record)
  end
  return list
end

describe("a writer of lines", function()
  it("begins a line behind what a failed write has left", function()
    local text, fails = "", true
    local out = {}
    function out:write(...)
      local line = table.concat { ... }
      text = text .. (fails and line:sub(1, 2) or line)
      return not fails and self or nil, fails and "no space" or nil
    end
    function out:flush()
      return self
    end
    local write_line = outputs.line_writer(out)
    assert.same({ nil, "no space" }, { write_line "event" })
    fails = false
    assert.is_truthy(write_line "event")
    assert.is_truthy(write_line "next")
    assert.equal("ev\nevent\nnext\n", text)
  end)
end)

describe("a table", function()
  local long = { address = ("a"):rep(42), action = "block", reason = ("why "):rep(40) }

  it("is aligned, and leaves out columns without a value", function()
    local text =
      outputs.table(columns, rows({ address = "x", action = "allow" }, { address = "long", action = "block" }))
    assert.equal("address  action\nx        allow\nlong     block\n", text)
  end)

  it("is as wide as it must be where there is no terminal", function()
    local text = outputs.table(columns, rows(long), nil, false)
    assert.matches(("why "):rep(39) .. "why", text, 1, true)
  end)

  for _, width in ipairs { 70, 80, 120 } do
    it("fits a terminal of " .. width .. " columns, and cuts no address", function()
      local text = outputs.table(columns, rows(long), width, false)
      for line in text:gmatch "[^\n]+" do
        local _, continuations = line:gsub("[\128-\191]", "")
        assert.is_true(#line - continuations <= width, line)
      end
      assert.matches(("a"):rep(42), text, 1, true)
      assert.matches("…", text, 1, true)
    end)
  end

  it("becomes a block of lines where even cut columns do not fit", function()
    local text = outputs.table(columns, rows(long), 30, false)
    assert.matches("address  " .. ("a"):rep(42) .. "\naction   block\n", text, 1, true)
  end)

  it("has colours only where they are wanted", function()
    local record = { address = "x", action = "block" }
    assert.matches("\27[31mblock\27[0m", outputs.table(columns, rows(record), 80, true), 1, true)
    assert.is_nil(outputs.table(columns, rows(record), 80, false):find "\27")
  end)

  it("shows no control characters of the service", function()
    local text = outputs.table(columns, rows { address = "x", action = "allow", reason = "\27[31mred\nline\194\133" })
    assert.is_nil(text:gsub("\n", ""):find "%c")
  end)
end)

describe("CSV", function()
  it("quotes by RFC 4180", function()
    assert.equal('a,"b,c","d ""e""","f\ng",1,,true\r\n', outputs.csv({ "a", "b,c", 'd "e"', "f\ng", 1, nil, true }, 7))
  end)

  for _, formula in ipairs { "=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx" } do
    it(("puts an apostrophe in front of %q"):format(formula), function()
      local cell = outputs.csv({ formula }, 1):sub(1, -3)
      assert.is_truthy(cell:find "^\"?'")
    end)
  end

  it("has all digits of a number", function()
    local amount = 1234567890123.45
    local record = { address = amount, action = { amount, 0.5 }, reason = { sum = amount } }
    local cells = outputs.columns.cells(columns, record)
    local expected = "1234567890123.45,1234567890123.45; 0.5,sum 1234567890123.45\r\n"
    assert.equal(expected, outputs.csv(cells, 3))
    assert.matches("1234567890123.45 ", outputs.table(columns, { cells }), 1, true)
    assert.equal("2; ; x\r\n", outputs.csv(outputs.columns.cells(columns, { address = { 2, json.null, "x" } }), 1))
  end)

  it("leaves numbers below zero as they are", function()
    assert.equal("-1.5", outputs.csv({ -1.5 }, 1):sub(1, -3))
  end)
end)

describe("JSON", function()
  it("has the members in one order, and empty lists stay lists", function()
    local record = { b = 1, a = { json.null, "x" }, c = json.empty_array(), d = { z = 1, y = 2 } }
    assert.equal('{"c":[],"a":[null,"x"],"b":1,"d":{"y":2,"z":1}}', outputs.json(record, { "c", "c", "none" }))
  end)

  it("is read by every reader, whatever the text", function()
    for _, text in ipairs { "\0\1\31\127", 'quote " and \\', "line\nend", "\226\128\168" } do
      assert.equal(text, cjson.decode(outputs.json { value = text }).value)
    end
  end)
end)
