-- The inbox that nginx's workers share, in a real nginx with several workers and reloads. Failures are in
-- inbox_trouble_nginx.lua.
local inboxes = require "spec.support.nginx_inbox"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local redis_servers = require "spec.support.redis"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local socket = require "socket"
local tables = require "riskscreen.util.tables"

describe("the inbox of nginx", function()
  local bed

  local function ticket(fields)
    fields.version = 1
    return json.encode(fields)
  end

  describe("with a store in Redis, on two machines", function()
    local redis, first, second

    before_each(function()
      redis = redis_servers.start()
      first = inboxes.start { redis = redis.url, workers = 2 }
      second = inboxes.start { redis = redis.url, workers = 2 }
    end)

    after_each(function()
      first.server:stop(tables.concat({ "was not handled: the store cannot say" }, nginx.BROKEN_CONNECTIONS))
      second.server:stop(nginx.BROKEN_CONNECTIONS)
      redis:stop()
    end)

    it("brings an event that one receives to whoever waits on the other", function()
      local results = riskscreen.gather {
        function()
          return second:await({ id = "r-w1" }, second:at_worker(0))
        end,
        function()
          return second:await({ id = "r-w1" }, second:at_worker(1))
        end,
        function()
          second:waiting(2)
          return (first:deliver(inboxes.event "w1"))
        end,
      }
      local brought = { score = "12.50", source = "webhook", kind = false }
      assert.same({ brought, brought, 200 }, results)
      assert.equal("12.50", second:await({ id = "r-w1" }, second:at_worker(0)).score)
      assert.equal("timeout", second:await({ id = "r-w2", seconds = 0.2 }).kind)
    end)

    it("handles an event once on both", function()
      for _, machine in ipairs { first, second, first, second } do
        assert.equal(200, (machine:deliver(inboxes.event "w1")))
      end
      assert.equal(1, first:note "handled w1")
      assert.is_nil(second:note "handled w1")
    end)

    it("answers 503 while Redis is away, so that the event comes again", function()
      redis:kill()
      assert.equal(503, (first:deliver(inboxes.event "w1")))
      redis:start()
      nginx.wait_for("the event to be taken", function()
        return first:deliver(inboxes.event "w1") == 200
      end)
      assert.equal("12.50", second:await({ id = "r-w1" }).score)
    end)
  end)

  describe("with several workers", function()
    it("brings an event that any of them receives to whoever waits in any other", function()
      bed = inboxes.start()
      local requests = {}
      for waiter = 0, 3 do
        local there = bed:at_worker(waiter)
        requests[#requests + 1] = function()
          return bed:await({ id = "r-w" .. waiter }, there)
        end
      end
      requests[#requests + 1] = function()
        bed:waiting(4)
        for receiver = 0, 3 do
          bed:deliver(inboxes.event("w" .. (receiver + 1) % 4), bed:at_worker(receiver))
        end
      end
      local results = riskscreen.gather(requests)
      for waiter = 1, 4 do
        assert.same({ score = "12.50", source = "webhook", kind = false }, results[waiter])
      end
      bed.server:stop()
    end)

    it("gives one who asks later, wherever, what came early", function()
      bed = inboxes.start()
      bed:deliver(inboxes.event "w1", bed:at_worker(0))
      for id = 0, 3 do
        assert.equal("12.50", bed:await({ id = "r-w1" }, bed:at_worker(id)).score)
      end
      bed.server:stop()
    end)

    it("brings what comes while a worker is busy, whose clock stands still then", function()
      bed = inboxes.start { workers = 2, inbox = "{ poll = 0.005 }" }
      local busy, free = bed:at_worker(0), bed:at_worker(1)
      bed:eval(
        [[
          local function work()
            local started = os.clock()
            repeat until os.clock() - started > 0.02
            return ngx.shared.notes:get "waiting" ~= 0 and ngx.timer.at(0.001, work)
          end
          return ngx.timer.at(0, work)
        ]],
        nil,
        busy
      )
      local requests, since = {}, os.time() - 60
      for index = 1, 8 do
        local here = bed:at_worker(0)
        requests[index] = function()
          return bed:await({ ticket = ticket { requestId = "r-w" .. index, at = since }, seconds = 3 }, here)
        end
      end
      requests[9] = function()
        bed:waiting(8)
        for index = 1, 8 do
          bed:deliver(inboxes.event("w" .. index), free)
        end
      end
      local results = riskscreen.gather(requests)
      for index = 1, 8 do
        assert.equal("12.50", results[index].score)
      end
      bed:eval("return ngx.shared.notes:set('waiting', 0)", nil, free)
      bed.server:stop()
    end)

    it("brings everyone his own, and nobody another's", function()
      bed = inboxes.start()
      local here, there = bed:at_worker(0), bed:at_worker(1)
      bed:deliver(inboxes.event("w1", { requestId = "r1", maxScore = "1", status = 1003 }), here)
      bed:deliver(inboxes.event("w2", { requestId = "r2", maxScore = "2", status = 1003 }), there)
      assert.same({ "2", "1" }, { bed:await({ id = "r2" }, here).score, bed:await({ id = "r1" }, there).score })
      assert.equal("timeout", bed:await({ id = "r3", seconds = 0.2 }, here).kind)
      bed.server:stop()
    end)

    it("handles an event once, however often and wherever it is delivered", function()
      bed = inboxes.start {
        inbox = [[{ handlers = { ["*"] = function()
          ngx.sleep(0.1)
          ngx.shared.notes:incr("handled", 1, 0)
        end } }]],
      }
      local deliveries = {}
      for index = 1, 40 do
        deliveries[index] = function()
          return (bed:deliver(inboxes.event "w1"))
        end
      end
      local accepted = 0
      for _, status in ipairs((riskscreen.gather(deliveries))) do
        assert.is_true(status == 200 or status == 503)
        accepted = accepted + (status == 200 and 1 or 0)
      end
      assert.is_true(accepted >= 1)
      for id = 0, 3 do
        local status, answer = bed:deliver(inboxes.event "w1", bed:at_worker(id))
        assert.same({ 200, { received = true, duplicate = true } }, { status, json.decode(answer.body) })
      end
      assert.equal(1, bed:note "handled")
      bed.server:stop()
    end)

    local SCREEN = [[
      local service = ...
      local client = require("spec.support.nginx_webhooks").client(service)
      local result, other = client.kyt:screen { network = "eth", hash = service.hash, direction = "in" }
      return { result and result.maxScore or tostring(other), other.source }
    ]]

    -- Has so many transactions screened at once, each over a bed:connection of its own, and does something meanwhile.
    local function screen(served, count, meanwhile)
      local bodies = {}
      for index = 1, count do
        bodies[index] = function()
          local service = { url = served.url, key = served.access_key, hash = ("0x%064x"):format(index) }
          return bed:eval(SCREEN, service, bed:connection())
        end
      end
      bodies[count + 1] = meanwhile
      local results = riskscreen.gather(bodies)
      for index = 1, count do
        local expected = require("riskscreen.sandbox.kyt").score(("0x%064x"):format(index))
        assert.same({ expected, "webhook" }, results[index])
      end
    end

    it("takes a transaction from its submission to the webhook of the service", function()
      bed = inboxes.start()
      local served = assert(sandbox.serve { kyt_delay = 0.05, webhook = { url = bed.server.url .. "/webhooks" } })
      served.service:deliver { copies = 2 }
      screen(served, 24)
      served:close()
      assert.equal(24, bed:note "handled")
      bed.server:stop()
    end)

    it("leaves none out while nginx is reloaded again and again", function()
      bed = inboxes.start()
      local webhooks = { url = bed.server.url .. "/webhooks", attempts = 20, retry = 0.1 }
      local served = assert(sandbox.serve { kyt_delay = 0.4, webhook = webhooks })
      screen(served, 40, function()
        for _ = 1, 4 do
          riskscreen.sleep(0.2)
          bed.server:reload()
        end
      end)
      served:close()
      assert.equal(40, bed:note "handled")
      bed.server:stop()
    end)

    it("gives an event that names a customId alone to nobody", function()
      bed = inboxes.start()
      local one = ticket { requestId = "r1", customId = "same" }
      local two = ticket { requestId = "r2", customId = "same" }
      local here, there, third = bed:at_worker(0), bed:at_worker(1), bed:at_worker(2)
      local results = riskscreen.gather {
        function()
          return bed:await({ ticket = one, seconds = 1 }, here)
        end,
        function()
          return bed:await({ ticket = two, seconds = 1 }, there)
        end,
        function()
          bed:waiting(2)
          return (bed:deliver(inboxes.event("w1", { customId = "same", maxScore = "0", status = 1003 }), third))
        end,
      }
      assert.same({ "timeout", "timeout", 200 }, { results[1].kind, results[2].kind, results[3] })
      bed.server:stop()
    end)

    it("says that a transaction known by its customId alone cannot be awaited", function()
      bed = inboxes.start()
      local result = bed:await({ ticket = ticket { customId = "mine" } }, bed:at_worker(0))
      assert.equal("unsupported", result.kind)
      bed.server:stop()
    end)
  end)

  describe("when nginx is reloaded", function()
    local function old_workers_end(old)
      nginx.wait_for("the old workers to end", function()
        riskscreen.sleep(0.01)
        local current = {}
        for _, pid in ipairs(bed.server:workers()) do
          current[pid] = true
        end
        for _, pid in ipairs(old) do
          if current[pid] then
            return false
          end
        end
        return true
      end)
    end

    it("brings an event that a new worker receives to one who waits in an old one", function()
      bed = inboxes.start { workers = 2 }
      local old = bed.server:workers()
      local there = bed:at_worker(0)
      local results = riskscreen.gather {
        function()
          return bed:await({ id = "r-w1" }, there)
        end,
        function()
          bed:waiting(1)
          bed.server:reload()
          local fresh = nginx.wait_for("a new worker", function()
            riskscreen.sleep(0.01)
            local get = bed:connection()
            local pid = bed:eval("return ngx.worker.pid()", nil, get)
            return pid ~= old[1] and pid ~= old[2] and get
          end)
          return (bed:deliver(inboxes.event "w1", fresh))
        end,
      }
      assert.same({ "12.50", 200 }, { results[1].score, results[2] })
      old_workers_end(old)
      assert.equal("12.50", bed:await({ id = "r-w1" }).score)
      bed.server:stop()
    end)

    it("lets an old worker end whose client has gone away while it waited", function()
      bed = inboxes.start { workers = 1, http = "lua_check_client_abort on;" }
      local old = bed.server:workers()
      local client = socket.connect("127.0.0.1", bed.server.port)
      local body = json.encode {
        code = "return require('spec.support.nginx_webhooks').await(...)",
        argument = { id = "r1", seconds = 600 },
      }
      client:send(("POST /eval HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
      bed:waiting(1)
      client:close()
      bed.server:reload()
      old_workers_end(old)
      bed.server:stop()
    end)
  end)

  it("does not share its dict with a gate, whose verdicts would push its events out", function()
    bed = inboxes.start { workers = 1 }
    local refused, taken = bed.server:eval [[
      local gates = require "riskscreen.nginx.gate"
      local function made_with(dict)
        return pcall(gates.new, {
          client = { base_url = "http://127.0.0.1:1", access_key = "no-access-key" },
          dict = dict,
          webhook = { dict = "events", accept_unauthenticated = true },
          on_unknown = "block",
        })
      end
      local _, message = made_with "events"
      return message, (made_with "notes")
    ]]
    assert.matches("the dict of webhook must be another", refused, 1, true)
    assert.is_true(taken)
    bed.server:stop()
  end)

  it("is refused without a shared dict of its name, and served in the content phase alone", function()
    bed = inboxes.start { workers = 1 }
    local message = bed.server:eval [[
      local _, message = pcall(require("riskscreen.nginx.inbox").new, { dict = "none", accept_unauthenticated = true })
      return message
    ]]
    assert.matches(
      "dict must name a shared dict (got 'none'): put 'lua_shared_dict none 8m;' into http",
      message,
      1,
      true
    )
    local refused = bed.server:eval [[
      local done = require("ngx.semaphore").new()
      local message
      ngx.timer.at(0, function()
        local _
        _, message = pcall(function() require("spec.support.nginx_webhooks").inbox:serve() end)
        done:post(1)
      end)
      done:wait(5)
      return message
    ]]
    assert.matches("in content_by_lua", refused, 1, true)
    bed.server:stop()
  end)

  it("does not listen by itself", function()
    bed = inboxes.start { workers = 1 }
    local kind, message = bed.server:eval [[
      local _, err = require("spec.support.nginx_webhooks").inbox:listen()
      return err.kind, err.message
    ]]
    assert.equal("unsupported", kind)
    assert.matches("inbox:serve", message, 1, true)
    bed.server:stop()
  end)
end)
