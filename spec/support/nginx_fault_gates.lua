-- Inside nginx: a gate for each fault that a spec tries; see spec/in_nginx/gate_faults_nginx.lua.
local gates = require "riskscreen.nginx.gate"
local secrecy = require "spec.support.secrecy"

local ngx = _G.ngx

local opened = {}

local M = {}

---Makes a gate.
---@param given table { id, client, on_unknown, timeout }
function M.open(given)
  opened[given.id] = gates.new {
    version = given.id,
    dict = "riskscreen",
    client = given.client,
    network = "eth",
    on_unknown = given.on_unknown,
    timeout = given.timeout,
    ttl = { allow = 3600 },
    variables = { action = "action", outcome = "outcome", reason = "reason" },
  }
end

---Forgets what the gate knows about an address.
---@param given table { id, address }
function M.purge(given)
  assert(opened[given.id]:purge(given.address))
end

---Forgets the gate.
---@param id string
function M.close(id)
  opened[id] = nil
end

---The access phase of a location.
function M.enforce()
  opened[ngx.var.arg_gate]:enforce { address = ngx.var.arg_address }
end

---The gate's decision about an address: the action, the kind of the error, and whether it holds a secret.
---@param given table { id, address, key }
function M.decide(given)
  local decision = opened[given.id]:decide { address = given.address }
  local err = decision.error
  return decision.action, err and err.kind, decision.degraded, secrecy.holds(decision, given.key)
end

return M
