-- Requests that end while their calls and tasks are under way. They leave nothing behind.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local socket = require "socket"

local TIMEOUT = 20 -- seconds; the gate's, which no caller may have to wait for

local SERVER = [[
  location = /sweep { content_by_lua_block { abort.sweep() } }
  location = /impatient {
    lua_check_client_abort on;
    content_by_lua_block {
      abort.call_in_vain { base_url = ngx.var.arg_url, access_key = ngx.var.arg_key, timeout = 3600 }
    }
  }
  location = /sweep_calls { content_by_lua_block { abort.sweep_calls() } }
]]

describe("a request that nginx ends early", function()
  local server

  before_each(function()
    server = nginx.start {
      http = "init_by_lua_block { abort = require 'spec.support.nginx_abort' }",
      server = SERVER,
    }
  end)

  after_each(function()
    server:stop()
  end)

  local function get(target)
    return assert(server.get(target)).status
  end

  it("leaves no tasks and no waits", function()
    for _ = 1, 20 do
      assert.equal(204, get "/sweep")
    end
    local left = server:eval "return abort.left()"
    assert.equal(0, left.canaries)
    assert.equal(60, left.abandoned)
    server:eval "abort.shared:notify()"
  end)

  it("leaves nothing behind where nginx drops a timer", function()
    local abandoned = server:eval [[
      local tasks, at, count = require("riskscreen.runtime").tasks, ngx.timer.at, 0
      local function lose()
        tasks.hold { abandon = function() count = count + 1 end }
        collectgarbage()
        collectgarbage()
      end
      ngx.timer.at = function() return true end -- accepted, and never run
      lose()
      ngx.timer.at = at
      ngx.sleep(0.5)
      lose()
      ngx.sleep(0.1)
      return count]]
    assert.equal(2, abandoned)
  end)

  it("leaves nothing behind where it held a connection to Redis", function()
    local redis = redis_server.start()
    local abandoned = server:eval(([[
      local runtime, count = require "riskscreen.runtime", 0
      local function lose(thing)
        runtime.tasks.hold(thing)
      end
      local transport = runtime.redis_transport { connect_timeout = 1, keepalive = 1, pool_size = 1, pool = "abort" }
      lose(assert(transport:connect { host = "127.0.0.1", port = %d }))
      for _ = 1, 3 do
        lose { abandon = function() count = count + 1 end }
      end
      collectgarbage()
      collectgarbage()
      ngx.sleep(0.1)
      return count]]):format(redis.port))
    redis_server.stop_all()
    assert.equal(3, abandoned)
  end)

  it("cancels the tasks that another request awaits", function()
    assert.equal(204, get "/sweep")
    server:eval "abort.left()"
    assert.same({ nil, "cancelled" }, { server:eval "return abort.await_last()" })
  end)

  it("is no longer counted as under way by its client", function()
    server:eval [[
      abort.connect {}
      abort.service:fault { kind = "delay", delay = 3600 }
    ]]
    assert.equal(204, get "/sweep_calls")
    assert.equal(0, server:eval("return abort.left()").in_flight)
    server:eval "abort.forget()"
  end)

  it("ends its requests to the service when its caller has gone", function()
    local service = sandbox.new {}
    local its_server = assert(sandbox.serve { service = service })
    service:fault { kind = "hang" }
    server:eval "abort.count()"
    local target = ("/impatient?url=%s&key=%s"):format(its_server.url, sandbox.default_key)
    local answer, failure = server.get(target, { timeout = 0.3 })
    assert.is_nil(answer)
    assert.equal("timeout", failure.kind)
    server:eval "abort.wait_for_silence()"
    its_server:close()
  end)

  it("leaves the queue of the rate limit", function()
    server:eval [[
      abort.connect { rate_limit = { rate = 20, burst = 1 }, timeout = 3600 }
      abort.call()
    ]]
    assert.equal(204, get "/sweep_calls")
    server:eval "abort.left()"
    assert.is_nil(server:eval "return abort.call()")
    server:eval "abort.forget()"
  end)
end)

