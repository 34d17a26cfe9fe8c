-- Gates in several nginx that share a Redis and the sandbox. A proxy in front of Redis delays or cuts the connections
-- of one gate.
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local program = require "spec.support.program"
local redis = require "spec.support.redis"
local sandbox = require "riskscreen.sandbox"

local KEY = "a secret of the fleet's gates"

-- A lease is there only for a moment.
local COUNT_KEYS = [[EVAL "return redis.call('DBSIZE') - #redis.call('KEYS', '*:lease')" 0]]

local M = { KEY = KEY }

---@class riskscreen.spec.FleetGate: riskscreen.spec.Gate
---@field decide fun(address: string): string its action and its source
---@field run fun(code: string, argument?: any): ... runs Lua in a worker; `redis(…)` there sends a command
---@field count fun(path: string): number a count of its metrics, such as "redis_refused.forged"
---@field wait_until_hearing fun()
---@field is_cut? boolean

---@class riskscreen.spec.Fleet
---@field redis RedisServer
---@field gates riskscreen.spec.FleetGate[]
---@field server table the sandbox
---@field group? riskscreen.spec.RedisGroup of `redis`, where a Sentinel watches it
---@field private proxies Program[]
local Fleet = {}
Fleet.__index = Fleet

---@param lines? string[] of the configuration of Redis
---@param account? table the lists of the account at the service
---@param replicas? integer of a Redis that a Sentinel watches
---@return riskscreen.spec.Fleet
function M.start(lines, account, replicas)
  local self = setmetatable({ gates = {}, proxies = {} }, Fleet)
  self.server = assert(sandbox.serve {
    service = sandbox.new { accounts = { [sandbox.default_key] = account or {} } },
  })
  self.group = replicas and redis.start_group(replicas, lines)
  self.redis = self.group and self.group.master or redis.start(lines)
  return self
end

---A proxy in front of Redis. Signals stop and kill it.
---@param delay? number seconds, each way
---@param port? integer its own
---@return Program
---@return string url
function Fleet:proxy(delay, port)
  local given = { tostring(self.redis.port), "delay", tostring(delay or 0), tostring(port or 0) }
  local proxy = program.start("proxy", given)
  table.insert(self.proxies, proxy)
  return proxy, "redis://127.0.0.1:" .. proxy:read()
end

local INIT = [[
  local function gate_of(name)
    return new_gate { name = name, network = "eth", address = { argument = "to" }, %s
      redis = { %s, key = %s, deadline = %s, %s } }
  end
  gate, other = gate_of(), %s and gate_of "other"
  function redis(...) return assert(gate.context.fleet.client:call(...)) end]]

local DECIDE = [[
  local decision, source = gate:decide { address = (...) }
  return decision.action .. " " .. source]]

---@class riskscreen.spec.FleetGateOptions
---@field url? string of Redis
---@field key? string Lua: the keys
---@field deadline? number seconds; long by default, so that a slow machine breaks no test
---@field redis? string Lua: more options of `redis`
---@field more? string Lua: more options of the gate
---@field other? boolean there is a second gate of this nginx, `other`, with the same Redis
---@field workers? integer
---@field is_cut? boolean does not wait until it hears of purges

---Starts one more gate.
---@param options? riskscreen.spec.FleetGateOptions
---@return riskscreen.spec.FleetGate
function Fleet:gate(options)
  options = options or {}
  local key = options.key or ("%q"):format(KEY)
  local more, place = options.more or "", ("url = %q"):format(options.url or self.redis.url)
  if self.group then
    place = ("sentinels = { hosts = { %q }, name = %q }"):format(
      self.group.sentinels.hosts[1],
      self.group.sentinels.name
    )
  end
  local gate = gates.start {
    shared = self.server,
    workers = options.workers,
    http = "init_worker_by_lua_block { gate:start() }",
    init = INIT:format(more, place, key, options.deadline or 2, options.redis or "", tostring(options.other)),
    locations = { ["/withdraw"] = "gate:enforce()" },
    server = "location = /status { content_by_lua_block { gate:status() } }",
  }
  gate.is_cut = options.is_cut
  table.insert(self.gates, gate)
  function gate.run(code, argument)
    return gate.nginx:eval(code, argument)
  end
  function gate.decide(address)
    return gate.run(DECIDE, address)
  end
  function gate.count(path)
    return gate.run(
      "local value = gate.recorder:snapshot() for name in (...):gmatch '[^.]+' do value = value[name] end return value",
      path
    )
  end
  function gate.wait_until_hearing()
    local since = gate.run "ngx.update_time() return require('riskscreen.runtime').nginx_time()"
    nginx.wait_for("the gate to hear of purges", function()
      return gate.run "return gate.context.fleet.purges:heard_at()" > since
    end)
  end
  if not options.is_cut then
    nginx.wait_for("the gate to listen", function()
      return gate.run "return gate.context.fleet.purges:heard_at() > 0"
    end)
    local begun = gate.run "return gate.context.fleet.purges:number()"
    for _, other in ipairs(self.gates) do
      nginx.wait_for("the other gates to hear of it", function()
        return other.is_cut or other.run "return gate.context.fleet.purges:number()" >= begun
      end)
    end
  end
  return gate
end

---Requests that have reached the service.
---@return integer
function Fleet:asked()
  return #self.server.service:requests()
end

---Waits until a count of keys is in Redis: verdicts are written after the answer.
---@param count integer
function Fleet:wait_for_keys(count)
  nginx.wait_for(count .. " keys in Redis", function()
    return self.redis:command(COUNT_KEYS) == ":" .. count
  end)
end

---@param allowed? string[] patterns of lines that the error logs may have
function Fleet:close(allowed)
  local problem
  for _, gate in ipairs(self.gates) do
    local ok, failure = pcall(gate.close, allowed)
    problem = problem or not ok and failure
  end
  for _, proxy in ipairs(self.proxies) do
    os.execute(("kill -CONT %d 2>/dev/null"):format(proxy.pid))
    if io.type(proxy.pipe) == "file" then
      proxy:kill()
    end
  end
  self.server:close()
  if self.group then
    self.group:stop()
  end
  self.redis:stop()
  if problem then
    error(problem, 0)
  end
end

return M
