-- LuaJIT compiles the gate's way of a hit, also in Redis, and of a miss. Where it gives up, it must not try again and
-- again: then the code would be interpreted, and each try costs more than the request.
local nginx = require "spec.support.nginx"
local redis = require "spec.support.redis"

local REQUESTS = 4000
local MOST_ROUNDS = 6 -- of REQUESTS. LuaJIT chooses by chance when it tries again, so the rounds it needs differ.
-- Tries at one place in a round. LuaJIT tries an exit of a trace a few times, and then makes a jump from it to the
-- interpreter. If too many registers are in use for that, it tries each time that the exit is taken. Such an exit must
-- be taken seldom, as for another time of the clock. An exit that requests take as a rule is tried thousands of times.
local MOST_TRIES = REQUESTS / 10
local CLOCK = "timer_resolution 100ms;" -- the clock is set ten times a second, on a busy machine as well
local MOST_BARRED = 20 -- tries of a function that can never be compiled; requests try it more than a hundred times

local HTTP = [[
lua_shared_dict riskscreen 8m;
lua_shared_dict shared 8m;
server {
  listen unix:DIR/service.sock;
  location / {
    default_type application/json;
    set $risk '{"riskLevel":"low","riskType":"online-gambling","riskSource":"Provider"}';
    set $subject '"address":"$arg_address","network":"$arg_network"';
    set $data '{"time":1767225600000,$subject,"whitelist":false,"risks":[$risk]}';
    return 200 '{"success":true,"code":1,"msg":"SUCCESS","data":$data}';
  }
}
init_by_lua_block {
  gave_up, barred = {}, {}
  local reason_of_closure
  require("jit").attach(function(what, _, fn, pc, reason)
    if what == "abort" then
      local info = require("jit.util").funcinfo(fn, pc)
      local place = info.loc or "?"
      gave_up[place] = (gave_up[place] or 0) + 1
      reason_of_closure = reason_of_closure or reason
      if reason == reason_of_closure then
        barred[place] = (barred[place] or 0) + 1
      end
    end
  end, "trace")
  -- LuaJIT compiles no function that makes a closure.
  local made
  for index = 1, 100 do
    made = function() return index end
  end
  local function new_gate(dict, redis)
    return require("riskscreen.nginx.gate").new {
      client = {
        base_url = "http://127.0.0.1", unix_socket = "DIR/service.sock", access_key = "key-71ab", account = "test",
      },
      dict = dict, lru = 100, on_unknown = "block", redis = redis,
      address = { argument = "address" }, network = { argument = "network" },
    }
  end
  gate = new_gate("riskscreen")
  shared = new_gate("shared", { url = "REDIS", key = "a secret of the fleet's gates", deadline = 2 })
  -- A gate that finds nothing in its dict.
  for _, cache in pairs(shared.context.caches) do
    cache.dict.get = function() end
  end
  barred = {} -- the making of a gate is no request
}
init_worker_by_lua_block { shared:start() }
]]

local SERVER = [[
location = /decide {
  content_by_lua_block {
    local _, source = gate:decide()
    ngx.print(source)
  }
}
location = /shared {
  content_by_lua_block {
    local _, source = shared:decide()
    ngx.print(source)
  }
}
]]

-- Asks for these addresses in turn; the sources of the decisions, and the places where LuaJIT gave up in this round and
-- where it never can, with counts.
local ASK = [[
local request = ...
local sources = {}
gave_up = {}
for number = request.first, request.first + request.count - 1 do
  local address = ("0x%040x"):format(number % request.different)
  local source = ngx.location.capture(request.path .. "?network=eth&address=" .. address).body
  sources[source] = (sources[source] or 0) + 1
end
return sources, gave_up, barred
]]

local server, storage

setup(function()
  storage = redis.start()
  server = nginx.start { main = CLOCK, http = HTTP:gsub("REDIS", storage.url), server = SERVER }
end)

teardown(function()
  server:stop()
  storage:stop()
end)

local first = 0

local function ask(different, path)
  first = first + REQUESTS
  return server:eval(ASK, { first = first, count = REQUESTS, different = different, path = path })
end

-- Asks until a round passes without vain tries. A place that never settles fails every round.
local function check(different, source, path)
  local busiest, most
  for round = 1, MOST_ROUNDS do
    local sources, gave_up = ask(different, path or "/decide")
    assert.is_true(round == 1 or (sources[source] or 0) > 0.9 * REQUESTS)
    busiest, most = nil, 0
    for place, count in pairs(gave_up) do
      if count > most then
        busiest, most = place, count
      end
    end
    if round > 1 and most <= MOST_TRIES then
      return
    end
  end
  error(("%s: %d times in %d requests"):format(busiest, most, REQUESTS))
end

describe("LuaJIT does not try in vain to compile", function()
  it("a miss", function()
    check(1e9, "upstream")
  end)

  it("a hit in the shared dict", function()
    check(1000, "dict")
  end)

  it("a hit in the worker's memory", function()
    check(40, "lru")
  end)

  it("a hit in Redis", function()
    check(1000, "redis", "/shared")
  end)

  -- It gives up such a function together with every function that calls it.
  it("a function that cannot be compiled, on any of these ways", function()
    local _, _, barred = ask(40, "/decide")
    for place, count in pairs(barred) do
      assert.is_true(count <= MOST_BARRED, ("%s: %d times"):format(place, count))
    end
  end)
end)
