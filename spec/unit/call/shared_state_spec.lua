-- Clients with one shared dict: they share limits where they are clients of one service and one account.
local calls = require "riskscreen.call"
local options = require "riskscreen.options"
local shared_dict = require "spec.support.shared_dict"
local tables = require "riskscreen.util.tables"
local virtual_time = require "riskscreen.runtime.virtual"

local BASE = { base_url = "https://service.example/v1", access_key = "0123456789abcdef", shared_dict = "riskscreen" }

local function nowhere() end

describe("clients with one shared dict", function()
  local dict, runtime

  before_each(function()
    runtime = virtual_time.new()
    dict = shared_dict.new(runtime.now)
  end)

  local function new_state(more)
    local given = tables.merge(tables.merge(BASE, { breaker = { failures = 1 } }), more)
    given.rate_limit = { rate = 1, burst = 1 }
    local settings = assert(options.check_client(given, {
      shared_dict = function()
        return dict
      end,
    }))
    return calls.new_state(settings, runtime, nowhere)
  end

  -- Opens the circuit of one client, and uses up its rate limit. Returns whether those of the other are untouched.
  local function are_apart(one, other)
    one, other = new_state(one), new_state(other)
    one.breaker:report(one.breaker:admit(1), true)
    assert.is_truthy(one.breaker:refuses())
    assert.is_truthy(one.limiter:try(1))
    local has_circuit = not other.breaker:refuses()
    assert.equal(has_circuit, other.limiter:try(1))
    return has_circuit
  end

  it("share circuit and rate limit where the service and the account are the same", function()
    assert.is_false(are_apart({}, { access_key = "fedcba9876543210", timeout = 5 }))
  end)

  for name, more in pairs {
    base_url = { base_url = "https://service.example/v2" },
    unix_socket = { unix_socket = "/run/service.sock" },
    account = { account = "another" },
    transport = { transport = nowhere, identity = "another-service" },
  } do
    it("have circuit and rate limit of their own where they differ in " .. name, function()
      assert.is_true(are_apart({}, more))
    end)
  end

  it("have one circuit and one rate limit under one name", function()
    assert.is_false(are_apart({ shared_as = "name" }, { shared_as = "name", account = "another" }))
  end)
end)
