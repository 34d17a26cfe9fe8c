local riskscreen = require "riskscreen"
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local clean, high = sandbox.scenario "clean-eth", sandbox.scenario "high-eth"

local function address(number)
  return ("0x%040x"):format(number)
end

local function operations_seen(service)
  local names = {}
  for _, request in ipairs(service:requests()) do
    names[request.operation] = (names[request.operation] or 0) + 1
  end
  return names
end

local function collect(run)
  local decisions = {}
  for decision in run do
    decisions[#decisions + 1] = decision
  end
  return decisions
end

local everything = riskscreen.policy {
  absent_entity = "none",
  rules = {
    { level = "high", action = "block" },
    { category = "mixer-service", action = "block" },
    { frozen = true, action = "block" },
    { counterparty = { type = "csam", share = 0.99 }, action = "review" },
    { no_risk = true, action = "allow" },
  },
}

describe("a screening", function()
  local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  for _, method in ipairs { "screen", "screen_all" } do
    it("gives its trace and its retries to its lookups: " .. method, function()
      local transport, requests = recorder.new(recorder.reply(503))
      local client = riskscreen.new { access_key = "key", transport = transport, retry = { base_delay = 0 } }
      local request = { network = "eth", traceparent = traceparent, retry = { attempts = 2 }, priority = "low" }
      if method == "screen" then
        request.address = clean.address
        client:screen(request)
      else
        request.source = { clean.address }
        collect(client:screen_all(request))
      end
      assert.equal(2, #requests)
      assert.equal(traceparent, requests[1].headers.traceparent)
    end)
  end

  it("gives its priority to its lookups", function()
    local time = require("spec.support.virtual_time").new()
    local order = {}
    local client = riskscreen.new {
      access_key = "key",
      runtime = time,
      rate_limit = { rate = 1, burst = 1 },
      transport = function(request)
        order[#order + 1] = request.target:match "address=(%w+)"
        return recorder.reply(400)
      end,
    }
    time.tasks.run(function()
      client:screen { address = "first", network = "eth" }
      for _, priority in ipairs { "low", "normal", "high" } do
        time.tasks.spawn(function()
          client:screen { address = priority, network = "eth", priority = priority }
        end)
      end
    end)
    assert.same({ "first", "high", "normal", "low" }, order)
  end)
end)

for _, way in ipairs(support.ways) do
  describe("client:screen " .. way.name, function()
    local connection, client, service

    before_each(function()
      connection = way.connect()
      client, service = connection.client, connection.service
    end)

    after_each(function()
      connection.close()
    end)

    it("asks for the risk assessment alone when nothing else is needed", function()
      local decision = client:screen { address = clean.address, network = "eth" }
      assert.equal("allow", decision.action)
      assert.same({ getAddressRisk = 1 }, operations_seen(service))
    end)

    it("asks for what the policy's rules need, each once", function()
      local decision = client:screen { address = clean.address, network = "eth", policy = everything }
      assert.equal("allow", decision.action)
      assert.same({
        getAddressRisk = 1,
        getAddressEntity = 1,
        getAddressFreezeEvents = 1,
        getAddressCounterparties = 1,
      }, operations_seen(service))
    end)

    it("carries what it is told to include, although no rule needs it", function()
      local decision = client:screen {
        address = clean.address,
        network = "eth",
        include = { "risk", "entity", "freeze_events", "counterparties" },
      }
      assert.equal("allow", decision.action)
      assert.equal(clean.address, decision.record.address)
      assert.equal(clean.address, decision.entity.address)
      assert.same({}, decision.freeze_events)
      assert.is_table(decision.counterparties.opponents)
    end)

    it("decides by the freeze events", function()
      local policy = riskscreen.policy { rules = { { frozen = true, action = "review" }, { action = "allow" } } }
      local frozen = sandbox.scenario "frozen"
      local decision = client:screen { address = frozen.address, network = "eth", policy = policy }
      assert.equal("review", decision.action)
      assert.equal(1, #decision.freeze_events)
      assert.equal("allow", client:screen({ address = clean.address, network = "eth", policy = policy }).action)
    end)

    it("does not ask for what the service does not offer for the network, and says so", function()
      local btc = sandbox.scenario "clean-btc"
      local decision = client:screen { address = btc.address, network = "btc", policy = everything }
      assert.equal("allow", decision.action)
      assert.same({ "freeze_events" }, decision.not_offered)
      assert.is_nil(decision.errors)
      assert.is_nil(operations_seen(service).getAddressFreezeEvents)
      local solana = sandbox.scenario "clean-solana"
      decision = client:screen { address = solana.address, network = "solana", policy = everything }
      assert.same({ "freeze_events", "counterparties" }, decision.not_offered)
    end)

    it("does not allow when any lookup that a rule needs fails in any way", function()
      local faults = {
        { kind = "status", status = 500 },
        { kind = "status", status = 429 },
        { kind = "status", status = 401 },
        { kind = "status", status = 403 },
        { kind = "reset" },
        { kind = "truncate", bytes = 20 },
        { kind = "invalid-json" },
        { kind = "html" },
        { kind = "empty" },
        { kind = "hang" },
      }
      for _, operation in ipairs {
        "getAddressRisk",
        "getAddressEntity",
        "getAddressFreezeEvents",
        "getAddressCounterparties",
      } do
        for _, fault in ipairs(faults) do
          service:clear_faults()
          fault.match = { operation = operation }
          service:fault(fault)
          local decision =
            client:screen { address = clean.address, network = "eth", policy = everything, timeout = 0.05 }
          assert.equal("unknown", decision.action, operation .. " " .. fault.kind)
          assert.is_table(decision.error)
        end
      end
    end)

    it("keeps a block although other lookups fail", function()
      service:fault { kind = "reset", match = { operation = "getAddressFreezeEvents" } }
      local decision = client:screen { address = high.address, network = "eth", policy = everything }
      assert.equal("block", decision.action)
      assert.equal("network", decision.errors.freeze_events.kind)
    end)

    it("gives a decision for whatever it is given as address and network", function()
      for _, odd in ipairs { "", " ", "a b", "a\0b", "a\r\nX-Header: 1", 5, false, {}, ("x"):rep(5000) } do
        local decision = client:screen { address = odd, network = "eth", policy = everything }
        assert.equal("unknown", decision.action)
        assert.equal("invalid_argument", decision.error.kind)
        assert.equal("unknown", client:screen({ address = clean.address, network = odd }).action)
      end
      assert.equal("unknown", client:screen({ network = "eth" }).action)
      assert.equal("unknown", client:screen({ address = clean.address, policy = everything }).action)
      assert.same({}, service:requests())
    end)
  end)

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

    it("decides the same as a screening of one address", function()
      local list = list_of(40)
      for decision in client:screen_all { source = list, network = "eth" } do
        assert.equal(client:screen({ address = decision.address, network = "eth" }).action, decision.action)
      end
    end)

    it("takes an iterator, and tables that name their own network", function()
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

    it("takes a file of addresses, with or without their networks", function()
      local btc = sandbox.scenario "clean-btc"
      local file = assert(io.tmpfile())
      file:write(clean.address, "\r\n\n", btc.address, ", btc\n", high.address, "\ttron\n", "one,two,three")
      file:seek "set"
      local decisions = collect(client:screen_all { source = file, network = "eth" })
      file:close()
      assert.equal(4, #decisions)
      assert.equal("eth", decisions[1].network)
      assert.equal(btc.address, decisions[2].address)
      assert.equal("btc", decisions[2].network)
      assert.equal("allow", decisions[2].action)
      assert.equal("tron", decisions[3].network)
      assert.equal("block", decisions[3].action)
      assert.equal("unknown", decisions[4].action)
    end)

    it("asks for the same address and network once, and answers each", function()
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

    it("tells the same address on two networks apart", function()
      local list = { { address = clean.address, network = "eth" }, { address = clean.address, network = "bsc" } }
      collect(client:screen_all { source = list })
      assert.equal(2, #service:requests())
    end)

    it("asks again for what it no longer remembers", function()
      local list = { address(1), address(2), address(1), address(1) }
      collect(client:screen_all { source = list, network = "eth", remember = 1, concurrency = 1 })
      assert.equal(3, #service:requests())
      collect(client:screen_all { source = { address(1), address(1) }, network = "eth", remember = 0 })
      assert.equal(5, #service:requests())
    end)

    it("gives a decision for every input whatever happens, each exactly once", function()
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

    it("can be stopped and says where it stood, so that another run goes on from there", function()
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

    it("tells its progress, with the failures among it", function()
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

describe("a screening", function()
  local function record(network)
    return recorder.reply(200, {
      success = true,
      code = 1,
      data = { address = clean.address, network = network or "eth", whitelist = false, risks = json.empty_array() },
    })
  end

  local function client_with(answer)
    local transport, requests = recorder.new(answer)
    return riskscreen.new { transport = transport, access_key = "key", breaker = false }, requests
  end

  it("makes its lookups side by side, in a task and outside of any", function()
    local running, most = 0, 0
    local client = client_with(function()
      running = running + 1
      most = math.max(most, running)
      riskscreen.sleep(0)
      running = running - 1
      return nil, { kind = "network", message = "no", sent = true }
    end)
    local request = { address = clean.address, network = "eth", policy = everything }
    client:screen(request)
    assert.equal(4, most)
    most = 0
    riskscreen.run(function()
      client:screen(request)
    end)
    assert.equal(4, most)
  end)

  it("has one time limit for all its lookups", function()
    local client, requests = client_with(record())
    client:screen { address = clean.address, network = "eth", policy = everything, timeout = 2 }
    assert.equal(4, #requests)
    for _, request in ipairs(requests) do
      assert.is_true(request.timeout <= 2 and request.timeout > 0)
    end
  end)

  it("does not take another network's assessment", function()
    local request = { address = clean.address, network = "eth" }
    assert.equal("unknown", client_with(record "bsc"):screen(request).action)
    assert.equal("allow", client_with(record "eth"):screen(request).action)
  end)

  it("of many makes identical ones wait for the one under way", function()
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(0.005)
    end)
    local client, requests = client_with(function()
      gate:await()
      return record()
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

  it("of many takes no more from its source than is under way or waits its turn", function()
    local client = client_with(record())
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

  it("raises an error object that names the item and the right field", function()
    local err, seen, run = raised_by { adress = clean.address }
    assert.is_true(riskscreen.errors.is(err))
    assert.same({ "invalid_argument", "adress", false }, { err.kind, err.field, err.sent })
    assert.matches("item 2 ", err.message, 1, true)
    assert.matches("did you mean 'address'?", err.message, 1, true)
    assert.same({ 1 }, seen)
    assert.equal(2, run:where().pending[1].index)
  end)

  it("is refused out of order as well", function()
    assert.equal("netwrk", raised_by({ address = clean.address, netwrk = "eth" }, false).field)
  end)

  it("may be a position", function()
    local err = raised_by { clean.address, "eth" }
    assert.matches("unknown field 1; known: address, network", err.message, 1, true)
  end)
end)

describe("stop_after_failures", function()
  local function failing_client(...)
    local transport, requests = recorder.new(...)
    return riskscreen.new { transport = transport, access_key = "key", breaker = false, retry = false }, requests
  end

  local function run_until_raised(run)
    local count = 0
    local ok, err = pcall(function()
      for _ in run do
        count = count + 1
      end
    end)
    return count, not ok and err or nil
  end

  it("ends a screen_all after so many failures in a row", function()
    local client, requests = failing_client(recorder.reply(503))
    local list = {}
    for number = 1, 100 do
      list[number] = address(number)
    end
    local run = client:screen_all { source = list, network = "eth", stop_after_failures = 5, concurrency = 2 }
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
    local found = recorder.reply(200, {
      success = true,
      code = 1,
      data = { address = clean.address, network = "eth", whitelist = false, risks = json.empty_array() },
    })
    local down = recorder.reply(503)
    local client = failing_client(down, down, found, down, down, found)
    local list = { address(1), address(2), clean.address, address(3), address(4), clean.address }
    local run =
      client:screen_all { source = list, network = "eth", stop_after_failures = 3, concurrency = 1, remember = 0 }
    assert.same({ 6 }, { run_until_raised(run) })
  end)

  it("does not count invalid items", function()
    local client = failing_client(recorder.reply(503))
    local list = { address(1), "", false, address(2), "", address(3), address(4) }
    local run = client:screen_all { source = list, network = "eth", stop_after_failures = 3, concurrency = 1 }
    local count, err = run_until_raised(run)
    assert.same({ 6, 3 }, { count, err.failures })
  end)
end)

describe("a client's concurrency", function()
  it("bounds its connections, however many screenings are under way", function()
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

describe("a mistake in a screening", function()
  local client = sandbox.client {}

  local function raises(message, method, request, receiver)
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, problem = pcall(function()
      client[method](receiver or client, request)
    end)
    assert.is_false(ok)
    assert.matches("screen_spec.lua:" .. line .. ":", problem, 1, true)
    assert.matches(message, problem, 1, true)
  end

  it("raises at the caller's line", function()
    raises("expected a table", "screen", "0xab")
    raises("did you mean 'freeze_events'?", "screen", { address = "a", include = { "freeze_event" } })
    raises("must be made by riskscreen.policy", "screen", { address = "a", policy = {} })
    raises("did you mean 'address'?", "screen", { adress = "a" })
    raises("source is required", "screen_all", { network = "eth" })
    raises("source must be a list", "screen_all", { source = { "a", nil, "b" } })
    raises("source must be a list, a function or an open file", "screen_all", { source = "addresses.txt" })
    raises("concurrency must be between", "screen_all", { source = {}, concurrency = 0 })
  end)

  it("with a client that is closed, or none, raises at the caller's line", function()
    local closed = sandbox.client {}
    closed:close()
    raises("closed", "screen", { address = "a", network = "eth" }, closed)
    raises("closed", "screen_all", { source = {} }, closed)
    raises("colon", "screen", { address = "a", network = "eth" }, {})
  end)
end)
