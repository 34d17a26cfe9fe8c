local decimal = require "riskscreen.util.decimal"
local json = require "riskscreen.json"
local random = require "spec.support.random"
local webhook = require "riskscreen.webhook"

local function event(extra)
  local made = {
    webhookId = "w1",
    eventType = "getTxHashCustomRiskScore",
    timestamp = "2026-01-31 23:59:59",
    data = {
      requestId = "r1",
      customId = "c1",
      maxScore = "85.50",
      status = 1003,
      dirData = {
        ["in"] = {
          ["7"] = {
            strategyNo = "7",
            strategyName = "Sanctions",
            score = "85.50",
            details = { { score = "85.50", code = "sanction", name = "Sanctioned" } },
          },
        },
        out = {},
      },
    },
  }
  for name, value in pairs(extra or {}) do
    made[name] = value
  end
  return made
end

local function data(extra)
  local made = event().data
  for name, value in pairs(extra) do
    made[name] = value
  end
  return event { data = made }
end

local function parse(value)
  return webhook.parse(json.encode(value))
end

describe("webhook.parse", function()
  it("returns the event and its data as delivered", function()
    assert.same(event(), parse(event()))
  end)

  it("keeps unknown types of events and unknown fields", function()
    local strange = event { eventType = "somethingNew", data = { anything = { 1, "x", true } }, version = 2 }
    assert.same(strange, parse(strange))
  end)

  it("drops null members of objects, and keeps those of lists, whatever the type of the event", function()
    local strange =
      event { eventType = "somethingNew", data = { a = json.null, b = { json.null }, c = { d = json.null } } }
    local data_of_event = parse(strange).data
    assert.is_nil(data_of_event.a)
    assert.is_nil(next(data_of_event.c))
    assert.equal(json.null, data_of_event.b[1])
  end)

  it("refuses a name that occurs twice in an object", function()
    local text = json.encode(event())
    for _, member in ipairs { '"status":1003', '"maxScore":"85.50"' } do
      local twice = text:gsub(member, member .. "," .. member, 1)
      local parsed, err = webhook.parse(twice)
      assert.is_nil(parsed)
      assert.matches("is not JSON: duplicate name", err.message, 1, true)
    end
  end)

  it("drops null fields, and keeps a null strategy for the policy", function()
    local parsed = parse(data {
      customId = json.null,
      more = { a = json.null },
      dirData = { ["in"] = { ["1"] = json.null }, out = json.null, through = { ["1"] = json.null } },
    })
    assert.same({ ["in"] = { ["1"] = json.null }, through = { ["1"] = json.null } }, parsed.data.dirData)
    assert.is_nil(parsed.data.customId)
    assert.same({}, parsed.data.more)
    assert.is_nil(parse(event { eventType = "new", data = { a = json.null } }).data.a)
  end)

  it("keeps an unknown status", function()
    assert.equal(1999, parse(data { status = 1999 }).data.status)
  end)

  it("accepts a direction that is null, {} or [] as one without strategies", function()
    for _, text in ipairs { "null", "{}", "[]" } do
      local body = (
        '{"webhookId":"w","eventType":"getTxHashCustomRiskScore","timestamp":"2026-01-01 00:00:00",'
        .. '"data":{"dirData":{"in":{},"out":%s}}}'
      ):format(text)
      assert.is_nil(next(webhook.parse(body).data.dirData.out or {}))
    end
  end)

  local refused = {
    { "no webhookId", event { webhookId = json.null }, "webhookId is missing" },
    { "an empty webhookId", event { webhookId = "" }, "webhookId must not be empty" },
    { "a webhookId that is a number", event { webhookId = 5 }, "webhookId must be a string" },
    { "a webhookId with control characters", event { webhookId = "a\nb" }, "control characters" },
    { "a webhookId of any length", event { webhookId = ("w"):rep(257) }, "at most 256 bytes" },
    { "no eventType", event { eventType = json.null }, "eventType is missing" },
    { "an eventType that is an object", event { eventType = {} }, "eventType must be a string" },
    { "no timestamp", event { timestamp = json.null }, "timestamp is missing" },
    { "a timestamp that is a number", event { timestamp = 1767225600 }, "timestamp must be a string" },
    { "no data", event { data = json.null }, "data is missing" },
    { "data that is a text", event { data = "none" }, "data must be an object" },
    { "data that is an array", event { data = { 1 } }, "data must be an object" },
    { "a requestId that is a number", data { requestId = 5 }, "data.requestId must be a string" },
    { "a customId that is an object", data { customId = {} }, "data.customId must be a string" },
    { "a score that is a number", data { maxScore = 85.5 }, "data.maxScore must be a string" },
    { "a score that is no decimal", data { maxScore = "85,5" }, "data.maxScore must be a decimal" },
    { "a status that is a text", data { status = "1003" }, "data.status must be an integer" },
    { "a status with a fraction", data { status = 1003.5 }, "data.status must be an integer" },
    { "directions that are an array", data { dirData = { 1 } }, "data.dirData must be an object" },
    {
      "a strategy that is a text",
      data { dirData = { ["in"] = { ["7"] = "x" } } },
      "data.dirData.in.7 must be an object",
    },
    {
      "a detail's score that is a number",
      data { dirData = { ["in"] = { ["7"] = { details = { { score = 1 } } } } } },
      "details[1].score must be a string",
    },
  }
  for _, case in ipairs(refused) do
    it("refuses " .. case[1], function()
      local value, err = parse(case[2])
      assert.is_nil(value)
      assert.equal("protocol", err.kind)
      assert.matches(case[3], err.message, 1, true)
    end)
  end

  for _, timestamp in ipairs {
    "2026-02-30 10:00:00",
    "2026-13-01 10:00:00",
    "2026-01-01 24:00:00",
    "2026-01-01 10:60:00",
    "2026-01-01 10:00:61",
    "2026-01-01T10:00:00",
    "2026-01-01",
    "2026-1-1 1:0:0",
    "2026-01-01 10:00:00 ",
    "2026-01-01 10:00:00Z",
    "yesterday",
    "",
  } do
    it("refuses the timestamp '" .. timestamp .. "'", function()
      local value, err = parse(event { timestamp = timestamp })
      assert.is_nil(value)
      assert.equal("timestamp", err.field)
    end)
  end

  for name, body in pairs {
    ["no body"] = "",
    ["a body that is not JSON"] = "<html>",
    ["half an event"] = json.encode(event()):sub(1, -2),
    ["an array"] = "[]",
    ["a text"] = '"event"',
    ["null"] = "null",
    ["more than one event"] = json.encode(event()) .. json.encode(event()),
    ["text that is not UTF-8"] = json.encode(event { webhookId = "w\255" }),
  } do
    it("refuses " .. name, function()
      local value, err = webhook.parse(body)
      assert.is_nil(value)
      assert.equal("protocol", err.kind)
    end)
  end

  it("names the position of a JSON error once", function()
    local _, err = webhook.parse "<html>"
    assert.matches("is not JSON: [^\n]* at byte 1$", err.message)
    assert.is_nil(err.message:find "at byte.*at byte")
  end)

  it("refuses a body of more than 64 KiB", function()
    local value, err = webhook.parse(json.encode(event { more = ("x"):rep(64 * 1024) }))
    assert.is_nil(value)
    assert.matches("at most 65536", err.message)
  end)

  it("refuses a deeply nested body", function()
    local depth = 100
    local body = json.encode(event()):sub(1, -2) .. ',"more":' .. ("["):rep(depth) .. ("]"):rep(depth) .. "}"
    assert.is_nil((webhook.parse(body)))
  end)

  it("refuses a compressed body", function()
    local value, err = webhook.parse(json.encode(event()), { ["Content-Encoding"] = "gzip" })
    assert.is_nil(value)
    assert.matches("encoded as 'gzip'", err.message)
  end)

  it("raises at the caller's line when the body is not a string", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, message = pcall(function()
      webhook.parse(nil)
    end)
    assert.is_false(ok)
    assert.matches("event_spec.lua:" .. line .. ": webhook.parse: body must be a string", message, 1, true)
  end)

  it("never raises and never returns half an event for a mutated body", function()
    local original, generator = json.encode(event()), random.new(20260101)
    local pieces =
      { "{", "}", "[", "]", '"', ",", ":", "0", "-", "\\", "\0", "\255", "null", "1e9", "true", "\\u0000", "" }
    local accepted = 0
    for _ = 1, 4000 do
      local body = original
      for _ = 1, generator.integer(3) do
        local at, length = generator.integer(#body), generator.integer(5) - 1
        body = body:sub(1, at - 1) .. generator.pick(pieces) .. body:sub(at + length)
      end
      local value, err = webhook.parse(body)
      if value then
        accepted = accepted + 1
        assert.is_string(value.webhookId)
        local score = value.data.maxScore
        assert.is_true(score == nil or decimal.check(score) or value.eventType ~= "getTxHashCustomRiskScore")
      else
        assert.equal("protocol", err.kind)
      end
    end
    assert.is_true(accepted > 0)
  end)
end)
