-- The queue over a real redis-server, with the sandbox as the service.
local addresses = require "riskscreen.address"
local json = require "riskscreen.json"
local list_files = require "spec.support.list_files"
local recorder = require "spec.support.recorder"
local redis_server = require "spec.support.redis"
local risks = require "spec.support.risks"
local riskscreen = require "riskscreen"
local spellings = require "spec.support.spellings"
local tables = require "riskscreen.util.tables"

local describe_if = redis_server.is_installed() and describe or pending

local function address(number)
  return ("0x%040x"):format(number)
end

local function inputs_of(count, distinct)
  local list = {}
  for number = 1, count do
    list[number] = { address = address(number % (distinct or count) + 1), network = "eth" }
  end
  return list
end

describe_if("a queue in Redis", function()
  local server, redis, queue, client, service

  setup(function()
    server = redis_server.start()
  end)

  teardown(function()
    redis_server.stop_all()
  end)

  before_each(function()
    server:command "FLUSHALL"
    redis = riskscreen.redis.new { url = server.url }
    queue = riskscreen.queue.new { redis = redis }
    client, service = riskscreen.sandbox.client { retry = false }
  end)

  after_each(function()
    redis:close()
    client:close()
  end)

  local function work(more, its_queue)
    local worker = (its_queue or queue):worker(tables.merge({ client = client, concurrency = 8 }, more))
    return worker:run { drain = true }
  end

  -- All results by id; fails where an id comes twice.
  local function results_by_id()
    local by_id, after, count = {}, nil, 0
    while true do
      local list = assert(queue:results(after))
      for _, result in ipairs(list) do
        assert.is_nil(by_id[result.id])
        by_id[result.id], count = result, count + 1
      end
      if not list[1] then
        return by_id, count
      end
      after = list[#list].position
    end
  end

  it("adds every input though on_progress raises", function()
    local stderr, told = io.stderr, {}
    io.stderr = { write = function() end } -- luacheck: ignore 122
    finally(function()
      io.stderr = stderr -- luacheck: ignore 122
    end)
    local totals = queue:add("file", inputs_of(1200), function(so_far)
      told[#told + 1] = so_far.added
      error "the display is gone"
    end)
    assert.same({ 1200, 3, 1200 }, { totals.added, #told, told[3] })
  end)

  it("gives every input one result, and asks once for addresses that come several times", function()
    assert.same({ rows = 1200, added = 1200, invalid = 0 }, queue:add("file", inputs_of(1200, 700)))
    assert.equal(1200, work())
    local results, count = results_by_id()
    assert.equal(1200, count)
    assert.equal("allow", results["file/17"].action)
    assert.equal(address(18), results["file/17"].input.address)
    assert.equal(17, results["file/17"].row)
    assert.equal(700, #service:requests())
  end)

  it("has the sandbox's verdicts, with reasons and risks", function()
    local bad = riskscreen.sandbox.scenario "type-sanction"
    queue:add("file", { { address = bad.address, network = bad.network, fields = { customer = "c 1" } } })
    work()
    local result = results_by_id()["file/1"]
    assert.equal("block", result.action)
    assert.matches("sanction", result.risks[1])
    assert.is_string(result.reasons[1])
    assert.same({ customer = "c 1" }, result.input.fields)
  end)

  it("uses an outcome for inputs that are added later, for a while", function()
    queue:add("a", inputs_of(10))
    work()
    queue:add("b", inputs_of(10))
    work()
    assert.equal(20, select(2, results_by_id()))
    assert.equal(10, #service:requests())
    assert.equal(10, queue:status().shared)
  end)

  it("uses no outcome of another policy, account or service", function()
    local bad = riskscreen.sandbox.scenario "type-hack"
    local inputs = { { address = bad.address, network = bad.network } }
    client.policy = riskscreen.policy { rules = { { any = true, action = "allow" } } }
    queue:add("a", inputs)
    work()
    client.policy = nil
    queue:add("b", inputs)
    work()
    local results = results_by_id()
    assert.equal("allow", results["a/1"].action)
    assert.equal("block", results["b/1"].action)
    assert.not_equal(results["a/1"].identity, results["b/1"].identity)
    queue:add("c", inputs)
    work()
    assert.equal("block", results_by_id()["c/1"].action)
    assert.equal(2, #service:requests())
    queue:add("d", inputs)
    work { client = riskscreen.sandbox.client { service = service, account = "other" } }
    assert.equal(3, #service:requests())
  end)

  it("gives an input no outcome of a job that was under way under another policy", function()
    local bad = riskscreen.sandbox.scenario "type-hack"
    local lenient = riskscreen.policy { rules = { { any = true, action = "allow" } } }
    queue:add("file", { { address = bad.address, network = "eth" }, { address = bad.address, network = "eth" } })
    local old
    old = queue:worker {
      client = client,
      request = { policy = lenient },
      on_result = function()
        old:stop()
      end,
    }
    assert.equal(1, old:run())
    work()
    local results = results_by_id()
    assert.same({ "allow", "block" }, { results["file/1"].action, results["file/2"].action })
  end)

  it("asks the local lists of a worker before it uses an outcome, and shares none of theirs", function()
    local directory = list_files.new()
    finally(function()
      directory:remove()
    end)
    local listed = riskscreen.sandbox.client {
      service = service,
      lists = { deny = directory:write("deny.csv", "address\n" .. address(1) .. "\n") },
    }
    local inputs = { { address = address(1), network = "eth" }, { address = address(1), network = "ethereum" } }
    queue:add("a", inputs)
    work()
    queue:add("b", inputs)
    work { client = listed }
    queue:add("c", inputs)
    work()
    queue:add("d", inputs)
    work()
    local results, actions = results_by_id(), {}
    for index, id in ipairs { "a/1", "a/2", "b/1", "b/2", "c/1", "c/2", "d/1", "d/2" } do
      actions[index] = results[id].action
    end
    assert.same({ "allow", "allow", "block", "block", "allow", "allow", "allow", "allow" }, actions)
    listed:close()
  end)

  it("asks the local lists in every spelling of an address, also on an added network", function()
    local directory = list_files.new()
    local tron = spellings.tron
    local answer = { time = 1, whitelist = false, risks = json.empty_array(), address = tron[2], network = "nile" }
    local function worker_with(lists)
      return riskscreen.new {
        access_key = "key-of-the-queue-specs",
        identity = "recorder",
        account = "specs",
        transport = recorder.new(recorder.reply(200, { success = true, code = 1, data = answer })),
        extend = { network = { nile = "tron" } },
        lists = lists,
      }
    end
    local inputs, listed = { { address = tron[2], network = "nile" } }, nil
    finally(function()
      listed:close()
      directory:remove()
    end)
    queue:add("a", inputs)
    work { client = worker_with() }
    queue:add("b", inputs)
    listed = worker_with { deny = directory:write("deny.csv", "address\n" .. tron[1] .. "\n") }
    work { client = listed }
    local results = results_by_id()
    assert.same({ "allow", "block" }, { results["a/1"].action, results["b/1"].action })
  end)

  it("uses no outcome whose moment lies in the future", function()
    queue:add("a", inputs_of(1))
    work()
    local keys = redis:call("KEYS", redis:key "queue:default:seen:*")
    assert.equal(1, #keys)
    local later = redis:call("GET", keys[1]):gsub('"time":%d+', ('"time":%d'):format(os.time() + 1000))
    redis:call("SET", keys[1], later)
    queue:add("b", inputs_of(1))
    work()
    assert.equal(2, #service:requests())
  end)

  it("needs a client whose service and account have names", function()
    local unnamed = riskscreen.new { base_url = "https://service.example", access_key = "key-of-queues" }
    local transport = riskscreen.new { transport = function() end, access_key = "key-of-queues", account = "a" }
    for name, other in pairs { account = unnamed, identity = transport } do
      local ok, message = pcall(queue.worker, queue, { client = other })
      assert.is_false(ok)
      assert.matches("queue:worker: client needs a client with `" .. name .. "`", message, 1, true)
    end
  end)

  it("names the sandbox in its results, and uses none of them for a service", function()
    local server_of_sandbox = assert(riskscreen.sandbox.serve { service = service })
    finally(function()
      server_of_sandbox:close()
    end)
    local options =
      { base_url = server_of_sandbox.url, access_key = server_of_sandbox.access_key, account = "a", retry = false }
    queue:add("a", inputs_of(1))
    work()
    local of_service = riskscreen.new(options)
    work { client = of_service }
    queue:add("b", inputs_of(1))
    work { client = of_service }
    of_service:close()
    local results = results_by_id()
    local simulated, real = results["a/1"].reasons, results["b/1"].reasons
    assert.equal("the sandbox answered: this is no real result", table.remove(simulated))
    assert.same(real, simulated)
    assert.equal(2, #service:requests())
  end)

  it("gives a text with a wrong checksum no share in the outcome of the address, nor the other way", function()
    local right = "0x52908400098527886e0f7030069857d2e4169ee7"
    local wrong = "0x52908400098527886e0F7030069857d2e4169ee7"
    queue:add("a", { { address = right, network = "eth" }, { address = wrong, network = "eth" } })
    work()
    queue:add("b", { { address = wrong, network = "eth" }, { address = right, network = "eth" } })
    work()
    local results = results_by_id()
    local got = {}
    for index, id in ipairs { "a/1", "a/2", "b/1", "b/2" } do
      got[index] = results[id].action
    end
    assert.same({ "review", "unknown", "unknown", "review" }, got)
  end)

  it("remembers outcomes for a part of a second", function()
    queue = riskscreen.queue.new { redis = redis, remember = 0.5 }
    queue:add("file", inputs_of(3, 2))
    assert.equal(3, work())
    local status = assert(queue:status())
    assert.same({ 0, 0, 3 }, { status.waiting, status.working, status.results })
  end)

  it("asks again where outcomes are not remembered", function()
    queue = riskscreen.queue.new { redis = redis, remember = 0 }
    queue:add("a", inputs_of(5))
    work()
    queue:add("b", inputs_of(5))
    work()
    assert.equal(10, #service:requests())
  end)

  it("asks once for all spellings of an address on every network", function()
    local inputs, chains = {}, {}
    for network, list in pairs(spellings) do
      chains[addresses.canonical_network(network)] = true
      for _, spelling in ipairs(list) do
        inputs[#inputs + 1] = { address = spelling, network = network }
      end
    end
    queue:add("file", inputs)
    assert.equal(#inputs, work())
    assert.equal(#tables.sorted_keys(chains), #service:requests())
  end)

  it("treats the spellings of an address as one, and networks apart", function()
    local mixed = "0x52908400098527886E0F7030069857D2E4169EE7"
    queue:add("file", {
      { address = mixed, network = "eth" },
      { address = mixed:lower(), network = "eth" },
      { address = mixed, network = "bsc" },
    })
    work()
    assert.equal(2, #service:requests())
    assert.equal(mixed:lower(), results_by_id()["file/2"].input.address)
  end)

  it("passes over the rows that it has of a run, adds rows behind them, and screens all anew in another run", function()
    queue:add("march", inputs_of(600, 5000))
    assert.same({ rows = 600, added = 0, invalid = 0 }, queue:add("march", inputs_of(600, 5000)))
    assert.same({ rows = 700, added = 100, invalid = 0 }, queue:add("march", inputs_of(700, 5000)))
    assert.same({ rows = 100, added = 100, invalid = 0 }, queue:add("april", inputs_of(100, 5000)))
    work()
    assert.equal(800, select(2, results_by_id()))
  end)

  it("refuses other rows under the name of a run, and changes nothing", function()
    assert(queue:add("march", inputs_of(1100, 5000)))
    local changed, shorter, inserted = inputs_of(1200, 5000), inputs_of(1000, 5000), inputs_of(1200, 5000)
    changed[700] = { address = address(1), network = "eth" }
    table.insert(inserted, 3, { address = address(1), network = "eth" })
    for _, other in ipairs { changed, shorter, inserted, inputs_of(1, 5), {} } do
      local totals, err = queue:add("march", other)
      assert.is_nil(totals)
      assert.equal("invalid_argument", err.kind)
      assert.matches("the run 'march' has 1100 rows", err.message, 1, true)
    end
    assert.equal(1100, queue:status().added)
  end)

  it("knows a row again by all that it has: network and fields too", function()
    local row = { address = address(1), network = "eth", fields = { customer = "c 1" } }
    assert(queue:add("march", { row }))
    for _, change in ipairs { { network = "bsc" }, { fields = { customer = "c 2" } }, { fields = {} } } do
      assert.is_nil((queue:add("march", { tables.merge(row, change) })))
    end
    assert.equal(0, queue:add("march", { tables.copy(row) }).added)
  end)

  it("fails where its inputs end by an error, and goes on with them later", function()
    local rows, failure = inputs_of(700, 5000), "the database is away"
    local function source()
      local index = 0
      return function()
        index = index + 1
        if index == 600 and failure then
          return nil, failure
        end
        return rows[index]
      end
    end
    local totals, err = queue:add("march", source())
    assert.is_nil(totals)
    assert.matches("the database is away", err.message, 1, true)
    failure = nil
    assert.equal(700, queue:add("march", source()).rows)
    assert.equal(700, queue:status().added)
  end)

  it("lets two producers add the same run side by side, each row once", function()
    riskscreen.run(function()
      local totals = {}
      local bodies = {}
      for index = 1, 2 do
        bodies[index] = function()
          totals[index] = assert(queue:add("march", inputs_of(2000, 5000)))
        end
      end
      riskscreen.gather(bodies)
      assert.equal(2000, totals[1].added + totals[2].added)
    end)
    assert.equal(2000, queue:status().added)
  end)

  it("refuses the other rows of a producer that adds to the same run meanwhile", function()
    local inputs, other, row = inputs_of(3, 5000), inputs_of(4, 5000), 0
    other[1] = { address = address(4999), network = "eth" }
    local totals, err = queue:add("march", function()
      row = row + 1
      if row == 1 then
        assert(queue:add("march", inputs))
      end
      return other[row]
    end)
    assert.is_nil(totals)
    assert.matches("these begin with other rows", err.message, 1, true)
    assert.equal(3, queue:status().added)
  end)

  it("screens networks that the operator has added to the worker's client", function()
    local transport, requests = recorder.new(function(request)
      local network = request.target:match "network=(%w+)"
      local record = risks.record(json.empty_array(), { address = address(1), network = network })
      return recorder.reply(200, { success = true, code = 1, data = record })
    end)
    client = riskscreen.new {
      transport = transport,
      access_key = "key-of-queues",
      identity = "recorder",
      account = "specs",
      extend = { network = { sonic = "eth", mars = "eth" } },
    }
    local inputs = {
      { address = address(1), network = "sonic" },
      { address = address(1), network = "sonic" },
      { address = address(1), network = "etherum" },
      { address = "no address", network = "mars" },
      { network = "sonic" },
    }
    assert.same({ rows = 5, added = 5, invalid = 1 }, queue:add("file", inputs))
    assert.same({ rows = 5, added = 0, invalid = 1 }, queue:add("file", inputs))
    work()
    assert.same({}, queue:dead())
    local results, errors_of = results_by_id(), {}
    for number = 1, #inputs do
      errors_of[number] = results["file/" .. number].error or "none"
    end
    local invalid = "invalid_argument"
    assert.same({ "none", "none", invalid, invalid, invalid }, errors_of)
    assert.equal(1, #requests)
  end)

  it("answers inputs that cannot be screened without a call", function()
    local totals = queue:add("file", { { address = "0x12", network = "eth" }, {}, "text", { address = address(1) } })
    assert.same({ rows = 4, added = 4, invalid = 4 }, totals)
    for number = 1, 4 do
      local result = results_by_id()["file/" .. number]
      assert.equal("unknown", result.action)
      assert.equal("invalid_argument", result.error)
      assert.is_string(result.reasons[1])
    end
    assert.equal(0, #service:requests())
  end)

  it("screens transactions, by the policy of the worker", function()
    local transaction = {
      network = "eth",
      hash = "0x" .. ("5f16"):rep(16),
      outputAddress = riskscreen.sandbox.scenario("type-sanction").address,
      direction = "received",
    }
    client = riskscreen.sandbox.client { kyt_delay = 0.01, polling = { first = 0.02 } }
    queue:add("file", { { transaction = transaction } })
    local policy = riskscreen.score_policy { rules = { { score_at_least = "80", action = "review" } } }
    assert.equal(1, work { policy = policy })
    local result = results_by_id()["file/1"]
    assert.equal("review", result.action)
    assert.same(transaction, result.input.transaction)
  end)

  it("records each decision of a worker in the journal, also one that is used again", function()
    local bad, path = riskscreen.sandbox.scenario "type-hack", os.tmpname()
    local journal = assert(riskscreen.journal.file(path))
    finally(function()
      os.remove(path)
      os.remove(path .. ".head")
    end)
    client = riskscreen.sandbox.client { journal = journal }
    local input = { address = bad.address, network = bad.network }
    queue:add("a", { input, input, { address = "0x12", network = "eth" } })
    work()
    queue:add("b", { { address = bad.address:lower(), network = bad.network } })
    work()
    assert.equal(4, select(2, results_by_id()))
    journal:close()
    local lines = {}
    for entry in riskscreen.journal.entries(path) do
      lines[entry.seq] = tables.pick(entry, { "address", "action", "reasons", "identity", "policy", "source" })
    end
    assert.equal(3, #lines)
    assert.equal("block", lines[1].action)
    assert.is_true(#lines[1].reasons > 0)
    assert.same({ lines[1], lines[1] }, { lines[2], lines[3] })
  end)

  it("keeps and records no access key that the service shows in a transaction's result", function()
    local key, path = "key-of-the-queue-specs", os.tmpname()
    local strategies = { ["in"] = { ["1"] = { strategyNo = "1", strategyName = key, score = "1" } }, out = {} }
    local answer = { requestId = "r1", status = 1003, maxScore = "1", dirData = strategies }
    local journal = assert(riskscreen.journal.file(path, { record = true }))
    client = riskscreen.new {
      transport = recorder.new(
        recorder.reply(200, { success = true, code = 1, data = { requestId = "r1" } }),
        recorder.reply(200, { success = true, code = 1, data = answer })
      ),
      access_key = key,
      account = "a",
      identity = "recorder",
      endpoints = { kyt_result = { method = "GET", path = "/results" } },
      polling = { first = 0.001 },
      journal = journal,
    }
    queue:add("file", { { transaction = { network = "eth", hash = "0xabc", direction = "in" } } })
    local rules = { { strategy_name = "x", action = "block" }, { any = true, action = "allow" } }
    assert.equal(1, work { policy = riskscreen.score_policy { rules = rules } })
    local reasons = table.concat(results_by_id()["file/1"].reasons, "; ")
    assert.matches("[redacted]", reasons, 1, true)
    assert(journal:close())
    local file = assert(io.open(path))
    local text = file:read "*a"
    file:close()
    os.execute("rm -f " .. path .. "*")
    assert.matches('"input":"0xabc"', text, 1, true)
    assert.is_nil((reasons .. text):find(key, 1, true))
  end)

  it("removes results that were read", function()
    queue:add("file", inputs_of(5))
    work()
    local list = queue:results()
    assert.equal(3, queue:forget { list[1], list[2], list[3] })
    assert.equal(list[4].id, queue:results()[1].id)
    assert.equal(0, queue:forget { tables.merge(list[4], { id = "file/9" }) })
    assert.equal(1, queue:forget(list[4].position))
    assert.equal(list[5].id, queue:results()[1].id)
    for _, wrong in ipairs { "all", list[5], { results = { list[5] } }, { { postion = list[5].position } }, 1.5 } do
      assert.has_error(function()
        queue:forget(wrong)
      end)
    end
    assert.equal(0, queue:forget {})
  end)

  it("lets a producer wait while it is full", function()
    queue = riskscreen.queue.new { redis = redis, capacity = 20 }
    local most = 0
    riskscreen.run(function()
      local worker = queue:worker { client = client, concurrency = 4 }
      local producer = riskscreen.spawn(function()
        assert(queue:add("file", inputs_of(100)))
      end)
      local worked = riskscreen.spawn(worker.run, worker)
      while not worker.stopped do
        local status = assert(queue:status())
        most = math.max(most, status.waiting + status.working)
        if status.done == 100 then
          worker:stop()
        end
        riskscreen.sleep(0.01)
      end
      producer:await()
      worked:await()
    end)
    assert.is_true(most <= 20)
  end)

  it("lets workers wait while nobody reads the results", function()
    queue = riskscreen.queue.new { redis = redis, results = 10 }
    queue:add("file", inputs_of(200))
    riskscreen.run(function()
      local worker = queue:worker { client = client, concurrency = 2 }
      local worked = riskscreen.spawn(worker.run, worker)
      local kept = 0
      repeat -- until it grows no more
        local before = kept
        riskscreen.sleep(0.05)
        kept = assert(queue:status()).results
      until kept >= 10 and kept == before
      assert.is_true(kept < 30)
      while queue:status().done < 200 do
        local list = queue:results()
        if list[1] then
          queue:forget(list)
        end
        riskscreen.sleep(0.05)
      end
      worker:stop()
      worked:await()
    end)
  end)

  it("gives a job to another worker where one has died", function()
    queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    queue:add("file", inputs_of(3))
    redis:call("XREADGROUP", "GROUP", "workers", "dead", "COUNT", 2, "STREAMS", redis:key "queue:default:jobs", ">")
    assert.equal(3, work())
    assert.equal(3, select(2, results_by_id()))
  end)

  it("keeps the result of the worker that was first where two had a job", function()
    queue = riskscreen.queue.new { redis = redis, claim_after = 1 }
    queue:add("file", inputs_of(1))
    local slow = riskscreen.sandbox.client()
    local has_job, is_late = false, false
    riskscreen.run(function()
      local first = queue:worker {
        client = slow,
        on_result = function()
          has_job = true
          repeat
            riskscreen.sleep(0.01)
          until is_late
        end,
      }
      first.settings.client = slow
      local first_run = riskscreen.spawn(first.run, first)
      repeat
        riskscreen.sleep(0.01)
      until has_job
      first.redis = { -- it cannot tell Redis that it works
        call = function(_, name, ...)
          return not name:find "CLAIM" and redis:call(name, ...) or nil, {}
        end,
        wait = function(_, ...)
          return redis:wait(...)
        end,
        script = function(_, ...)
          return redis:script(...)
        end,
      }
      local second = queue:worker { client = client }
      second:run { drain = true }
      is_late = true
      first:stop()
      first_run:await()
      assert.equal(0, first.finished)
      assert.equal(1, second.finished)
    end)
    assert.equal(1, select(2, results_by_id()))
  end)

  it("buries a job that has ended too many workers, with its followers, and gives them again on demand", function()
    queue = riskscreen.queue.new { redis = redis, claim_after = 1, deliveries = 2 }
    queue:add("file", inputs_of(3, 1))
    local jobs = redis:key "queue:default:jobs"
    redis:call("XREADGROUP", "GROUP", "workers", "a", "STREAMS", jobs, ">")
    local pending = redis:call("XPENDING", jobs, "workers", "-", "+", 1)
    redis:call("XCLAIM", jobs, "workers", "b", 0, pending[1][1], "IDLE", 5000, "RETRYCOUNT", 2)
    work()
    local letters = queue:dead()
    assert.equal(3, #letters)
    assert.matches("2 workers had the job", letters[1].reason)
    assert.equal("file/1", letters[1].id)
    assert.equal(address(1), letters[1].input.address)
    assert.equal(3, queue:status().dead)
    assert.equal(0, select(2, results_by_id()))
    assert.equal(3, queue:requeue())
    work()
    assert.equal(3, select(2, results_by_id()))
    assert.same({}, queue:dead())
    assert.equal(0, queue:status().dead)
  end)

  it("buries an address for which the service fails for good", function()
    service:fault { kind = "invalid-json", count = 1 }
    queue:add("file", inputs_of(1))
    work()
    assert.matches("protocol", queue:dead()[1].reason)
  end)

  it("waits while the service is down, and takes the job again", function()
    service:fault { kind = "status", status = 503, count = 3 }
    queue:add("file", inputs_of(2))
    local problems = {}
    assert.equal(
      2,
      work {
        on_problem = function(err)
          problems[#problems + 1] = err.kind
        end,
      }
    )
    assert.equal("server", problems[1])
    assert.same({}, queue:dead())
  end)

  it("waits as the service asks, for max_retry_after at most", function()
    service:fault { kind = "status", status = 503, retry_after = 3600, count = 1 }
    queue:add("file", inputs_of(1))
    local began = os.time()
    local impatient = riskscreen.sandbox.client { service = service, retry = { max_retry_after = 0.1 } }
    assert.equal(1, work { client = impatient })
    assert.is_true(os.time() - began < 20)
  end)

  it("leaves a job to another worker where one is stopped while the service is down", function()
    service:fault { kind = "status", status = 503 }
    queue:add("file", inputs_of(1))
    riskscreen.run(function()
      local worker
      worker = queue:worker {
        client = client,
        on_problem = function()
          worker:stop()
        end,
      }
      assert.equal(0, worker:run())
    end)
    service:clear_faults()
    assert.equal(1, work())
    assert.same({ "allow", {} }, { results_by_id()["file/1"].action, queue:dead() })
  end)

  it("ends a worker whose access key is wrong, and keeps the jobs", function()
    service:fault { kind = "status", status = 401 }
    queue:add("file", inputs_of(3))
    local finished, err = work()
    assert.is_nil(finished)
    assert.equal("unauthorized", err.kind)
    service:clear_faults()
    assert.equal(3, work())
  end)

  it("gives each result to a function before the job ends, and again where that raises", function()
    queue:add("file", inputs_of(2))
    local ids, has_failed = {}, false
    work {
      on_result = function(result)
        if not has_failed then
          has_failed = true
          error "the database is away"
        end
        ids[#ids + 1] = result.id .. " " .. result.action
      end,
    }
    table.sort(ids)
    assert.same({ "file/1 allow", "file/2 allow" }, ids)
  end)

  it("keeps the members of an input apart from the decision's", function()
    local bad = riskscreen.sandbox.scenario "type-hack"
    local input =
      { address = bad.address, network = "eth", action = "allow", reasons = {}, id = "x", time = 0, row = 9 }
    queue:add("file", { input })
    local told
    work {
      on_result = function(result)
        told = result
      end,
    }
    local result = results_by_id()["file/1"]
    result.position = nil
    assert.same({ "block", "file/1", 1 }, { told.action, told.id, told.row })
    assert.same(input, told.input)
    assert.same(result, told)
  end)

  it("says of an input that cannot be kept that it is invalid, and keeps nulls", function()
    local totals = queue:add("file", {
      { address = address(1), network = "eth", fields = { name = "M\252ller" } },
      { transaction = { network = "eth", hash = "\252" } },
      { address = address(2), network = "eth", fields = { name = json.null } },
    })
    assert.same({ rows = 3, added = 3, invalid = 2 }, totals)
    work()
    local results = results_by_id()
    assert.same({ "unknown", "unknown" }, { results["file/1"].action, results["file/2"].action })
    assert.matches("not UTF%-8", results["file/1"].reasons[1])
    assert.equal(json.null, results["file/3"].input.fields.name)
    assert.same({}, queue:dead())
  end)

  it("finishes the screenings under way when it is stopped, and leaves the other jobs", function()
    queue:add("file", inputs_of(100))
    riskscreen.run(function()
      local worker
      worker = queue:worker {
        client = client,
        concurrency = 2,
        on_result = function()
          worker:stop()
        end,
      }
      local finished = worker:run()
      assert.is_true(finished >= 1 and finished <= 2)
    end)
    work()
    assert.equal(100, select(2, results_by_id()))
  end)

  it("ends without a pause when its last job is finished while it looks for another", function()
    queue:add("file", inputs_of(3))
    riskscreen.run(function()
      local worker = queue:worker { client = client }
      local looking
      worker.redis = setmetatable({
        wait = function(_, ...)
          looking = coroutine.running()
          local reply, err = redis:wait(...)
          while reply == false and worker.count > 0 do
            riskscreen.sleep(0.01)
          end
          return reply, err
        end,
      }, {
        __index = function(_, name)
          return function(_, ...)
            return redis[name](redis, ...)
          end
        end,
      })
      local wait, has_paused = worker.changed.wait, false
      worker.changed.wait = function(...)
        has_paused = has_paused or (worker.count == 0 and coroutine.running() == looking)
        return wait(...)
      end
      assert.equal(3, worker:run { drain = true })
      assert.is_false(has_paused)
    end)
  end)

  it("tells what waits, who works and how fast", function()
    queue:add("file", inputs_of(10, 8))
    redis:call("XREADGROUP", "GROUP", "workers", "a", "COUNT", 3, "STREAMS", redis:key "queue:default:jobs", ">")
    local status = queue:status()
    assert.equal(5, status.waiting)
    assert.equal(3, status.working)
    assert.equal(2, status.following)
    assert.equal(10, status.added)
    assert.equal(0, status.done)
    assert.equal("a", status.workers[1].name)
    assert.equal(3, status.workers[1].working)
    local metrics = queue:metrics()
    assert.matches('riskscreen_queue_inputs{queue="default",state="working"} 3\n', metrics, 1, true)
    assert.matches('riskscreen_queue_inputs_total{queue="default"} 10\n', metrics, 1, true)
  end)

  it("has a status before anything was added", function()
    assert.equal(0, queue:status().waiting)
    assert.same({}, queue:results())
    assert.same({}, queue:dead())
    assert.equal(0, queue:requeue())
  end)

  it("keeps queues of different names apart", function()
    queue:add("file", inputs_of(2))
    assert.equal(0, riskscreen.queue.new({ redis = redis, name = "other" }):status().waiting)
  end)

  for _, policy in ipairs {
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
  } do
    it("refuses a Redis that evicts keys: " .. policy, function()
      redis:call("CONFIG", "SET", "maxmemory", "100mb", "maxmemory-policy", policy)
      local totals, err = queue:add("file", inputs_of(1))
      redis:call("CONFIG", "SET", "maxmemory", 0, "maxmemory-policy", "noeviction")
      assert.is_nil(totals)
      assert.equal("evicting", err.reason)
      assert.matches("maxmemory-policy is " .. policy, err.message, 1, true)
    end)
  end

  it("finishes jobs also where the memory of Redis is full, and takes no new ones", function()
    queue:add("file", inputs_of(50))
    redis:call("CONFIG", "SET", "maxmemory", "1mb", "maxmemory-policy", "noeviction")
    local totals, err = queue:add("more", inputs_of(10, 5))
    local finished = work()
    redis:call("CONFIG", "SET", "maxmemory", 0)
    assert.is_nil(totals)
    assert.equal("full", err.reason)
    assert.equal(50, finished)
    assert.equal(50, select(2, results_by_id()))
  end)

  it("changes nothing at a replica, and its workers wait for a master", function()
    queue:add("file", inputs_of(2))
    server:command "REPLICAOF 127.0.0.1 1"
    local totals, err = queue:add("more", inputs_of(2))
    assert.is_nil(totals)
    assert.equal("read_only", err.reason)
    assert.is_true(err.retryable)
    local problems, finished = {}, nil
    riskscreen.run(function()
      local worked = riskscreen.spawn(function()
        finished = work {
          on_problem = function(problem)
            problems[problem.reason] = true
            server:command "REPLICAOF NO ONE"
          end,
        }
      end)
      worked:await()
    end)
    assert.same({ read_only = true }, problems)
    assert.equal(2, finished)
  end)

  it("changes nothing where a key holds something else", function()
    queue:add("file", inputs_of(2))
    redis:call("SET", redis:key "queue:default:results", "text")
    local finished, err = work()
    assert.is_nil(finished)
    assert.equal("wrong_type", err.reason)
    redis:call("DEL", redis:key "queue:default:results")
    assert.equal(2, work())
  end)

  it("buries a job that is not readable", function()
    queue:prepare()
    redis:call("XADD", redis:key "queue:default:jobs", "*", "id", "x/1", "item", "{", "key", "")
    work()
    assert.equal(1, #queue:dead())
  end)

  it("counts the entries of other programs in its streams, and passes over them", function()
    queue:add("file", inputs_of(3))
    queue:add("dead", inputs_of(4))
    local foreign = { { "other", "field" }, { "id", "file/1" }, { "id", "file", "item", "{}" }, { "item", "{}" } }
    for _, stream in ipairs { "jobs", "results", "dead" } do
      for _, entry in ipairs(foreign) do
        redis:call(
          "XADD",
          redis:key("queue:default:" .. stream),
          "*",
          entry[1],
          entry[2],
          entry[3] or "a",
          entry[4] or "b"
        )
      end
    end
    assert.equal(7, work())
    assert.equal(7, select(2, results_by_id()))
    assert.same({}, queue:dead())
    assert.equal(0, queue:requeue())
    local status = queue:status()
    assert.same({ 3 * #foreign, 0, 7 }, { status.foreign, status.waiting, status.results })
    assert.matches('riskscreen_queue_foreign_total{queue="default"} 12\n', queue:metrics(), 1, true)
  end)

  it("refuses wrong options at the caller's line", function()
    for _, call in ipairs {
      function()
        riskscreen.queue.new {}
      end,
      function()
        riskscreen.queue.new { redis = redis, name = "a b" }
      end,
      function()
        queue:add("", {})
      end,
      function()
        queue:add("file", 5)
      end,
      function()
        local row = { address = address(1), network = "eth" }
        queue:add("file", { row, nil, row })
      end,
      function()
        queue:worker {}
      end,
    } do
      local ok, problem = pcall(call)
      assert.is_false(ok)
      assert.matches("init_spec.lua:%d+: queue", problem)
    end
  end)
end)
