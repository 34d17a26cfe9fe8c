-- The account's lists in a real nginx with several workers: one of them fetches, all of them answer from that.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local sandbox = require "riskscreen.sandbox"

local WORKERS = 3
local OTHER_KEY = "sandbox-key-of-another-account"
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
      gate = new_gate { network = "eth", on_unknown = "allow", account_lists = %s,
        variables = { action = "action", source = "source" } }
      function source_of(client, address)
        local other = new_gate { network = "eth", account_lists = %s, client = client }
        return select(2, other:decide { address = address })
      end
    ]]):format(lists, lists)
    options.locations = {
      ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to, network = ngx.var.arg_network or 'eth' }",
    }
    options.behind = [[
      header_filter_by_lua_block { ngx.header["X-Source"] = ngx.ctx.riskscreen_source }
      content_by_lua_block { ngx.print("passed") }]]
    options.server = [[location = /metrics { content_by_lua_block { gate:metrics() } }
      location = /status { content_by_lua_block { gate:status() } }]]
    options.sandbox = {
      accounts = {
        [sandbox.default_key] = {
          blacklist = options.blacklist or BLACKLIST,
          whitelist = WHITELIST,
        },
        [OTHER_KEY] = {},
      },
    }
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

  it("are those of its own account, also beside a gate of another one in the same dict", function()
    start "{ interval = 0.2, max_age = 60, whitelist = true }"
    refreshed()
    assert.same({ 200, "list" }, { ask "generally-high-eth" })
    local client = { base_url = running.server.url, access_key = OTHER_KEY, account = "another", retry = false }
    for _, name in ipairs { "generally-high-eth", "clean-eth" } do
      local source = running.nginx:eval("return source_of((...)[1], (...)[2])", { client, addresses[name] })
      assert.equal("upstream", source, name)
    end
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
    account().blacklist:add({ address = addresses["entity-exchange"], risks = high "hack" }, 1)
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

  it("reads lists of many pages", function()
    local blacklist = {}
    for index = 1, 25 do
      blacklist[index] = { address = ("0x%040x"):format(index), network = "eth", risks = high "scam" }
    end
    start("{ interval = 3600, max_age = 7200, page_size = 4 }", { blacklist = blacklist })
    nginx.wait_for("the lists", function()
      return select(2, ask(blacklist[25].address)) == "list"
    end)
    for _, entry in ipairs(blacklist) do
      assert.same({ 403, "list" }, { ask(entry.address) })
    end
    assert.equal(7, asked "listBlacklistAddresses")
    assert.equal(25, metric("riskscreen_lists_entries", { list = "blacklist" }))
    assert.equal(0, metric("riskscreen_lists_entries", { list = "whitelist" }))
  end)

  it("drops nothing when a page does not come", function()
    start "{ interval = 0.2, max_age = 60, whitelist = true, timeout = 1 }"
    refreshed()
    account().blacklist:remove(addresses["low-eth"])
    running.service:fault { kind = "status", status = 503, match = { operation = "listWhitelistAddresses" } }
    refreshed "failure"
    assert.same({ 403, "list" }, { ask "low-eth" })
    assert.same({ 200, "list" }, { ask "generally-high-eth" })
  end)

  it("keeps the lists over a reload", function()
    start("{ interval = 3600, max_age = 7200 }", { workers = 1 })
    nginx.wait_for("the lists", function()
      return select(2, ask "clean-eth") == "list"
    end)
    local before = running.nginx:workers()[1]
    running.nginx:reload()
    nginx.wait_for("a new worker", function()
      local workers = running.nginx:workers()
      return #workers == 1 and workers[1] ~= before
    end)
    assert.same({ 403, "list" }, { ask "low-eth" })
    running.nginx:eval "ngx.sleep(0.2)"
    assert.equal(1, asked "listBlacklistAddresses")
  end)

  it("are refused where they cannot work", function()
    start "{}"
    for code, message in pairs {
      ["account_lists = {}, dict = false"] = "account_lists needs dict",
      ["account_lists = { interval = 60, max_age = 60 }"] = "lists.max_age must be more than account_lists.interval",
      ["account_lists = { white = true }"] = "unknown",
      ["account_lists = {}, client = { identity = 'x', screen = error }"] = "account_lists needs a client with",
    } do
      local ok, failure = running.nginx:eval("return pcall(new_gate, { " .. code .. " })")
      assert.is_false(ok)
      assert.truthy(failure:find(message, 1, true), failure)
    end
  end)

  it("finds room for the lists in a dict that is full of verdicts", function()
    start("{ interval = 0.2, max_age = 60, whitelist = true }", { dict_size = "40k" })
    local count = 0
    nginx.wait_for("the dict to be full", function()
      count = count + 1
      ask(("0x%040x"):format(count))
      return count > 300
    end)
    assert.equal(0, (running.nginx:eval "return ngx.shared.riskscreen:free_space()"))
    account().blacklist:add({ address = addresses["entity-exchange"], risks = high "hack" }, 1)
    refreshed()
    assert.same({ 403, "list" }, { ask "entity-exchange" })
    assert.same({ 403, "list" }, { ask "low-eth" })
    assert.same({ 200, "list" }, { ask "generally-high-eth" })
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
    assert.truthy(running.get("/status").body:find("the whitelist no longer counts", 1, true))
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

  it("fetches them in another worker when one has crashed while it did", function()
    start("{ interval = 1, max_age = 60, timeout = 2 }")
    running.service:fault { kind = "hang", match = { operation = "listBlacklistAddresses" } }
    nginx.wait_for("a refresh", function()
      return (ask "high-eth") and asked "listBlacklistAddresses" == 1
    end)
    local holder = running.nginx:eval [[
      for _, key in ipairs(ngx.shared.riskscreen:get_keys(0)) do
        if key:find ":lease$" then
          return tonumber(ngx.shared.riskscreen:get(key):match "%d+$")
        end
      end]]
    running.service:clear_faults()
    kill(holder)
    assert.equal("upstream", select(2, ask "entity-exchange"))
    refreshed()
    assert.same({ 403, "list" }, { ask "low-eth" })
    stop { "exited on signal 9" }
  end)

  it("fetches them in another worker when one has crashed", function()
    start "{ interval = 0.2, max_age = 60, timeout = 0.5 }"
    refreshed()
    for _, pid in ipairs(running.nginx:workers()) do
      kill(pid)
      account().blacklist:remove(addresses["low-eth"])
      refreshed()
      account().blacklist:add({ address = addresses["low-eth"], risks = high "hack" }, 1)
      refreshed()
      assert.same({ 403, "list" }, { ask "low-eth" })
    end
    stop { "exited on signal 9", "the lists are not refreshed" }
  end)
end)
