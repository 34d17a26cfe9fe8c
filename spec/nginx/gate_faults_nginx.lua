-- Every fault of the matrix behind a gate: what the service spoils are answers about an address that would pass, and
-- it must not pass. The servers with the faults are in this process.
local addresses = require "riskscreen.sandbox.addresses"
local busted = require "busted"
local cell = require "spec.faults.cell"
local errors = require "riskscreen.errors"
local fault_server = require "spec.support.fault_server"
local faults = require "spec.faults.faults"
local nginx = require "spec.support.nginx"

local assert, describe, it, setup, teardown = busted.assert, busted.describe, busted.it, busted.setup, busted.teardown

local PASSED, NO_VERDICT = 200, 503

-- What nginx says by itself about connections that break, whatever Lua makes of them.
local ITS_WORDS = { "recv%(%) failed %(104:", "SSL_do_handshake%(%) failed", "peer closed connection in SSL handshake" }

-- A gate that remembers nothing, so that each request asks.
local NEW_GATE = [[
  local given = ...
  gates = gates or {}
  gates[given.id] = require("riskscreen.nginx.gate").new {
    client = given.options,
    address = { argument = "to" },
    network = "eth",
    lru = 0,
    ttl = { allow = 0, review = 0, block = 0, unknown = 0 },
    stale = { block = 0 },
    on_unknown = "block",
    unknown = { status = 503 },
    invalid = { status = 400 },
  }
]]

local SERVER = [[
  location = /withdraw {
    access_by_lua_block {
      local gate = gates[tonumber(ngx.var.arg_gate)]
      gate:location({ timeout = tonumber(ngx.var.arg_timeout) }):enforce()
    }
    content_by_lua_block { ngx.print("passed") }
  }
]]

local class = { name = "the gate", idempotent = true, requests = 1 }
local server
local last_id = 0

setup(function()
  server = nginx.start {
    http = ("lua_ssl_trusted_certificate %s;"):format(fault_server.authority()),
    server = SERVER,
  }
end)

teardown(function()
  assert.is_nil(server:log():find(cell.key, 1, true))
  server:stop(ITS_WORDS)
  fault_server.stop_tls()
end)

-- A gate inside nginx, and requests to what it protects.
local function behind_a_gate(given)
  last_id = last_id + 1
  local id = last_id
  local options = cell.options(given)
  -- Whom to trust is in nginx's configuration.
  options.ca_file = nil
  server:eval(NEW_GATE, { id = id, options = options })
  return {
    call = function(_, timeout)
      local target = ("/withdraw?gate=%d&timeout=%g&to=%s"):format(id, timeout, addresses["entity-exchange"])
      local answer, failure = server.get(target, { timeout = timeout + 60 })
      return answer and answer.status, answer and answer.body or errors.new("network", failure.message)
    end,
    close = function()
      server:eval("gates[...] = nil", id)
    end,
  }
end

for _, general in ipairs(faults) do
  local fault = setmetatable(general.over_cosockets or {}, { __index = general })
  it("the gate in front of " .. fault.name .. (fault.kind and " lets nobody pass" or " lets pass"), function()
    local outcome = cell.run(fault, class, behind_a_gate)
    local status, body = outcome.results[1], outcome.results[2]
    assert.equal(fault.kind and NO_VERDICT or PASSED, status, tostring(body))
    assert.equal(not fault.kind, body == "passed")
    assert.is_false(outcome.late)
    assert.equal(cell.expected(fault, class).requests, outcome.requests)
    assert.equal(0, outcome.elsewhere)
  end)
end
