-- Gates of several nginx that share verdicts and purges in a real Redis.
local addresses = require "riskscreen.sandbox.addresses"
local fleets = require "spec.support.fleet"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local CLEAN, BAD = addresses["clean-eth"], addresses["high-eth"]
local TROUBLE = { "riskscreen: redis:" }

describe("gates with one Redis", function()
  local fleet

  local function start(lines)
    fleet = fleets.start(lines)
    return fleet
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
      local number = "return gate.context.fleet:purge()"
      return one.run(number) == other.run(number)
    end)
  end

  describe("share verdicts:", function()
    it("they ask the service once about an address", function()
      start()
      local first, second = fleet:gate(), fleet:gate { workers = 2 }
      assert.equal("allow upstream", first.decide(CLEAN))
      assert.equal("block upstream", first.decide(BAD))
      fleet:wait_for_keys(3)
      assert.equal("allow redis", second.decide(CLEAN))
      assert.equal("block redis", second.decide(BAD))
      assert.truthy(({ ["allow lru"] = true, ["allow dict"] = true })[second.decide(CLEAN)])
      assert.equal(2, fleet:asked())
      assert.equal(2, second.count "lookups.redis.hit")
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
        local fleet, key, now = gate.context.fleet, ..., ngx.now()
        local one = fleet:take_lease(key, "0xab", nil, 3)
        redis("DEL", key .. ":lease")
        local two = fleet:take_lease(key, "0xab", nil, 3)
        assert(one > 0 and two > one, "no leases")
        local function share(json, lease)
          fleet:share(key, { json = json }, now, now + 100, fleet:purge(), lease)
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

    it("other policies, names and networks have other verdicts", function()
      start()
      local first = fleet:gate()
      local second = fleet:gate { more = "version = 'two'," }
      first.decide(CLEAN)
      fleet:wait_for_keys(2)
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
      fleet:wait_for_keys(3)
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
      fleet:wait_for_keys(2)
      assert.equal("allow redis", gates[2].decide(CLEAN))
      assert.equal("allow redis", gates[3].decide(CLEAN))
      gates[3].decide(BAD)
      fleet:wait_for_keys(3)
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
  end)
end)
