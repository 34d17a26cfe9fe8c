-- Gates of several nginx that share verdicts and purges in a real Redis.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local fleets = require "spec.support.fleet"
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local redis_servers = require "spec.support.redis"
local riskscreen = require "riskscreen"
local socket = require "socket"

local CLEAN, BAD = addresses["clean-eth"], addresses["high-eth"]
local TROUBLE = { "riskscreen: redis:", "recv%(%) failed", "send%(%) failed", "connect%(%) failed" }
local DELAY = 0.5 -- seconds: the purge_delay of a gate whose network is cut
local CUT = ("purge_delay = %g"):format(DELAY)
local TICK = 0.1 -- seconds by which the time of nginx may lag

describe("gates with one Redis", function()
  local fleet

  local function start(lines, account, replicas)
    fleet = fleets.start(lines, account, replicas)
  end

  local function stop(allowed)
    local ending = fleet
    fleet = nil
    if ending then
      ending:close(allowed)
    end
  end

  after_each(function()
    stop()
  end)

  -- Waits until a gate has heard of the last record of the stream.
  local function wait_until_same(one, other)
    nginx.wait_for("both gates to have heard the same", function()
      local number = "return gate.context.fleet.purges:number()"
      return one.run(number) == other.run(number)
    end)
  end

  -- Waits until Redis has what a gate writes after its answers.
  local function wait_until_written(gate)
    gate.run "gate.context.fleet.pipeline:call(10, { 'TIME' })"
  end

  local function signal(program, name)
    os.execute(("kill -%s %d"):format(name, program.pid))
  end

  local function purge(gate, address)
    return gate.run("local ok, err = gate:purge((...)) return ok, err and tostring(err)", address)
  end

  -- The decision, with "cache" for every source inside nginx.
  local function seen(gate, address)
    return (gate.decide(address):gsub(" lru$", " cache"):gsub(" dict$", " cache"))
  end

  describe("share verdicts:", function()
    it("they ask the service once about an address", function()
      start()
      local first, second = fleet:gate(), fleet:gate { workers = 2 }
      assert.equal("allow upstream", first.decide(CLEAN))
      assert.equal("block upstream", first.decide(BAD))
      wait_until_written(first)
      assert.equal("allow redis", second.decide(CLEAN))
      assert.equal("block redis", second.decide(BAD))
      assert.truthy(({ ["allow lru"] = true, ["allow dict"] = true })[second.decide(CLEAN)])
      assert.equal(2, fleet:asked())
      nginx.wait_for("the counts of both workers", function()
        return second.count "lookups.redis.hit" == 2
      end)
      assert.equal(2, first.count "lookups.redis.miss")
      assert.equal(403, second.status("/withdraw?to=" .. BAD))
    end)

    it("two that ask at the same time make one request", function()
      start()
      local first, second = fleet:gate(), fleet:gate()
      fleet.server.service:fault { kind = "delay", delay = 0.3, match = { address = BAD } }
      local statuses = {}
      local bodies = {}
      for index = 1, 20 do
        bodies[index] = function()
          statuses[index] = (index % 2 == 0 and first or second).status("/withdraw?to=" .. BAD)
        end
      end
      riskscreen.gather(bodies)
      assert.equal(1, fleet:asked())
      for index = 1, 20 do
        assert.equal(403, statuses[index])
      end
    end)

    it("one asks by itself after the lease of another that has died", function()
      start()
      local first, second = fleet:gate { redis = "lease = 0.3" }, fleet:gate { redis = "lease = 0.3" }
      fleet.server.service:fault { kind = "hang", count = 1 }
      riskscreen.run(function()
        local asking = riskscreen.spawn(function()
          return first.nginx.get("/withdraw?to=" .. BAD)
        end)
        nginx.wait_for("the first gate's request", function()
          riskscreen.sleep(0.01)
          return fleet:asked() == 1
        end)
        os.execute("kill -KILL " .. first.nginx:workers()[1])
        assert.equal("block upstream", second.decide(BAD))
        asking:await()
      end)
      assert.equal(2, fleet:asked())
      stop { "exited on signal 9", "riskscreen: redis:", "recv%(%) failed" }
    end)

    it("a late answer does not replace a newer one", function()
      start()
      local first = fleet:gate()
      local key = first.run [[return gate.context.fleet:prefix_of "v" .. "eth:0xab"]]
      -- Two machines have had the lease one after the other. The first one answers last.
      local newest = first.run(
        [[
        local fleet, key, now = gate.context.fleet, ..., require("riskscreen.runtime").nginx_time()
        local one = fleet:take_lease(key, "0xab", nil, 3)
        redis("DEL", key .. ":lease")
        local two = fleet:take_lease(key, "0xab", nil, 3)
        assert(one > 0 and two > one, "no leases")
        local number, mark = fleet.purges:number(), fleet.purges:mark()
        local function share(json, lease)
          fleet:share(key, { json = json }, now, now + 100, number, mark, lease)
        end
        share("newer", two)
        share("older", one)
        share("without a lease", 0)
        repeat ngx.sleep(0.01) until gate.context.fleet.pipeline.runner == nil or #gate.context.fleet.pipeline.jobs == 0
        return (fleet:find(key, "0xab") or {}).json]],
        key
      )
      assert.equal("newer", newest)
    end)

    it("a failure is not shared, and the next one asks at once", function()
      start()
      local first, second =
        fleet:gate { redis = "lease = 20", more = "timeout = 60," }, fleet:gate { redis = "lease = 20" }
      fleet.server.service:fault { kind = "status", status = 500, count = 1 }
      assert.equal("unknown upstream", first.decide(CLEAN))
      nginx.wait_for("the end of the lease", function()
        return fleet.redis:command "DBSIZE" == ":1"
      end)
      assert.equal("allow upstream", second.decide(CLEAN))
    end)

    it("a verdict that is not kept ends the lease, and the next one asks at once", function()
      start()
      local gate = fleet:gate { redis = "lease = 60,", more = "ttl = { allow = 0 }," }
      assert.equal("allow upstream", gate.decide(CLEAN))
      wait_until_written(gate)
      local started = socket.gettime()
      assert.equal("allow upstream", gate.decide(CLEAN))
      assert.is_true(socket.gettime() - started < 1)
    end)

    it("other policies, names and networks have other verdicts", function()
      start()
      local first = fleet:gate()
      local second = fleet:gate { more = "version = 'two'," }
      first.decide(CLEAN)
      wait_until_written(first)
      assert.equal("allow upstream", second.decide(CLEAN))
    end)
  end)

  describe("take what stands in Redis for outside input:", function()
    local first, second

    before_each(function()
      start()
      first, second = fleet:gate(), fleet:gate()
      first.decide(CLEAN)
      first.decide(BAD)
      wait_until_written(first)
    end)

    -- The keys of the verdicts, by the end of their address.
    local PREPARE = [[
      local function key_of(address)
        for _, key in ipairs(redis("KEYS", "*verdict*")) do
          if key:find(address:lower(), 1, true) then return key end
        end
      end
      local clean, bad = (...)[1], (...)[2]
      local function text_of(address) return redis("GET", key_of(address)) end
    ]]

    local function tamper(code)
      return first.run(PREPARE .. code, { CLEAN, BAD })
    end

    it("a verdict that is not sealed is refused", function()
      tamper [[
        local text = text_of(bad)
        redis("SET", key_of(bad), (text:gsub("block", "allow")))
      ]]
      assert.equal("block upstream", second.decide(BAD))
      assert.equal(1, second.count "redis_refused.forged")
    end)

    it("a verdict about another address is refused", function()
      tamper [[redis("SET", key_of(bad), text_of(clean))]]
      assert.equal("block upstream", second.decide(BAD))
      assert.equal(1, second.count "redis_refused.forged")
    end)

    it("a key of another type is no verdict, and the service is asked", function()
      tamper [[
        local key = key_of(clean)
        redis("DEL", key)
        redis("LPUSH", key, "x")
      ]]
      assert.equal("allow upstream", second.decide(CLEAN))
      assert.is_true(second.count "redis_errors.reply" > 0)
    end)

    it("an allow from before a purge is refused, whoever writes it back", function()
      tamper [[redis("SET", "copy", text_of(clean))]]
      assert.equal("allow redis", second.decide(CLEAN))
      assert.is_true(first.run("return gate:purge((...))", CLEAN))
      wait_until_same(first, second)
      tamper [[redis("SET", key_of(clean), redis("GET", "copy"))]]
      for _, gate in ipairs { first, second } do
        local before = gate.count "redis_refused.purged"
        assert.equal("allow upstream", gate.decide(CLEAN))
        assert.is_true(gate.count "redis_refused.purged" > before)
        gate.run(
          [[repeat ngx.sleep(0.01) until #gate.context.fleet.pipeline.jobs == 0
          redis("SET", (...)[2], redis("GET", "copy"))]],
          { CLEAN, tamper "return key_of(clean)" }
        )
      end
      -- A machine that begins to listen only now has not heard of the purge.
      assert.equal("allow upstream", fleet:gate().decide(CLEAN))
    end)
  end)

  describe("accept several keys:", function()
    local OLD, NEW = "the old secret of the gates", "the new secret of the gates"

    it("one after another changes from an old key to a new one, and no verdict is refused", function()
      start()
      local old = ("%q"):format(OLD)
      local both, reversed = ("{ %q, %q }"):format(OLD, NEW), ("{ %q, %q }"):format(NEW, OLD)
      local gates = {}
      for index, key in ipairs { old, both, reversed } do
        gates[index] = fleet:gate { key = key }
      end
      gates[1].decide(CLEAN)
      wait_until_written(gates[1])
      assert.equal("allow redis", gates[2].decide(CLEAN))
      assert.equal("allow redis", gates[3].decide(CLEAN))
      gates[3].decide(BAD)
      wait_until_written(gates[3])
      assert.equal("block redis", gates[2].decide(BAD))
      -- The one that does not know the new key yet trusts nothing of it.
      assert.equal("block upstream", gates[1].decide(BAD))
      assert.equal(1, gates[1].count "redis_refused.forged")
      stop(TROUBLE)
    end)
  end)

  describe("share purges:", function()
    it("a purge reaches all machines", function()
      start()
      local first, second = fleet:gate(), fleet:gate { workers = 2 }
      second.decide(CLEAN)
      second.decide(BAD)
      assert.is_true(first.run("return gate:purge((...))", CLEAN))
      wait_until_same(first, second)
      assert.equal("allow upstream", second.decide(CLEAN))
      assert.equal("block dict", second.decide(BAD):gsub("lru", "dict"))
      assert.equal(3, fleet:asked())
      nginx.wait_for("the count of the worker that listens", function()
        return second.count "redis_purges.heard" == 1
      end)
    end)

    it("purges at the same time are all heard, and none is taken for a loss", function()
      start()
      local first, second = fleet:gate(), fleet:gate()
      first.run(
        [[
        local threads = {}
        for index = 1, 4 do
          threads[index] = ngx.thread.spawn(function(address)
            assert(gate:purge(address))
          end, (...))
        end
        for _, thread in ipairs(threads) do
          assert(ngx.thread.wait(thread))
        end
      ]],
        CLEAN
      )
      for _, gate in ipairs { first, second } do
        nginx.wait_for("the purges", function()
          return gate.count "redis_purges.heard" == 4
        end)
        assert.equal(0, gate.count "redis_purges.lost")
      end
    end)

    it("a machine forgets everything if it cannot read a purge of another release", function()
      start()
      local first, second = fleet:gate(), fleet:gate()
      second.decide(CLEAN)
      assert.equal("allow cache", seen(second, CLEAN))
      first.run(
        [[
          local seal = gate.context.fleet.purges.seal
          local close = seal.close
          function seal.close(self, label, text)
            return close(self, label, (text:gsub("^1", "2")))
          end
          assert(gate:purge((...)))
          seal.close = nil
        ]],
        CLEAN
      )
      nginx.wait_for("the loss", function()
        return second.count "redis_purges.lost" == 1
      end)
      assert.is_nil(seen(second, CLEAN):find "cache")
      stop(TROUBLE)
    end)
  end)

  it("let no gate of an nginx take from Redis what another one has purged, also where Redis is full", function()
    start()
    local gate = fleet:gate { other = true }
    local function decide_by_other(address)
      return gate.run(
        "local decision, source = other:decide { address = (...) } return decision.action .. ' ' .. source",
        address
      )
    end
    nginx.wait_for("the other gate to hear of purges", function()
      return gate.run "other.context.fleet:start() return other.context.fleet.purges:number()"
    end)
    decide_by_other(CLEAN)
    fleet:wait_for_keys(2) -- the stream and the verdict
    fleet.redis:command "CONFIG SET maxmemory 1"
    assert.is_nil((purge(gate, CLEAN)))
    assert.equal("allow upstream", decide_by_other(CLEAN))
    fleet.redis:command "CONFIG SET maxmemory 0"
  end)

  describe("while the network is cut", function()
    local first, second, proxy

    before_each(function()
      start()
      local url
      proxy, url = fleet:proxy()
      first = fleet:gate()
      second = fleet:gate { url = url, deadline = 0.05, redis = CUT }
      second.decide(CLEAN)
      second.decide(BAD)
      assert.equal("allow cache", seen(second, CLEAN))
    end)

    after_each(function()
      stop(TROUBLE)
    end)

    it("a purge is in force everywhere after purge_delay, and a block goes on to block", function()
      signal(proxy, "STOP")
      assert.is_true(purge(first, CLEAN))
      local purged_at = socket.gettime()
      nginx.wait_for("the gate to ask again", function()
        local asked_at, answer = socket.gettime(), seen(second, CLEAN)
        assert.is_true(answer == "allow upstream" or asked_at < purged_at + DELAY + TICK, "an old allow is served")
        return answer == "allow upstream"
      end)
      assert.equal("block cache", seen(second, BAD))
      signal(proxy, "CONT")
      nginx.wait_for("the purge", function()
        return second.count "redis_purges.heard" == 1
      end)
    end)

    it("an allow is asked again and again, and counts again when the network is back", function()
      signal(proxy, "STOP")
      for _ = 1, 2 do
        nginx.wait_for("the gate to ask", function()
          return seen(second, CLEAN) == "allow upstream"
        end)
      end
      signal(proxy, "CONT")
      second.wait_until_hearing()
      local asked = fleet:asked()
      assert.equal("allow cache", seen(second, CLEAN))
      assert.equal("block cache", seen(second, BAD))
      assert.equal(asked, fleet:asked())
      assert.equal(0, second.count "redis_purges.lost")
    end)

    it("what is purged on the machine that is cut off ends all verdicts when the network is back", function()
      first.decide(CLEAN)
      assert.equal("allow cache", seen(first, CLEAN))
      signal(proxy, "STOP")
      local ok, message = purge(second, CLEAN)
      assert.is_nil(ok)
      assert.truthy(message:find("the others will when Redis answers", 1, true))
      assert.equal("allow upstream", seen(second, CLEAN))
      signal(proxy, "CONT")
      nginx.wait_for("the loss", function()
        return first.count "redis_purges.lost" == 1
      end)
      assert.equal("allow upstream", seen(first, CLEAN))
    end)

    it("a machine forgets everything if purges were dropped from the stream meanwhile", function()
      signal(proxy, "STOP")
      assert.is_true(purge(first, CLEAN))
      first.run [[redis("XTRIM", gate.context.fleet.client:key "purges", "MAXLEN", 0)]]
      signal(proxy, "CONT")
      nginx.wait_for("the loss", function()
        return second.count "redis_purges.lost" == 1
      end)
      second.wait_until_hearing()
      local asked = fleet:asked()
      assert.is_nil(seen(second, BAD):find "cache")
      assert.is_nil(seen(second, CLEAN):find "cache")
      assert.is_true(fleet:asked() > asked)
    end)

    it("a master that may not write because its replicas are gone is not believed", function()
      fleet.redis:command "CONFIG SET min-replicas-to-write 1"
      local since = second.run "ngx.update_time() return require('riskscreen.runtime').nginx_time()"
      nginx.wait_for("the gate to ask again", function()
        return seen(second, CLEAN) == "allow upstream"
      end)
      assert.is_true(second.run "return gate.context.fleet.purges:heard_at()" <= since)
      assert.equal("block cache", seen(second, BAD))
      fleet.redis:command "CONFIG SET min-replicas-to-write 0"
      second.wait_until_hearing()
      assert.equal("allow cache", seen(second, CLEAN))
      assert.equal(0, second.count "redis_purges.lost")
    end)

    it("a broken connection is replaced, and purges of the time between are heard", function()
      proxy:kill()
      assert.is_true(purge(first, CLEAN))
      -- Another proxy on the same port.
      local port = second.run "return gate.context.fleet.client.settings.url.address.port"
      fleet:proxy(0, port)
      nginx.wait_for("the purge", function()
        return second.count "redis_purges.heard" == 1
      end)
      assert.equal(0, second.count "redis_purges.lost")
      assert.equal("block cache", seen(second, BAD))
    end)
  end)

  describe("while Redis is in trouble", function()
    after_each(function()
      stop(TROUBLE)
    end)

    it("killed, and started again with its file: no verdict and no purge is lost", function()
      start { "appendonly yes", "appendfsync always" }
      local first, second = fleet:gate(), fleet:gate()
      first.decide(CLEAN)
      wait_until_written(first)
      second.decide(BAD)
      fleet.redis:kill()
      assert.equal("block cache", seen(second, BAD))
      fleet.redis:start()
      second.wait_until_hearing()
      nginx.wait_for("the circuit to close", function()
        return second.count "fleet.circuit.state" == "closed"
      end)
      assert.equal("allow redis", second.decide(CLEAN))
      assert.equal(0, second.count "redis_purges.lost")
      assert.is_true(purge(second, CLEAN))
      nginx.wait_for("the purge", function()
        return first.count "redis_purges.heard" == 1
      end)
    end)

    it("killed, and started again without its data: every machine forgets what it has", function()
      start()
      local first, second = fleet:gate(), fleet:gate()
      first.decide(CLEAN)
      second.decide(CLEAN)
      fleet.redis:kill()
      fleet.redis:start()
      for _, gate in ipairs { first, second } do
        nginx.wait_for("the loss", function()
          return gate.count "redis_purges.lost" > 0
        end)
        gate.wait_until_hearing()
      end
      wait_until_same(first, second)
      assert.is_nil(seen(first, CLEAN):find "cache")
    end)

    it("killed, and the last purge is lost: a verdict from before another purge does not count", function()
      start()
      local proxy, url = fleet:proxy()
      local first, second = fleet:gate(), fleet:gate { url = url }
      fleet.redis:command "SAVE"
      signal(proxy, "STOP")
      assert.is_true(purge(first, BAD))
      nginx.wait_for("the purge", function()
        return first.count "redis_purges.heard" == 1
      end)
      -- As if the worker that listens had died: another one does not listen before the time of that worker is over.
      first.run "ngx.shared.riskscreen:set(gate.context.fleet.purges.keys.listener, '1e9 dead', 60)"
      fleet.redis:kill()
      fleet.redis:start()
      nginx.wait_for("a connection", function()
        return first.run "return gate.context.fleet.client:call 'PING'" == "PONG"
      end)
      assert.equal("allow upstream", first.decide(CLEAN))
      wait_until_written(first)
      signal(proxy, "CONT")
      second.wait_until_hearing()
      -- Its number is that of the purge which was lost.
      assert.is_true(purge(second, CLEAN))
      nginx.wait_for("the purge", function()
        return second.count "redis_purges.heard" == 1
      end)
      assert.equal("allow upstream", second.decide(CLEAN))
      first.run "ngx.shared.riskscreen:delete(gate.context.fleet.purges.keys.listener)"
      nginx.wait_for("the loss", function()
        return first.count "redis_purges.lost" == 1
      end)
    end)

    it("stopped: a few requests wait for it, and all are decided", function()
      start()
      local gate = fleet:gate { deadline = 0.05 }
      fleet.redis:signal "STOP"
      for index = 1, 20 do
        assert.truthy(gate.decide(("0x%040x"):format(index)):find " upstream$")
      end
      assert.is_true(gate.count "redis_errors.circuit" > 0)
      fleet.redis:signal "CONT"
      local index = 100
      nginx.wait_for("Redis to be used again", function()
        index = index + 1
        gate.decide(("0x%040x"):format(index))
        return gate.count "fleet.circuit.state" == "closed"
      end)
    end)

    it("stopped: requests side by side wait once, and one of many probes it later", function()
      start()
      local gate = fleet:gate { deadline = 0.05 }
      fleet.redis:signal "STOP"
      local function decide_many(first)
        gate.run(
          [[
          local bodies = {}
          for index = ..., ... + 19 do
            bodies[#bodies + 1] = function()
              local _, source = gate:decide { address = ("0x%040x"):format(index) }
              assert(source == "upstream", source)
            end
          end
          require("riskscreen").gather(bodies)]],
          first
        )
        return gate.count "redis_errors.timeout" + gate.count "redis_errors.error"
      end
      local waited = decide_many(1)
      assert.equal(20, waited)
      nginx.wait_for("the circuit to open", function()
        return gate.count "fleet.circuit.state" ~= "closed"
      end)
      nginx.wait_for("the time of a probe", function()
        return gate.count "fleet.circuit.state" == "half_open"
      end)
      assert.equal(waited + 1, decide_many(21))
      fleet.redis:signal "CONT"
    end)

    it("slow: the service is asked when the deadline is over", function()
      start()
      local _, url = fleet:proxy(0.15)
      local gate = fleet:gate { url = url, deadline = 0.02 }
      for index = 1, 5 do
        assert.truthy(gate.decide(("0x%040x"):format(index)):find " upstream$")
      end
      assert.is_true(gate.count "redis_errors.timeout" > 0)
    end)

    it("full: it refuses writes, and verdicts are still read", function()
      start()
      local first, second = fleet:gate(), fleet:gate()
      first.decide(CLEAN)
      wait_until_written(first)
      fleet.redis:command "CONFIG SET maxmemory 1"
      assert.equal("allow redis", second.decide(CLEAN))
      assert.equal("block upstream", second.decide(BAD))
      assert.equal("block upstream", first.decide(BAD))
      local ok, message = purge(first, CLEAN)
      assert.is_nil(ok)
      assert.truthy(message:find("OOM", 1, true))
      fleet.redis:command "CONFIG SET maxmemory 0"
      nginx.wait_for("the loss", function()
        return second.count "redis_purges.lost" == 1
      end)
    end)

    it("evicting: a machine whose stream is evicted forgets what it has, and listens anew", function()
      start { "maxmemory-policy allkeys-random" }
      local gate = fleet:gate()
      gate.decide(CLEAN)
      fleet.redis:command "CONFIG SET maxmemory 1"
      fleet:wait_for_keys(0)
      assert.is_truthy(gate.decide(BAD):find "^block")
      fleet.redis:command "CONFIG SET maxmemory 0"
      nginx.wait_for("the loss", function()
        return gate.count "redis_purges.lost" > 0
      end)
      gate.wait_until_hearing()
      assert.is_nil(seen(gate, CLEAN):find "cache")
    end)

    it("evicting by volatile-ttl: verdicts go, and the purges stay", function()
      start { "maxmemory-policy volatile-ttl" }
      local gate = fleet:gate()
      gate.decide(CLEAN)
      wait_until_written(gate)
      fleet.redis:command "CONFIG SET maxmemory 1"
      fleet:wait_for_keys(1)
      fleet.redis:command "CONFIG SET maxmemory 0"
      gate.wait_until_hearing()
      assert.equal("allow cache", seen(gate, CLEAN))
      assert.equal(0, gate.count "redis_purges.lost")
    end)

    it("a stream of another type: no purge is heard, and an allow is asked again", function()
      start()
      local gate = fleet:gate { redis = CUT }
      gate.decide(CLEAN)
      gate.decide(BAD)
      gate.run [[
        local key = gate.context.fleet.stream
        redis("DEL", key)
        redis("SET", key, "text")
      ]]
      nginx.wait_for("the gate to ask again", function()
        return seen(gate, CLEAN) == "allow upstream"
      end)
      assert.equal("block cache", seen(gate, BAD))
      local ok, message = purge(gate, BAD)
      assert.is_nil(ok)
      assert.truthy(message:find("WRONGTYPE", 1, true))
    end)

    it("a replica that cannot be written: the gate asks the service and says why", function()
      start()
      local replica = redis_servers.start { "replicaof 127.0.0.1 " .. fleet.redis.port }
      local gate = fleet:gate { url = replica.url, is_cut = true }
      nginx.wait_for("the log", function()
        return gate.nginx:log():find("READONLY", 1, true)
      end)
      assert.equal("allow upstream", gate.decide(CLEAN))
      assert.equal("block upstream", gate.decide(BAD))
      assert.equal("block cache", seen(gate, BAD))
      -- It has never heard of a purge: the time counts from its start, not from that of the machine.
      assert.is_true(gate.run "return gate.context.fleet:facts().unheard_seconds" < 60)
      replica:stop()
    end)
  end)

  describe("whose Redis is replaced by a replica", function()
    local first, second

    before_each(function()
      start(nil, nil, 1)
      first, second = fleet:gate(), fleet:gate()
      first.decide(CLEAN)
      wait_until_written(first)
    end)

    after_each(function()
      stop(TROUBLE)
    end)

    local function fail_over()
      fleet.group:begin_failover()
      assert.truthy(first.decide(BAD):find "^block")
      fleet.group:wait_for_failover()
      for _, gate in ipairs { first, second } do
        gate.wait_until_hearing()
        nginx.wait_for("Redis to be used again", function()
          return gate.run "return gate.context.fleet.pipeline:call(1, { 'PING' })" == "PONG"
        end)
      end
    end

    it("go on to share verdicts and purges", function()
      fleet.group.replicas[1]:wait_until_same(fleet.redis)
      fail_over()
      assert.equal("allow redis", second.decide(CLEAN))
      assert.equal(0, first.count "redis_purges.lost" + second.count "redis_purges.lost")
      assert.is_true(purge(first, CLEAN))
      nginx.wait_for("the purge", function()
        return second.count "redis_purges.heard" == 1
      end)
      assert.equal("allow upstream", second.decide(CLEAN))
    end)

    it("forget all verdicts if the replica lacks a purge", function()
      local replica = fleet.group.replicas[1]
      second.decide(CLEAN)
      replica:wait_until_same(fleet.redis)
      replica:signal "STOP"
      fleet.redis:command "CLIENT KILL TYPE replica"
      assert.is_true(purge(first, BAD))
      for _, gate in ipairs { first, second } do
        nginx.wait_for("the purge", function()
          return gate.count "redis_purges.heard" == 1
        end)
      end
      assert.equal("allow cache", seen(second, CLEAN))
      fleet.redis:kill()
      replica:signal "CONT"
      fail_over()
      nginx.wait_for("the loss", function()
        return first.count "redis_purges.lost" > 0 and second.count "redis_purges.lost" > 0
      end)
      wait_until_same(first, second)
      assert.is_nil(seen(second, CLEAN):find "cache")
    end)
  end)

  describe("take the account's lists from one machine:", function()
    local LISTS = "account_lists = { interval = 30, max_age = 60, whitelist = true },"

    local function asked_for_lists()
      local count = 0
      for _, request in ipairs(fleet.server.service:requests()) do
        count = count + (request.operation == "listBlacklistAddresses" and 1 or 0)
      end
      return count
    end

    before_each(function()
      start(nil, {
        blacklist = { { address = CLEAN, network = "eth", risks = { { riskLevel = "high", riskType = "scam" } } } },
        whitelist = { { address = BAD, network = "eth" } },
      })
    end)

    local function wait_for_lists(gate)
      nginx.wait_for("the lists", function()
        return gate.count "lists.blacklist" == 1
      end)
    end

    it("the others find them in Redis", function()
      wait_for_lists(fleet:gate { more = LISTS })
      local asked = asked_for_lists()
      assert.is_true(asked >= 1)
      local second = fleet:gate { more = LISTS }
      wait_for_lists(second)
      assert.equal("block list", second.decide(CLEAN))
      assert.equal("allow list", second.decide(BAD))
      assert.equal(asked, asked_for_lists())
    end)

    it("a list that is not sealed is not taken", function()
      local first = fleet:gate { more = LISTS }
      wait_for_lists(first)
      local asked = asked_for_lists()
      first.run [[
        for _, key in ipairs(redis("KEYS", "*lists*")) do
          if not key:find ":lease$" then redis("SET", key, (redis("GET", key):gsub("high", "low"))) end
        end
      ]]
      local second = fleet:gate { more = LISTS }
      wait_for_lists(second)
      assert.equal("block list", second.decide(CLEAN))
      assert.is_true(asked_for_lists() > asked)
    end)
  end)

  it("need no more rights in Redis than the page says", function()
    local rights = redis_servers.documented_rights "gates"
    start({ "user gates on >secret ~{riskscreen}:* " .. rights }, {
      blacklist = { { address = BAD, network = "eth", risks = { { riskLevel = "high", riskType = "scam" } } } },
    })
    local url = ("redis://gates:secret@127.0.0.1:%d"):format(fleet.redis.port)
    local options = { url = url, more = "account_lists = { interval = 30, max_age = 60 }," }
    local first, second = fleet:gate(options), fleet:gate(options)
    assert.equal("allow upstream", first.decide(CLEAN))
    wait_until_written(first)
    assert.equal("allow redis", second.decide(CLEAN))
    assert.is_true(purge(first, CLEAN))
    nginx.wait_for("the purge", function()
      return second.count "redis_purges.heard" == 1
    end)
    fleet.server.service:fault { kind = "status", status = 500, count = 1 }
    assert.equal("unknown upstream", second.decide(CLEAN)) -- it ends its lease
    wait_until_written(second)
    nginx.wait_for("the lists", function()
      return second.count "lists.blacklist" == 1
    end)
    assert.same({}, redis_servers.unused_rights(fleet.redis, rights))
    assert.equal("*0", fleet.redis:command "ACL LOG")
    assert.equal(0, first.count "redis_errors.reply" + second.count "redis_errors.reply")
  end)

  it("work with a Cluster, whichever of its nodes they are given", function()
    local nodes = redis_servers.start_cluster()
    start()
    local gates = {}
    for index, node in ipairs(nodes) do
      gates[index] = fleet:gate { url = node.url }
    end
    nginx.wait_for("a shared verdict", function()
      gates[1].run("gate:purge((...))", CLEAN)
      for _, gate in ipairs(gates) do
        wait_until_same(gates[1], gate)
      end
      gates[1].decide(CLEAN)
      wait_until_written(gates[1])
      return gates[2].decide(CLEAN) == "allow redis" and gates[3].decide(CLEAN) == "allow redis"
    end)
    stop(TROUBLE)
    redis_servers.stop_all()
  end)

  it("show on the status page what Redis does", function()
    start()
    local gate = fleet:gate()
    gate.decide(CLEAN)
    assert.is_true(purge(gate, CLEAN))
    local page = gate.get("/status", { headers = { "Accept: text/html" } }).body
    assert.truthy(page:find("Redis", 1, true) and page:find("published", 1, true))
    local status = json.decode(gate.get("/status").body)
    assert.equal("closed", status.redis.circuit)
    assert.equal(1, status.redis.purges.published)
    assert.same({ hits = 0, misses = 1, hit_ratio = 0 }, status.cache.redis)
    local metrics = gate.run "return gate.recorder:render()"
    assert.truthy(metrics:find('riskscreen_redis_circuit_state{gate="default",state="closed"} 1', 1, true))
    assert.truthy(metrics:find 'riskscreen_redis_seconds_count{gate="default"} [1-9]')
  end)

  it("go on to listen after a reload", function()
    start()
    local first, second = fleet:gate(), fleet:gate { workers = 2 }
    second.decide(CLEAN)
    local old = second.nginx:workers()
    second.nginx:reload()
    nginx.wait_for("the old workers to end", function()
      for _, pid in ipairs(second.nginx:workers()) do
        if pid == old[1] or pid == old[2] then
          return false
        end
      end
      return true
    end)
    assert.is_true(purge(first, CLEAN))
    wait_until_same(first, second)
    assert.equal("allow upstream", second.decide(CLEAN))
    assert.equal(0, second.count "redis_purges.lost")
  end)
end)
