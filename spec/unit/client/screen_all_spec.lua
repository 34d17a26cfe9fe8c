local riskscreen = require "riskscreen"
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143
local clean, high = sandbox.scenario "clean-eth", sandbox.scenario "high-eth"

local function address(number)
  return ("0x%040x"):format(number)
end

local function collect(run)
  local decisions = {}
  for decision in run do
    decisions[#decisions + 1] = decision
  end
  return decisions
end

local found = recorder.reply(200, {
  success = true,
  code = 1,
  data = { address = clean.address, network = "eth", whitelist = false, risks = json.empty_array() },
})

local function client_with(...)
  local transport, requests = recorder.new(...)
  local options = { transport = transport, access_key = "test-key", breaker = false, retry = { base_delay = 0 } }
  return riskscreen.new(options), requests
end

for _, way in ipairs(support.ways) do
  describe("client:screen_all " .. way.name, function()
    local connection, client, service

    before_each(function()
      connection = way.connect()
      client, service = connection.client, connection.service
    end)

    after_each(function()
      connection.close()
    end)

    local function list_of(count)
      local list = {}
      for number = 1, count do
        list[number] = address(number)
      end
      return list
    end

    local function check_all(decisions, list)
      assert.equal(#list, #decisions)
      for index, decision in ipairs(decisions) do
        assert.equal(index, decision.index)
        assert.equal(list[index], decision.address)
        assert.equal(list[index], decision.record.address)
        assert.equal("eth", decision.network)
      end
    end

    it("decides every address of a list, in its order", function()
      local list = list_of(100)
      check_all(collect(client:screen_all { source = list, network = "eth", concurrency = 16 }), list)
    end)

    it("decides as client:screen does", function()
      local list = list_of(40)
      for decision in client:screen_all { source = list, network = "eth" } do
        assert.equal(client:screen({ address = decision.address, network = "eth" }).action, decision.action)
      end
    end)

    it("takes an iterator, and items with a network of their own", function()
      local items = { { address = clean.address, network = "eth" }, { address = high.address }, high.address }
      local index = 0
      local decisions = collect(client:screen_all {
        source = function()
          index = index + 1
          return items[index]
        end,
        network = "bsc",
      })
      assert.equal(3, #decisions)
      assert.equal("eth", decisions[1].network)
      assert.equal("bsc", decisions[2].network)
      assert.equal(items[2], decisions[2].input)
      assert.equal("block", decisions[3].action)
    end)

    it("takes the rows of a file, with or without networks", function()
      local btc = sandbox.scenario "clean-btc"
      local file = assert(io.tmpfile())
      file:write("Wallet;Chain;customer\r\n", clean.address, ";;1\r\n\n", btc.address, "; BTC;2\n", "what;bsc;3")
      file:seek "set"
      local decisions = collect(client:screen_all { source = file, network = "eth" })
      file:close()
      assert.equal(3, #decisions)
      assert.equal("eth", decisions[1].network)
      assert.equal(btc.address, decisions[2].address)
      assert.equal("btc", decisions[2].network)
      assert.equal("allow", decisions[2].action)
      assert.same({ address = "what", network = "bsc" }, decisions[3].input)
      assert.equal("unknown", decisions[3].action)
    end)

    it("refuses a file that two programs could read in two ways before it screens its first row", function()
      local file = assert(io.tmpfile())
      file:write(clean.address, "\n", high.address, ",bsc\n")
      file:seek "set"
      local count = 0
      local ok, err = pcall(function()
        for _ in client:screen_all { source = file, network = "eth" } do
          count = count + 1
        end
      end)
      file:close()
      assert.is_false(ok)
      assert.same({ "invalid_argument", 0 }, { err.kind, count })
      assert.matches("line 2: it has 2 fields, and the first line has 1", err.message, 1, true)
    end)

    it("stops at a file whose rows are invalid", function()
      local file = assert(io.tmpfile())
      file:write("address\n", ("garbage\n"):rep(20))
      file:seek "set"
      local count = 0
      local ok, err = pcall(function()
        for _ in client:screen_all { source = file, network = "eth", max_invalid = 5 } do
          count = count + 1
        end
      end)
      file:close()
      assert.is_false(ok)
      assert.matches("more invalid rows than 5", err.message, 1, true)
      assert.is_true(count <= 5)
    end)

    local function screen_file(content)
      local file = assert(io.tmpfile())
      file:write(content)
      file:seek "set"
      local decisions = collect(client:screen_all { source = file, network = "eth" })
      file:close()
      local actions = {}
      for index, decision in ipairs(decisions) do
        actions[index] = decision.action
      end
      return actions, decisions
    end

    it("skips a byte order mark and a header in a file", function()
      local mark, lines = "\239\187\191", clean.address .. "\r\n" .. high.address .. "\r\n"
      for _, head in ipairs { "", mark, "address\n", mark .. "Wallet Address\r\n", '"ADDRESS"\n' } do
        assert.same({ "allow", "block" }, (screen_file(head .. lines)), head)
      end
      assert.same({ "allow", "unknown" }, (screen_file(clean.address .. "\naddress")))
    end)

    it("reports a line with a NUL byte, and the line after it", function()
      local lines =
        { "address", "\0", clean.address .. "\0", high.address, clean.address:sub(1, 20) .. "\0x", high.address }
      local actions, decisions = screen_file(table.concat(lines, "\n"))
      assert.same({ "unknown", "unknown", "block", "unknown", "block" }, actions)
      assert.matches("control character U+0000", decisions[2].reasons[1].message, 1, true)
    end)

    it("reads a file that is longer than a piece, and a pipe", function()
      local lines = {}
      for index = 1, 5000 do
        lines[index] = index % 1000 == 0 and high.address or clean.address
      end
      local actions = screen_file(table.concat(lines, "\n"))
      assert.equal(5000, #actions)
      assert.equal("block", actions[5000])
      local pipe = assert(io.popen("printf '" .. high.address .. "\\n" .. clean.address .. "'"))
      local decisions = collect(client:screen_all { source = pipe, network = "eth" })
      assert.same({ "block", "allow" }, { decisions[1].action, decisions[2].action })
    end)

    it("raises when the program behind a pipe fails, after its addresses", function()
      local pipe = assert(io.popen("echo " .. high.address .. "; exit 1"))
      local run = client:screen_all { source = pipe, network = "eth" }
      assert.equal("block", run().action)
      local ok, message = pcall(run)
      -- Lua 5.1 does not report how a program ended.
      if _VERSION ~= "Lua 5.1" then
        assert.is_false(ok)
        assert.matches("the program behind the pipe failed (exit 1)", message, 1, true)
      end
    end)

    it("asks for the same address and network once and reports each item", function()
      local mixed, lower = high.address, high.address:lower()
      local list = { mixed, clean.address, lower, { address = mixed, network = "ethereum" }, mixed }
      local decisions = collect(client:screen_all { source = list, network = "eth" })
      assert.equal(5, #decisions)
      assert.equal(2, #service:requests())
      for _, index in ipairs { 1, 3, 4, 5 } do
        assert.equal("block", decisions[index].action)
        assert.equal(index, decisions[index].index)
        assert.equal(list[index], decisions[index].input)
      end
      assert.equal(lower, decisions[3].address)
      assert.equal("ethereum", decisions[4].network)
      assert.equal(1, decisions[3].repeats)
      assert.is_nil(decisions[1].repeats)
    end)

    it("repeats every field of a decision, also of a failed one", function()
      local list = list_of(3)
      service:fault { kind = "status", status = 400, match = { address = address(2) } }
      for _, name in ipairs { "high-eth", "clean-eth", "type-sanction" } do
        list[#list + 1] = sandbox.scenario(name).address
      end
      for index = 1, #list do
        list[#list + 1] = list[index]
      end
      local decisions = collect(client:screen_all { source = list, network = "eth" })
      local half = #list / 2
      for index = 1, half do
        local first, second = decisions[index], decisions[index + half]
        assert.equal(index, second.repeats)
        assert.equal(first.reasons[1].rule, second.reasons[1].rule)
        second.repeats, second.index = nil, first.index
        assert.same(first, second)
      end
      assert.equal("block", decisions[4].action)
      assert.equal("unknown", decisions[2].action)
    end)

    it("repeats the service's answer whatever the caller did to the first decision", function()
      local actions = {}
      local source = { high.address, high.address }
      for decision in client:screen_all { source = source, network = "eth", concurrency = 1 } do
        actions[decision.index] = decision.action
        decision.action, decision.reasons = "allow", {}
        decision.record = nil
      end
      assert.same({ "block", "block" }, actions)
    end)

    it("repeats the reasons whatever the caller did to those of the first decision", function()
      for _, include in ipairs { false, { "entity" } } do
        local messages = {}
        local source = { high.address, high.address, high.address }
        local options = { source = source, network = "eth", concurrency = 1, include = include or nil }
        for decision in client:screen_all(options) do
          messages[decision.index] = decision.reasons[1] and decision.reasons[1].message
          decision.reasons[1].message = "changed"
          decision.reasons[1] = nil
        end
        assert.is_string(messages[1])
        assert.same({ messages[1], messages[1], messages[1] }, messages)
      end
    end)

    it("repeats the service's record whatever the caller did to the first one", function()
      local levels = {}
      local source = { high.address, high.address }
      for decision in client:screen_all { source = source, network = "eth", concurrency = 1 } do
        levels[decision.index] = decision.record.risks[1].riskLevel
        decision.record.risks[1].riskLevel = "low"
      end
      assert.same({ "high", "high" }, levels)
    end)

    it("asks for an address on each network", function()
      local list = { { address = clean.address, network = "eth" }, { address = clean.address, network = "bsc" } }
      collect(client:screen_all { source = list })
      assert.equal(2, #service:requests())
    end)

    it("asks again for a pair that it no longer remembers", function()
      local list = { address(1), address(2), address(3), address(1), address(1) }
      collect(client:screen_all { source = list, network = "eth", remember = 1, concurrency = 1 })
      assert.equal(4, #service:requests())
      collect(client:screen_all { source = { address(1), address(1) }, network = "eth", remember = 0 })
      assert.equal(6, #service:requests())
    end)

    it("reports each item exactly once, whatever fails", function()
      for _, ordered in ipairs { true, false } do
        service:clear_faults()
        for nth, kind in ipairs { "status", "html", "empty", "invalid-json", "truncate" } do
          service:fault { kind = kind, status = kind == "status" and 503 or nil, nth = nth * 7, count = 2 }
        end
        local list = list_of(120)
        list[60], list[61] = false, { address = {} }
        local seen, failed = {}, 0
        for decision in client:screen_all { source = list, network = "eth", ordered = ordered, concurrency = 8 } do
          assert.is_nil(seen[decision.index])
          seen[decision.index] = true
          assert.equal(list[decision.index], decision.input)
          if decision.error then
            assert.equal("unknown", decision.action)
            failed = failed + 1
          end
        end
        assert.equal(120, #seen)
        assert.equal(12, failed)
      end
    end)

    it("makes all the lookups of every address", function()
      local list = list_of(10)
      local include = { "entity", "freeze_events", "counterparties" }
      for decision in client:screen_all { source = list, network = "eth", include = include } do
        assert.is_table(decision.entity)
        assert.is_table(decision.freeze_events)
        assert.is_table(decision.counterparties)
      end
      assert.equal(40, #service:requests())
    end)

    it("works in a task as well", function()
      local list = list_of(50)
      local decisions = riskscreen.run(function()
        return collect(client:screen_all { source = list, network = "eth", concurrency = 8 })
      end)
      check_all(decisions, list)
    end)

    it("can be stopped and continued by another run", function()
      local list = list_of(50)
      local run = client:screen_all { source = list, network = "eth", concurrency = 4 }
      local seen, standing = {}, nil
      for decision in run do
        seen[#seen + 1] = decision.input
        if #seen == 10 then
          standing = run:stop()
        end
      end
      assert.equal(10, #seen)
      assert.equal(10, standing.position)
      local position = standing.position
      for decision in
        client:screen_all {
          network = "eth",
          source = function()
            position = position + 1
            return list[position]
          end,
        }
      do
        seen[#seen + 1] = decision.input
      end
      assert.same(list, seen)
    end)

    it("reports its progress and its failures", function()
      service:fault { kind = "reset", match = { address = address(2) } }
      local last = {}
      collect(client:screen_all {
        source = list_of(5),
        network = "eth",
        on_progress = function(done, failed, rate, eta)
          last = { done = done, failed = failed, rate = type(rate), eta = eta }
        end,
      })
      assert.same({ done = 5, failed = 1, rate = "number", eta = 0 }, last)
    end)
  end)
end

describe("client:screen_all", function()
  it("applies its trace and its retries to its lookups", function()
    local client, requests = client_with(recorder.reply(503))
    local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    local source = { clean.address }
    collect(client:screen_all { source = source, network = "eth", traceparent = traceparent, retry = { attempts = 2 } })
    assert.equal(2, #requests)
    assert.equal(traceparent, requests[1].headers.traceparent)
  end)

  it("makes repeats wait for the decision under way", function()
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(0.005)
    end)
    local client, requests = client_with(function()
      gate:await()
      return found
    end)
    local decisions = collect(client:screen_all {
      source = { clean.address, clean.address, clean.address },
      network = "eth",
      concurrency = 3,
    })
    assert.equal(3, #decisions)
    assert.equal("allow", decisions[3].action)
    assert.equal(1, #requests)
  end)

  it("keeps no decision in the place of a later pair, however late it is made", function()
    local held
    local client = client_with(function(request)
      local is_high = request.target:lower():find(high.address:lower(), 1, true)
      if not is_high then
        held:await()
      end
      local risks = { { riskLevel = is_high and "high" or "low", riskType = "scam", riskSource = "Provider" } }
      local subject = is_high and high.address or clean.address
      local data = { address = subject, network = "eth", whitelist = false, risks = risks }
      return recorder.reply(200, { success = true, code = 1, data = data })
    end)
    riskscreen.run(function()
      held = riskscreen.spawn(riskscreen.sleep, 0.005)
      local items, position, actions = { clean.address, high.address, high.address }, 0, {}
      -- The repeat comes when the first decision has been made after the second one.
      local function source()
        position = position + 1
        if position == 3 then
          held:await()
          riskscreen.sleep(0.005)
        end
        return items[position]
      end
      local run = client:screen_all { source = source, network = "eth", concurrency = 2, remember = 1 }
      for decision in run do
        actions[#actions + 1] = decision.action
      end
      assert.same({ "allow", "block", "block" }, actions)
    end)
  end)

  it("gives each item's id back beside its own decision alone", function()
    local ids = {}
    for _, remember in ipairs { 0, 10 } do
      for _, decision in
        ipairs(collect(sandbox.client({}):screen_all {
          source = {
            { address = clean.address, id = "payment 1" },
            { address = clean.address, id = 2.5 },
            clean.address,
            { address = "no address", id = "payment 4" },
          },
          network = "eth",
          remember = remember,
        }))
      do
        ids[#ids + 1] = tostring(decision.id)
      end
    end
    local expected = { "payment 1", "2.5", "nil", "payment 4" }
    assert.same({ expected[1], expected[2], expected[3], expected[4], unpack(expected) }, ids)
  end)

  it("shows the access key in no decision, a repeated one neither", function()
    local risks = { { riskLevel = "test-key", riskType = "scam", riskSource = "Provider" } }
    local data = { address = clean.address, network = "eth", whitelist = false, risks = risks }
    local client = client_with(recorder.reply(200, { success = true, code = 1, data = data }))
    local source = { clean.address, clean.address }
    for _, decision in ipairs(collect(client:screen_all { source = source, network = "eth" })) do
      assert.equal("unknown", decision.action)
      assert.matches("%[redacted%]", decision.reasons[1].message)
      assert.is_nil(decision.reasons[1].message:find("test-key", 1, true))
    end
  end)

  it("takes at most 8 times its concurrency from the source", function()
    local client = client_with(found)
    local taken, most = 0, 0
    local reported = 0
    for _ in
      client:screen_all {
        network = "eth",
        concurrency = 2,
        source = function()
          taken = taken + 1
          most = math.max(most, taken - reported)
          return taken <= 500 and address(taken) or nil
        end,
      }
    do
      reported = reported + 1
    end
    assert.equal(500, reported)
    assert.is_true(most <= 17)
  end)
end)

describe("an item with an unknown field", function()
  local client = sandbox.client {}

  local function raised_by(item, ordered)
    local items, seen = { clean.address, item, high.address }, {}
    local run = client:screen_all { source = items, network = "eth", ordered = ordered }
    local ok, err = pcall(function()
      for decision in run do
        seen[#seen + 1] = decision.index
      end
    end)
    assert.is_false(ok)
    return err, seen, run
  end

  it("raises an error object with the item and the right field", function()
    local err, seen, run = raised_by { adress = clean.address }
    assert.is_true(riskscreen.errors.is(err))
    assert.same({ "invalid_argument", "adress", false }, { err.kind, err.field, err.sent })
    assert.matches("item 2: unknown field 'adress'", err.message, 1, true)
    assert.matches("did you mean 'address'?", err.message, 1, true)
    assert.same({ 1 }, seen)
    assert.equal(2, run:where().pending[1].index)
  end)

  it("is refused out of order, too", function()
    assert.equal("netwrk", raised_by({ address = clean.address, netwrk = "eth" }, false).field)
  end)

  it("may have an id that is neither a text nor a number", function()
    local err = raised_by { address = clean.address, id = {} }
    assert.same({ "invalid_argument", "id" }, { err.kind, err.field })
    assert.matches("item 2: id must be a string or a number (got a table)", err.message, 1, true)
  end)

  it("may be a position", function()
    local err = raised_by { clean.address, "eth" }
    assert.matches("unknown field 1; known: address, network, id", err.message, 1, true)
  end)
end)

describe("a source that gives the same table again and again", function()
  it("has each of its addresses screened", function()
    local client = riskscreen.sandbox.client()
    local row, number, seen = { network = "eth" }, 0, {}
    local function source()
      number = number + 1
      row.address = ("0x%040x"):format(number)
      return number <= 20 and row or nil
    end
    for decision in client:screen_all { source = source, concurrency = 4 } do
      seen[decision.index] = decision.address
    end
    assert.equal(20, #seen)
    for index, screened in ipairs(seen) do
      assert.equal(("0x%040x"):format(index), screened)
    end
  end)
end)

describe("stop_after_failures", function()
  local function run_until_raised(run)
    local count = 0
    local ok, err = pcall(function()
      for _ in run do
        count = count + 1
      end
    end)
    return count, not ok and err or nil
  end

  it("ends a run after so many failures in a row", function()
    local client, requests = client_with(recorder.reply(503))
    local list = {}
    for number = 1, 100 do
      list[number] = address(number)
    end
    local run =
      client:screen_all { source = list, network = "eth", stop_after_failures = 5, concurrency = 2, retry = false }
    local count, err = run_until_raised(run)
    assert.equal(5, count)
    assert.is_true(riskscreen.errors.is(err))
    assert.same({ "cancelled", 5, "server" }, { err.kind, err.failures, err.cause.kind })
    assert.matches("5 failures in a row", err.message, 1, true)
    assert.is_true(#requests < 20)
    local standing = run:where()
    assert.same({ 5, 5 }, { standing.reported, standing.position })
    assert.equal(standing.taken - 5, #standing.pending)
    assert.same({ 0, err }, { run_until_raised(run) })
  end)

  it("starts again with each decision without a failure", function()
    local down = recorder.reply(503)
    local client = client_with(down, down, found, down, down, found)
    local list = { address(1), address(2), clean.address, address(3), address(4), clean.address }
    local run = client:screen_all {
      source = list,
      network = "eth",
      stop_after_failures = 3,
      concurrency = 1,
      remember = 0,
      retry = false,
    }
    assert.same({ 6 }, { run_until_raised(run) })
  end)

  it("does not count invalid items", function()
    local client = client_with(recorder.reply(503))
    local list = { address(1), "", false, address(2), "", address(3), address(4) }
    local run =
      client:screen_all { source = list, network = "eth", stop_after_failures = 3, concurrency = 1, retry = false }
    local count, err = run_until_raised(run)
    assert.same({ 6, 3 }, { count, err.failures })
  end)
end)

describe("a client's concurrency", function()
  it("bounds its connections", function()
    local server = assert(sandbox.serve())
    local client = riskscreen.new { base_url = server.url, access_key = server.access_key, concurrency = 3 }
    local list, most = {}, 0
    for number = 1, 60 do
      list[number] = address(number)
    end
    for decision in client:screen_all { source = list, network = "eth", concurrency = 30, include = { "entity" } } do
      assert.is_nil(decision.error)
      most = math.max(most, server.listener:stats().connections)
    end
    client:close()
    server:close()
    assert.equal(3, most)
  end)
end)

describe("misuse of screen_all", function()
  local client = sandbox.client {}

  local function raises(message, request, receiver)
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, problem = pcall(function()
      client.screen_all(receiver or client, request)
    end)
    assert.is_false(ok)
    assert.matches("screen_all_spec.lua:" .. line .. ":", problem, 1, true)
    assert.matches(message, problem, 1, true)
  end

  it("raises at the caller's line", function()
    raises("source is required (got nil; if it comes from io.open, can the file be read?)", { network = "eth" })
    raises("source must be a list", { source = { "a", nil, "b" } })
    raises("source must be a list, a function or an open file", { source = "addresses.txt" })
    raises("concurrency must be between", { source = {}, concurrency = 0 })
    raises("stop_after_failures must be between", { source = {}, stop_after_failures = 0 })
  end)

  it("raises at the caller's line when the client is closed", function()
    local closed = sandbox.client {}
    closed:close()
    raises("closed", { source = {} }, closed)
  end)
end)
