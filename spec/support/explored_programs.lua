-- Small programs that screen and pay, each with a planted bug, the shortest schedule that shows it, and the right form.

local json = require "riskscreen.json"
local riskscreen = require "riskscreen"

local policy = riskscreen.score_policy {
  rules = { { score_at_least = "30", action = "block" }, { score_below = "30", action = "allow" } },
  extend = { detail = { "hack" } },
}

local trusting = riskscreen.policy {
  rules = {
    { no_risk = true, action = "allow" },
    { level = "high", action = "block" },
    { error = true, action = "allow" },
  },
}

local function screen(client, input)
  return client:screen { address = input.address, network = input.network }
end

local function transaction(input)
  return { network = input.network, hash = input.hash, outputAddress = input.address, customId = input.id }
end

local function settle(world, input, may_pay)
  if world.paid(input.id) then
    return
  elseif may_pay then
    world.pay(input.id)
  else
    world.hold(input.id)
  end
end

-- Calls a function for each input.
local function for_each(body)
  return function(client, world)
    for _, input in ipairs(world.inputs) do
      body(client, world, input)
    end
  end
end

local pays_what_is_allowed = for_each(function(client, world, input)
  settle(world, input, screen(client, input).action == "allow")
end)

-- Submits every input, and pays by the events that come.
local function pays_by_event(submit, handler_of, inbox_options)
  return function(client, world)
    local handle = handler_of(world)
    local receiver = inbox_options == nil and handle
      or riskscreen.webhook.inbox {
        secret = { value = world.secret.value, header = world.secret.header },
        handlers = { ["*"] = handle },
        on_failure = function() end, -- on PUC Lua 5.1 a kill within a handler is one
      }
    world.receive(receiver)
    for _, input in ipairs(world.inputs) do
      submit(client, world, input)
    end
    world.sleep(1000)
    for _, input in ipairs(world.inputs) do
      settle(world, input, false)
    end
  end
end

local function submit_until_it_succeeds(client, _, input)
  while not client.kyt:submit(transaction(input)) do -- luacheck: ignore 542
  end
end

-- With a store nothing is submitted twice, also after a kill.
local function submit_once(_, world, input)
  return world.client({ store = world.store }).kyt:submit(transaction(input))
end

local function pays_at_each_event(world)
  return function(event)
    if policy:decide(event.data).action == "allow" then
      world.pay(event.data.customId)
    end
  end
end

local function pays_once(world)
  return function(event)
    if policy:decide(event.data).action == "allow" and not world.paid(event.data.customId) then
      world.pay(event.data.customId)
    end
  end
end

-- A receiver of its own that gives events to a handler.
local function parses(handle, world, is_genuine)
  return function(_, headers, body)
    if is_genuine and headers[world.secret.header] ~= world.secret.value then
      return 401
    end
    handle(json.decode(body))
    return 200
  end
end

local no_retry = { retry = false }

