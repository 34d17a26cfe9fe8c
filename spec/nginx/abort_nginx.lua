-- Requests that end while calls and tasks of theirs are under way: nothing of them is left, and nobody waits for them.
local nginx = require "spec.support.nginx"

local SERVER = [[
  location = /sweep { content_by_lua_block { abort.sweep() } }
  location = /sweep_calls { content_by_lua_block { abort.sweep_calls() } }
]]

describe("a request that is swept away", function()
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

  it("leaves nothing of its tasks and waits", function()
    for _ = 1, 20 do
      assert.equal(204, get "/sweep")
    end
    local left = server:eval "return abort.left()"
    assert.equal(0, left.canaries)
    assert.equal(60, left.abandoned)
    server:eval "abort.shared:notify()"
  end)

  it("is told to whoever waits for a task of it", function()
    assert.equal(204, get "/sweep")
    server:eval "abort.left()"
    assert.same({ nil, "cancelled" }, { server:eval "return abort.await_last()" })
  end)

  it("is not under way any more as far as its client knows", function()
    server:eval [[
      abort.connect {}
      abort.service:fault { kind = "delay", delay = 3600 }
    ]]
    assert.equal(204, get "/sweep_calls")
    assert.equal(0, server:eval("return abort.left()").in_flight)
    server:eval "abort.forget()"
  end)

  it("makes room for who stands behind it in line under the rate limit", function()
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
