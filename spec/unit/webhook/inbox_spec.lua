local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local webhook = require "riskscreen.webhook"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local SECRET = "a secret of 24 characters"
local TYPE = "getTxHashCustomRiskScore"

local function body_of(id, data, event_type)
  return json.encode {
    webhookId = id,
    eventType = event_type or TYPE,
    timestamp = "2026-01-01 00:00:00",
    data = data or { requestId = "r-" .. id, maxScore = "1", status = 1003 },
  }
end

-- An inbox without authentication, the events that its handler got, and the failures.
local function new_inbox(options)
  local handled, failures = {}, {}
  local all = {
    accept_unauthenticated = true,
    handlers = {
      [TYPE] = function(event)
        handled[#handled + 1] = event
      end,
    },
    on_failure = function(failure)
      failures[#failures + 1] = failure
    end,
  }
  for name, value in pairs(options or {}) do
    all[name] = value
  end
  return webhook.inbox(all), handled, failures
end

local function deliver(inbox, id, data, where, headers)
  return inbox:deliver("POST", headers or {}, body_of(id, data), where)
end

describe("an inbox", function()
  it("passes an event to the handler of its type and answers 200", function()
    local inbox, handled = new_inbox()
    local status, headers, body = deliver(inbox, "w1")
    assert.equal(200, status)
    assert.equal("application/json", headers["Content-Type"])
    assert.same({ received = true }, json.decode(body))
    assert.same({ 1, "w1", "r-w1" }, { #handled, handled[1].webhookId, handled[1].data.requestId })
  end)

  it("answers a delivery also where on_failure raises, and the event may come again", function()
    local fails = true
    local function fail()
      if fails then
        error "it is down"
      end
    end
    local options = {
      { handlers = { [TYPE] = fail }, on_failure = fail },
      {
        fetch = function()
          fail()
          return { requestId = "r-w1" }
        end,
        on_failure = fail,
      },
      {
        verify = function()
          fail()
          return true
        end,
        on_failure = fail,
      },
    }
    for _, given in ipairs(options) do
      fails = true
      local inbox = new_inbox(given)
      assert.equal(500, (deliver(inbox, "w1")))
      fails = false
      assert.equal(200, (deliver(inbox, "w1")))
    end
  end)

  it("passes other types to the handler '*'", function()
    local others = {}
    local inbox, handled = new_inbox()
    inbox:on("*", function(event)
      others[#others + 1] = event.eventType
    end)
    inbox:deliver("POST", {}, body_of("w1", {}, "somethingNew"))
    deliver(inbox, "w2")
    assert.same({ "somethingNew" }, others)
    assert.equal(1, #handled)
  end)

  it("accepts an event without a handler", function()
    local inbox = webhook.inbox { accept_unauthenticated = true }
    assert.equal(200, (deliver(inbox, "w1")))
  end)

  it("answers 405 to another method, 400 to a malformed event and 413 to a long body", function()
    local inbox, handled = new_inbox()
    local status, headers = inbox:deliver("GET", {}, "")
    assert.same({ 405, "POST" }, { status, headers.Allow })
    assert.equal(400, (inbox:deliver("POST", {}, "{}")))
    assert.equal(413, (inbox:deliver("POST", {}, ("x"):rep(webhook.MAX_SIZE + 1))))
    assert.equal(0, #handled)
  end)

  it("raises at the caller's line when an argument is missing", function()
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, message = pcall(function()
      new_inbox():deliver "POST"
    end)
    assert.is_false(ok)
    assert.matches("inbox_spec.lua:" .. line .. ": inbox:deliver", message, 1, true)
  end)

  it("raises at the caller's line when the place of a delivery is none", function()
    for _, where in ipairs { 5, { target = 5 } } do
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(function()
        new_inbox():deliver("POST", {}, body_of "w1", where)
      end)
      assert.is_false(ok)
      assert.matches("inbox_spec.lua:" .. line .. ": inbox:deliver", message, 1, true)
    end
  end)
end)

describe("a duplicate", function()
  it("is answered 200 and not handled again", function()
    local inbox, handled = new_inbox()
    deliver(inbox, "w1")
    local status, _, body = deliver(inbox, "w1")
    assert.same({ 200, true, 1 }, { status, json.decode(body).duplicate, #handled })
  end)

  it("is recognised by its webhookId alone", function()
    local inbox, handled = new_inbox()
    deliver(inbox, "w1")
    deliver(inbox, "w1", { requestId = "another", status = 1003 })
    deliver(inbox, "w2")
    assert.same({ 2, "w2" }, { #handled, handled[2].webhookId })
  end)

  it("is handled again after the time to live", function()
    local now = 100
    local inbox, handled = new_inbox {
      remember = { ttl = 60 },
      clock = function()
        return now
      end,
    }
    deliver(inbox, "w1")
    now = 159
    deliver(inbox, "w1")
    assert.equal(1, #handled)
    now = 160
    deliver(inbox, "w1")
    assert.equal(2, #handled)
  end)

  it("is recognised while it is among the remembered events", function()
    local inbox, handled = new_inbox { remember = { limit = 3 } }
    for index = 1, 4 do
      deliver(inbox, "w" .. index)
    end
    for index = 4, 2, -1 do
      deliver(inbox, "w" .. index)
    end
    assert.equal(4, #handled)
    deliver(inbox, "w1")
    assert.equal(5, #handled)
  end)

  it("is answered 503 while the first delivery is being handled", function()
    local inbox, statuses, runs = new_inbox(), {}, 0
    inbox:on(TYPE, function()
      runs = runs + 1
      if runs == 1 then
        local status, headers = deliver(inbox, "w1")
        statuses[1], statuses[2] = status, headers["Retry-After"]
      end
    end)
    assert.equal(200, (deliver(inbox, "w1")))
    assert.same({ 503, "1", 1 }, { statuses[1], statuses[2], runs })
  end)
end)

describe("a handler that fails", function()
  local ways = {
    {
      "by raising",
      function()
        error("no disk", 0)
      end,
      "no disk",
    },
    {
      "by returning nil and an error",
      function()
        return nil, "no disk"
      end,
      "no disk",
    },
    {
      "by returning false and an error",
      function()
        return false, "no disk"
      end,
      "no disk",
    },
  }
  for _, way in ipairs(ways) do
    it(way[1] .. " makes the answer 500, and the event is handled when it comes again", function()
      local inbox, handled, failures = new_inbox()
      local works = inbox.handlers[TYPE]
      inbox:on(TYPE, way[2])
      local status, _, body = deliver(inbox, "w1")
      assert.same({ 500, { way[3] } }, { status, failures })
      assert.is_nil(body:find("no disk", 1, true))
      inbox:on(TYPE, works)
      assert.equal(200, (deliver(inbox, "w1")))
      assert.equal(1, #handled)
    end)
  end

  it("is not a handler that returns nothing, or false without an error", function()
    for _, result in ipairs { { n = 0 }, { n = 1, false } } do
      local inbox = new_inbox()
      inbox:on(TYPE, function()
        return unpack(result, 1, result.n)
      end)
      assert.equal(200, (deliver(inbox, "w1")))
    end
  end)

  it("may wait before it returns", function()
    local inbox = new_inbox()
    local before = {}
    inbox:on(TYPE, function()
      riskscreen.sleep(0.001)
      before[#before + 1] = "handled"
    end)
    local status = riskscreen.run(function()
      return (deliver(inbox, "w1"))
    end)
    assert.same({ 200, { "handled" } }, { status, before })
  end)
end)

describe("a store of the operator's", function()
  local function store(claims)
    local calls = {}
    local made = {}
    for _, name in ipairs { "claim", "complete", "release" } do
      made[name] = function(_, id)
        calls[#calls + 1] = name .. " " .. id
        if name == "claim" then
          return claims[1], claims[2]
        end
      end
    end
    return made, calls
  end

  it("is told whether the event was handled", function()
    local made, calls = store { "new" }
    local inbox = new_inbox { store = made }
    deliver(inbox, "w1")
    inbox:on(TYPE, error)
    deliver(inbox, "w2")
    assert.same({ "claim w1", "complete w1", "claim w2", "release w2" }, calls)
  end)

  it("decides which event is a duplicate", function()
    local inbox, handled = new_inbox { store = store { "done" } }
    assert.equal(200, (deliver(inbox, "w1")))
    assert.equal(0, #handled)
  end)

  it("that fails leads to a 503, so that the sender tries again", function()
    local inbox, handled, failures = new_inbox { store = store { nil, "no connection" } }
    assert.equal(503, (deliver(inbox, "w1")))
    assert.same({ 0, { "no connection" } }, { #handled, failures })
  end)

  it("needs its three methods", function()
    assert.has_error(function()
      new_inbox { store = { claim = error } }
    end)
  end)
end)

describe("a shared secret", function()
  local function status_of(secret, headers, target)
    secret.value = secret.value or SECRET
    local inbox = webhook.inbox { secret = secret }
    return (deliver(inbox, "w1", nil, { target = target }, headers))
  end

  it("is read from a header, case-insensitively", function()
    assert.equal(200, status_of({ header = "X-Secret" }, { ["x-sEcret"] = SECRET }))
    assert.equal(401, status_of({ header = "X-Secret" }, { ["X-Secret"] = SECRET .. "!" }))
    assert.equal(401, status_of({ header = "X-Secret" }, { ["X-Other"] = SECRET }))
  end)

  it("does not match a header that comes twice, in two cases or as a list, or that is no text", function()
    for _ = 1, 10 do
      assert.equal(401, status_of({ header = "X-Secret" }, { ["X-Secret"] = SECRET, ["x-secret"] = "another" }))
    end
    for _, value in ipairs { { SECRET, SECRET }, { SECRET, "another" }, 5, true } do
      assert.equal(401, status_of({ header = "X-Secret" }, { ["X-Secret"] = value }))
    end
    assert.equal(200, status_of({ header = "X-Secret" }, { ["X-Secret"] = { SECRET } }))
  end)

  it("is read from the query", function()
    local encoded = SECRET:gsub(" ", "%%20")
    assert.equal(200, status_of({ query = "token" }, {}, "/hooks?a=b&token=" .. encoded))
    assert.equal(200, status_of({ query = "token" }, {}, "/hooks?token=" .. SECRET:gsub(" ", "+")))
    for _, place in ipairs { "/hooks/", "/hooks?token=" } do
      for _, spelling in ipairs { "24+char%acters~!", "24%2bchar%25acters%7E%21", "24%2Bchar%25acters~!" } do
        local secret = { value = "24+char%acters~!", path = place == "/hooks/" or nil }
        secret.query = not secret.path and "token" or nil
        assert.equal(200, status_of(secret, {}, place .. spelling), place .. spelling)
      end
    end
    assert.equal(401, status_of({ query = "token" }, {}, "/hooks?Token=" .. encoded))
    assert.equal(401, status_of({ query = "token" }, {}, "/hooks?token="))
    assert.equal(401, status_of({ query = "token" }, {}, "/hooks/" .. encoded))
    assert.equal(401, status_of({ query = "token" }, {}))
  end)

  it("is read from the last segment of the path", function()
    local encoded = SECRET:gsub(" ", "%%20")
    assert.equal(200, status_of({ path = true }, {}, "/hooks/" .. encoded .. "?x=1"))
    assert.equal(401, status_of({ path = true }, {}, "/hooks/" .. encoded .. "/"))
    assert.equal(401, status_of({ path = true }, {}, "/hooks"))
    -- A long path is scanned only once.
    assert.equal(401, status_of({ path = true }, {}, "/" .. ("a"):rep(1000000) .. "/"))
  end)

  it("may be one of several", function()
    local values = { SECRET, "the next secret of this inbox" }
    for _, value in ipairs(values) do
      assert.equal(200, status_of({ value = values, header = "x" }, { x = value }))
    end
    assert.equal(401, status_of({ value = values, header = "x" }, { x = values[1] .. values[2] }))
  end)

  it("does not match a part of it or a repetition", function()
    for _, guess in ipairs { "", SECRET:sub(1, -2), SECRET:sub(2), SECRET .. SECRET, SECRET:upper() } do
      assert.equal(401, status_of({ header = "x" }, { x = guess }))
    end
  end)

  it("appears in no answer, message or field", function()
    local inbox = webhook.inbox { secret = { value = SECRET, header = "x" } }
    local _, _, body = deliver(inbox, "w1", nil, nil, { x = SECRET .. "?" })
    assert.is_nil(body:find(SECRET, 1, true))
    local seen = {}
    local function search(value)
      assert.is_true(type(value) ~= "string" or not value:find(SECRET, 1, true))
      if type(value) == "table" and not seen[value] then
        seen[value] = true
        for key, member in pairs(value) do
          search(key)
          search(member)
        end
      end
    end
    search(inbox)
    local _, message = pcall(webhook.inbox, { secret = { value = "short secret" } })
    assert.is_nil(message:find("short secret", 1, true))
  end)
end)

describe("an allow-list", function()
  local function status_of(allow, remote)
    return (deliver(webhook.inbox { allow = allow }, "w1", nil, { remote = remote }))
  end

  local cases = {
    { { "192.0.2.7" }, "192.0.2.7", 200 },
    { { "192.0.2.7" }, "192.0.2.8", 403 },
    { { "192.0.2.0/24" }, "192.0.2.255", 200 },
    { { "192.0.2.0/24" }, "192.0.3.0", 403 },
    { { "192.0.2.128/25" }, "192.0.2.128", 200 },
    { { "192.0.2.128/25" }, "192.0.2.127", 403 },
    { { "10.0.0.0/9" }, "10.127.255.255", 200 },
    { { "10.0.0.0/9" }, "10.128.0.0", 403 },
    { { "0.0.0.0/0" }, "203.0.113.9", 200 },
    { { "0.0.0.0/0" }, "2001:db8::1", 403 },
    { { "192.0.2.0/24" }, "::ffff:192.0.2.5", 200 },
    { { "::ffff:192.0.2.0/120" }, "192.0.2.5", 200 },
    { { "192.0.2.0/24" }, "::ffff:c000:0205", 200 },
    { { "2001:db8::/32" }, "2001:db8:ffff::1", 200 },
    { { "2001:db8::/32" }, "2001:db9::1", 403 },
    { { "2001:db8::/33" }, "2001:db8:8000::1", 403 },
    { { "::1" }, "0:0:0:0:0:0:0:1", 200 },
    { { "::/0" }, "2001:db8::1", 200 },
    { { "::1" }, "127.0.0.1", 403 },
    { { "2001:DB8::A" }, "2001:db8:0:0::a", 200 },
    { { "192.0.2.1", "2001:db8::/64" }, "2001:db8::99", 200 },
    { { "192.0.2.7" }, nil, 403 },
    { { "192.0.2.7" }, "", 403 },
    { { "192.0.2.7" }, "192.0.2.7, 192.0.2.8", 403 },
    { { "192.0.2.7" }, "192.0.2.007", 403 },
    { { "192.0.2.7" }, "192.0.2.7.1", 403 },
    { { "192.0.2.7" }, "192.0.519.7", 403 },
    { { "::/0" }, "1::2::3", 403 },
    { { "::/0" }, "1:2:3:4:5:6:7:8:9", 403 },
    { { "::/0" }, "1:2:3:4:5:6:7", 403 },
    { { "::/0" }, "12345::", 403 },
    { { "::/0" }, ":::", 403 },
    { { "::/0" }, ":1", 403 },
    { { "::/0" }, "fe80::1%eth0", 403 },
  }
  for _, case in ipairs(cases) do
    it(("of %s answers %d to %s"):format(table.concat(case[1], " and "), case[3], tostring(case[2])), function()
      assert.equal(case[3], status_of(case[1], case[2]))
    end)
  end

  for _, bad in ipairs {
    "192.0.2.0/33",
    "192.0.2",
    "2001:db8::/129",
    "host",
    "",
    "192.0.2.1/",
    "192.0.2.256",
    "1::2::/8",
  } do
    it("cannot hold '" .. bad .. "'", function()
      assert.has_error(function()
        webhook.inbox { allow = { bad } }
      end)
    end)
  end
end)

describe("a verify function", function()
  it("gets the body, the headers and the delivery, and decides", function()
    local given
    local inbox, handled = new_inbox {
      verify = function(body, headers, delivery)
        given = { body, headers["x-signature"], delivery.path, delivery.remote }
        return headers["x-signature"] == "good", "the signature is bad"
      end,
    }
    local where = { target = "/hooks?a=b", remote = "192.0.2.1" }
    local status, _, body = deliver(inbox, "w1", nil, where, { ["X-Signature"] = "bad" })
    assert.same({ 401, "the signature is bad", 0 }, { status, json.decode(body).error, #handled })
    assert.same({ body_of "w1", "bad", "/hooks", "192.0.2.1" }, given)
    assert.equal(200, (deliver(inbox, "w1", nil, where, { ["X-Signature"] = "good" })))
  end)

  it("accepts by true alone", function()
    for _, answer in ipairs { "yes", 1, {}, "the signature is bad" } do
      local inbox, handled = new_inbox {
        verify = function()
          return answer
        end,
      }
      assert.equal(401, (deliver(inbox, "w1")))
      assert.equal(0, #handled)
    end
  end)

  it("that raises leads to a 500, so that the sender tries again", function()
    local inbox, handled, failures = new_inbox {
      verify = function()
        error("no key", 0)
      end,
    }
    assert.equal(500, (deliver(inbox, "w1")))
    assert.same({ 0, { "no key" } }, { #handled, failures })
  end)
end)

describe("an inbox that fetches", function()
  it("uses nothing of the event but its requestId", function()
    local asked = {}
    local inbox, handled = new_inbox {
      fetch = function(request_id)
        asked[#asked + 1] = request_id
        return { requestId = request_id, maxScore = "90", status = 1003 }
      end,
    }
    deliver(inbox, "w1", { requestId = "r1", maxScore = "0", status = 1003 })
    assert.same({ { "r1" }, "90" }, { asked, handled[1].data.maxScore })
  end)

  it("gives a handler no field that the sender has added", function()
    local handled = {}
    local inbox = new_inbox {
      fetch = function()
        return { maxScore = "90", status = 1003 }
      end,
      handlers = {
        ["*"] = function(event)
          handled[#handled + 1] = event
        end,
      },
    }
    local forged = json.decode(body_of("w1", { requestId = "r1", customId = "forged" }, "payout.approved"))
    forged.approved, forged.customId = true, "forged"
    assert.equal(200, (inbox:deliver("POST", {}, json.encode(forged))))
    assert.same({
      webhookId = "w1",
      eventType = "payout.approved",
      timestamp = forged.timestamp,
      data = { requestId = "r1", maxScore = "90", status = 1003 },
    }, handled[1])
  end)

  local failing = {
    { "cannot fetch", nil, errors.new("network", "cut") },
    { "fetches another request's result", { requestId = "other", maxScore = "0", status = 1003 } },
    { "fetches a value that is not a result", "ok" },
  }
  for _, case in ipairs(failing) do
    it("answers 500 when it " .. case[1] .. ", and handles nothing", function()
      local inbox, handled, failures = new_inbox {
        fetch = function()
          return case[2], case[3]
        end,
      }
      assert.equal(500, (deliver(inbox, "w1", { requestId = "r1", maxScore = "0", status = 1003 })))
      assert.same({ 0, 1 }, { #handled, #failures })
    end)
  end

  it("handles the genuine event after a forged delivery with its webhookId", function()
    local inbox, handled = new_inbox {
      fetch = function(request_id)
        return { requestId = request_id, maxScore = request_id == "r1" and "90" or "0", status = 1003 }
      end,
    }
    for _, forged in ipairs { { "r2", TYPE }, { "r1", "another" } } do
      local body = body_of("w1", { requestId = forged[1], maxScore = "0", status = 1003 }, forged[2])
      assert.equal(200, (inbox:deliver("POST", {}, body)))
    end
    local genuine = { requestId = "r1", maxScore = "90", status = 1003 }
    assert.equal(200, (deliver(inbox, "w1", genuine)))
    local _, _, again = deliver(inbox, "w1", genuine)
    assert.is_true(json.decode(again).duplicate)
    assert.same({ 2, "r2", "r1" }, { #handled, handled[1].data.requestId, handled[2].data.requestId })
  end)

  it("refuses an event without a requestId", function()
    local inbox, handled = new_inbox {
      fetch = function()
        return {}
      end,
    }
    assert.equal(500, (deliver(inbox, "w1", { customId = "c1", maxScore = "0", status = 1003 })))
    assert.equal(0, #handled)
  end)
end)

describe("a waiter", function()
  local function awaited(request_id, custom_id)
    local offered = {}
    return {
      submission = { kind = "transaction", requestId = request_id, customId = custom_id },
      offer = function(_, event)
        offered[#offered + 1] = event.webhookId
      end,
    },
      offered
  end

  it("gets an event by requestId, before or after it comes", function()
    local inbox = new_inbox()
    local early, offered_early = awaited "r-w1"
    local hold = inbox.waiters:expect(early)
    deliver(inbox, "w1")
    local late, offered_late = awaited "r-w1"
    local hold_late = inbox.waiters:expect(late)
    assert.same({ { "w1" }, { "w1" } }, { offered_early, offered_late })
    assert.is_not_nil(hold and hold_late)
  end)

  it("does not get another waiter's event", function()
    local inbox = new_inbox()
    local one, offered = awaited("r1", "c1")
    local hold = inbox.waiters:expect(one)
    deliver(inbox, "w1", { requestId = "r2", customId = "c2", status = 1003 })
    deliver(inbox, "w2", { requestId = "c1", customId = "r1", status = 1003 })
    assert.same({}, offered)
    assert.is_not_nil(hold)
  end)

  it("gets an event without a requestId by customId", function()
    local inbox = new_inbox()
    local one, offered = awaited("r1", "c1")
    local hold = inbox.waiters:expect(one)
    deliver(inbox, "w1", { customId = "c1", status = 1003 })
    assert.same({ "w1" }, offered)
    assert.is_not_nil(hold)
  end)

  it("gets nothing by a customId that several waiters share", function()
    local inbox = new_inbox()
    local one, offered_one = awaited("r1", "same")
    local two, offered_two = awaited("r2", "same")
    local holds = { inbox.waiters:expect(one), inbox.waiters:expect(two) }
    deliver(inbox, "w1", { customId = "same", status = 1003 })
    assert.same({ {}, {}, 2 }, { offered_one, offered_two, #holds })
  end)

  it("gets nothing by a customId that belonged to another waiter when the event came", function()
    local inbox = new_inbox()
    inbox.waiters:expect((awaited("r1", "c1")))
    deliver(inbox, "w1", { customId = "c1", status = 1003 })
    local one, two = awaited("r2", "c2"), awaited("r3", "c2")
    local holds = { inbox.waiters:expect(one), inbox.waiters:expect(two) }
    deliver(inbox, "w2", { customId = "c2", status = 1003 })
    assert.equal(2, #holds)
    one, two, holds = nil, nil, nil -- luacheck: ignore 311
    collectgarbage()
    collectgarbage()
    for _, custom_id in ipairs { "c1", "c2" } do
      local later, offered = awaited("r4", custom_id)
      inbox.waiters:expect(later)
      assert.same({}, offered)
    end
  end)

  it("gets nothing by customId when the event's requestId belongs to another waiter", function()
    local inbox = new_inbox()
    inbox.waiters:expect((awaited("r1", "c1")))
    deliver(inbox, "w1", { requestId = "r1", customId = "c1", status = 1003 })
    collectgarbage()
    collectgarbage()
    local uncertain, offered = awaited(nil, "c1")
    inbox.waiters:expect(uncertain)
    assert.same({}, offered)
  end)

  it("gets the same event again when its transaction is resumed", function()
    local inbox = new_inbox()
    inbox.waiters:expect((awaited("r1", "c1")))
    deliver(inbox, "w1", { customId = "c1", status = 1003 })
    collectgarbage()
    collectgarbage()
    local again, offered = awaited("r1", "c1")
    inbox.waiters:expect(again)
    assert.same({ "w1" }, offered)
  end)

  it("gets an early event only within the time and the limit", function()
    local now = 0
    local inbox = new_inbox {
      early = { ttl = 10, limit = 2 },
      clock = function()
        return now
      end,
    }
    for index = 1, 3 do
      deliver(inbox, "w" .. index)
    end
    local function offered_to(request_id)
      local one, offered = awaited(request_id)
      inbox.waiters:expect(one)
      return #offered
    end
    assert.same({ 0, 1, 1 }, { offered_to "r-w1", offered_to "r-w2", offered_to "r-w3" })
    now = 10
    assert.equal(0, offered_to "r-w3")
  end)

  it("gets the event although the handler fails", function()
    local inbox = new_inbox()
    inbox:on(TYPE, error)
    local one, offered = awaited "r-w1"
    local hold = inbox.waiters:expect(one)
    assert.equal(500, (deliver(inbox, "w1")))
    assert.same({ "w1" }, offered)
    assert.is_not_nil(hold)
  end)

  it("does not get a refused delivery", function()
    local inbox = webhook.inbox { secret = { value = SECRET, header = "x" } }
    local one, offered = awaited "r-w1"
    local hold = inbox.waiters:expect(one)
    assert.equal(401, (deliver(inbox, "w1")))
    assert.same({}, offered)
    assert.is_not_nil(hold)
  end)
end)

describe("webhook.inbox", function()
  local refused = {
    { "options without any authentication", {}, "who may deliver" },
    { "a secret without a place", { secret = { value = SECRET } }, "one of header, query and path" },
    { "a secret with two places", { secret = { value = SECRET, path = true, query = "q" } }, "one of header" },
    {
      "a short secret",
      { secret = { value = "0123456789abcde", path = true } },
      "16 to 1024 bytes; the text is not such a value",
    },
    { "a secret without a value", { secret = { path = true } }, "secret.value is required" },
    { "an empty allow-list", { allow = {} }, "at least 1" },
    { "a handler that is not a function", { handlers = { x = 1 } }, "types of events to functions" },
    { "an unknown option", { secrets = {} }, "did you mean 'secret'" },
    {
      "a store without the name of an account",
      { accept_unauthenticated = true, store = riskscreen.store.memory() },
      "store needs `account`",
    },
  }
  for _, case in ipairs(refused) do
    it("refuses " .. case[1] .. " at the caller's line", function()
      local line = debug.getinfo(1, "l").currentline + 2
      local ok, message = pcall(function()
        webhook.inbox(case[2])
      end)
      assert.is_false(ok)
      assert.matches("inbox_spec.lua:" .. line .. ": webhook.inbox: ", message, 1, true)
      assert.matches(case[3], message, 1, true)
    end)
  end
end)
