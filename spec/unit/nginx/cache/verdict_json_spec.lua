-- A verdict as JSON text and back, and what becomes of texts that are none: what was not written is never read as one.
local errors = require "riskscreen.errors"
local verdict_json = require "riskscreen.nginx.cache.verdict_json"

local function reason(action, message, more)
  local all = { action = action, message = message }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

local function decision(action, reasons, more)
  local all = { action = action, reasons = reasons, degraded = false }
  for name, value in pairs(more or {}) do
    all[name] = value
  end
  return all
end

describe("the text of a verdict", function()
  it("has its reasons, and none of its records", function()
    local risk = { riskLevel = "high", riskType = "scam", riskSource = "own", hops = 3 }
    local text = verdict_json.write(decision("block", {
      reason(
        "block",
        "a 'bad'\none \0 €",
        { rule = { name = "scams", action = "block", level = "high" }, risk = risk }
      ),
      reason("review", "and an odd one", { rule = { action = "review" } }),
    }, { records = { {} }, degraded = true, elapsed = 3, address = "0xab" }))
    assert.same({
      action = "block",
      reasons = {
        {
          action = "block",
          message = "a 'bad'\none \0 €",
          rule = { name = "scams", action = "block" },
          risk = { riskLevel = "high", riskType = "scam", riskSource = "own" },
        },
        { action = "review", message = "and an odd one" },
      },
      degraded = true,
    }, verdict_json.read(text))
  end)

  it("has the error of a failure", function()
    local err = errors.new("timeout", "no answer within 3 seconds", { operation = "getAddressRisk" })
    local read =
      verdict_json.read(verdict_json.write(decision("unknown", { reason("unknown", tostring(err), { error = err }) })))
    assert.is_true(errors.is(read.error))
    assert.equal("timeout", read.error.kind)
    assert.equal(err.message, read.error.message)
    assert.equal(read.error, read.reasons[1].error)
  end)

  it("gives a reason where none was given", function()
    for _, reasons in ipairs { {}, false } do
      local read = verdict_json.read(verdict_json.write(decision("review", reasons or nil)))
      assert.equal("review", read.action)
      assert.equal("review", read.reasons[1].action)
      assert.is_string(read.reasons[1].message)
    end
  end)

  it("is not written where it would not be read again", function()
    for _, text in ipairs {
      verdict_json.write(decision("allow", { reason("allow", print) })) or false,
      verdict_json.write(decision("allow", { reason("allow", 0 / 0) })) or false,
    } do
      assert.is_nil(text and verdict_json.read(text) or nil)
    end
  end)

  it("must add up", function()
    assert.is_table(verdict_json.read '{"a":"allow","r":[{"a":"allow","m":"x"}]}')
    for _, json in ipairs {
      "",
      "null",
      "[]",
      "1",
      '"allow"',
      "{}",
      '{"a":"allow"}',
      '{"r":[{"a":"allow","m":"x"}]}',
      '{"a":"allow","r":[]}',
      '{"a":"allow","r":{}}',
      '{"a":"allow","r":null}',
      '{"a":"allow","r":[null]}',
      '{"a":"allow","r":[{"a":"allow"}]}',
      '{"a":"allow","r":[{"a":"allow","m":1}]}',
      '{"a":"allow","r":[{"m":"x"}]}',
      '{"a":"ALLOW","r":[{"a":"ALLOW","m":"x"}]}',
      '{"a":"pass","r":[{"a":"pass","m":"x"}]}',
      '{"a":null,"r":[{"a":null,"m":"x"}]}',
      '{"a":true,"r":[{"a":true,"m":"x"}]}',
      '{"a":"allow","r":[{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},{"a":"unknown","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},null]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"},1]}',
      '{"a":"review","r":[{"a":"allow","m":"x"}]}',
      '{"a":"block","r":[{"a":"allow","m":"x"},{"a":"block","m":"x"}]}',
      '{"a":"allow","r":[{"a":"allow","m":"x"}]} x',
      '{"a":"allow","r":[{"a":"allow","m":"x"}]',
      '{"a":"block","a":"allow","r":[{"a":"block","m":"x"}]}',
    } do
      assert.is_nil(verdict_json.read(json), json)
    end
  end)
end)
