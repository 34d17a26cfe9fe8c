local addresses = require "riskscreen.address"
local caches = require "riskscreen.nginx.cache"
local EPOCH = "riskscreen:epoch"
local lists = require "riskscreen.nginx.account_lists"
local policies = require "riskscreen.policy"
local shared_dict = require "spec.support.shared_dict"
local tables = require "riskscreen.util.tables"
local worlds = require "spec.support.cache_world"

local INTERVAL, MAX_AGE, TIMEOUT = 60, 300, 10
local PAGE = 2 -- items
local ONE = "0x7582aE01C28c381B8aE1263231c68669Be79fCfB"
local OTHER = "0x5eF2562A16fea6b5915c7bcAd7D264c7EB2b4482"
local TRON = "TDFavbNnDVaqmMWSBMJeq52VxeKpfdFhEn"
local EVERYWHERE = "0x52908400098527886E0F7030069857D2E4169EE7"

local now, date, dict, service, log

local function high(kind)
  return { { riskLevel = "high", riskType = kind } }
end

local function medium()
  return { { riskLevel = "generally-high", riskType = "launder-money" } }
end

-- A client whose pages come from `service`, which may fail at one of them.
local function list_of(name)
  return {
    pages = function()
      local page = 0
      return function()
        page = page + 1
        service.pages = service.pages + 1
        if service.before_page then
          service.before_page(name, page)
        end
        local items = {}
        for index = (page - 1) * PAGE + 1, page * PAGE do
          items[#items + 1] = service[name][index]
        end
        return items[1] and items
      end
    end,
  }
end

-- The refresher of a worker.
local function new_worker(identity, settings)
  local all = {
    dict = dict,
    client = { blacklist = list_of "blacklist", whitelist = list_of "whitelist" },
    id = "account",
    interval = INTERVAL,
    max_age = MAX_AGE,
    whitelist = true,
    page_size = PAGE,
    timeout = TIMEOUT,
    now = function()
      return now
    end,
    identity = function()
      return identity
    end,
    exiting = function()
      return false
    end,
    log = function(message)
      table.insert(log, message)
    end,
    pause = function() end,
    refreshed = function() end,
  }
  for name, value in pairs(settings or {}) do
    all[name] = value
  end
  return lists.new(all)
end

local worker

before_each(function()
  now, date, log = 1000000, 1700000000, {}
  dict = shared_dict.new(function()
    return date + now
  end)
  service = { blacklist = {}, whitelist = {}, pages = 0 }
  worker = new_worker "one"
end)

local function found(address, network, policy)
  local _, canonical_address, canonical_network = addresses.key(address, network or "eth")
  return worker:under(policy or policies.new()):find(assert(canonical_address), canonical_network, now)
end

local function action(...)
  local decision = found(...)
  return decision and decision.action
end

local function refresh(some)
  now = now + INTERVAL;
  (some or worker):refresh()
end

describe("lists of another machine", function()
  local pages, pages_at, is_taken, results

  before_each(function()
    pages, is_taken, results = nil, false, {}
    worker.settings.refreshed = function(result)
      table.insert(results, result)
    end
    worker:share {
      read = function()
        return pages, pages_at
      end,
      take_lease = function()
        return not is_taken
      end,
      write = function() end,
      end_lease = function() end,
    }
  end)

  it("are taken in place of a fetch", function()
    pages, pages_at = { { list = "blacklist", items = { { address = ONE, network = "eth" } } } }, now + INTERVAL - 5
    refresh()
    assert.equal("block", action(ONE))
    assert.equal(0, service.pages)
  end)

  it("are refreshed only once they are there", function()
    is_taken = true
    refresh()
    assert.same({}, results)
    pages, pages_at = { { list = "blacklist", items = { { address = ONE, network = "eth" } } } }, now
    refresh()
    assert.same({ "success" }, results)
    assert.equal("block", action(ONE))
    assert.equal(0, service.pages)
  end)

  it("count where they were fetched before this machine has started", function()
    now = 10 - INTERVAL
    local whitelisted = { list = "whitelist", items = { { address = OTHER, chain = "eth" } } }
    pages, pages_at = { { list = "blacklist", items = { { address = ONE, network = "eth" } } }, whitelisted }, -20.5
    refresh()
    assert.same({ "block", "allow" }, { action(ONE), (action(OTHER)) })
    assert.same({ 30.5, 1, 1 }, { worker:facts().age_seconds, worker:facts().blacklist, worker:facts().whitelist })
    pages, pages_at = { whitelisted }, -10
    refresh()
    assert.is_nil(action(ONE))
  end)

  it("do not replace newer ones, when Redis has lost its last writes", function()
    service.blacklist = { { address = ONE, network = "eth" } }
    refresh()
    pages, pages_at = { { list = "blacklist", items = {} } }, now - 5
    refresh()
    assert.equal("block", action(ONE))
  end)
end)

describe("an address on the blacklist", function()
  it("is blocked for the risks that the policy blocks, in any spelling", function()
    service.blacklist = { { address = ONE, network = "ethereum", risks = high "scam" } }
    assert.is_nil(action(ONE))
    refresh()
    assert.equal("block", action(ONE))
    assert.equal("block", action(ONE:lower(), "ethereum"))
    assert.is_nil(action(ONE, "bsc"))
    assert.is_nil(action(OTHER))
    local decision = found(ONE)
    assert.same({ ONE:lower(), "eth", true, false }, {
      decision.address,
      decision.network,
      decision.cached,
      decision.stale,
    })
    assert.equal("scam", decision.reasons[1].risk.riskType)
  end)

  it("is evaluated by each policy", function()
    service.blacklist = { { address = ONE, network = "eth", risks = medium() } }
    refresh()
    assert.equal(
      "block",
      action(ONE, "eth", policies.new { rules = { { level = "generally-high", action = "block" } } })
    )
    assert.is_nil(action(ONE))
  end)

  it("is blocked in every spelling", function()
    service.blacklist = {
      { address = "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", risks = high "scam" },
      { address = "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms", network = "iotex", risks = high "scam" },
      { address = "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4", network = "btc", risks = high "scam" },
    }
    refresh()
    for _, case in ipairs {
      { "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh", "ltc" },
      { "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "btc" },
      { "0xda7e12ef57c236a06117c5e0d04a228e7181cf36", "iotex" },
      { "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4", "btc" },
    } do
      assert.equal("block", action(case[1], case[2]), case[1])
    end
  end)

  it("is blocked as a gate finds it that checks no checksum, whatever the whitelist says", function()
    for spelling, network in pairs {
      BC1QW508D6QQJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4 = "btc",
      io1mflp9m6hqgm2qcghchsdqj3z3eccrnekx9p0ms = "iotex",
    } do
      local canonical = assert(addresses.validate(spelling, network, "format"))
      assert.not_equal(spelling, canonical)
      service.whitelist = { { address = canonical, chain = network } }
      for _, its_network in ipairs { network, false } do
        service.blacklist = { { address = spelling, network = its_network or nil } }
        refresh()
        assert.equal("block", action(canonical, network))
        assert.equal("block", action(spelling, network))
      end
      service.blacklist, service.whitelist = { { address = canonical } }, { { address = spelling, chain = network } }
      refresh()
      assert.equal("block", action(canonical, network))
      assert.is_nil(action(spelling, network))
    end
  end)

  it("is blocked on every network where the item names none, or an unknown one", function()
    service.blacklist = {
      { address = ONE, risks = high "scam" },
      { address = OTHER, network = "Ethereum", risks = high "scam" },
    }
    refresh()
    for _, address in ipairs { ONE, OTHER } do
      assert.equal("block", action(address, "eth"))
      assert.equal("block", action(address, "polygon"))
    end
  end)

  it("is blocked on the chains that its risks name, too", function()
    local risks = high "scam"
    risks[1].chains = { { chain = "eth", chainName = "Ethereum" }, { chain = "bsc", chainName = "BSC" } }
    service.blacklist = { { address = ONE, network = "bsc", risks = risks } }
    service.whitelist = { { address = ONE, chain = "eth" } }
    refresh()
    assert.same({ "block", "block" }, { action(ONE, "bsc"), action(ONE, "eth") })
    assert.is_nil(action(ONE, "polygon"))
    assert.equal(1, #found(ONE, "bsc").reasons)
  end)

  it("is blocked where an item gives no reason, whatever another item says", function()
    service.blacklist = {
      { address = ONE, network = "eth" },
      { address = OTHER, network = "eth", risks = {} },
      { address = TRON, network = "tron", risks = medium() },
      { address = TRON, network = "tron" },
    }
    refresh()
    assert.same({ "block", "block", "block" }, { action(ONE), action(OTHER), action(TRON, "tron") })
  end)

  it("has the risks of all its items", function()
    service.blacklist = {
      { address = ONE, network = "eth", risks = medium() },
      { address = ONE:lower(), network = "ethereum", risks = high "scam" },
    }
    refresh()
    assert.equal("block", action(ONE))
    assert.equal(1, worker:facts().blacklist)
  end)

  it("does not pass by the whitelist, even where it is not blocked", function()
    service.blacklist = {
      { address = ONE, risks = high "scam" },
      { address = OTHER, network = "eth", risks = medium() },
      { address = TRON, risks = { { riskLevel = "never seen", riskType = "scam" } } },
      { address = EVERYWHERE, risks = medium() },
    }
    service.whitelist = {
      { address = ONE, chain = "eth" },
      { address = OTHER:lower(), chain = "ethereum" },
      { address = TRON, chain = "tron" },
      { address = EVERYWHERE, chain = "eth" },
    }
    refresh()
    assert.equal("block", action(ONE))
    assert.is_nil(action(OTHER))
    assert.is_nil(action(EVERYWHERE))
    assert.is_nil(action(TRON, "tron"))
  end)
end)

describe("an address on the whitelist", function()
  before_each(function()
    service.whitelist = { { address = ONE, chain = "ethereum" } }
  end)

  it("passes on its network", function()
    refresh()
    assert.equal("allow", action(ONE:lower()))
    assert.is_nil(action(ONE, "bsc"))
  end)

  it("passes only where the policy allows it", function()
    refresh()
    assert.is_nil(action(ONE, "eth", policies.new { rules = { { no_risk = true, action = "review" } } }))
    assert.is_nil(action(ONE, "eth", policies.new { rules = { { level = "low", action = "allow" } } }))
    assert.equal("allow", action(ONE, "eth", policies.new { rules = { { whitelist = true, action = "allow" } } }))
  end)

  it("does not pass where the policy needs another lookup", function()
    refresh()
    local rules = { { category = { "mixer" }, action = "block" }, { no_risk = true, action = "allow" } }
    assert.is_nil(action(ONE, "eth", policies.new { rules = rules }))
  end)

  it("does not pass by an item without a known network", function()
    service.whitelist = { { address = ONE }, { address = OTHER, chain = "Ethereum" } }
    refresh()
    assert.same({}, { action(ONE), action(OTHER) })
    assert.equal(0, worker:facts().whitelist)
  end)

  it("does not count unless the option says so, even if another gate fetched it", function()
    refresh()
    worker = new_worker("two", { whitelist = false })
    assert.is_nil(action(ONE))
  end)
end)

describe("a refresh", function()
  before_each(function()
    service.blacklist = {
      { address = ONE, risks = high "scam" },
      { address = TRON, network = "tron", risks = high "scam" },
      { address = "0x" .. ("1"):rep(40), network = "eth", risks = high "scam" },
    }
    service.whitelist = { { address = OTHER, chain = "eth" } }
    refresh()
  end)

  it("removes addresses that are no longer on a list", function()
    service.blacklist, service.whitelist = {}, {}
    assert.same({ "block", "allow" }, { action(ONE), action(OTHER) })
    refresh()
    assert.same({}, { action(ONE), action(OTHER) })
  end)

  it("that fails half-way changes nothing and reports the failure", function()
    service.blacklist[1] = { address = OTHER, risks = high "scam" }
    service.before_page = function(name)
      if name == "whitelist" then
        error("the service is down", 0)
      end
    end
    refresh()
    assert.same({ "block", "allow" }, { action(ONE), action(OTHER) })
    assert.equal("the lists are not refreshed: the service is down", log[1])
    service.before_page = nil
    refresh()
    assert.same({ nil, "block" }, { action(ONE), action(OTHER) })
  end)

  it("that stays out leaves the blacklist, and the whitelist until max_age", function()
    local refreshed_at = now
    now = refreshed_at + MAX_AGE - 1
    assert.equal("allow", action(OTHER))
    now = refreshed_at + MAX_AGE
    assert.is_nil(action(OTHER))
    assert.same({ "block", true }, { action(ONE), found(ONE).stale })
  end)

  it("holds and ends whatever date is set", function()
    for _, step in ipairs { -1e6, -86400, 86400, 1e9 } do
      date = date + step
      assert.equal("block", action(ONE))
      refresh()
      assert.same({ "block", "allow" }, { action(ONE), action(OTHER) })
    end
    service.before_page = function()
      error("the service is down", 0)
    end
    date = date - 86400
    now = now + MAX_AGE
    assert.is_nil(action(OTHER))
    assert.same({ "block", true }, { action(ONE), found(ONE).stale })
  end)

  it("is made on time, whatever date is set", function()
    for _, step in ipairs { -86400, 86400 } do
      date = date + step
      local pages = service.pages
      refresh()
      assert.is_true(service.pages > pages)
    end
  end)

  it("of a release that wrote dates lets no address pass", function()
    now = date
    refresh()
    now = 1000
    assert.is_nil(action(OTHER))
    assert.equal("block", action(ONE))
  end)

  it("forgets what a failed one wrote, also where the dict has lost the state", function()
    local third = "0x" .. ("2"):rep(40)
    now = now + 1000
    service.blacklist[4] = { address = third, network = "eth", risks = high "scam" }
    local set = dict.set
    dict.set = function(self, key, ...)
      if key:find "state$" then
        return nil, "no memory"
      end
      return set(self, key, ...)
    end
    refresh()
    dict.set = nil
    assert.equal("block", action(third))
    dict:delete "riskscreen:list:account:state"
    table.remove(service.blacklist)
    now = now + 1
    dict:delete "riskscreen:list:account:lease"
    worker:refresh()
    assert.is_true(action(third) ~= "block")
    assert.equal("block", action(ONE))
  end)

  it("logs and counts the items that are no address", function()
    service.blacklist[4] = { address = ONE:sub(1, -2), risks = high "scam" }
    service.blacklist[5] = { address = ONE, network = "tron" }
    service.whitelist[2] = { address = ONE:sub(1, -2), chain = "eth" }
    refresh()
    refresh()
    assert.equal(1, #log)
    assert.equal("the lists have 3 items without an address, such as '" .. ONE:sub(1, -2) .. "'", log[1])
    assert.equal(3, worker:facts().invalid)
    table.remove(service.blacklist)
    refresh()
    assert.equal(2, #log)
  end)

  it("gives the lists a new value, and each look another one while the last refresh is unknown", function()
    local view = worker:under(policies.new())
    local number, epoch = view:generation(), dict:get(EPOCH) or 0
    assert.equal(number, view:generation())
    dict:delete "riskscreen:list:account:state"
    assert.not_equal(view:generation(), view:generation())
    for _, change in ipairs {
      function()
        table.remove(service.blacklist, 1)
      end,
      function()
        service.blacklist[1].risks = medium()
      end,
      function()
        service.blacklist[1], service.whitelist[1] =
          { address = OTHER, network = "eth", risks = high "scam" }, { address = TRON, chain = "tron" }
      end,
    } do
      change()
      refresh()
      assert.not_equal(number, view:generation())
      number = view:generation()
      assert.equal(epoch, dict:get(EPOCH) or 0) -- nothing that is cached is forgotten
    end
  end)

  it("happens once in an interval, over all workers", function()
    local other = new_worker "two"
    local pages = service.pages
    other:refresh()
    worker:refresh()
    now = now + INTERVAL - 1
    other:refresh()
    assert.equal(pages, service.pages)
    now = now + 1
    other:refresh()
    assert.is_true(service.pages > pages)
    pages = service.pages
    worker:refresh()
    assert.equal(pages, service.pages)
  end)

  it("leaves a pause after one that took longer than the interval", function()
    service.before_page = function(name)
      now = name == "blacklist" and now + INTERVAL + 1 or now
    end
    worker.settings.timeout = 10 * INTERVAL
    refresh()
    service.before_page = nil
    local pages, other = service.pages, new_worker "two"
    other:refresh()
    assert.equal(pages, service.pages)
    refresh(other)
    assert.is_true(service.pages > pages)
  end)

  it("is taken over from a silent worker, whose later writes change nothing", function()
    local other = new_worker "two"
    service.before_page = function(name, page)
      if name == "blacklist" and page == 2 then
        service.before_page = nil
        now = now + 2 * TIMEOUT
        service.blacklist = {}
        other:refresh()
        assert.is_nil(action(ONE))
        service.blacklist = { { address = OTHER, risks = high "scam" }, { address = OTHER, risks = high "scam" } }
        service.blacklist[3] = service.blacklist[1]
      end
    end
    refresh()
    assert.is_nil(action(ONE))
    assert.equal("allow", action(OTHER))
    assert.equal("the lists are not refreshed: another worker has taken over", log[1])
  end)

  it("is taken over from a worker that is silent while it writes, and that counts for nothing then", function()
    service.blacklist = {}
    for number = 1, 400 do
      service.blacklist[number] = { address = ("0x%040x"):format(number), risks = high "scam" }
    end
    local other, is_slow = new_worker "two", true
    local slow = new_worker("three", {
      pause = function()
        if is_slow then
          is_slow = false
          now = now + 2 * TIMEOUT
          service.blacklist = {}
          other:refresh()
        end
      end,
    })
    refresh(slow)
    assert.is_false(is_slow)
    assert.equal(0, worker:facts().blacklist)
    assert.is_nil(action(("0x%040x"):format(1)))
    assert.equal("the lists are not refreshed: another worker has taken over", log[1])
  end)

  it("is left to the others by an exiting worker", function()
    local ending = new_worker("two", {
      exiting = function()
        return true
      end,
    })
    service.blacklist = {}
    refresh(ending)
    assert.equal("block", action(ONE))
    worker:refresh()
    assert.is_nil(action(ONE))
    assert.same({}, log)
  end)

  it("that finds no room in the dict does not count for the whitelist", function()
    service.whitelist = {}
    service.blacklist = { { address = "0x" .. ("2"):rep(40), risks = high "scam" } }
    now = now + INTERVAL
    dict.set = function(self, key, ...)
      if key:find "0x2" then
        return false, "no memory", true
      end
      return shared_dict.new().set(self, key, ...)
    end
    worker:refresh()
    assert.truthy(log[1]:find("no room", 1, true))
    assert.equal("block", action(ONE))
    now = now + MAX_AGE
    assert.is_nil(action(OTHER))
  end)

  it("that finds no room for its lease reports it", function()
    now = now + INTERVAL
    dict.entries, dict.full = {}, true
    worker:refresh()
    assert.truthy(log[1]:find("no room", 1, true))
  end)
end)

describe("lists of which the dict has lost an entry", function()
  before_each(function()
    service.blacklist = { { address = ONE, network = "eth", risks = high "scam" } }
    service.whitelist = { { address = OTHER, chain = "eth" } }
    refresh()
  end)

  -- Writes of one entry fail, for lack of room.
  local function refuse(pattern)
    local write = dict.set
    dict.set = function(self, key, ...)
      if key:find(pattern) then
        return false, "no memory", false
      end
      return write(self, key, ...)
    end
    return function()
      dict.set = write
    end
  end

  it("let no address pass when the last generation is unknown", function()
    dict:evict ":state$"
    assert.is_nil(action(OTHER))
    assert.equal("block", action(ONE))
    refresh()
    assert.equal("allow", action(OTHER))
  end)

  it("let no address pass that was taken off the whitelist while all but its entry was lost", function()
    service.whitelist = {}
    dict:evict ":state$"
    refresh()
    assert.is_nil(action(OTHER))
    assert.equal("block", action(ONE))
  end)

  it("let no address pass that was on the blacklist of an incomplete refresh", function()
    service.blacklist = { { address = OTHER, risks = medium() }, { address = TRON, risks = high "scam" } }
    refuse ":state$"
    refresh()
    assert.truthy(log[1]:find("no room", 1, true))
    assert.is_nil(action(OTHER))
    dict:evict "%*:0x"
    assert.is_nil(action(OTHER))
    assert.equal("block", action(TRON, "tron"))
  end)

  it("let no address pass that only an incomplete refresh has put on the whitelist", function()
    service.whitelist = { { address = OTHER, chain = "eth" }, { address = TRON, chain = "tron" } }
    refuse ":state$"
    refresh()
    assert.is_nil(action(TRON, "tron"))
  end)

  it("tell the workers at the next refresh of a change that they were not told of", function()
    service.whitelist = {}
    local restore, view = refuse ":state$", worker:under(policies.new())
    local known = view:generation()
    refresh()
    assert.equal(known, view:generation())
    restore()
    refresh()
    assert.is_not.equal(known, view:generation())
  end)

  it("ignore values of another form", function()
    for _, damaged in ipairs { "high", "w", "1x", 7 } do
      for _, entry in pairs(dict.entries) do
        entry.value = damaged
      end
      assert.same({}, { action(ONE), action(OTHER) })
    end
  end)
end)

describe("a worker", function()
  it("tries at once, and several times in an interval, to take the lease", function()
    local soon, often, seconds
    worker = new_worker("one", {
      at = function(_, callback)
        soon = callback
        return true
      end,
      every = function(every, callback)
        often, seconds = callback, every
        return true
      end,
    })
    worker:start()
    soon(false)
    assert.is_true(seconds < INTERVAL)
    local pages = service.pages
    assert.is_true(pages > 0)
    now = now + INTERVAL
    often(true)
    assert.equal(pages, service.pages)
    often(false)
    assert.is_true(service.pages > pages)
    soon = nil
    worker:start()
    assert.is_nil(soon)
  end)

  it("reports once that nginx gives it no timer, and tries again", function()
    local has_room, soon = false, 0
    worker = new_worker("one", {
      every = function()
        return has_room, "too many pending timers"
      end,
      at = function()
        soon = soon + 1
      end,
    })
    worker:start()
    worker:start()
    assert.same({ "the lists are not refreshed by this worker: too many pending timers" }, log)
    has_room = true
    worker:start()
    worker:start()
    assert.equal(1, soon)
  end)
end)

describe("a cache with lists", function()
  local function new_cache(look_up)
    return caches.new(tables.merge(worlds.without_nginx, {
      dict = dict,
      fetch = look_up,
      lists = worker:under(policies.new()),
      is_alone = function()
        return true
      end,
      clock = function()
        return now
      end,
      sleep = function() end,
      new_semaphore = function()
        return { post = function() end, wait = function() end }
      end,
      pcall = pcall,
    }))
  end

  -- The action and the source.
  local function answer(cache, address)
    local decision, source = cache:get(address:lower(), "eth")
    return decision.action, source
  end

  it("keeps no allow for an address that was blacklisted during the fetch", function()
    worker.started = true
    refresh()
    local cache
    cache = new_cache(function()
      service.blacklist = { { address = ONE, risks = high "scam" } }
      refresh()
      assert.equal("block", cache:get(ONE:lower(), "bsc").action)
      return { action = "allow", reasons = { { action = "allow", message = "no risk" } }, degraded = false }
    end)
    for _ = 1, 2 do
      assert.same({ "block", "list" }, { answer(cache, ONE) })
    end
    assert.is_true(cache:purge(ONE))
    assert.same({ "block", "list" }, { answer(cache, ONE) })
  end)

  it("asks them before what it keeps, and keeps it when they change", function()
    worker.started = true
    refresh()
    local asked = 0
    local cache = new_cache(function(address, network)
      asked = asked + 1
      local reasons = { { action = "allow", message = "no risk" } }
      return { action = "allow", reasons = reasons, degraded = false, address = address, network = network }
    end)
    for _, address in ipairs { ONE, OTHER } do
      assert.same({ "allow", "upstream" }, { answer(cache, address) })
    end
    service.blacklist = { { address = ONE, risks = high "scam" } }
    refresh()
    assert.same({ "block", "list" }, { answer(cache, ONE) })
    assert.same({ "allow", "lru" }, { answer(cache, OTHER) })
    assert.same({ "block", "list" }, { answer(new_cache(), ONE) })
    service.blacklist = {}
    refresh()
    -- The decision of the list went into the LRU in place of the kept one, which the dict has.
    assert.same({ "allow", "lru" }, { answer(cache, ONE) })
    assert.same({ "allow", "lru" }, { answer(cache, ONE) })
    assert.equal(2, asked)
  end)
end)
