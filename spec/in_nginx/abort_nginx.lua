-- Requests that end while their calls and tasks are under way. They leave nothing behind.
local nginx = require "spec.support.nginx"
local sandbox = require "riskscreen.sandbox"

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
