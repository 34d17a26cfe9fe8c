-- The gate before a service with each fault of the matrix. No request passes unless the operator lets unknown pass.
local busted = require "busted"
local cell = require "spec.faults.cell"
local fault_server = require "spec.support.fault_server"
local faults = require "spec.faults.faults"
local native = require "riskscreen.runtime.native"
local nginx = require "spec.support.nginx"
local patience = require "spec.support.patience"
local sandbox = require "riskscreen.sandbox"
local secrecy = require "spec.support.secrecy"
local socket = require "socket"

local assert, describe, it, setup, teardown = busted.assert, busted.describe, busted.it, busted.setup, busted.teardown

local ADDRESS = sandbox.scenario("entity-exchange").address -- nothing speaks against it
local LONG = 20 -- seconds
local LATE = 10 -- seconds after the gate's timeout, when it is certain that the timeout did not end it
local MOST_KEPT = 32 -- descriptors: connections of this process to nginx, and what nginx has not yet seen closed

local HTTP = [[
  lua_ssl_trusted_certificate AUTHORITY;
  lua_shared_dict riskscreen 8m;
]]

local SERVER = [[
  set $action ""; set $outcome ""; set $reason "";
  access_log DIR/access.log combined;
  location = /withdraw {
    access_by_lua_block { require("spec.support.nginx_fault_gates").enforce() }
    add_header X-Action $action always;
    content_by_lua_block { ngx.print("passed") }
  }
]]

local server
local last_id = 0

setup(function()
  local authority = fault_server.authority()
  server = nginx.start { http = HTTP:gsub("AUTHORITY", authority), server = SERVER }
end)

teardown(function()
  assert.is_nil(server:log():find(cell.key, 1, true))
  server:stop(nginx.BROKEN_CONNECTIONS)
  fault_server.stop_tls()
end)

local function inside(name, argument)
  return server:eval(("return require('spec.support.nginx_fault_gates').%s(...)"):format(name), argument)
end

-- Makes a gate before this server.
local function open_gate(behind, fault, on_unknown, seconds)
  last_id = last_id + 1
  local id = "gate-" .. last_id
  -- Every request must meet the fault itself, and not an open circuit.
  local client = { base_url = behind.url, access_key = cell.key, retry = false, breaker = false }
  for _, more in ipairs { behind.options, fault.options or {} } do
    for name, value in pairs(more) do
      client[name] = value
    end
  end
  -- nginx's configuration names the certificates to trust.
  client.ca_file = nil
  inside("open", { id = id, client = client, on_unknown = on_unknown, timeout = seconds })
  return id
end

local function withdraw(id)
  return assert(server.get(("/withdraw?gate=%s&address=%s"):format(id, ADDRESS)))
end

-- The outcome of two requests and of a decision.
local function attempt(fault, on_unknown, seconds)
  local behind = fault.start(fault)
  local id = open_gate(behind, fault, on_unknown, seconds)
  if fault.warm then
    withdraw(id)
    while fault.settles and behind.settled < 1 do
      native.sleep(0)
    end
    inside("purge", { id = id, address = ADDRESS })
  end
  local outcome = {}
  local started = socket.gettime()
  outcome.first, outcome.again = withdraw(id), withdraw(id)
  outcome.in_time = socket.gettime() - started < 2 * seconds + LATE
  outcome.decision = { inside("decide", { id = id, address = ADDRESS, key = cell.key }) }
  outcome.elsewhere = behind.elsewhere()
  local reached = behind.struck >= 1
  inside("close", id)
  behind.close()
  return reached, outcome
end

local function run(fault, on_unknown)
  if fault.slow then
    return patience(function(seconds)
      return attempt(fault, on_unknown, seconds)
    end)
  end
  local _, outcome = attempt(fault, on_unknown, LONG)
  return outcome
end

local function count_descriptors()
  return server:eval "return require('spec.support.nginx_faults').count_descriptors()"
end

-- The status of the answer by `on_unknown`.
local answers = { block = 403, review = 403, allow = 200 }

local function assert_refused(answer, expected)
  assert.equal(expected, answer.status)
  assert.equal("unknown", answer.headers["x-action"])
  if expected ~= 200 then
    assert.is_nil(answer.body:find("passed", 1, true))
  end
  assert.is_false(secrecy.holds(answer, cell.key))
end

local first

for _, general in ipairs(faults) do
  local fault = cell.over_cosockets(general)
  describe(("the gate before %s"):format(fault.name), function()
    local outcomes = {}
    local kept

    setup(function()
      first = first or count_descriptors()
      local bodies = {}
      for on_unknown in pairs(answers) do
        bodies[#bodies + 1] = function()
          outcomes[on_unknown] = run(fault, on_unknown)
        end
      end
      native.tasks.gather(bodies)
      kept = count_descriptors() - first
    end)

    if fault.kind then
      for on_unknown, status in pairs(answers) do
        it(("answers %d if on_unknown is %s, and never allows"):format(status, on_unknown), function()
          local outcome = outcomes[on_unknown]
          assert_refused(outcome.first, status)
          assert_refused(outcome.again, status)
          assert.is_true(outcome.in_time)
          assert.equal(0, outcome.elsewhere)
          assert.same({ "unknown", fault.kind, false, false }, outcome.decision)
        end)
      end
    else
      it("lets an allowed address pass", function()
        for _, outcome in pairs(outcomes) do
          for _, answer in ipairs { outcome.first, outcome.again } do
            assert.same({ 200, "passed", "allow" }, { answer.status, answer.body, answer.headers["x-action"] })
          end
          assert.equal("allow", outcome.decision[1])
        end
      end)
    end

    it("leaves nothing behind", function()
      assert.is_true(kept <= MOST_KEPT, kept .. " descriptors more than at the beginning")
    end)
  end)
end
