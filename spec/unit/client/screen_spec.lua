local riskscreen = require "riskscreen"
local json = require "riskscreen.json"
local recorder = require "spec.support.recorder"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"
local tables = require "riskscreen.util.tables"

local clean, high = sandbox.scenario "clean-eth", sandbox.scenario "high-eth"

local function operations_seen(service)
  local names = {}
  for _, request in ipairs(service:requests()) do
    names[request.operation] = (names[request.operation] or 0) + 1
  end
  return names
end

local everything = riskscreen.policy {
  not_offered = "skip",
  absent_entity = "none",
  rules = {
    { level = "high", action = "block" },
    { category = "mixer-service", action = "block" },
    { frozen = true, action = "block" },
    { counterparty = { type = "csam", share = 0.99 }, action = "review" },
    { no_risk = true, action = "allow" },
  },
}

describe("a reason", function()
  it("names the lookup that failed, because the caller has named no operation", function()
    local transaction = { network = "eth", hash = "0xabc" }
    local client = riskscreen.new {
      base_url = "http://127.0.0.1:1",
      access_key = "0123456789abcdef",
      retry = false,
      immediate_results = true,
      transport = function(request)
        return recorder.reply(request.target:find "risk" and 500 or 503, { success = false })
      end,
    }
    local policy = riskscreen.policy { absent_entity = "none", rules = { { contract = true, action = "block" } } }
    local decision = client:screen { address = clean.address, network = clean.network, policy = policy }
    assert.equal("getAddressRisk", decision.error.operation)
    local texts = tostring(decision)
    assert.matches("server: risk: the service failed", texts, 1, true)
    assert.is_nil(texts:find("getAddress", 1, true))
    assert.matches("server: risk: the service failed", tostring(decision.error), 1, true)
    assert.matches(
      "server: transaction: the service failed",
      tostring(select(2, client.kyt:screen(transaction))),
      1,
      true
    )
  end)
end)

