-- The cache in the workers of a real nginx. The sandbox counts the requests that reach it.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local BAD, CLEAN = addresses["high-eth"], addresses["clean-eth"]

local LOCATIONS = { ["/withdraw"] = "gate:enforce()" }
local SOURCES = "network = { argument = 'on' }, address = { argument = 'to' }, timeout = 10"

describe("a cached decision", function()
  local running

  local function start(options)
    options.locations = options.locations or LOCATIONS
    options.init = options.init or ("gate = new_gate { %s }"):format(SOURCES)
    running = gates.start(options)
  end

  after_each(function()
    local ending = running
    running = nil
    if ending then
      ending.close()
    end
  end)

  local function asked()
    return #running.service:requests()
  end

  -- Runs Lua in a certain worker: sends it over new connections until that worker gets it.
  local function in_worker(id, code, ...)
    local text = ([[
      ngx.header.Connection = "close"
      if ngx.worker.id() ~= %d then return "elsewhere" end
    ]]):format(id) .. code
    local argument = { ... }
    local results
    nginx.wait_for("a worker", function()
      results = { running.nginx:eval(text, argument) }
      return results[1] ~= "elsewhere"
    end)
    return (table.unpack or unpack)(results) -- luacheck: ignore 113 143
  end

  local DECIDE = [[
    local given = ...
    local decision, source = gate:decide { address = given[1], network = given[2] }
    return decision.action .. " " .. source
  ]]

  local function seen(id, address, network)
    return in_worker(id, DECIDE, address, network or "eth")
  end

  it("comes from the worker's LRU, or else from the dict, or else from the service", function()
    start { workers = 2 }
    assert.equal("block upstream", seen(0, BAD))
    assert.equal("block lru", seen(0, BAD))
    assert.equal("block dict", seen(1, BAD))
    assert.equal("block lru", seen(1, BAD))
    assert.equal("allow upstream", seen(1, CLEAN))
    assert.equal("allow dict", seen(0, CLEAN))
    assert.equal(2, asked())
  end)

  it("is fresh in the dict at any uptime", function()
    start {}
    for _, days in ipairs { 1, 30, 60, 400 } do
      local source = running.nginx:eval(
        [[
          local days = ...
          local cache = require("riskscreen.nginx.cache").new {
            dict = ngx.shared.riskscreen,
            lru = 0,
            clock = function()
              return days * 86400
            end,
            fetch = function()
              return { action = "allow", reasons = { { action = "allow", message = "clean" } } }
            end,
          }
          cache:get("an address", "tron")
          return (select(2, cache:get("an address", "tron")))
        ]],
        days
      )
      assert.equal("dict", source, days)
    end
  end)

  it("is purged in all of them", function()
    start { workers = 4 }
    for id = 0, 3 do
      seen(id, BAD)
      seen(id, CLEAN)
    end
    assert.equal(2, asked())
    assert.is_true(in_worker(2, "return gate:purge((...)[1])", "0X" .. BAD:sub(3):upper()))
    assert.equal("block upstream", seen(1, BAD))
    for _, id in ipairs { 0, 2, 3 } do
      assert.equal("block dict", seen(id, BAD))
      assert.equal("allow lru", seen(id, CLEAN))
    end
    assert.equal(3, asked())
  end)

  it("is purged for every policy in every worker", function()
    start { workers = 2 }
    local decide = [[
      local decision, source = gate:decide {
        address = (...)[1],
        network = "eth",
        policy = require("riskscreen.policy").new { rules = { { level = "high", action = "review" } } },
      }
      return decision.action .. " " .. source
    ]]
    assert.equal("review upstream", in_worker(0, decide, BAD))
    assert.equal("review lru", in_worker(0, decide, BAD))
    assert.is_true(in_worker(1, "return gate:purge((...)[1])", BAD))
    assert.equal("review upstream", in_worker(0, decide, BAD))
  end)

  it("is purged for every policy in the worker, also where the others cannot be told", function()
    start {
      workers = 2,
      init = [[
        gate = new_gate { dict = false }
        policies = {}
        for index = 1, 6 do
          policies[index] = require("riskscreen.policy").new {
            rules = { { level = "high", action = "review", name = "rule " .. index } },
          }
        end
        function sources(address)
          local seen = {}
          for index, policy in ipairs(policies) do
            seen[index] = select(2, gate:decide { address = address, network = "eth", policy = policy })
          end
          return table.concat(seen, " ")
        end]],
      locations = {},
    }
    local before, kept, ok, after = running.nginx:eval(
      [[
      local before, kept = sources((...)), sources((...))
      return before, kept, gate:purge((...)) or false, sources((...))]],
      BAD
    )
    assert.equal(("lru "):rep(6), kept .. " ")
    assert.is_false(ok)
    assert.equal(before, after)
  end)

  for _, workers in ipairs { 1, 4 } do
    it(("is fetched once for two hundred requests at once, by %d workers"):format(workers), function()
      start { workers = workers }
      running.service:fault { kind = "delay", delay = 0.5, match = { address = BAD } }
      local spellings = { BAD, BAD:lower(), "0X" .. BAD:sub(3), "0x" .. BAD:sub(3):upper() }
      local statuses, bodies = {}, {}
      for index = 1, 200 do
        local target = ("/withdraw?to=%s&on=%s"):format(
          spellings[index % 4 + 1],
          index % 3 == 0 and "eth" or "ethereum"
        )
        bodies[index] = function()
          statuses[index] = running.status(target)
        end
      end
      riskscreen.gather(bodies)
      assert.equal(200, #statuses)
      for _, status in ipairs(statuses) do
        assert.equal(403, status)
      end
      assert.equal(1, asked())
    end)
  end

  for _, workers in ipairs { 1, 2 } do
    it(("is fetched again when nginx ends the request that fetches it, with %d workers"):format(workers), function()
      start {
        workers = workers,
        init = ("gate = new_gate { %s }"):format((SOURCES:gsub("timeout = 10", "timeout = 3600"))),
        server = [[
          location = /leave {
            access_by_lua_block {
              ngx.thread.spawn(function() ngx.sleep(0.4) ngx.exit(204) end)
              gate:enforce()
            }
          }
        ]],
      }
      running.service:fault { kind = "hang" }
      local query = ("?to=%s&on=eth"):format(BAD)
      local target = "/withdraw" .. query
      riskscreen.run(function()
        local leader = riskscreen.spawn(running.nginx.get, "/leave" .. query)
        while asked() == 0 do
          riskscreen.sleep(0.01)
        end
        local waiting = riskscreen.spawn(function()
          return running.status(target)
        end)
        riskscreen.sleep(0.1)
        running.service:clear_faults()
        leader:await()
        -- nginx ends it at once, and the worker notices when it collects its garbage.
        local ended = false
        local collecting = riskscreen.spawn(function()
          while not ended do
            running.nginx:eval "ngx.header.Connection = 'close' collectgarbage() collectgarbage()"
            riskscreen.sleep(0.01)
          end
        end)
        assert.equal(403, (waiting:await(20)))
        ended = true
        collecting:await()
      end)
      assert.equal(2, asked())
    end)
  end

  it("is shared by all spellings of an address and of its network", function()
    start { workers = 2 }
    for index = 3, 42 do
      local spelling = "0x" .. BAD:sub(3, index):upper() .. BAD:sub(index + 1):lower()
      assert.equal(403, running.status(("/withdraw?to=%s&on=eth"):format(spelling)))
      assert.equal(403, running.status(("/withdraw?to=0X%s&on=ethereum"):format(spelling:sub(3))))
    end
    assert.equal(1, asked())
  end)

  it("is still in the dict after a reload", function()
    start { workers = 2 }
    assert.equal("block upstream", seen(0, BAD))
    local before = running.nginx:workers()
    running.nginx:reload()
    nginx.wait_for("other workers", function()
      local now = running.nginx:workers()
      return #now == 2 and now[1] ~= before[1] and now[2] ~= before[2] and now[1] ~= before[2] and now[2] ~= before[1]
    end)
    assert.equal("block dict", seen(0, BAD))
    assert.equal("block dict", seen(1, BAD))
    assert.equal(1, asked())
  end)

  it("is right if the dict has no room", function()
    start { workers = 2, dict_size = "32k", init = ("gate = new_gate { lru = 0, %s }"):format(SOURCES) }
    local pushed_out = in_worker(
      0,
      [[
      local forced
      for index = 1, 3000 do
        local _, _, forcible = ngx.shared.riskscreen:set("another's " .. index, ("x"):rep(index % 200))
        forced = forced or forcible
      end
      return forced
    ]]
    )
    assert.is_true(pushed_out)
    for turn = 1, 5 do
      assert.matches("^block", seen(turn % 2, BAD))
      assert.matches("^allow", seen(turn % 2, CLEAN))
    end
  end)

  it("does not come from a damaged entry", function()
    start { workers = 1, init = ("gate = new_gate { lru = 0, %s }"):format(SOURCES) }
    assert.equal("block upstream", seen(0, BAD))
    local damage = [[
      local dict, change, count = ngx.shared.riskscreen, loadstring((...)[1]), 0
      for _, key in ipairs(dict:get_keys(0)) do
        if key:find("riskscreen:entry:", 1, true) then
          local value, flags = dict:get(key)
          dict:set(key, (change(tostring(value))), 0, flags)
          count = count + 1
        end
      end
      return count
    ]]
    for _, change in ipairs {
      [[return (...) .. '{"action":"allow"}']],
      [[return (...):sub(1, -2)]],
      [[return "\255" .. (...):sub(2)]],
      [[return (...):reverse()]],
      [[return ""]],
      [[return -5]],
    } do
      assert.equal("block dict", seen(0, BAD))
      assert.equal(1, in_worker(0, damage, change))
      assert.equal("block upstream", seen(0, BAD), change)
    end
  end)

  describe("under a clock that the test sets", function()
    local INIT = ([[
      ahead, asked = 0, 0
      gate = new_gate { %s }
      answer = "block"
      cache = require("riskscreen.nginx.cache").new {
        dict = ngx.shared.riskscreen,
        ttl = { allow = 100, block = 100, unknown = 1 },
        stale = { block = 100, allow = 0 },
        clock = function() return require("riskscreen.runtime").nginx_time() + ahead end,
        fetch = function(address, network)
          asked = asked + 1
          return { action = answer, reasons = {}, address = address, network = network }
        end,
      }
    ]]):format(SOURCES)

    local STEP = [[
      local seconds, says = (...)[1], (...)[2]
      ahead, answer = ahead + seconds, says
      local decision, source = cache:get("0xab", "eth", 5)
      return decision.action .. " " .. source .. (decision.stale and " marked" or "")
    ]]

    local function step(seconds, says)
      return running.nginx:eval(STEP, { seconds, says })
    end

    it("expires when it should", function()
      start { workers = 1, init = INIT }
      assert.equal("allow upstream", step(0, "allow"))
      assert.equal("allow lru", step(90, "block"))
      assert.equal("block upstream", step(10, "block"))
      assert.equal(2, running.nginx:eval "return asked")
    end)

    it("is served after it has expired, and fetched in the background, if it is a block", function()
      start { workers = 1, init = INIT }
      assert.equal("block upstream", step(0, "block"))
      assert.equal("block stale marked", step(100, "allow"))
      nginx.wait_for("the fetch in the background", function()
        return step(0, "allow") == "allow lru"
      end)
      assert.equal(2, running.nginx:eval "return asked")
    end)

    it("is served while the service fails, for as long as it may be", function()
      start { workers = 1, init = INIT }
      assert.equal("block upstream", step(0, "block"))
      assert.equal("block stale marked", step(100, "unknown"))
      assert.equal("block stale marked", step(90, "unknown"))
      assert.matches("^unknown", step(10, "unknown"))
    end)
  end)
end)
