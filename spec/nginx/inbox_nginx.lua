-- The inbox that nginx's workers share, in a real nginx with several of them: who receives an event, who waits for it,
-- and what becomes of it when something is full, fails or ends.
local http = require "spec.support.http"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local socket = require "socket"

local TYPE = "getTxHashCustomRiskScore"
local SECRET = "a secret of 24 characters"
local SECONDS = 15 -- for what is expected to come

local HTTP = [[
  lua_shared_dict events %s;
  lua_shared_dict notes 1m;
  init_by_lua_block { require("spec.support.nginx_webhooks").start %s }
  %s
]]

local SERVER = [[
  listen %s:%d reuseport;
  location /webhooks {
    client_max_body_size 1m;
    content_by_lua_block {
      ngx.header["X-Worker"] = ngx.worker.id()
      require("spec.support.nginx_webhooks").inbox:serve()
    }
  }
]]

local function event(id, data, event_type)
  return json.encode {
    webhookId = id,
    eventType = event_type or TYPE,
    timestamp = "2026-01-01 00:00:00",
    data = data or { requestId = "r-" .. id, maxScore = "12.50", status = 1003 },
  }
end

local function free_port()
  local listener = assert(socket.bind("127.0.0.1", 0))
  local _, port = listener:getsockname()
  listener:close()
  return port
end