return {
  {
    name = "pays when the service is late",
    wrong = for_each(function(client, world, input)
      local decision = screen(client, input)
      local is_late = decision.error and decision.error.kind == "timeout"
      settle(world, input, decision.action == "allow" or is_late)
    end),
    right = pays_what_is_allowed,
    options = { client = no_retry },
    problem = "unallowed",
    schedule = { { at = "request 1", fault = "timeout" } },
  },
  {
    name = "takes a missing answer for an answer without risks",
    wrong = for_each(function(client, world, input)
      local record, err = client.kya:risk { address = input.address, network = input.network }
      if err and err.kind == "timeout" then
        return world.hold(input.id)
      end
      settle(world, input, not (record and record.risks[1]))
    end),
    right = for_each(function(client, world, input)
      local record = client.kya:risk { address = input.address, network = input.network }
      settle(world, input, record and record.risks and not record.risks[1])
    end),
    options = { client = no_retry },
    problem = "unallowed",
    schedule = { { at = "request 1", fault = "reset" } },
  },
  {
    name = "submits again after a lost answer, and pays for each result",
    wrong = pays_by_event(submit_until_it_succeeds, pays_at_each_event, {}),
    right = pays_by_event(submit_until_it_succeeds, pays_once, {}),
    options = { client = no_retry },
    problem = "twice",
    schedule = { { at = "request 1", fault = "late" } },
  },
  {
    name = "believes a webhook without a secret",
    wrong = pays_by_event(submit_once, function(world)
      return parses(pays_once(world), world, false)
    end),
    right = pays_by_event(submit_once, pays_once, {}),
    options = { client = no_retry },
    problem = "unallowed",
    schedule = { { at = "webhook 1", fault = "forged" } },
  },
  {
    name = "ignores that a decision is degraded",
    wrong = pays_what_is_allowed,
    right = for_each(function(client, world, input)
      local decision = screen(client, input)
      settle(world, input, decision.action == "allow" and not decision.degraded)
    end),
    options = { client = { retry = false, policy = trusting } },
    problem = "unallowed",
    schedule = { { at = "request 1", fault = "timeout" } },
  },
  {
    name = "notes a payment after it",
    wrong = for_each(function(client, world, input)
      local notes = world.store:space "paid"
      if notes:get(input.id) then
        return
      elseif screen(client, input).action == "allow" then
        world.pay(input.id)
        notes:put(input.id, "yes")
      else
        world.hold(input.id)
      end
    end),
    right = pays_what_is_allowed,
    options = { client = no_retry },
    problem = "twice",
    schedule = { { at = "write 1", fault = "kill" } },
  },
  {
    name = "notes a payment before it",
    wrong = for_each(function(client, world, input)
      local notes = world.store:space "paid"
      if notes:get(input.id) then
        return
      elseif screen(client, input).action == "allow" then
        notes:put(input.id, "yes")
        world.pay(input.id)
      else
        world.hold(input.id)
      end
    end),
    right = for_each(function(client, world, input)
      local notes = world.store:space "paid"
      if notes:get(input.id) then
        settle(world, input, false)
      elseif screen(client, input).action == "allow" then
        notes:put(input.id, "yes")
        world.pay(input.id)
      else
        world.hold(input.id)
      end
    end),
    options = { client = no_retry },
    problem = "never",
    schedule = { { at = "pay 1", fault = "kill" } },
  },
  {
    name = "forgets what could not be decided",
    wrong = for_each(function(client, world, input)
      local decision = screen(client, input)
      if decision.action ~= "unknown" then
        settle(world, input, decision.action == "allow")
      end
    end),
    right = pays_what_is_allowed,
    options = { client = no_retry },
    problem = "never",
    schedule = { { at = "request 1", fault = "timeout" } },
  },
  {
    name = "waits for a webhook that never comes",
    wrong = function(client, world)
      world.receive(parses(function(event)
        settle(world, { id = event.data.customId }, policy:decide(event.data).action == "allow")
      end, world, true))
      for _, input in ipairs(world.inputs) do
        if not submit_once(client, world, input) then
          world.hold(input.id)
        end
      end
      world.sleep(30)
    end,
    right = for_each(function(client, world, input)
      local decision = policy:decide(client.kyt:screen(transaction(input), { timeout = 60 }))
      settle(world, input, decision.action == "allow")
    end),
    options = { client = no_retry },
    problem = "never",
    schedule = { { at = "webhook 1", fault = "late" } },
  },
  {
    name = "pays for each delivery of one event",
    wrong = pays_by_event(submit_once, function(world)
      return parses(pays_at_each_event(world), world, true)
    end),
    right = pays_by_event(submit_once, pays_once, {}),
    options = { client = no_retry },
    problem = "twice",
    schedule = { { at = "webhook 1", fault = "doubled" } },
  },
  {
    name = "pays when the second try has failed as well",
    wrong = for_each(function(client, world, input)
      local decision = screen(client, input)
      for _ = 1, 2 do
        decision = decision.error and screen(client, input) or decision
      end
      settle(world, input, decision.action == "allow" or decision.error ~= nil)
    end),
    right = pays_what_is_allowed,
    options = { client = no_retry, faults = 3 },
    problem = "unallowed",
    schedule = {
      { at = "request 1", fault = "timeout" },
      { at = "request 2", fault = "timeout" },
      { at = "request 3", fault = "timeout" },
    },
  },
}