describe("a decision about an answer that holds the access key", function()
  local KEY = "key+of/screening"

  for what, spelling in pairs { ["as it is"] = KEY, ["percent-encoded"] = "key%2bof%2fscreening" } do
    it("does not show it, " .. what, function()
      local function transport(request)
        local address = request.target:match "address=(%w+)"
        local risks = { { riskLevel = spelling, riskType = "scam", riskSource = "Community" } }
        local data = { address = address, network = "eth", risks = risks }
        return recorder.reply(200, { success = true, code = 1, data = data })
      end
      local client = riskscreen.new { transport = transport, access_key = KEY }
      local decision = client:screen { address = clean.address, network = "eth" }
      assert.equal("unknown", decision.action)
      assert.matches("[redacted]", decision.reasons[1].message, 1, true)
      assert.is_nil(tostring(decision):find(spelling, 1, true))
    end)
  end

  it("does not show it, though a function has given many other keys since the request", function()
    for _, repeats in ipairs { false, true } do
      local count, client = 0, nil
      local function transport(request)
        if count == 1 then
          for _ = 1, 20 do
            client.kya:risk { address = clean.address, network = "eth" }
          end
        end
        local address = request.target:match "address=(%w+)"
        local risks = { { riskLevel = "key-number-1", riskType = "scam", riskSource = "Community" } }
        local data = { address = address, network = "eth", risks = risks, note = { ["key-number-1"] = true } }
        return recorder.reply(200, { success = true, code = 1, data = data })
      end
      local function access_key()
        count = count + 1
        return "key-number-" .. count
      end
      client = riskscreen.new { transport = transport, access_key = access_key }
      local subject = { address = clean.address, network = "eth" }
      local decisions = { client:screen(subject) }
      if repeats then
        count, decisions = 0, {}
        for decision in client:screen_all { source = { subject, subject, subject } } do
          decisions[#decisions + 1] = decision
        end
        assert.equal(1, decisions[3].repeats)
      end
      for _, decision in ipairs(decisions) do
        assert.equal("unknown", decision.action)
        assert.matches("[redacted]", decision.reasons[1].message, 1, true)
        assert.equal("[redacted]", decision.reasons[1].risk.riskLevel)
        assert.is_nil(tostring(decision):find("key-number-1'", 1, true))
      end
    end
  end)

  it("does not show such a key in a journal, nor in the error of a submission", function()
    local temporary = require "spec.support.temporary"
    local count, is_nested, client, own = 0, false, nil, nil
    local function transport()
      local data = { address = clean.address, network = "eth", customId = "key-number-" .. count }
      data.risks = { { riskLevel = data.customId, riskType = "scam", riskSource = "Community" } }
      if not is_nested then
        is_nested, own = true, data.customId
        for _ = 1, 20 do
          client.kya:risk { address = clean.address, network = "eth" }
        end
        is_nested = false
      end
      return recorder.reply(200, { success = true, code = 1, data = data })
    end
    local path = temporary.path "keys.jsonl"
    local journal = assert(riskscreen.journal.file(path, { record = true }))
    client = riskscreen.new {
      transport = transport,
      access_key = function()
        count = count + 1
        return ("key-number-%d"):format(count)
      end,
      journal = journal,
    }
    client:screen { address = clean.address, network = "eth" }
    journal:close()
    local written = temporary.read(path)
    temporary.clean()
    assert.matches("[redacted]", written, 1, true)
    assert.is_nil(written:find(own, 1, true))
    local _, err = client.kyt:submit { hash = "0x5f16", network = "eth", customId = "mine" }
    assert.matches("customId.*%[redacted%]", err.message)
    assert.is_nil(err.message:find(own, 1, true))
  end)

  it("does not show it in a field that the interface does not name, at any depth", function()
    local note
    local function transport(request)
      local address = request.target:match "address=(%w+)"
      local risk = { riskLevel = "low", riskType = "scam", riskSource = "Community", note = note }
      local data = { address = address, network = "eth", risks = { risk } }
      return recorder.reply(200, { success = true, code = 1, data = data })
    end
    local client = riskscreen.new { transport = transport, access_key = KEY }
    local function reason()
      return client:screen({ address = clean.address, network = "eth" }).reasons[1].risk
    end
    local fields = { riskLevel = "low", riskType = "scam", riskSource = "Community" }
    assert.same(fields, reason())
    for _, hostile in ipairs { "for " .. KEY, { by = { KEY, [KEY] = true } } } do
      note = hostile
      assert.same(fields, reason())
    end
  end)

  it("does not show a key that the caller has taken for an address, nor one that a function returns", function()
    local function key()
      return KEY
    end
    for _, access_key in ipairs { KEY, key } do
      local client = riskscreen.new { transport = recorder.new(), access_key = access_key, retry = false }
      local texts = {
        tostring(client:screen { address = KEY, network = "eth" }),
        tostring(client:screen { address = clean.address, network = KEY }),
        tostring(select(2, client.kya:risk { address = KEY, network = "eth" })),
        tostring(select(2, client.kyt:submit { hash = "0x5f16", network = KEY })),
        tostring(select(2, client.kyt:resume(KEY))),
      }
      for _, text in ipairs(texts) do
        assert.matches("[redacted]", text, 1, true)
        assert.is_nil(text:find(KEY, 1, true))
      end
    end
  end)

  -- The texts of a decision, but for those of the service's answer itself.
  local function texts_of(value)
    local texts = {}
    for name, member in pairs(value) do
      texts[#texts + 1] = type(member) == "string" and member or nil
      if type(member) == "table" and name ~= "record" and name ~= "rule" then
        texts[#texts + 1] = texts_of(member)
      end
    end
    return table.concat(texts, "\n")
  end

  it("shows it in no reason, whatever the action", function()
    local risk = { riskLevel = "high", riskType = "scam", riskSource = "Provider" }
    local actions = {}
    for _, field in ipairs { "riskLevel", "riskType", "riskSource" } do
      for _, beginning in ipairs { "", ("x"):rep(100) } do
        local odd = tables.merge(risk, { [field] = beginning .. KEY })
        for _, case in ipairs {
          { KEY, { odd, risk } },
          { KEY, { odd } },
          {
            function()
              return KEY
            end,
            { odd, risk },
          },
        } do
          local function transport(request)
            local data = { address = request.target:match "address=(%w+)", network = "eth", risks = case[2] }
            return recorder.reply(200, { success = true, code = 1, data = data })
          end
          local client = riskscreen.new { transport = transport, access_key = case[1] }
          for _ = 1, 2 do
            local decision = client:screen { address = clean.address, network = "eth" }
            actions[decision.action] = true
            assert.is_nil(texts_of(decision):find(KEY, 1, true), field)
            assert.is_nil(tostring(decision):find(KEY, 1, true), field)
            assert.equal(beginning .. KEY, decision.record.risks[1][field])
            assert.is_nil(texts_of(client:decide(decision.record)):find(KEY, 1, true), field)
          end
        end
      end
    end
    assert.same({ block = true, unknown = true }, actions)
  end)

  it("shows in no reason the key that was replaced while the call was under way", function()
    local keys, client = { "first+key/of-it", "second+key/of-it" }, nil
    client = riskscreen.new {
      access_key = function()
        return keys[1]
      end,
      transport = function(request)
        local key = table.remove(keys, 1)
        if keys[1] then
          client:screen { address = clean.address, network = "eth" }
        end
        local risks = { { riskLevel = key, riskType = "scam", riskSource = key } }
        local data = { address = request.target:match "address=(%w+)", network = "eth", risks = risks }
        return recorder.reply(200, { success = true, code = 1, data = data })
      end,
    }
    local decision = client:screen { address = clean.address, network = "eth" }
    assert.equal("first+key/of-it", decision.record.risks[1].riskLevel)
    assert.is_nil(texts_of(decision):find("first+key", 1, true))
  end)
end)

describe("a screening that is refused before a call", function()
  it("names what the caller wrote, and no operation", function()
    local client = sandbox.client {}
    for expected, request in pairs {
      ["riskscreen: invalid_argument: '0x1' is not an address of the network eth: it is 3 characters long"] = {
        address = "0x1",
        network = "eth",
      },
      ["service knows (got 'ethreum'; did you mean 'ethereum'?)"] = {
        address = clean.address,
        network = "ethreum",
      },
      ["is not an address of the network solana: it is 1 character long"] = { address = "A", network = "solana" },
    } do
      assert.matches(expected, tostring(client:screen(request).error), 1, true)
    end
  end)
end)

describe("the client option extend", function()
  local EVM, ODD = ("0x%040x"):format(1), "new1qqqqqqqq"

  local function answer(kind)
    return function(request)
      local network = request.target:match "network=(%w+)"
      local address = request.target:match "address=(%w+)"
      local risks = { { riskLevel = "low", riskType = kind, riskSource = "Community" } }
      local data = { address = address, network = network, risks = risks }
      return recorder.reply(200, { success = true, code = 1, data = data })
    end
  end

  local function screen(extend, kind, network, address, more)
    local transport, requests = recorder.new(answer(kind))
    local client = riskscreen.new { transport = transport, access_key = "key-of-extend", extend = extend }
    local request = { address = address, network = network }
    for name, value in pairs(more or {}) do
      request[name] = value
    end
    return client:screen(request).action, #requests
  end

  it("lets decisions know more values", function()
    assert.equal("unknown", (screen(nil, "new-type", "eth", EVM)))
    assert.equal("allow", (screen({ risk_type = { "new-type" } }, "new-type", "eth", EVM)))
    local policy = riskscreen.policy { rules = { { any = true, action = "review" } } }
    assert.equal("review", (screen({ risk_type = { "new-type" } }, "new-type", "eth", EVM, { policy = policy })))
    assert.equal(
      "unknown",
      policy:decide({ risk = { risks = { { riskLevel = "low", riskType = "new-type" } } } }).action
    )
  end)

  it("lets requests name more networks, and checks their addresses", function()
    assert.same({ "unknown", 0 }, { screen(nil, "scam", "sonic", EVM) })
    for _, extend in ipairs { { network = { "sonic" } }, { network = { sonic = "eth" } } } do
      assert.same({ "allow", 1 }, { screen(extend, "scam", "sonic", EVM) })
      assert.same({ "unknown", 0 }, { screen(extend, "scam", "sonic", ODD) })
      assert.same({ "unknown", 0 }, { screen(extend, "scam", "sonic", 7) })
      assert.same({ "unknown", 0 }, { screen(extend, "scam", "sonik", EVM) })
    end
    assert.same({ "allow", 1 }, { screen({ network = { "sonic" } }, "scam", "sonic", ODD, { address_check = false }) })
  end)

  it("checks the addresses of an added network by the network that it is like, or else by all", function()
    local bitcoin = "1BoatSLRHtKNngkdXEeobR76b53LETtpyT"
    assert.same({ "unknown", 0 }, { screen({ network = { sonic = "eth" } }, "scam", "sonic", bitcoin) })
    assert.same({ "allow", 1 }, { screen({ network = { "sonic" } }, "scam", "sonic", bitcoin) })
  end)

  it("screens no empty text, also where addresses are not checked", function()
    local request = { address_check = false }
    assert.same({ "unknown", 0 }, { screen({ network = { "sonic" } }, "scam", "sonic", "", request) })
    assert.same({ "unknown", 0 }, { screen({ network = { "sonic" } }, "scam", "sonic", nil, request) })
  end)

  it("asks for every lookup of a network that was added", function()
    local function transport(request)
      local is_risk = request.target:find("/risk", 1, true)
      local data = is_risk and { address = EVM, network = "sonic", risks = json.empty_array() }
        or { { frozenBalance = "5", destroyedBalance = "0" } }
      return recorder.reply(200, { success = true, code = 1, data = data })
    end
    local client = riskscreen.new {
      transport = transport,
      access_key = "key-of-extend",
      extend = { network = { sonic = "eth" } },
      policy = riskscreen.policy {
        not_offered = "skip",
        rules = { { frozen = true, action = "block" }, { no_risk = true, action = "allow" } },
      },
    }
    local decision = client:screen { address = EVM, network = "sonic" }
    assert.same({ "block", nil }, { decision.action, decision.not_offered })
  end)

  it("lets raw calls name them", function()
    local transport, requests = recorder.new(answer "scam")
    local client = riskscreen.new {
      transport = transport,
      access_key = "key-of-extend",
      extend = { network = { "sonic" }, risk_type = { "new-type" } },
    }
    assert(client.kya:risk { address = EVM, network = "sonic" })
    local item = { address = EVM, network = "sonic", risks = { { riskType = "new-type", riskLevel = "low" } } }
    client:call("addBlacklistAddresses", { list = { item } })
    assert.equal(2, #requests)
    assert.is_nil((client.kya:risk { address = EVM, network = "sonik" }))
  end)

  it("is checked", function()
    for _, extend in ipairs { { network = { 7 } }, { network = { sonic = "sonik" } }, { risk_type = "new" } } do
      assert.has_error(function()
        riskscreen.new { transport = print, access_key = "key-of-extend", extend = extend }
      end)
    end
  end)
end)

describe("a screening", function()
  local traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

  it("applies its trace and its retries to its lookups", function()
    local transport, requests = recorder.new(recorder.reply(503))
    local client = riskscreen.new { access_key = "test-key", transport = transport, retry = { base_delay = 0 } }
    client:screen { address = clean.address, network = "eth", traceparent = traceparent, retry = { attempts = 2 } }
    assert.equal(2, #requests)
    assert.equal(traceparent, requests[1].headers.traceparent)
  end)

  it("applies its priority to its lookups", function()
    local time = require("riskscreen.runtime.virtual").new()
    local order = {}
    local client = riskscreen.new {
      access_key = "test-key",
      runtime = time,
      address_check = false,
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

-- PUC Lua 5.1 cannot wait inside pcall, so there the error of a transport is the caller's.
local on_others = _VERSION == "Lua 5.1" and not rawget(_G, "jit") and pending or it

describe("a transport of the operator's own", function()
  local KEY = "key-of-transport"

  local function new(transport)
    return riskscreen.new { access_key = KEY, transport = transport, retry = false }
  end

  for way, run in pairs {
    outside_of_tasks = function(act)
      act()
    end,
    in_a_task = riskscreen.run,
  } do
    on_others("that raises fails the call and leaves nothing under way, " .. way:gsub("_", " "), function()
      local client = new(function(request)
        error("cannot send " .. request.headers["X-Access-Key"])
      end)
      run(function()
        local decision = client:screen { address = clean.address, network = "eth" }
        assert.same({ "unknown", "protocol", true }, { decision.action, decision.error.kind, decision.error.sent })
        assert.matches("the transport raised an error: .*cannot send %[redacted%]", decision.error.message)
      end)
      assert.equal(0, client:stats().in_flight)
    end)
  end

  on_others("that raises while hedged fails the call", function()
    local client = riskscreen.new {
      access_key = KEY,
      retry = false,
      hedge = { delay = 0.001 },
      transport = function()
        riskscreen.sleep(0.01)
        error "cannot send"
      end,
    }
    riskscreen.run(function()
      local record, err = client.kya:risk { address = clean.address, network = "eth" }
      assert.same({ nil, "protocol" }, { record, err.kind })
    end)
    assert.equal(0, client:stats().in_flight)
  end)

  it("that waits ends with its task", function()
    local client = new(function()
      riskscreen.sleep(60)
    end)
    riskscreen.run(function()
      local task = riskscreen.spawn(client.screen, client, { address = clean.address, network = "eth" })
      riskscreen.sleep(0)
      task:cancel()
      local decision, err = task:await()
      assert.same({ nil, "cancelled" }, { decision, err.kind })
    end)
    assert.equal(0, client:stats().in_flight)
  end)

  it("ends with the failure of a task that it has spawned", function()
    local client = new(function()
      riskscreen.spawn(error, "of the task", 0)
      riskscreen.sleep(60)
    end)
    local ok, failure = pcall(riskscreen.run, function()
      client:screen { address = clean.address, network = "eth" }
    end)
    assert.is_false(ok)
    assert.matches("of the task", tostring(failure), 1, true)
    assert.equal(0, client:stats().in_flight)
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

    it("makes only the risk assessment when no rule needs more", function()
      local decision = client:screen { address = clean.address, network = "eth" }
      assert.equal("allow", decision.action)
      assert.same({ getAddressRisk = 1 }, operations_seen(service))
    end)

    it("makes each lookup once that the policy needs", function()
      local decision = client:screen { address = clean.address, network = "eth", policy = everything }
      assert.equal("allow", decision.action)
      assert.same({
        getAddressRisk = 1,
        getAddressEntity = 1,
        getAddressFreezeEvents = 1,
        getAddressCounterparties = 1,
      }, operations_seen(service))
    end)

    it("makes the included lookups although no rule needs them", function()
      local decision = client:screen {
        address = clean.address,
        network = "eth",
        include = { "risk", "entity", "freeze_events", "counterparties" },
      }
      assert.equal("allow", decision.action)
      assert.equal(clean.address, decision.address)
      assert.equal(clean.address:lower(), decision.record.address)
      assert.equal(clean.address:lower(), decision.entity.address)
      assert.same({}, decision.freeze_events)
      assert.is_table(decision.counterparties.opponents)
    end)

    it("decides by the freeze events", function()
      local policy = riskscreen.policy {
        not_offered = "unknown",
        rules = { { frozen = true, action = "review" }, { any = true, action = "allow" } },
      }
      local frozen = sandbox.scenario "frozen"
      local decision = client:screen { address = frozen.address, network = "eth", policy = policy }
      assert.equal("review", decision.action)
      assert.equal(1, #decision.freeze_events)
      assert.equal("allow", client:screen({ address = clean.address, network = "eth", policy = policy }).action)
    end)

    it("skips lookups that the service does not offer for the network, and lists them", function()
      local btc = sandbox.scenario "clean-btc"
      local decision = client:screen { address = btc.address, network = "btc", policy = everything }
      assert.equal("allow", decision.action)
      assert.same({ "freeze_events" }, decision.not_offered)
      assert.is_nil(decision.errors)
      assert.is_nil(operations_seen(service).getAddressFreezeEvents)
      local solana = sandbox.scenario "clean-solana"
      decision = client:screen { address = solana.address, network = "solana", policy = everything }
      assert.same({ "counterparties", "freeze_events" }, decision.not_offered)
    end)

    it("never allows when a lookup fails that a rule needs", function()
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

    it("returns a decision for any address and network", function()
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
    return riskscreen.new { transport = transport, access_key = "test-key", breaker = false }, requests
  end

  it("makes its lookups side by side, inside and outside of a task", function()
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

  it("does not use an assessment of another network", function()
    local request = { address = clean.address, network = "eth" }
    assert.equal("unknown", client_with(record "bsc"):screen(request).action)
    assert.equal("allow", client_with(record "eth"):screen(request).action)
  end)
end)

describe("misuse of screen", function()
  local client = sandbox.client {}

  local function raises(message, request, receiver)
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, problem = pcall(function()
      client.screen(receiver or client, request)
    end)
    assert.is_false(ok)
    assert.matches("screen_spec.lua:" .. line .. ":", problem, 1, true)
    assert.matches(message, problem, 1, true)
  end

  it("raises at the caller's line", function()
    raises("options must be a table", "0xab")
    raises("did you mean 'freeze_events'?", { address = "a", include = { "freeze_event" } })
    raises("must be made by riskscreen.policy", { address = "a", policy = {} })
    raises("did you mean 'address'?", { adress = "a" })
  end)

  it("raises at the caller's line when the client is closed or missing", function()
    local closed = sandbox.client {}
    closed:close()
    raises("closed", { address = "a", network = "eth" }, closed)
    raises("colon", { address = "a", network = "eth" }, {})
  end)
end)
