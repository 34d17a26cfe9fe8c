-- A gate in operation: reloads, crashes, a full dict and a hanging service, with several workers under load.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local LOCATIONS = {
  ["/withdraw"] = "gate:enforce()",
}
local INIT = "gate = new_gate { network = 'eth', address = { argument = 'to' }, timeout = 10 }"

describe("a gate with several workers", function()
  local running

  local function start(options)
    options.workers = options.workers or 2
    options.locations = options.locations or LOCATIONS
    options.init = options.init or INIT
    running = gates.start(options)
  end

  local function stop(allowed)
    local ending = running
    running = nil
    if ending then
      ending.close(allowed)
    end
  end

  after_each(function()
    stop()
  end)

  local function to(address)
    return "/withdraw?to=" .. (addresses[address] or address)
  end

  -- A different address for each number. The sandbox decides by its hash.
  local function address(number)
    return ("0x%040x"):format(number)
  end

  -- The decision of a client of the spec.
  local function expected(number)
    local client = riskscreen.new { base_url = running.server.url, access_key = running.server.access_key }
    local action = client:screen({ address = address(number), network = "eth" }).action
    client:close()
    return action == "allow" and 200 or 403
  end

  -- Sends requests from several tasks until `finished` returns true. Returns the number of answers by status. Each
  -- request has its own connection, because a worker that ends may close a kept one.
  local function load(finished, target)
    local statuses, failures = {}, {}
    local bodies = {}
    for lane = 1, 8 do
      bodies[lane] = function()
        local number = lane * 100000
        while not finished() do
          number = number + 1
          local answer, failure = running.nginx.get(target(number, lane), { headers = { "Connection: close" } })
          if answer then
            statuses[answer.status] = (statuses[answer.status] or 0) + 1
          else
            failures[#failures + 1] = failure.message
          end
        end
      end
    end
    riskscreen.gather(bodies)
    return statuses, failures
  end

  it("answers every request during reloads", function()
    start { sandbox = { log_size = 1000000 } }
    local before, reloads, answered = running.nginx:workers(), 0, 0
    local finished = false
    local bodies = {
      function()
        for _ = 1, 3 do
          local generation = running.nginx:workers()
          running.nginx:reload()
          reloads = reloads + 1
          -- The next reload must wait for new workers.
          repeat
            riskscreen.sleep(0.05)
            local now = table.concat(running.nginx:workers(), " ")
          until not now:find(generation[1], 1, true) and #running.nginx:workers() == 2
        end
        finished = true
      end,
    }
    local statuses, failures
    bodies[2] = function()
      statuses, failures = load(function()
        return finished
      end, function(number)
        -- One in three is not cached.
        return to(number % 3 == 0 and address(number) or number % 3 == 1 and "clean-eth" or "high-eth")
      end)
    end
    riskscreen.gather(bodies)
    assert.same({}, failures)
    assert.equal(3, reloads)
    for status, count in pairs(statuses) do
      assert.is_true(status == 200 or status == 403, "status " .. status)
      answered = answered + count
    end
    assert.is_true(answered > 20)
    assert.not_same(before, running.nginx:workers())
    -- The dict outlives the workers.
    local known, asked = { [addresses["clean-eth"]:lower()] = true, [addresses["high-eth"]:lower()] = true }, 0
    for _, request in ipairs(running.service:requests()) do
      asked = asked + (known[request.parameters.address] and 1 or 0)
    end
    assert.equal(2, asked)
  end)

  it("goes on after a worker was killed during a fetch", function()
    start {
      init = INIT:gsub("timeout", "unknown = { status = 503 }, timeout"),
      locations = { ["/withdraw"] = "gate:enforce()", ["/hasty"] = "gate:location({ timeout = 1 }):enforce()" },
    }
    running.service:fault { kind = "hang", count = 1 }
    local killed = {}
    local first, second
    riskscreen.gather {
      function()
        first = running.nginx.get("/hasty?to=" .. addresses["high-eth"])
      end,
      function()
        repeat
          riskscreen.sleep(0.01)
        until #running.service:requests() > 0
        for _, pid in ipairs(running.nginx:workers()) do
          os.execute("kill -9 " .. pid)
          killed[pid] = true
        end
        nginx.wait_for("new workers", function()
          local pids = running.nginx:workers()
          return #pids == 2 and not killed[pids[1]] and not killed[pids[2]]
        end)
        -- The lock of the killed worker expires at the deadline of its fetch.
        second = running.nginx.get(to "high-eth")
      end,
    }
    assert.is_nil(first)
    assert.equal(403, second and second.status)
    assert.equal(2, #running.service:requests())
    assert.equal(200, running.status(to "clean-eth"))
    stop { "exited on signal 9" }
  end)

  it("answers every request when its dict is full", function()
    start { dict_size = "32k", init = INIT:gsub("timeout", "lru = 0, timeout") }
    local wrong, limit = {}, 400
    local sent = 0
    local statuses, failures = {}, {}
    local bodies = {}
    for lane = 1, 8 do
      bodies[lane] = function()
        while sent < limit do
          sent = sent + 1
          local number = sent
          local answer, failure = running.nginx.get(to(address(number)))
          if answer then
            statuses[number] = answer.status
          else
            failures[#failures + 1] = failure.message
          end
        end
      end
    end
    riskscreen.gather(bodies)
    assert.same({}, failures)
    for number = 1, limit, 20 do
      if statuses[number] ~= expected(number) then
        wrong[#wrong + 1] = number
      end
    end
    assert.same({}, wrong)
    -- The dict was full: the first entries are gone.
    local asked = #running.service:requests()
    assert.equal(statuses[1], running.status(to(address(1))))
    assert.equal(asked + 1, #running.service:requests())
  end)

  it("serves other pages while the service hangs", function()
    start {
      workers = 1,
      server = "location = /other { return 204; } location = /lua { content_by_lua_block { ngx.print('x') } }",
    }
    running.service:fault { kind = "delay", delay = 1, match = { operation = "getAddressRisk" } }
    local order = {}
    local bodies = {}
    for index = 1, 20 do
      bodies[index] = function()
        running.nginx.get(to(address(index)))
        order[#order + 1] = "slow"
      end
    end
    bodies[21] = function()
      repeat
        riskscreen.sleep(0.01)
      until #running.service:requests() == 20
      for _ = 1, 20 do
        assert.equal(204, running.status "/other")
        assert.equal(200, running.status "/lua")
      end
      order[#order + 1] = "others"
    end
    riskscreen.gather(bodies)
    assert.equal("others", order[1])
  end)

  it("fetches once for two hundred requests at once", function()
    start {}
    running.service:fault { kind = "delay", delay = 0.5, match = { address = addresses["high-eth"] } }
    local statuses = {}
    local bodies = {}
    for index = 1, 200 do
      bodies[index] = function()
        statuses[index] = running.nginx.get(to(index % 2 == 0 and "high-eth" or addresses["high-eth"]:lower())).status
      end
    end
    riskscreen.gather(bodies)
    assert.equal(200, #statuses)
    for _, status in ipairs(statuses) do
      assert.equal(403, status)
    end
    assert.equal(1, #running.service:requests())
  end)

  it("stops asking a failing service, in all workers", function()
    start {}
    running.service:fault { kind = "status", status = 500 }
    for index = 1, 60 do
      assert.equal(403, running.status(to(address(index))))
    end
    assert.is_true(#running.service:requests() < 20)
  end)

  it("counts the decisions of all workers", function()
    start { server = "location = /metrics { content_by_lua_block { gate:metrics() } }" }
    for _ = 1, 10 do
      running.status(to "high-eth")
    end
    running.status "/withdraw"
    local function count(labels, body)
      return tonumber(body:match("riskscreen_decisions_total{" .. labels .. "[^}]*} (%d+)") or 0)
    end
    nginx.wait_for("all counts", function()
      local body = running.get("/metrics").body
      local blocked = 0
      for action, number in body:gmatch 'riskscreen_decisions_total{action="(%a+)"[^}]*} (%d+)' do
        blocked = blocked + (action == "block" and tonumber(number) or 0)
      end
      return blocked == 10
        and count('action="block",[^}]*source="upstream"', body) == 1
        and count('action="unknown",[^}]*source="invalid"', body) == 1
    end)
    assert.is_nil(running.get("/metrics").body:find(addresses["high-eth"], 1, true))
  end)

  it("shows its status to programs and to people", function()
    start { server = "location = /status { content_by_lua_block { gate:status() } }" }
    assert.equal(403, running.status(to "high-eth"))
    local status = assert(json.decode(running.get("/status").body))
    assert.same({ unknown = "block", review = "review", invalid = "block" }, status.outcomes)
    assert.is_false(status.monitor)
    local page = running.get("/status", { headers = { "Accept: text/html" } })
    assert.equal("text/html; charset=utf-8", page.headers["content-type"])
    for _, secret in ipairs { addresses["high-eth"], running.server.access_key } do
      assert.is_nil(page.body:find(secret, 1, true))
    end
  end)

  it("receives webhooks in any worker", function()
    local secret = "0123456789abcdef0123456789abcdef"
    local webhook = [[webhook = {
      dict = "events",
      secret = { value = "]] .. secret .. [[", header = "X-Secret" },
      handlers = { getTxHashCustomRiskScore = function() ngx.shared.events:incr("spec", 1, 0) end } }, timeout]]
    start {
      http = "lua_shared_dict events 1m;",
      init = INIT:gsub("timeout", webhook),
      server = [[ location = /webhook { content_by_lua_block { gate:webhook() } } ]],
    }
    local event = [[{"webhookId": "w%d", "eventType": "getTxHashCustomRiskScore", "timestamp": "2026-01-01 00:00:00",
      "data": {"requestId": "r%d", "maxScore": "1", "status": 1003, "dirData": {"in": {}, "out": {}}}}]]
    local function deliver(number, headers)
      return running.status("/webhook", { body = event:format(number, number), headers = headers })
    end
    assert.equal(401, deliver(1, {}))
    for round = 1, 6 do
      local number = (round - 1) % 3 + 1
      assert.equal(200, deliver(number, { "Connection: close", "X-Secret: " .. secret }))
    end
    assert.equal(3, running.nginx:eval "return ngx.shared.events:get 'spec'")
  end)
end)