describe("the inbox of nginx", function()
  local server, any_port
  local hosts = 0

  ---@param options? { dict?: string, inbox?: string, http?: string, workers?: integer }
  local function start(options)
    options = options or {}
    any_port = free_port()
    server = nginx.start {
      workers = options.workers or 4,
      http = HTTP:format(options.dict or "4m", options.inbox or "{}", options.http or ""),
      server = SERVER:format("0.0.0.0", any_port),
    }
  end

  local function deliver(body, get, headers, target)
    local answer, failure = (get or server.get)(target or "/webhooks", { body = body, headers = headers })
    assert(answer, failure and failure.message)
    return answer.status, answer
  end

  -- What keeps a connection of its own, and so to one worker: no two hosts share one.
  local function connection()
    hosts = hosts + 1
    return http.origin(("http://127.1.%d.%d:%d"):format(math.floor(hosts / 250) + 1, hosts % 250 + 1, any_port))
  end

  local function at_worker(id)
    return nginx.wait_for("a connection to worker " .. id, function()
      local get = connection()
      local answer = assert(get "/webhooks")
      return answer.headers["x-worker"] == tostring(id) and get
    end)
  end

  local function eval(code, argument, get)
    local answer = assert((get or server.get)("/eval", { body = json.encode { code = code, argument = argument } }))
    assert(answer.status == 200, answer.body)
    return assert(json.decode(answer.body)).values[1].value
  end

  local function note(name)
    return server:eval("return ngx.shared.notes:get(...)", name)
  end

  local function await(request, get)
    request.seconds = request.seconds or SECONDS
    return eval("return require('spec.support.nginx_webhooks').await(...)", request, get)
  end

  local function waiting(count)
    return nginx.wait_for("somebody to wait", function()
      riskscreen.sleep(0.01)
      return note "waiting" == count
    end)
  end

  local function ticket(fields)
    fields.version = 1
    return json.encode(fields)
  end

  describe("with several workers", function()
    it("brings an event that any of them receives to whoever waits in any other", function()
      start()
      local requests = {}
      for waiter = 0, 3 do
        local there = at_worker(waiter)
        requests[#requests + 1] = function()
          return await({ id = "r-w" .. waiter }, there)
        end
      end
      requests[#requests + 1] = function()
        waiting(4)
        for receiver = 0, 3 do
          deliver(event("w" .. (receiver + 1) % 4), at_worker(receiver))
        end
      end
      local results = riskscreen.gather(requests)
      for waiter = 1, 4 do
        assert.same({ score = "12.50", source = "webhook", kind = false }, results[waiter])
      end
      server:stop()
    end)

    it("gives one who asks later, wherever, what came early", function()
      start()
      deliver(event "w1", at_worker(0))
      for id = 0, 3 do
        assert.equal("12.50", await({ id = "r-w1" }, at_worker(id)).score)
      end
      server:stop()
    end)

    it("brings everyone his own, and nobody another's", function()
      start()
      local here, there = at_worker(0), at_worker(1)
      deliver(event("w1", { requestId = "r1", maxScore = "1", status = 1003 }), here)
      deliver(event("w2", { requestId = "r2", maxScore = "2", status = 1003 }), there)
      assert.same({ "2", "1" }, { await({ id = "r2" }, here).score, await({ id = "r1" }, there).score })
      assert.equal("timeout", await({ id = "r3", seconds = 0.2 }, here).kind)
      server:stop()
    end)

    it("handles an event once, however often and wherever it is delivered", function()
      start {
        inbox = [[{ handlers = { ["*"] = function()
          ngx.sleep(0.1)
          ngx.shared.notes:incr("handled", 1, 0)
        end } }]],
      }
      local deliveries = {}
      for index = 1, 40 do
        deliveries[index] = function()
          return (deliver(event "w1"))
        end
      end
      local accepted = 0
      for _, status in ipairs((riskscreen.gather(deliveries))) do
        assert.is_true(status == 200 or status == 503)
        accepted = accepted + (status == 200 and 1 or 0)
      end
      assert.is_true(accepted >= 1)
      for id = 0, 3 do
        local status, answer = deliver(event "w1", at_worker(id))
        assert.same({ 200, { received = true, duplicate = true } }, { status, json.decode(answer.body) })
      end
      assert.equal(1, note "handled")
      server:stop()
    end)

    local SCREEN = [[
      local service = ...
      local client = require("spec.support.nginx_webhooks").client(service)
      local result, other = client.kyt:screen { network = "eth", hash = service.hash, direction = "in" }
      return { result and result.maxScore or tostring(other), other.source }
    ]]

    -- Has so many transactions screened at once, each over a connection of its own, and does something meanwhile.
    local function screen(served, count, meanwhile)
      local bodies = {}
      for index = 1, count do
        bodies[index] = function()
          local service = { url = served.url, key = served.access_key, hash = ("0x%064x"):format(index) }
          return eval(SCREEN, service, connection())
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
      start()
      local served = assert(sandbox.serve { kyt_delay = 0.05, webhook = { url = server.url .. "/webhooks" } })
      served.service:deliver { copies = 2 }
      screen(served, 24)
      served:close()
      assert.equal(24, note "handled")
      server:stop()
    end)

    it("leaves none out while nginx is reloaded again and again", function()
      start()
      local webhooks = { url = server.url .. "/webhooks", attempts = 20, retry = 0.1 }
      local served = assert(sandbox.serve { kyt_delay = 0.4, webhook = webhooks })
      screen(served, 40, function()
        for _ = 1, 4 do
          riskscreen.sleep(0.2)
          server:reload()
        end
      end)
      served:close()
      assert.equal(40, note "handled")
      server:stop()
    end)

    it("gives an event that names a customId alone to nobody when two await it in different workers", function()
      start()
      local one = ticket { requestId = "r1", customId = "same" }
      local two = ticket { requestId = "r2", customId = "same" }
      local here, there, third = at_worker(0), at_worker(1), at_worker(2)
      local results = riskscreen.gather {
        function()
          return await({ ticket = one, seconds = 1 }, here)
        end,
        function()
          return await({ ticket = two, seconds = 1 }, there)
        end,
        function()
          waiting(2)
          return (deliver(event("w1", { customId = "same", maxScore = "0", status = 1003 }), third))
        end,
      }
      assert.same({ "timeout", "timeout", 200 }, { results[1].kind, results[2].kind, results[3] })
      server:stop()
    end)

    it("gives it to the only one who awaits it", function()
      start()
      local one, there = ticket { customId = "mine" }, at_worker(1)
      local results = riskscreen.gather {
        function()
          return await({ ticket = one }, at_worker(0))
        end,
        function()
          waiting(1)
          deliver(event("w1", { customId = "mine", requestId = "r9", maxScore = "7", status = 1003 }), there)
        end,
      }
      assert.equal("7", results[1].score)
      server:stop()
    end)
  end)

  describe("when a handler fails", function()
    local FAILS_ONCE =
      "{ handlers = { ['*'] = function() if ngx.shared.notes:incr('tries', 1, 0) == 1 then %s end end } }"

    it("answers 500, says so in the error log, and handles the event when it comes again", function()
      start { inbox = FAILS_ONCE:format "error('no room at the inn', 0)" }
      assert.equal(500, (deliver(event "w1", at_worker(0))))
      assert.equal(200, (deliver(event "w1", at_worker(1))))
      assert.equal(2, note "tries")
      assert.matches("the webhook " .. TYPE .. " w1 was not handled: no room at the inn", server:log(), 1, true)
      server:stop { "was not handled: no room at the inn" }
    end)

    it("because its worker dies, the event is handled when it comes again", function()
      local die = "require('ffi').cdef('int raise(int);') require('ffi').C.raise(9)"
      start { inbox = FAILS_ONCE:format(die):gsub("^{", "{ lease = 0.3,") }
      assert.is_nil(server.get("/webhooks", { body = event "w1" }))
      local busy = (deliver(event "w1"))
      nginx.wait_for("the claim of the dead worker to expire", function()
        return deliver(event "w1") == 200
      end)
      assert.same({ 503, 2 }, { busy, note "tries" })
      server:stop { "exited on signal 9" }
    end)
  end)

  it("takes an event again whose handling ended with the connection of its sender", function()
    start {
      http = "lua_check_client_abort on;",
      inbox = [[{ lease = 0.3, handlers = { ["*"] = function()
        if ngx.shared.notes:incr("tries", 1, 0) == 1 then ngx.sleep(600) end
      end } }]],
    }
    local body = event "w1"
    local sender = socket.connect("127.0.0.1", server.port)
    sender:send(("POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
    nginx.wait_for("the handler to begin", function()
      return note "tries"
    end)
    sender:close()
    nginx.wait_for("the event to be taken", function()
      return deliver(event "w1") == 200
    end)
    assert.equal(2, note "tries")
    server:stop()
  end)

  it("lets no other handle an event while its handler works, longer than a lease though it takes", function()
    start {
      inbox = [[{ lease = 0.2, handlers = { ["*"] = function()
        ngx.shared.notes:incr("handled", 1, 0)
        repeat ngx.sleep(0.01) until ngx.shared.notes:get "go"
      end } }]],
    }
    local results = riskscreen.gather {
      function()
        return (deliver(event "w1"))
      end,
      function()
        nginx.wait_for("the handler to begin", function()
          riskscreen.sleep(0.01)
          return note "handled"
        end)
        local statuses = {}
        for _ = 1, 10 do
          riskscreen.sleep(0.1)
          statuses[#statuses + 1] = (deliver(event "w1"))
        end
        server:eval "ngx.shared.notes:set('go', true)"
        return statuses
      end,
    }
    assert.equal(200, results[1])
    for _, status in ipairs(results[2]) do
      assert.equal(503, status)
    end
    assert.equal(1, note "handled")
    server:stop()
  end)

  describe("when the shared dict is full", function()
    it("answers 503 and loses nothing that it has answered with 200", function()
      start { dict = "64k", inbox = "{ on_failure = function() end }" }
      local accepted, refused = {}, {}
      for index = 1, 300 do
        local id = ("w%d"):format(index)
        local data = { requestId = "r-" .. id, maxScore = tostring(index), status = 1003, customId = ("c"):rep(500) }
        local status = deliver(event(id, data))
        assert.is_true(status == 200 or status == 503)
        table.insert(status == 200 and accepted or refused, index)
      end
      assert.is_true(#accepted > 10 and #refused > 10)
      for _, index in ipairs(accepted) do
        assert.equal(tostring(index), await({ id = "r-w" .. index }).score)
      end
      for _, index in ipairs(refused) do
        assert.is_nil(note("handled w" .. index))
      end
      server:stop()
    end)

    it("forgets the oldest of the handled events rather than refuse new ones for ever", function()
      start { dict = "64k", inbox = "{ early = { ttl = 1 }, on_failure = function() end }" }
      for index = 1, 1200 do
        nginx.wait_for("event " .. index .. " to be taken", function()
          return deliver(event("w" .. index)) == 200
        end)
      end
      assert.equal(1200, note "handled")
      local _, answer = deliver(event "w1200")
      assert.is_true(json.decode(answer.body).duplicate)
      server:stop()
    end)
  end)

  describe("checks who delivers", function()
    it("by a secret, of which nothing shows", function()
      local secret = ("secret = { value = '%s', header = 'X-Secret' }"):format(SECRET)
      start { inbox = "{ accept_unauthenticated = false, " .. secret .. " }" }
      local right, wrong = "X-Secret: " .. SECRET, "X-Secret: " .. SECRET .. "!"
      assert.equal(401, (deliver(event "w1")))
      assert.equal(401, (deliver(event "w1", nil, { wrong })))
      assert.equal(401, (deliver(event "w1", nil, { right, right })))
      assert.equal(401, (deliver(event "w1", nil, { wrong, right })))
      assert.is_nil(note "handled")
      assert.equal(200, (deliver(event "w1", nil, { right })))
      assert.is_nil(server:log():find(SECRET, 1, true))
      server:stop()
    end)

    it("by a secret at the end of the path, as the sender wrote it", function()
      start { inbox = "{ accept_unauthenticated = false, secret = { value = '" .. SECRET .. "', path = true } }" }
      assert.equal(200, (deliver(event "w1", nil, nil, "/webhooks/" .. SECRET:gsub(" ", "%%20"))))
      assert.equal(401, (deliver(event "w2", nil, nil, "/webhooks/" .. SECRET:gsub(" ", "%%20") .. "/x")))
      server:stop()
    end)

    it("by the sender's address", function()
      start { inbox = "{ accept_unauthenticated = false, allow = { '192.0.2.0/24' } }" }
      assert.equal(403, (deliver(event "w1")))
      server:stop()
      start { inbox = "{ accept_unauthenticated = false, allow = { '127.0.0.0/8' } }" }
      assert.equal(200, (deliver(event "w1")))
      server:stop()
    end)
  end)

  describe("reads a body", function()
    before_each(function()
      start { http = "client_body_buffer_size 1k;" }
    end)

    after_each(function()
      server:stop { "buffered to a temporary file" }
    end)

    it("that nginx has put into a file", function()
      local data = { requestId = "r1", maxScore = "3", status = 1003, note = ("x"):rep(40000) }
      assert.equal(200, (deliver(event("w1", data))))
      assert.equal("3", await({ id = "r1" }).score)
    end)

    it("that comes in pieces", function()
      local sender = socket.connect("127.0.0.1", server.port)
      local body = event "w1"
      local pieces = {}
      for from = 1, #body, 40 do
        local piece = body:sub(from, from + 39)
        pieces[#pieces + 1] = ("%x\r\n%s\r\n"):format(#piece, piece)
      end
      local head = "POST /webhooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      sender:send(head .. table.concat(pieces) .. "0\r\n\r\n")
      assert.matches(" 200 ", sender:receive "*l", 1, true)
      sender:close()
      assert.equal("12.50", await({ id = "r-w1" }).score)
    end)

    it("of no more than 64 KiB", function()
      local status, answer = deliver(event("w1", { requestId = "r1", note = ("x"):rep(65536) }))
      assert.same({ 413, "application/json" }, { status, answer.headers["content-type"] })
      assert.is_nil(note "handled")
    end)

    it("that is an event, and refuses what is none", function()
      assert.equal(400, (deliver "{}"))
      assert.equal(400, (deliver ""))
      assert.equal(400, (deliver "\0\255"))
      local answer = server.get("/webhooks", { method = "GET" })
      assert.same({ 405, "POST" }, { answer.status, answer.headers.allow })
    end)

    it("without mistaking an encoded one", function()
      assert.equal(400, (deliver(event "w1", nil, { "Content-Encoding: gzip" })))
    end)
  end)

  describe("when nginx is reloaded", function()
    local function old_workers_end(old)
      nginx.wait_for("the old workers to end", function()
        riskscreen.sleep(0.01)
        local current = {}
        for _, pid in ipairs(server:workers()) do
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
      start { workers = 2 }
      local old = server:workers()
      local there = at_worker(0)
      local results = riskscreen.gather {
        function()
          return await({ id = "r-w1" }, there)
        end,
        function()
          waiting(1)
          server:reload()
          local fresh = nginx.wait_for("a new worker", function()
            riskscreen.sleep(0.01)
            local get = connection()
            local pid = eval("return ngx.worker.pid()", nil, get)
            return pid ~= old[1] and pid ~= old[2] and get
          end)
          return (deliver(event "w1", fresh))
        end,
      }
      assert.same({ "12.50", 200 }, { results[1].score, results[2] })
      old_workers_end(old)
      assert.equal("12.50", await({ id = "r-w1" }).score)
      server:stop()
    end)

    it("lets an old worker end whose client has gone away while it waited", function()
      start { workers = 1, http = "lua_check_client_abort on;" }
      local old = server:workers()
      local client = socket.connect("127.0.0.1", server.port)
      local body = json.encode {
        code = "return require('spec.support.nginx_webhooks').await(...)",
        argument = { id = "r1", seconds = 600 },
      }
      client:send(("POST /eval HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
      waiting(1)
      client:close()
      server:reload()
      old_workers_end(old)
      server:stop()
    end)
  end)

  it("is refused without a shared dict of its name, and served in the content phase alone", function()
    start { workers = 1 }
    local message = server:eval [[
      local _, message = pcall(require("riskscreen.nginx.inbox").new, { dict = "none", accept_unauthenticated = true })
      return message
    ]]
    assert.matches(
      "dict must name a shared dict (got 'none'): put 'lua_shared_dict none 8m;' into http",
      message,
      1,
      true
    )
    local refused = server:eval [[
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
    server:stop()
  end)
end)
