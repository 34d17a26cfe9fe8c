-- What is counted by the workers of a real nginx, as Prometheus reads it, and the status.
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local sandbox = require "riskscreen.sandbox"
local secrecy = require "spec.support.secrecy"

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
      ngx.print(metrics.render { recorder, cramped, alone })
    }
  }
  location = /count { content_by_lua_block { recorder:decided("block", "lru") ngx.print(ngx.worker.pid()) } }
  location = /status {
    content_by_lua_block {
      require("riskscreen.nginx.status").serve(recorder, { monitor = true, outcomes = { unknown = "block" } })
    }
  }
]]

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

  local function scrape()
    return prometheus.parse(get("/metrics").body)
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
      return scrape():get("riskscreen_decisions_total", labels)
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
    local families = scrape()
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
    assert.matches("Monitor mode: nobody is refused.", answer.body, 1, true)
    assert.matches("4 decisions", answer.body, 1, true)
  end)
end)
