-- The account's lists in a real nginx with several workers: one of them fetches, all of them answer from that.
local addresses = require "riskscreen.sandbox.addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local sandbox = require "riskscreen.sandbox"

local WORKERS = 3
local MANY = 30

local function high(kind)
  return { { riskLevel = "high", riskType = kind } }
end

local BLACKLIST = {
  { address = addresses["clean-eth"], network = "eth", risks = high "scam" },
  { address = addresses["low-eth"] },
}
local WHITELIST = {
  { address = addresses["generally-high-eth"], network = "eth" },
  { address = addresses["clean-eth"], network = "eth" },
}

describe("a gate with the account's lists", function()
  local running

  local function start(lists, options)
    options = options or {}
    options.workers = options.workers or WORKERS
    options.init = ([[
      gate = new_gate { network = "eth", on_unknown = "allow", lists = %s,
        variables = { action = "action", source = "source" } }
    ]]):format(lists)
    options.locations = {
      ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to, network = ngx.var.arg_network or 'eth' }",
    }
    options.behind = [[
      header_filter_by_lua_block { ngx.header["X-Source"] = ngx.ctx.riskscreen_source }
      content_by_lua_block { ngx.print("passed") }]]
    options.server = [[location = /metrics { content_by_lua_block { gate:metrics() } }
      location = /status { content_by_lua_block { gate:status() } }]]
    options.sandbox = { accounts = { [sandbox.default_key] = { blacklist = BLACKLIST, whitelist = WHITELIST } } }
    running = gates.start(options)
  end

  local function stop(allowed)
    local ending = running
    running = nil
    if ending then
      ending.close(allowed)
    end
  end

  after_each(function()
    stop { "the lists are not refreshed" }
  end)

  local function account()
    return running.service:account(running.server.access_key)
  end

  local function ask(name, more)
    local answer = running.get("/withdraw?to=" .. (addresses[name] or name) .. (more or ""))
    return answer.status, answer.headers["x-source"]
  end

  -- How often an operation was asked for, about an address where one is given.
  local function asked(operation, name)
    local count = 0
    for _, seen in ipairs(running.service:requests()) do
      if seen.operation == operation and (not name or seen.parameters.address == addresses[name]) then
        count = count + 1
      end
    end
    return count
  end

  local function metric(name, labels)
    labels = labels or {}
    labels.gate = "default"
    return prometheus.parse(running.get("/metrics").body):get(name, labels)
  end

  -- Waits for a refresh that began from now on.
  local function refreshed(result)
    local labels = { result = result or "success" }
    local before = metric("riskscreen_lists_refreshes_total", labels)
    nginx.wait_for("the lists", function()
      ask "high-eth" -- has every worker begin
      return metric("riskscreen_lists_refreshes_total", labels) >= before + 2
    end)
  end

  it("refuses who is on the blacklist without asking about him, in any spelling", function()
    start "{ interval = 0.2, max_age = 60 }"
    refreshed()
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask "clean-eth" })
    end
    assert.same({ 403, "list" }, { ask(addresses["clean-eth"]:lower(), "&network=ethereum") })
    assert.same({ 403, "list" }, { ask "low-eth" })
    assert.same({ 403, "list" }, { ask("low-eth", "&network=bsc") })
    assert.equal(0, asked("getAddressRisk", "clean-eth") + asked("getAddressRisk", "low-eth"))
  end)

  it("lets pass who is on the whitelist, if it shall, unless he is on the blacklist, too", function()
    start "{ interval = 0.2, max_age = 60, whitelist = true }"
    refreshed()
    assert.same({ 200, "list" }, { ask "generally-high-eth" })
    assert.same({ 403, "list" }, { ask "clean-eth" })
    assert.equal(0, asked("getAddressRisk", "generally-high-eth"))
    assert.same({ 403, "upstream" }, { ask("generally-high-eth", "&network=bsc") })
  end)

  it("asks about who is on the whitelist, if nobody said that it counts", function()
    start "{ interval = 0.2, max_age = 60 }"
    refreshed()
    assert.same({ 403, "upstream" }, { ask "generally-high-eth" })
    assert.equal(0, asked "listWhitelistAddresses")
  end)

  it("follows the lists in all workers, whatever they remember", function()
    start "{ interval = 0.2, max_age = 60, whitelist = true }"
    refreshed()
    for _ = 1, MANY do
      assert.equal(200, (ask "generally-high-eth"))
      assert.equal(200, (ask "entity-exchange"))
    end
    account().whitelist:remove(addresses["generally-high-eth"], "eth")
    account().blacklist:add { address = addresses["entity-exchange"], risks = high "hack", created_at = 1 }
    account().blacklist:remove(addresses["low-eth"])
    refreshed()
    for _ = 1, MANY do
      assert.equal(403, (ask "generally-high-eth"))
      assert.same({ 403, "list" }, { ask "entity-exchange" })
      assert.equal(200, (ask "low-eth"))
    end
  end)

  it("has one worker fetch them, in an interval", function()
    start "{ interval = 3600, max_age = 7200, whitelist = true }"
    nginx.wait_for("the lists", function()
      return select(2, ask "clean-eth") == "list"
    end)
    running.nginx:eval "ngx.sleep(0.5)"
    assert.equal(1, asked "listBlacklistAddresses")
    assert.equal(1, asked "listWhitelistAddresses")
  end)

  it("begins before the first request where the workers say so", function()
    start("{ interval = 3600, max_age = 7200 }", { http = "init_worker_by_lua_block { gate:start() }" })
    nginx.wait_for("the lists", function()
      return running.nginx:eval "return ngx.sleep(0.01)" or asked "listBlacklistAddresses" == 1
    end)
  end)

  it("keeps blocking, and lets nobody pass by an old list, while the service is down", function()
    start "{ interval = 0.2, max_age = 1, whitelist = true }"
    refreshed()
    running.service:fault { kind = "status", status = 503 }
    nginx.wait_for("the whitelist to be too old", function()
      return select(2, ask "generally-high-eth") ~= "list"
    end)
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask "clean-eth" })
      assert.same({ 403, "list" }, { ask "low-eth" })
    end
    refreshed "failure"
    assert.is_true(metric "riskscreen_lists_age_seconds" >= 1)
    assert.truthy(running.get("/status").body:find("the whitelist counts no longer", 1, true))
    running.service:clear_faults()
    nginx.wait_for("the whitelist to count again", function()
      return select(2, ask "generally-high-eth") == "list"
    end)
  end)

  local function kill(pid)
    os.execute("kill -KILL " .. pid)
    nginx.wait_for("another worker", function()
      local workers = running.nginx:workers()
      local has_ended = #workers == WORKERS
      for _, other in ipairs(workers) do
        has_ended = has_ended and other ~= pid
      end
      return has_ended
    end)
  end

  it("fetches them in another worker when one has crashed", function()
    start "{ interval = 0.2, max_age = 60, timeout = 0.5 }"
    refreshed()
    for _, pid in ipairs(running.nginx:workers()) do
      kill(pid)
      account().blacklist:remove(addresses["low-eth"])
      refreshed()
      account().blacklist:add { address = addresses["low-eth"], risks = high "hack", created_at = 1 }
      refreshed()
      assert.same({ 403, "list" }, { ask "low-eth" })
    end
    stop { "exited on signal 9", "the lists are not refreshed" }
  end)
end)