describe("a caller that asks the gate and disconnects", function()
  local running

  after_each(function()
    running.close()
  end)

  for _, workers in ipairs { 1, 2 } do
    it(("does not hold up the callers that wait for its address, with workers: %d"):format(workers), function()
      running = gates.start {
        workers = workers,
        init = "gate = new_gate { network = 'eth', on_unknown = 'allow', timeout = " .. TIMEOUT .. " }",
        locations = { ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to }" },
        server = "lua_check_client_abort on;",
      }
      running.service:fault { kind = "delay", delay = 0.6 }
      local target = "/withdraw?to=" .. addresses["high-eth"]
      local began = socket.gettime()
      local calls = {
        function()
          local answer, failure = running.nginx.get(target, { timeout = 0.2 })
          assert.is_nil(answer)
          return failure.kind
        end,
      }
      for index = 2, 6 do
        calls[index] = function()
          riskscreen.sleep(0.1)
          return running.status(target)
        end
      end
      assert.same({ "timeout", 403, 403, 403, 403, 403 }, riskscreen.gather(calls))
      assert.is_true(socket.gettime() - began < TIMEOUT)
      assert.equal(1, #running.service:requests())
    end)
  end

  it("leaves the decision for the next caller", function()
    running = gates.start {
      init = "gate = new_gate { network = 'eth', timeout = 30 }",
      locations = { ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to }" },
      server = "lua_check_client_abort on;",
    }
    running.service:fault { kind = "delay", delay = 0.2 }
    local abandoned, patient = {}, {}
    for index = 1, 10 do
      local target = ("/withdraw?to=0x%040x"):format(index)
      abandoned[index] = function()
        local _, failure = running.nginx.get(target, { timeout = 0.1 })
        return failure.kind
      end
      patient[index] = function()
        return running.status(target)
      end
    end
    for _, kind in ipairs(riskscreen.gather(abandoned)) do
      assert.equal("timeout", kind)
    end
    riskscreen.gather(patient)
    assert.equal(10, #running.service:requests())
  end)

  it("may have any number of fetches under way, and leaves timers of nginx to others", function()
    running = gates.start {}
    local seen = running.nginx:eval [[
      local under_way, most, done, timers = 0, 0, 0, 0
      local cache = require("riskscreen.nginx.cache").new {
        may_end = function() return true end,
        fetch = function()
          under_way = under_way + 1
          most, timers = math.max(most, under_way), math.max(timers, ngx.timer.running_count())
          ngx.sleep(0.5)
          under_way, done = under_way - 1, done + 1
          return { action = "allow", reasons = { { action = "allow", message = "no risk" } } }
        end,
      }
      local threads, allowed = {}, 0
      for index = 1, 300 do
        threads[index] = ngx.thread.spawn(function()
          return cache:get(("0x%040x"):format(index), "eth").action == "allow"
        end)
      end
      for _, thread in ipairs(threads) do
        local ok, is_allow = ngx.thread.wait(thread)
        allowed = allowed + (ok and is_allow and 1 or 0)
      end
      return { most = most, done = done, allowed = allowed, timers = timers, left = ngx.timer.running_count() }
    ]]
    assert.is_true(seen.timers > 50 and seen.timers <= 128, seen.timers)
    seen.timers = nil
    assert.same({ most = 300, done = 300, allowed = 300, left = 0 }, seen)
  end)

  it("is known by the directive lua_check_client_abort", function()
    for _, directive in ipairs { "on", "off" } do
      running = gates.start {
        init = [[
          cache = require("riskscreen.nginx.cache").new {
            fetch = function()
              return { action = "allow", reasons = { { action = "allow", message = ngx.get_phase() } } }
            end,
          }
        ]],
        server = ([[
          lua_check_client_abort %s;
          location /phase { content_by_lua_block { ngx.print(cache:get("0xab", "eth").reasons[1].message) } }
        ]]):format(directive),
      }
      assert.equal(directive == "on" and "timer" or "content", running.get("/phase").body)
      if directive == "on" then
        running.close()
      end
    end
  end)
end)
