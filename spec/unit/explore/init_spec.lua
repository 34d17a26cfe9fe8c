local calls = require "riskscreen.call"
local programs = require "spec.support.explored_programs"
local riskscreen = require "riskscreen"
local tables = require "riskscreen.util.tables"

local explore = riskscreen.explore

describe("exploring", function()
  for _, case in ipairs(programs) do
    it("finds a program that " .. case.name, function()
      local finding = explore.run(case.wrong, case.options)
      assert.same(case.schedule, finding.schedule)
      assert.equal(case.problem, finding.problem)
    end)

    it("replays the schedule of a program that " .. case.name, function()
      local finding = explore.replay(case.wrong, case.schedule, case.options)
      assert.equal(case.problem, finding.problem)
      assert.is_nil(explore.replay(case.wrong, {}, case.options))
    end)

    it("finds nothing in the right form of a program that " .. case.name, function()
      local options = tables.merge(case.options, { faults = 1, random = 60 })
      local finding, explored = explore.run(case.right, options)
      assert.equal("nil", tostring(finding))
      assert.is_true(explored.schedules > 60)
    end)
  end
end)

describe("exploring", function()
  local scenario = riskscreen.sandbox.scenario

  -- Pays what is allowed and holds the rest.
  local function pay_all(client, world)
    for _, input in ipairs(world.inputs) do
      if not world.paid(input.id) then
        local decision = client:screen { address = input.address, network = input.network }
        world[decision.action == "allow" and "pay" or "hold"](input.id)
      end
    end
  end

  local GOOD = { id = "good", address = scenario("clean-eth").address }

  local function quickly(options)
    return tables.merge({ client = { retry = false }, faults = 1, random = 0 }, options)
  end

  -- Pays or holds by the action that a client answers.
  local function by_action(pays, holds, screen)
    return function(client, world)
      for _, input in ipairs(world.inputs) do
        local action = screen(client, world, input).action
        local _ = not world.paid(input.id)
          and (pays[action] and world.pay(input.id) or holds[action] and world.hold(input.id))
      end
    end
  end

  local function ask(client, _, input)
    return client:screen { address = input.address, network = input.network }
  end

  local most = { block = true, review = true, unknown = true }

  it("finds a decision review that nobody holds", function()
    local finding = explore.run(by_action({ allow = true }, { block = true, unknown = true }, ask), quickly())
    assert.same({ "unheld", "doubtful", {} }, { finding.problem, finding.id, finding.schedule })
  end)

  it("finds a decision review that is paid", function()
    local finding = explore.run(by_action({ allow = true, review = true }, most, ask), quickly())
    assert.same({ "unallowed", "doubtful", {} }, { finding.problem, finding.id, finding.schedule })
  end)

  it("finds a payment by a decision for another network", function()
    local program = by_action({ allow = true }, most, function(client, _, input)
      return client:screen { address = input.address, network = "bsc" }
    end)
    assert.equal("unallowed", explore.run(program, quickly()).problem)
    assert.equal(
      "unallowed",
      explore.run(function(client, world)
        local good = world.inputs[1]
        local record = client.kya:risk { address = good.address, network = "bsc" }
        world[record and not record.risks[1] and "pay" or "hold"](good.id)
      end, quickly()).problem
    )
    local spelled = by_action({ allow = true }, most, function(client, _, input)
      return client:screen { address = input.address:lower(), network = "ethereum" }
    end)
    assert.is_nil((explore.run(spelled, quickly())))
  end)

  it("finds a payment that a client with another policy allows", function()
    local lax =
      riskscreen.policy { rules = { { no_risk = true, action = "allow" }, { level = "high", action = "allow" } } }
    local program = by_action({ allow = true }, most, function(_, world, input)
      return ask(world.client { policy = lax }, world, input)
    end)
    local finding = explore.run(program, quickly())
    assert.same({ "unallowed", "bad" }, { finding.problem, finding.id })
  end)

  it("takes an allow of an allow list alone for none, unless the program accepts degraded ones", function()
    local path = require("spec.support.temporary").path "allowed.csv"
    local file = assert(io.open(path, "w"))
    file:write(GOOD.address, ",eth\n")
    file:close()
    local client = { retry = false, lists = { allow = path, allow_without_call = true } }
    local careful = by_action({}, { allow = true, block = true, review = true, unknown = true }, ask)
    local trusting = by_action({ allow = true }, most, ask)
    assert.is_nil((explore.run(careful, quickly { client = client })))
    assert.equal("unallowed", explore.run(trusting, quickly { client = client }).problem)
    assert.is_nil((explore.run(trusting, quickly { client = client, accept_degraded = true })))
  end)

  it("finds a program that asks for ever after a fault", function()
    for _, pause in ipairs { 0, 1 } do
      local finding = explore.run(function(client, world)
        local has_failed
        repeat
          local decision = ask(client, world, world.inputs[1])
          has_failed = has_failed or decision.error
          world.sleep(pause)
        until not has_failed
        local _ = world.paid "good" or world.pay "good"
      end, quickly { inputs = { GOOD } })
      assert.equal("never", finding.problem)
      assert.same({ { at = "request 1", fault = "timeout" } }, finding.schedule)
    end
  end)

  it("says that a program has too many inputs, or does not end", function()
    local inputs = {}
    for index = 1, 600 do
      inputs[index] = { id = "input " .. index, address = GOOD.address }
    end
    local ok, message = pcall(explore.run, by_action({ allow = true }, most, ask), quickly { inputs = inputs })
    assert.is_false(ok)
    assert.matches("more than 1000 steps where nothing fails", message, 1, true)
  end)

  it("allows a program to decide itself after a decision that is unknown", function()
    local function program(client, world)
      local good = world.inputs[1]
      local decision = ask(client, world, good)
      local record = decision.action == "unknown" and client.kya:risk { address = good.address, network = good.network }
      local is_paid = decision.action == "allow" or record and not record.risks[1]
      local _ = world.paid "good" or world[is_paid and "pay" or "hold"] "good"
    end
    assert.is_nil((explore.run(program, quickly { inputs = { GOOD }, faults = 2 })))
    -- The screening itself has a complete answer about the risks, and its decision is unknown.
    local policy = riskscreen.policy {
      rules = {
        { counterparty = { level = "high" }, action = "block", not_offered = "skip" },
        { no_risk = true, action = "allow" },
      },
    }
    local finding = explore.replay(function(client, world)
      local _ = ask(client, world, world.inputs[1]).action == "unknown" and world.pay "good"
    end, { { at = "request 2", fault = "timeout" } }, { client = { retry = false, policy = policy } })
    assert.equal("unallowed", finding.problem)
  end)

  it("forges a webhook with a wrong secret, too", function()
    local seen = {}
    explore.replay(function(client, world)
      local good = world.inputs[1]
      world.receive(function(_, headers)
        seen[#seen + 1] = headers[world.secret.header] or "none"
        return 200
      end)
      assert(client.kyt:submit { network = good.network, hash = good.hash })
      world.sleep(1)
    end, { { at = "webhook 1", fault = "forged" } })
    assert.equal(3, #seen)
    assert.equal("none", seen[1])
    assert.not_equal(seen[2], seen[3])
  end)

  it("gives a lock to one task at a time", function()
    local finding = explore.replay(function(_, world)
      local release = assert(world.store:lock "payouts")
      assert.equal("locked", select(2, world.store:lock "payouts").reason)
      release()
      assert(world.store:lock "payouts")()
      world.pay "good"
    end, {})
    assert.matches("^paid 'good' without an allow$", finding.message)
  end)

  it("finds an input that is held although nothing failed", function()
    local finding = explore.run(function(_, world)
      world.hold "good"
    end)
    assert.equal("never", finding.problem)
    assert.same({}, finding.schedule)
  end)

  it("finds a payment before anything was asked", function()
    local finding = explore.run(function(_, world)
      world.pay "good"
    end)
    assert.equal("unallowed", finding.problem)
  end)

  it("finds a payment by a decision about another address", function()
    local finding = explore.run(function(client, world)
      local good, bad = world.inputs[1], world.inputs[2]
      if client:screen({ address = good.address, network = good.network }).action == "allow" then
        world.pay(bad.id)
      end
    end, quickly())
    assert.equal("unallowed", finding.problem)
    assert.equal("bad", finding.id)
  end)

  it("finds a payment whose transaction has no result yet", function()
    local finding = explore.run(function(client, world)
      local good = world.inputs[1]
      local _ = client.kyt:submit { network = good.network, hash = good.hash, outputAddress = good.address }
      local decision = client:screen { address = good.address, network = good.network }
      world[decision.action == "allow" and "pay" or "hold"](good.id)
    end, quickly())
    assert.equal("unallowed", finding.problem)
    assert.same({}, finding.schedule)
  end)

  it("takes a degraded allow for an allow where the program accepts it", function()
    local policy =
      riskscreen.policy { rules = { { no_risk = true, action = "allow" }, { error = true, action = "allow" } } }
    local options = quickly { client = { retry = false, policy = policy } }
    assert.equal("unallowed", explore.run(pay_all, options).problem)
    assert.is_nil((explore.run(pay_all, tables.merge(options, { accept_degraded = true }))))
  end)

  it("explores retries and tasks", function()
    local function program(client, world)
      local at = world.now()
      world.gather {
        function()
          world.sleep(30)
        end,
        function()
          world.sleep(20)
        end,
      }
      assert(world.now() == at + 30)
      pay_all(client, world)
    end
    local finding, explored = explore.run(program, { faults = 1, random = 50 })
    assert.equal("nil", tostring(finding))
    assert.is_true(explored.schedules > 80)
  end)

  -- PUC Lua 5.1 cannot yield within the iterator of a loop.
  local is_puc_5_1 = _VERSION == "Lua 5.1" and not rawget(_G, "jit")
  local on_most_luas = is_puc_5_1 and pending or it

  on_most_luas("explores a run over many addresses", function()
    local function program(client, world)
      local source = {}
      for index, input in ipairs(world.inputs) do
        source[index] = { address = input.address, id = input.id }
      end
      for decision in client:screen_all { source = source, network = "eth" } do
        local id = decision.id
        if not world.paid(id) then
          world[decision.action == "allow" and "pay" or "hold"](id)
        end
      end
    end
    assert.equal("nil", tostring((explore.run(program, { faults = 1, random = 50 }))))
  end)

  it("gives an awaited transaction its webhook, and restarts with what the store keeps", function()
    local policy = riskscreen.score_policy { rules = { { score_below = "30", action = "allow" } } }
    local sources = {}
    local function program(_, world)
      local good = world.inputs[1]
      local inbox = riskscreen.webhook.inbox { secret = world.secret }
      world.receive(inbox)
      local client = world.client { inbox = inbox, store = world.store, polling = { first = 500, ceiling = 500 } }
      local transaction = client.kyt:submit { network = good.network, hash = good.hash, customId = good.id }
      local result, other = nil, nil
      if transaction then
        result, other = transaction:await { timeout = 100 }
      end
      if world.paid(good.id) then
        return
      end
      sources[result and other.source or "none"] = true
      world[policy:decide(result, other).action == "allow" and "pay" or "hold"](good.id)
    end
    local finding = explore.run(program, quickly { inputs = { GOOD } })
    assert.equal("nil", tostring(finding))
    assert.same({ webhook = true, poll = true }, tables.pick(sources, { "webhook", "poll" }))
  end)

  it("gives each life clients as new, each apart from the others, and each run an empty store", function()
    local lives, before, entries = 0, {}, nil
    local function program(client, world)
      local made = { client, world.client(), world.client { retry = false } }
      made[4], made[5] = world.client { store = world.store }, world.client { store = world.store }
      local good = world.inputs[1]
      lives, entries = lives + 1, world.store:space("own"):count()
      for index, one in ipairs(made) do
        local risks = one:stats().operations.getAddressRisk
        before[one:stats().calls + (risks and risks.calls or 0)] = true
        for other = index + 1, #made do
          assert(one ~= made[other])
        end
        one.policy = index == 3 and {} or one.policy
        local _ = index ~= 3 and ask(one, world, good)
      end
      world.store:space("own"):put("key", "value")
      assert(made[1]:stats().operations.getAddressRisk.calls == 1)
      pay_all(client, world)
    end
    assert.equal("nil", tostring((explore.run(program, quickly { inputs = { GOOD } }))))
    assert.is_true(lives > 60)
    assert.same({ [0] = true }, before)
    assert.is_nil(explore.replay(program, {}, quickly { inputs = { GOOD } }))
    assert.equal(0, entries)
  end)

  it("starts a program again that failed under a fault, and tells of one that always fails", function()
    local function fragile(client, world)
      for _, input in ipairs(world.inputs) do
        if not world.paid(input.id) then
          local record = assert(client.kya:risk { address = input.address, network = input.network })
          world[record.risks[1] and "hold" or "pay"](input.id)
        end
      end
    end
    assert.is_nil((explore.run(fragile, quickly())))
    local finding = explore.run(function()
      error "no configuration"
    end, quickly())
    assert.matches(
      "^never paid 'good', although it is allowed; the program failed: .*no configuration$",
      finding.message
    )
    assert.same({}, finding.schedule)
  end)

  it("shows the whole failure of a program, with the program's file and line", function()
    local function failure(program)
      return explore.run(program, quickly()).message:match "; the program failed: (.*)"
    end
    local long = "the payment system's settings name no account for 'eth'\n" .. ("and none is the default "):rep(9)
    assert.matches(
      "^spec/unit/explore/init_spec.lua:%d+: the payment system's .* and none is the default $",
      failure(function()
        error(long)
      end)
    )
    for message, program in pairs {
      -- PUC Lua 5.1 has a level of its own for a call by `return`, without a place.
      ["there is no input 'nobody'"] = not is_puc_5_1 and function(_, world)
        return world.pay "nobody"
      end or nil,
      ["unknown option 'storre'; did you mean 'store'?"] = function(_, world)
        world.client { storre = 1 }
      end,
      ["spawn: expected a function (got a number)"] = not is_puc_5_1 and function(_, world)
        return world.spawn(17)
      end or nil,
    } do
      local place, text = failure(program):match "^(.-)(: .*)"
      assert.equal(": " .. message, text)
      assert.matches("^spec/unit/explore/init_spec.lua:%d+$", place)
    end
  end)

  it("ends a program that loops without a step, and names the line", function()
    local here = debug.getinfo(1, "l").currentline
    local loops = {
      [here + 4] = function(client, world)
        local is_failed = ask(client, world, world.inputs[1]).error
        while is_failed do -- luacheck: ignore 541
        end
        pay_all(client, world)
      end,
      [here + 11] = function(_, world)
        local task = world.spawn(function()
          while true do
            world.sleep(0)
          end
        end)
        task:await()
      end,
    }
    for line, program in pairs(loops) do
      local finding = explore.run(program, quickly { inputs = { GOOD } })
      local found = finding.message:match "init_spec.lua:(%d+): a loop without a step of the world does not end$"
      assert.is_true(math.abs(tonumber(found) - line) <= 1, finding.message)
      assert.equal("never", finding.problem)
    end
    assert.is_nil((debug.gethook()))
  end)

  it("gives a client the account that it asks for", function()
    local seen = {}
    local function program(client, world)
      for index, one in ipairs { client, world.client { account = "payouts" } } do
        seen[index] = calls.state_of(one).settings.account
      end
    end
    explore.replay(program, {})
    assert.same({ "sandbox", "payouts" }, seen)
    explore.replay(program, {}, { client = { account = "main" } })
    assert.same({ "main", "payouts" }, seen)
  end)

  it("releases the locks of a program that was killed", function()
    local function locked(client, world)
      local release = assert(world.store:lock "payouts")
      pay_all(client, world)
      release()
    end
    assert.is_nil((explore.run(locked, quickly())))
  end)

  it("draws schedules beyond the bound, and takes out the faults that change nothing", function()
    local function program(client, world)
      local good = world.inputs[1]
      for _ = 1, 3 do
        local decision = client:screen { address = good.address, network = good.network }
        if decision.action == "allow" then
          return world.paid(good.id) or world.pay(good.id)
        end
      end
      world.pay(good.id)
    end
    local options = quickly { random = 2000, inputs = { GOOD } }
    local finding, explored = explore.run(program, options)
    assert.equal("unallowed", finding.problem)
    assert.equal(3, #finding.schedule)
    assert.is_true(explored.random > 0)
    assert.same(finding, (explore.run(program, options)))
    assert.same(finding, explore.replay(program, finding.schedule, options))
  end)

  it("ignores faults of a schedule that cannot strike", function()
    local schedule = { { at = "request 99", fault = "timeout" }, { at = "pay 1", fault = "timeout" } }
    assert.is_nil(explore.replay(pay_all, schedule))
  end)

  it("tells its progress", function()
    local told = {}
    explore.run(
      pay_all,
      quickly {
        faults = 2,
        inputs = { GOOD, { id = "bad", address = scenario("high-eth").address } },
        on_progress = function(explored)
          told[#told + 1] = explored.schedules
        end,
      }
    )
    assert.same({ 250 }, told)
  end)

  it("refuses a program that takes chance from elsewhere", function()
    local lives = 0
    local ok, message = pcall(explore.run, function(client, world)
      lives = lives + 1
      if lives == 1 then
        return pay_all(client, world)
      end
      world.hold "good"
    end, quickly())
    assert.is_false(ok)
    assert.matches("time and chance must come from `world`", message, 1, true)
  end)

  it("refuses misuse at the caller's line", function()
    local function fails(message, ...)
      local ok, failure = pcall(explore.run, ...)
      assert.is_false(ok)
      assert.matches(message, failure, 1, true)
    end
    fails("explore.run: program must be a function", "payouts.lua")
    fails("explore.run: unknown option 'fault'; did you mean 'faults'?", pay_all, { fault = 1 })
    fails("explore.run: client must not have store", pay_all, { client = { store = riskscreen.store.memory() } })
    fails("explore.run: unknown option 'polcy'", pay_all, { client = { polcy = 1 } })
    fails("explore.run: inputs has two inputs 'a'", pay_all, {
      inputs = { { id = "a", address = "0x1" }, { id = "a", address = "0x1" } },
    })
    fails("explore.run: the input 'a': ", pay_all, { inputs = { { id = "a", address = "0x1" } } })
    local _, failure = pcall(function()
      explore.run(pay_all, { faults = 99 })
    end)
    assert.matches("^spec/unit/explore/init_spec.lua:%d+: explore.run: faults must be between", failure)
  end)
end)
