-- The metrics and the status page of a real nginx with several workers.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local secrecy = require "spec.support.secrecy"

local MOST_LOOKS = 1000

local HTTP = [[
  lua_shared_dict riskscreen 1m;
  lua_shared_dict small 128k;
  init_by_lua_block {
    local metrics = require "riskscreen.nginx.metrics"
    client = require("riskscreen").new { base_url = "SERVICE", access_key = "ACCESSKEY", shared_dict = "riskscreen",
      rate_limit = { rate = 100 } }
    recorder = metrics.new { dict = ngx.shared.riskscreen, name = "withdrawals", client = client }
    cramped = metrics.new { dict = ngx.shared.small, name = "cramped" }
    alone = metrics.new { name = "alone" }
  }
]]

local SERVER = [[
  location = /metrics {
    content_by_lua_block {
      local metrics = require "riskscreen.nginx.metrics"
      ngx.header["Content-Type"] = metrics.CONTENT_TYPE
      ngx.print(_G[ngx.var.arg_of or "recorder"]:render())
    }
  }
  location = /count { content_by_lua_block { recorder:decided("block", "lru") ngx.print(ngx.worker.pid()) } }
  location = /status {
    content_by_lua_block {
      require("riskscreen.nginx.metrics.status").serve(recorder, { monitor = true, outcomes = { unknown = "block" } })
    }
  }
]]

