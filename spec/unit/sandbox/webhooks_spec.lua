local json = require "riskscreen.json"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local SECRET = "the secret of the sandbox"
local DELAY = 5 -- seconds until a transaction is done

local function new_inbox(options)
  options = options or {}
  options.accept_unauthenticated = true
  options.on_failure = options.on_failure or function() end
  return riskscreen.webhook.inbox(options)
end

describe("the sandbox's webhooks", function()
  local service, clock

  before_each(function()
    service, clock = support.service { kyt_delay = DELAY, webhook = { attempts = 3, retry = 2 } }
  end)

  local function submit(hash, manner)
    local _, body = support.post(
      service,
      support.path.submit,
      { network = "eth", hash = hash, customId = "c-" .. hash },
      {
        ["x-sandbox-webhook"] = manner,
      }
    )
    return body.data and body.data.requestId, body
  end

  -- The customIds of what is due when so many seconds have passed.
  local function due_after(seconds)
    clock.now = clock.now + seconds
    local ids = {}
    for index, webhook in ipairs(service:due_webhooks()) do
      ids[index] = webhook.event.data.customId
    end
    return ids
  end

  it("come in the order in which transactions are done", function()
    submit "a"
    clock.now = clock.now + 1
    submit "b"
    assert.same({}, due_after(DELAY - 2))
    assert.same({ "c-a" }, due_after(1))
    assert.same({ "c-b" }, due_after(1))
  end)

  describe("are delivered", function()
    it("late", function()
      submit("a", "late=10")
      assert.same({}, due_after(DELAY + 9))
      assert.same({ "c-a" }, due_after(1))
    end)

    it("twice, the same event", function()
      submit("a", "copies=2")
      clock.now = clock.now + DELAY
      local due = service:due_webhooks()
      assert.equal(2, #due)
      assert.equal(due[1].body, due[2].body)
    end)

    it("out of order", function()
      submit("a", "hold")
      submit "b"
      submit "c"
      assert.same({ "c-b", "c-a", "c-c" }, due_after(DELAY))
    end)

    it("never", function()
      submit("a", "never")
      assert.same({}, due_after(86400))
    end)

    it("as `service:deliver` says, for `count` transactions", function()
      service:deliver { never = true, nth = 2, count = 2 }
      for _, hash in ipairs { "a", "b", "c", "d" } do
        submit(hash)
      end
      assert.same({ "c-a", "c-d" }, due_after(DELAY))
    end)
  end)

  it("refuse an unknown option of a delivery", function()
    local id, body = submit("a", "lately=5")
    assert.is_nil(id)
    assert.matches("unknown option 'lately' in X-Sandbox-Webhook", body.msg, 1, true)
    assert.has_error(function()
      service:deliver { copies = 0 }
    end)
  end)

  local refused = { "webhookId", "timestamp", "data", "maxScore" }
  for _, field in ipairs(refused) do
    it("with a wrong " .. field .. " are refused by an inbox, and not repeated", function()
      local inbox = new_inbox()
      submit("a", "wrong=" .. field)
      clock.now = clock.now + DELAY
      assert.same({ 400 }, service:deliver_to(inbox))
      clock.now = clock.now + 3600
      assert.same({}, service:deliver_to(inbox))
    end)
  end

  local misleading = { "requestId", "customId", "status", "eventType" }
  for _, field in ipairs(misleading) do
    it("with a wrong " .. field .. " resolve nothing", function()
      local inbox = new_inbox()
      local client = sandbox.client { service = service, inbox = inbox, endpoints = { kyt_result = false } }
      service:deliver { wrong = field }
      local task = client.kyt:submit { network = "eth", hash = "0x1", customId = "mine" }
      clock.now = clock.now + DELAY
      assert.same({ 200 }, service:deliver_to(inbox))
      local result, err = task:await { timeout = 0 }
      if field == "eventType" then
        -- Only the type is unknown; the data belong to the request.
        assert.equal(1003, result.status)
      else
        assert.is_nil(result)
        assert.equal(field == "status" and "api" or "timeout", err.kind) -- a status that is not final ends the wait
      end
    end)
  end

  it("are repeated after a 5xx, with a wait that doubles, up to `attempts` times", function()
    local handled = 0
    local inbox = new_inbox {
      handlers = {
        ["*"] = function()
          handled = handled + 1
          error "no disk"
        end,
      },
    }
    submit "a"
    clock.now = clock.now + DELAY
    assert.same({ 500 }, service:deliver_to(inbox))
    clock.now = clock.now + 1.9
    assert.same({}, service:deliver_to(inbox))
    clock.now = clock.now + 0.1
    assert.same({ 500 }, service:deliver_to(inbox))
    clock.now = clock.now + 4
    assert.same({ 500 }, service:deliver_to(inbox))
    clock.now = clock.now + 86400
    assert.same({}, service:deliver_to(inbox))
    assert.equal(3, handled)
  end)

  it("give every transaction its own result, in any order and any number", function()
    local inbox = new_inbox()
    local client = sandbox.client { service = service, inbox = inbox, endpoints = { kyt_result = false } }
    local manners = { { hold = true }, { copies = 3 }, { late = 2 }, {}, { hold = true, copies = 2 }, {} }
    local tasks, expected = {}, {}
    for index, manner in ipairs(manners) do
      manner.nth, manner.count = index, 1
      service:deliver(manner)
    end
    local scenarios = { "high-eth", "clean-eth" }
    for index = 1, #manners do
      local address = sandbox.scenario(scenarios[index % 2 + 1]).address
      tasks[index] = client.kyt:submit { network = "eth", hash = "0x" .. index, outputAddress = address }
      expected[index] = index % 2 == 0 and "95.00" or "0.00"
    end
    for _ = 1, 3 do
      clock.now = clock.now + DELAY
      service:deliver_to(inbox)
    end
    for index, task in ipairs(tasks) do
      local result = task:await { timeout = 0 }
      assert.same({ task.requestId, expected[index] }, { result.requestId, result.maxScore })
    end
  end)
end)

describe("a sandbox client with an inbox", function()
  it("gets its webhooks by itself", function()
    local inbox = new_inbox()
    local client = sandbox.client { kyt_delay = 0.01, inbox = inbox, endpoints = { kyt_result = false } }
    local result, response = client.kyt:screen({ network = "eth", hash = "0x1" }, { timeout = 10 })
    assert.same({ 1003, "webhook" }, { result.status, response.source })
  end)

  it("polls for the results that no webhook brings", function()
    local client, service = sandbox.client { kyt_delay = 0.01, inbox = new_inbox(), polling = { first = 0.02 } }
    service:deliver { never = true }
    local _, response = client.kyt:screen({ network = "eth", hash = "0x1" }, { timeout = 10 })
    assert.equal("poll", response.source)
  end)
end)

describe("an inbox that listens", function()
  local open = {}

  after_each(function()
    for _, thing in ipairs(open) do
      thing:close()
    end
    open = {}
  end)

  local function keep(thing, message)
    assert(thing, message)
    open[#open + 1] = thing
    return thing
  end

  local function post(url, body)
    local origin, path = url:match "^(http://[^/]+)(/.*)$"
    local client = riskscreen.new { base_url = origin, access_key = "no-access-key" }
    local value, other = client:request("POST", path, { body = body })
    return value and 200 or other.status
  end

  local function event(id)
    return { webhookId = id, eventType = "other", timestamp = "2026-01-01 00:00:00", data = {} }
  end

  it("handles a webhook once that a served sandbox delivers twice", function()
    local handled = {}
    local inbox = riskscreen.webhook.inbox {
      secret = { value = SECRET, path = true },
      allow = { "127.0.0.0/8" },
      handlers = {
        ["*"] = function(received)
          riskscreen.sleep(0.001)
          handled[#handled + 1] = received.webhookId
        end,
      },
    }
    local listener = keep(inbox:listen())
    local url = listener.url .. "/" .. SECRET:gsub(" ", "%%20")
    local server = keep(sandbox.serve { kyt_delay = 0.01, webhook = { url = url, retry = 0.01 } })
    server.service:deliver { copies = 2 }
    local client = riskscreen.new { base_url = server.url, access_key = server.access_key, inbox = inbox }
    local result, response = client.kyt:screen({ network = "eth", hash = "0x1" }, { timeout = 10 })
    assert.same({ 1003, "webhook" }, { result.status, response.source })
    while #handled == 0 or server.service.webhooks.queue[1] do
      riskscreen.loop:step(0.01)
    end
    assert.same({ "sandbox-webhook-000001" }, handled)
  end)

  it("is delivered to again after its handler failed", function()
    local runs = 0
    local inbox = new_inbox {
      handlers = {
        ["*"] = function()
          runs = runs + 1
          return runs == 2 or nil, "not yet"
        end,
      },
    }
    local listener = keep(inbox:listen { path = "/hooks/in" })
    local server = keep(sandbox.serve { kyt_delay = 0, webhook = { url = listener.url, retry = 0.01 } })
    local client = riskscreen.new { base_url = server.url, access_key = server.access_key }
    client.kyt:submit { network = "eth", hash = "0x1" }
    while runs < 2 do
      riskscreen.loop:step(0.01)
    end
    assert.equal(2, runs)
  end)

  it("answers 500 and reports, whatever raises, or 503 where the store cannot claim", function()
    local tasks, told = require("riskscreen.runtime").tasks, {}
    local function tell(failure)
      told[#told + 1] = tostring(failure)
    end
    local report = tasks.report
    tasks.report = tell
    local function raise()
      error "it is down"
    end
    local function nothing() end
    local function new()
      return "new"
    end
    local closed = riskscreen.store.memory()
    local function give_up()
      local lookup = riskscreen.spawn(riskscreen.sleep, 60)
      lookup:cancel()
      error(select(2, lookup:await()), 0)
    end
    local raising = {
      { store = closed, account = "a", answers = 503 },
      { store = { claim = raise, complete = nothing, release = nothing }, answers = 503 },
      { store = { claim = new, complete = raise, release = nothing }, answers = 200 }, -- its event is handled
      { handlers = { other = raise }, store = { claim = new, complete = nothing, release = raise }, reports = 2 },
      { handlers = { other = give_up } },
      { fetch = give_up },
      { verify = give_up },
    }
    for index, options in ipairs(raising) do
      local answer, reports = options.answers or 500, options.reports or 1
      options.on_failure, options.accept_unauthenticated = tell, true
      options.answers, options.reports = nil, nil
      told = {}
      local listener = keep(riskscreen.webhook.inbox(options):listen())
      closed:close()
      local delivered = event "w1"
      delivered.data.requestId = "r1"
      assert.equal(answer, post(listener.url, delivered), index)
      assert.equal(reports, #told, index)
    end
    tasks.report = report
  end)

  it("answers 404 elsewhere, and 401 without the secret", function()
    local inbox = riskscreen.webhook.inbox { secret = { value = SECRET, path = true } }
    local listener = keep(inbox:listen { path = "/hooks" })
    local origin = listener.url:match "^(http://[^/]+)"
    assert.equal(404, post(origin .. "/other", event "w1"))
    assert.equal(404, post(origin .. "/hooks/a/b", event "w1"))
    assert.equal(401, post(origin .. "/hooks", event "w1"))
    assert.equal(401, post(origin .. "/hooks/x", event "w1"))
    assert.equal(200, post(origin .. "/hooks/" .. SECRET:gsub(" ", "%%20"), event "w1"))
  end)

  it("returns an error object when it cannot listen", function()
    local inbox = new_inbox()
    local listener = keep(inbox:listen())
    local second, err = inbox:listen { port = listener.port }
    assert.is_nil(second)
    assert.is_true(riskscreen.errors.is(err))
    assert.same({ "network", false }, { err.kind, err.sent })
    assert.matches("inbox:listen: .*address already in use", err.message:lower())
  end)

  it("is not served by nginx here", function()
    assert.has_error(function()
      new_inbox():serve()
    end, "inbox:serve: it answers a request of nginx, in content_by_lua")
  end)

  it("can be closed twice", function()
    local listener = assert(new_inbox():listen())
    listener:close()
    listener:close()
  end)

  it("accepts other deliveries while it handles one", function()
    local order, release = {}, false
    local inbox = new_inbox {
      handlers = {
        ["*"] = function(received)
          order[#order + 1] = "begin " .. received.webhookId
          while received.webhookId == "w1" and not release do
            riskscreen.sleep(0.001)
          end
          release = true
          order[#order + 1] = "end " .. received.webhookId
        end,
      },
    }
    local listener = keep(inbox:listen())
    riskscreen.run(function()
      riskscreen.spawn(post, listener.url, event "w1")
      while #order == 0 do
        riskscreen.sleep(0.001)
      end
      riskscreen.spawn(post, listener.url, event "w2")
    end)
    assert.same({ "begin w1", "begin w2", "end w2", "end w1" }, order)
  end)

  it("accepts an event of an unknown shape as JSON text only", function()
    local listener = keep(new_inbox():listen())
    assert.equal(400, post(listener.url, json.empty_array()))
  end)
end)
