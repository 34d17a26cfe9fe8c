-- The inbox that nginx's workers share, in a real nginx, where something fails, ends, is full, forged or too long.
local inboxes = require "spec.support.nginx_inbox"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local socket = require "socket"

local SECRET = "a secret of 24 characters"

describe("the inbox of nginx", function()
  local bed

  describe("when a handler fails", function()
    local FAILS_ONCE =
      "{ handlers = { ['*'] = function() if ngx.shared.notes:incr('tries', 1, 0) == 1 then %s end end } }"

    it("answers 500, says so in the error log, and handles the event when it comes again", function()
      bed = inboxes.start { inbox = FAILS_ONCE:format "error('no room at the inn', 0)" }
      assert.equal(500, (bed:deliver(inboxes.event "w1", bed:at_worker(0))))
      assert.equal(200, (bed:deliver(inboxes.event "w1", bed:at_worker(1))))
      assert.equal(2, bed:note "tries")
      assert.matches(
        "the webhook " .. inboxes.TYPE .. " w1 was not handled: no room at the inn",
        bed.server:log(),
        1,
        true
      )
      bed.server:stop { "was not handled: no room at the inn" }
    end)

    it("because its worker dies, the event is handled when it comes again", function()
      local die = "require('ffi').cdef('int raise(int);') require('ffi').C.raise(9)"
      bed = inboxes.start { inbox = FAILS_ONCE:format(die):gsub("^{", "{ lease = 2,") }
      assert.is_nil(bed.server.get("/webhooks", { body = inboxes.event "w1" }))
      local busy = (bed:deliver(inboxes.event "w1"))
      nginx.wait_for("the claim of the dead worker to expire", function()
        return bed:deliver(inboxes.event "w1") == 200
      end)
      assert.same({ 503, 2 }, { busy, bed:note "tries" })
      bed.server:stop { "exited on signal 9" }
    end)
  end)

  it("takes an event again whose handling ended with the connection of its sender", function()
    bed = inboxes.start {
      http = "lua_check_client_abort on;",
      inbox = [[{ lease = 0.3, handlers = { ["*"] = function()
        if ngx.shared.notes:incr("tries", 1, 0) == 1 then ngx.sleep(600) end
      end } }]],
    }
    local body = inboxes.event "w1"
    local sender = socket.connect("127.0.0.1", bed.server.port)
    sender:send(("POST /webhooks HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s"):format(#body, body))
    nginx.wait_for("the handler to begin", function()
      return bed:note "tries"
    end)
    sender:close()
    nginx.wait_for("the event to be taken", function()
      return bed:deliver(inboxes.event "w1") == 200
    end)
    assert.equal(2, bed:note "tries")
    bed.server:stop()
  end)

  it("lets no other handle an event while its handler works, longer than a lease though it takes", function()
    bed = inboxes.start {
      inbox = [[{ lease = 0.8, handlers = { ["*"] = function()
        ngx.shared.notes:incr("handled", 1, 0)
        repeat ngx.sleep(0.01) until ngx.shared.notes:get "go"
      end } }]],
    }
    local results = riskscreen.gather {
      function()
        return (bed:deliver(inboxes.event "w1"))
      end,
      function()
        nginx.wait_for("the handler to begin", function()
          riskscreen.sleep(0.01)
          return bed:note "handled"
        end)
        local statuses = {}
        for _ = 1, 20 do
          riskscreen.sleep(0.1)
          statuses[#statuses + 1] = (bed:deliver(inboxes.event "w1"))
        end
        bed.server:eval "ngx.shared.notes:set('go', true)"
        return statuses
      end,
    }
    assert.equal(200, results[1])
    for _, status in ipairs(results[2]) do
      assert.equal(503, status)
    end
    assert.equal(1, bed:note "handled")
    bed.server:stop()
  end)

  describe("when the shared dict is full", function()
    it("answers 503 and loses nothing that it has answered with 200", function()
      bed = inboxes.start { dict = "64k", inbox = "{ on_failure = function() end }" }
      local accepted, refused = {}, {}
      for index = 1, 300 do
        local id = ("w%d"):format(index)
        local data = { requestId = "r-" .. id, maxScore = tostring(index), status = 1003, customId = ("c"):rep(500) }
        local status = bed:deliver(inboxes.event(id, data))
        assert.is_true(status == 200 or status == 503)
        table.insert(status == 200 and accepted or refused, index)
      end
      assert.is_true(#accepted > 10 and #refused > 10)
      for _, index in ipairs(accepted) do
        assert.equal(tostring(index), bed:await({ id = "r-w" .. index }).score)
      end
      for _, index in ipairs(refused) do
        assert.is_nil(bed:note("handled w" .. index))
      end
      bed.server:stop()
    end)

    it("forgets the oldest of the handled events rather than refuse new ones for ever", function()
      bed = inboxes.start { dict = "64k", inbox = "{ early = { ttl = 1 }, on_failure = function() end }" }
      for index = 1, 1200 do
        nginx.wait_for("event " .. index .. " to be taken", function()
          return bed:deliver(inboxes.event("w" .. index)) == 200
        end)
      end
      assert.equal(1200, bed:note "handled")
      local _, answer = bed:deliver(inboxes.event "w1200")
      assert.is_true(json.decode(answer.body).duplicate)
      bed.server:stop()
    end)
  end)

  describe("checks who delivers", function()
    it("by a secret, of which nothing shows", function()
      local secret = ("secret = { value = '%s', header = 'X-Secret' }"):format(SECRET)
      bed = inboxes.start { inbox = "{ accept_unauthenticated = false, " .. secret .. " }" }
      local right, wrong = "X-Secret: " .. SECRET, "X-Secret: " .. SECRET .. "!"
      assert.equal(401, (bed:deliver(inboxes.event "w1")))
      assert.equal(401, (bed:deliver(inboxes.event "w1", nil, { wrong })))
      assert.equal(401, (bed:deliver(inboxes.event "w1", nil, { right, right })))
      assert.equal(401, (bed:deliver(inboxes.event "w1", nil, { wrong, right })))
      assert.is_nil(bed:note "handled")
      assert.equal(200, (bed:deliver(inboxes.event "w1", nil, { right })))
      assert.is_nil(bed.server:log():find(SECRET, 1, true))
      bed.server:stop()
    end)

    it("by a secret at the end of the path, as the sender wrote it", function()
      bed = inboxes.start {
        inbox = "{ accept_unauthenticated = false, secret = { value = '" .. SECRET .. "', path = true } }",
      }
      assert.equal(200, (bed:deliver(inboxes.event "w1", nil, nil, "/webhooks/" .. SECRET:gsub(" ", "%%20"))))
      assert.equal(401, (bed:deliver(inboxes.event "w2", nil, nil, "/webhooks/" .. SECRET:gsub(" ", "%%20") .. "/x")))
      bed.server:stop()
    end)

    it("by the sender's address", function()
      bed = inboxes.start { inbox = "{ accept_unauthenticated = false, allow = { '192.0.2.0/24' } }" }
      assert.equal(403, (bed:deliver(inboxes.event "w1")))
      bed.server:stop()
      bed = inboxes.start { inbox = "{ accept_unauthenticated = false, allow = { '127.0.0.0/8' } }" }
      assert.equal(200, (bed:deliver(inboxes.event "w1")))
      bed.server:stop()
    end)
  end)

  describe("reads a body", function()
    before_each(function()
      bed = inboxes.start { http = "client_body_buffer_size 1k;" }
    end)

    after_each(function()
      bed.server:stop { "buffered to a temporary file" }
    end)

    it("that nginx has put into a file", function()
      local data = { requestId = "r1", maxScore = "3", status = 1003, note = ("x"):rep(40000) }
      assert.equal(200, (bed:deliver(inboxes.event("w1", data))))
      assert.equal("3", bed:await({ id = "r1" }).score)
    end)

    it("that comes in pieces", function()
      local sender = socket.connect("127.0.0.1", bed.server.port)
      local body = inboxes.event "w1"
      local pieces = {}
      for from = 1, #body, 40 do
        local piece = body:sub(from, from + 39)
        pieces[#pieces + 1] = ("%x\r\n%s\r\n"):format(#piece, piece)
      end
      local head = "POST /webhooks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
      sender:send(head .. table.concat(pieces) .. "0\r\n\r\n")
      assert.matches(" 200 ", sender:receive "*l", 1, true)
      sender:close()
      assert.equal("12.50", bed:await({ id = "r-w1" }).score)
    end)

    it("of no more than 64 KiB", function()
      local status, answer = bed:deliver(inboxes.event("w1", { requestId = "r1", note = ("x"):rep(65536) }))
      assert.same({ 413, "application/json" }, { status, answer.headers["content-type"] })
      assert.is_nil(bed:note "handled")
    end)

    it("that is an event, and refuses what is none", function()
      assert.equal(400, (bed:deliver "{}"))
      assert.equal(400, (bed:deliver ""))
      assert.equal(400, (bed:deliver "\0\255"))
      local answer = bed.server.get("/webhooks", { method = "GET" })
      assert.same({ 405, "POST" }, { answer.status, answer.headers.allow })
    end)

    it("without mistaking an encoded one", function()
      assert.equal(400, (bed:deliver(inboxes.event "w1", nil, { "Content-Encoding: gzip" })))
    end)
  end)
end)