describe("a gate", function()
  local running

  local function start(workers)
    running = gates.start {
      workers = workers,
      init = "gate = new_gate { network = 'eth', name = 'withdrawals', timeout = 60 }",
      locations = { ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to }" },
      server = [[
        lua_check_client_abort on;
        location = /metrics { content_by_lua_block { gate:metrics() } }
        location = /status { content_by_lua_block { gate:status() } }
      ]],
    }
  end

  after_each(function()
    running.close()
  end)

  local function ask(name)
    return running.get("/withdraw?to=" .. (addresses[name] or name)).status
  end

  local function scrape()
    return prometheus.parse(running.get("/metrics").body)
  end

  local function decisions(metrics, action, source)
    return metrics:get("riskscreen_decisions_total", { gate = "withdrawals", action = action, source = source })
  end

  it("counts its decisions by what they are and where they come from", function()
    start(1)
    assert.equal(403, ask "high-eth")
    assert.equal(403, ask "high-eth")
    assert.equal(200, ask "clean-eth")
    assert.equal(403, ask "nonsense")
    assert.equal(403, ask "fault-500")
    local metrics = scrape()
    assert.equal(1, decisions(metrics, "block", "upstream"))
    assert.equal(1, decisions(metrics, "block", "lru"))
    assert.equal(1, decisions(metrics, "allow", "upstream"))
    assert.equal(1, decisions(metrics, "unknown", "upstream"))
    assert.equal(1, decisions(metrics, "unknown", "invalid"))
    assert.equal(1, metrics:get("riskscreen_errors_total", { gate = "withdrawals", kind = "server" }))
    assert.equal(3, metrics:get("riskscreen_upstream_seconds_count", { gate = "withdrawals" }))
    assert.equal(0, metrics:get("riskscreen_in_flight", { gate = "withdrawals" }))
    local labels = { gate = "withdrawals", tier = "lru", result = "hit" }
    assert.equal(1, metrics:get("riskscreen_cache_lookups_total", labels))
  end)

  it("counts a look-up until it ends, also if its request has gone", function()
    start(1)
    running.service:fault { kind = "delay", delay = 0.5 }
    local function await_in_flight(expected)
      for _ = 1, MOST_LOOKS do
        running.nginx:eval "collectgarbage() collectgarbage()"
        if scrape():get("riskscreen_in_flight", { gate = "withdrawals" }) == expected then
          return
        end
        riskscreen.sleep(0.01)
      end
      error("waited in vain for as many look-ups: " .. expected)
    end
    riskscreen.run(function()
      local asking = riskscreen.spawn(function()
        running.nginx.get("/withdraw?to=" .. addresses["high-eth"])
      end)
      await_in_flight(1)
      asking:cancel()
      await_in_flight(0)
    end)
  end)

  it("says that the circuit is open when the service keeps failing", function()
    start(2)
    running.service:fault { kind = "status", status = 500 }
    local names = { "high-eth", "clean-eth", "generally-high-eth", "type-sanction", "risks-null", "risks-absent" }
    for _, name in ipairs(names) do
      assert.equal(403, ask(name))
    end
    assert.equal(5, #running.service:requests())
    assert.equal(1, scrape():get("riskscreen_circuit_state", { gate = "withdrawals", state = "open" }))
    assert.matches("^The circuit is open", json.decode(running.get("/status").body).notes[1])
  end)

  it("says how it does, and nothing of addresses or of the key", function()
    start(1)
    ask "high-eth"
    ask "fault-500"
    local status = running.get "/status"
    local said = json.decode(status.body)
    assert.same({ total = 1, by_source = { upstream = 1 } }, said.decisions.block)
    assert.same({ unknown = "block", review = "review", invalid = "block" }, said.outcomes)
    assert.equal("closed", said.circuit.state)
    local page = running.get("/status", { headers = { "Accept: text/html" } })
    for _, answer in ipairs { status, page, running.get "/metrics" } do
      assert.is_nil(answer.body:lower():find(addresses["high-eth"]:lower(), 1, true))
      assert.is_false(secrecy.holds(answer, running.server.access_key))
    end
  end)
end)

describe("the metrics of several workers", function()
  local server, its_server, access_key

  before_each(function()
    its_server = assert(sandbox.serve { service = sandbox.new {} })
    access_key = its_server.access_key
    local http = HTTP:gsub("SERVICE", its_server.url):gsub("ACCESSKEY", access_key)
    server = nginx.start { workers = 3, http = http, server = SERVER }
  end)

  after_each(function()
    its_server:close()
    server:stop { "exited on signal 9" }
  end)

  -- Over a connection of its own, so that any worker may get it.
  local function get(target, headers)
    local lines = { "Connection: close" }
    for _, line in ipairs(headers or {}) do
      lines[#lines + 1] = line
    end
    local answer = assert(server.get(target, { headers = lines }))
    assert.equal(200, answer.status, answer.body)
    return answer
  end

  local function scrape(recorder)
    return prometheus.parse(get("/metrics?of=" .. (recorder or "recorder")).body)
  end

  local function blocked(metrics)
    local labels = { gate = "withdrawals", action = "block", source = "lru" }
    return metrics:get("riskscreen_decisions_total", labels)
  end

  -- Counts in whichever worker comes; how many each has counted, by its process.
  local function count(times)
    local pids, different = {}, 0
    for _ = 1, times do
      local pid = get("/count").body
      different = different + (pids[pid] and 0 or 1)
      pids[pid] = (pids[pid] or 0) + 1
    end
    return pids, different
  end

  local function await_total(expected)
    nginx.wait_for(expected .. " decisions", function()
      local total = blocked(scrape())
      assert.is_true(total <= expected)
      return total == expected
    end)
  end

  it("are one total", function()
    local _, different = count(60)
    assert.equal(3, different)
    await_total(60)
  end)

  it("never go back, and lose nothing, over reloads", function()
    local total, before = 0, 0
    for _ = 1, 3 do
      for turn = 1, 30 do
        count(1)
        total = total + 1
        if turn == 15 then
          server:reload()
        end
        local seen = blocked(scrape())
        assert.is_true(seen >= before and seen <= total)
        before = seen
      end
    end
    await_total(total)
  end)

  it("go on when a worker is killed", function()
    local pids = count(30)
    await_total(30)
    assert.is_truthy(os.execute("kill -KILL " .. next(pids)))
    nginx.wait_for("another worker", function()
      return not pids[count(1)] and #server:workers() == 3
    end)
    assert.is_true(blocked(scrape()) >= 30)
  end)

  it("are not what a dict lets go of that others fill", function()
    local function counted()
      local labels = { gate = "cramped", action = "allow", source = "lru" }
      return scrape("cramped"):get("riskscreen_decisions_total", labels)
    end
    local before = 0
    for turn = 1, 40 do
      server:eval("cramped:decided('allow', 'lru')")
      server:eval("for i = 1, 100 do ngx.shared.small:set(... .. ':' .. i, ('x'):rep(100)) end", turn)
      local seen = counted()
      assert.is_true(seen >= before, seen .. " after " .. before)
      before = seen
    end
    nginx.wait_for("all decisions", function()
      return counted() == 40
    end)
    assert.is_nil((server:eval "return ngx.shared.small:get('1:1')"))
  end)

  it("say what is theirs alone where there is no dict", function()
    local families = scrape "alone"
    local found = false
    for series in pairs(families.series) do
      found = found or series:find('gate="alone"', 1, true) and series:find 'worker="[012]"' ~= nil
    end
    assert.is_true(found)
  end)

  it("are text that Prometheus reads, with how circuit, bucket and dict stand", function()
    local answer = get "/metrics"
    assert.equal("text/plain; version=0.0.4; charset=utf-8", answer.headers["content-type"])
    local metrics = prometheus.parse(answer.body)
    assert.equal(1, metrics:get("riskscreen_circuit_state", { gate = "withdrawals", state = "closed" }))
    assert.equal(100, metrics:get("riskscreen_rate_limit_rate", { gate = "withdrawals" }))
    assert.equal(1024 * 1024, metrics:get("riskscreen_dict_capacity_bytes", { gate = "withdrawals" }))
    assert.is_true(metrics:get("riskscreen_dict_free_bytes", { gate = "withdrawals" }) > 0)
  end)

  it("count what the client sends, in any worker", function()
    local call = "client:call('getAddressRisk', { address = 'TXYZ', network = 'nowhere' }) "
      .. "client:call('getAccountUsage', {}) client:request('GET', '/nothing')"
    server:eval(call)
    nginx.wait_for("the count of its requests", function()
      local metrics = scrape()
      return metrics:get("riskscreen_client_requests_total", { gate = "withdrawals" }) >= 1
        and metrics:get("riskscreen_client_answers_total", { gate = "withdrawals", class = "4xx" }) >= 1
    end)
  end)

  it("and the status hold no key", function()
    server:eval "client:request('GET', '/nothing')"
    for _, answer in ipairs { get "/metrics", get "/status", get("/status", { "Accept: text/html" }) } do
      assert.is_false(secrecy.holds(answer, access_key))
    end
  end)

  it("are in the status by minute, for a program and for a person", function()
    local _, different = count(60)
    assert.is_true(different > 1)
    await_total(60)
    local first, total = nil, 0
    for index, minute in ipairs(json.decode(get("/status").body).minutes) do
      first, total = first or minute.block and index, total + (minute.block or 0)
    end
    assert.equal(60, total)
    assert.is_true(first > 1, "the minutes before nginx was started have figures")
    assert.matches("<b>Block</b>: 60 in all", get("/status", { "Accept: text/html" }).body, 1, true)
  end)

  it("are in the status, for a program and for a person", function()
    count(4)
    await_total(4)
    local answer = get "/status"
    assert.equal("application/json", answer.headers["content-type"])
    assert.equal("no-store", answer.headers["cache-control"])
    assert.equal(4, json.decode(answer.body).decisions.block.total)
    answer = get("/status", { "Accept: text/html,*/*;q=0.8" })
    assert.equal("text/html; charset=utf-8", answer.headers["content-type"])
    assert.matches("^default%-src 'none'", answer.headers["content-security-policy"])
    assert.matches("Monitor mode: no request is refused.", answer.body, 1, true)
    assert.matches("4 decisions", answer.body, 1, true)
    assert.is_nil(answer.headers.refresh)
    local page = { "Accept: text/html" }
    assert.equal("30", get("/status?refresh=30", page).headers.refresh)
    for _, no_seconds in ipairs { "0", "x", "1;url=//elsewhere", "-1", "" } do
      assert.is_nil(get("/status?refresh=" .. no_seconds, page).headers.refresh, no_seconds)
    end
  end)
end)
