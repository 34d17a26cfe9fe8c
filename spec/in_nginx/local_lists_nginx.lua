-- Local lists of a gate in a real nginx with several workers: they decide before the cache and without the service.
-- Their files are replaced while requests are served.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local build = require("riskscreen.lists.build").build
local gates = require "spec.support.gate"
local list_files = require "spec.support.list_files"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local socket = require "socket"
local tables = require "riskscreen.util.tables"

local WORKERS = 3
local MANY = 30
local LONG = 20000 -- entries: such a list is mapped, not copied
local SECONDS = 2 -- of replacements under load

local address = list_files.address

describe("a gate with local lists", function()
  local directory, running

  before_each(function()
    directory = list_files.new()
    -- The workers of nginx run as root here, and everybody may read the lists.
    os.execute("chmod 755 " .. directory.root)
  end)

  after_each(function()
    if running then
      running.close {
        "the local lists",
        "the deny list",
        "the allow list",
        "Connection refused",
        "no live upstreams",
        "exited on signal 9", -- where a spec kills the workers
        "init_by_lua error", -- where a reload fails
      }
    end
    running = nil
    directory:remove()
  end)

  local function compiled(name, rows)
    directory:write(name .. ".csv", "address,network,note\n" .. table.concat(rows, "\n") .. "\n")
    assert(build { output = directory:path(name), inputs = directory:path(name .. ".csv") })
    return directory:path(name)
  end

  local function many(first)
    local rows = {}
    for number = first, first + LONG - 1 do
      rows[#rows + 1] = address(number) .. ",,"
    end
    return rows
  end

  local function start(lists, more, account, dict_size)
    running = gates.start {
      dict_size = dict_size,
      workers = WORKERS,
      init = ([[gate = new_gate { network = "eth", on_unknown = "review", lists = %s, %s
        variables = { action = "action", source = "source" } }]]):format(lists, more or ""),
      locations = {
        ["/withdraw"] = "gate:enforce { address = ngx.var.arg_to, network = ngx.var.arg_network or 'eth' }",
        ["/slow"] = "gate:location({ address = { form = 'to' } }):enforce()",
      },
      behind = [[
        header_filter_by_lua_block { ngx.header["X-Source"] = ngx.ctx.riskscreen_source }
        content_by_lua_block { ngx.print("passed") }]],
      server = [[location = /metrics { content_by_lua_block { gate:metrics() } }
        location = /status { content_by_lua_block { gate:status() } }]],
      sandbox = { accounts = { [sandbox.default_key] = account or {} } },
    }
  end

  local function ask(text, network)
    local answer = running.get("/withdraw?to=" .. text .. (network and "&network=" .. network or ""))
    return answer.status, answer.headers["x-source"]
  end

  -- Waits until every worker answers so; a worker notices a new file at its next look.
  local function all_answer(status, text)
    nginx.wait_for("all workers to answer " .. status, function()
      for _ = 1, MANY do
        if ask(text) ~= status then
          return false
        end
      end
      return true
    end)
  end

  it("refuses without a call who is on a deny list, in any spelling, on its networks alone", function()
    local clean = addresses["clean-eth"]
    start(("{ deny = { '%s' } }"):format(compiled("deny.rsl", { clean .. ",eth,ours" })))
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(clean) })
    end
    assert.same({ 403, "list" }, { ask("0x" .. clean:sub(3):upper(), "ethereum") })
    assert.equal(0, #running.service:requests())
    assert.same({ 200, "upstream" }, { ask(clean, "bsc") })
  end)

  it("refuses him while the service is down, and lets the others wait for nothing", function()
    start(("{ deny = '%s' }"):format(compiled("deny.rsl", { address(1) .. ",," })))
    running.server:close()
    assert.same({ 403, "list" }, { ask(address(1)) })
    assert.equal(403, (ask(address(2)))) -- on_unknown = "review"
  end)

  it("lets pass by an allow list only where the operator says so, and no one on a deny list", function()
    local risky = addresses["generally-high-eth"]
    local allow = compiled("allow.rsl", { risky .. ",,", address(1) .. ",," })
    local deny = compiled("deny.rsl", { address(1) .. ",," })
    start(("{ allow = '%s', deny = '%s' }"):format(allow, deny))
    assert.same({ 403, "upstream" }, { ask(risky) })
    running.close()
    start(("{ allow = '%s', deny = '%s', allow_without_call = true }"):format(allow, deny))
    assert.same({ 200, "list" }, { ask(risky) })
    assert.equal(0, #running.service:requests())
    assert.same({ 403, "list" }, { ask(address(1)) })
  end)

  it("lets the account's blacklist win over a local allow list", function()
    local clean = addresses["clean-eth"]
    local allow = compiled("allow.rsl", { clean .. ",," })
    local risks = { { riskLevel = "high", riskType = "scam" } }
    local account = { blacklist = { { address = clean, network = "eth", risks = risks } } }
    local lists = ("{ allow = '%s', allow_without_call = true }"):format(allow)
    start(lists, "account_lists = { interval = 0.2, max_age = 60 },", account)
    all_answer(403, clean)
    assert.same({ 403, "list" }, { ask(clean) })
  end)

  it("follows a new file in all workers, whatever is in the cache", function()
    local clean = addresses["clean-eth"]
    local rows = many(1)
    start(("{ deny = '%s', interval = 0.1 }"):format(compiled("deny.rsl", rows)))
    all_answer(200, clean)
    rows[1] = clean .. ",,"
    compiled("deny.rsl", rows)
    all_answer(403, clean)
  end)

  it("blocks an address that comes onto a list while the service is asked", function()
    local clean = addresses["clean-eth"]
    start(("{ deny = '%s', interval = 0.1 }"):format(compiled("deny.rsl", { address(1) .. ",," })))
    running.service:fault { kind = "delay", delay = 1, match = { address = clean } }
    riskscreen.run(function()
      local asking = riskscreen.spawn(function()
        return ask(clean)
      end)
      nginx.wait_for("the request to the service", function()
        riskscreen.sleep(0.01)
        return #running.service:requests() == 1
      end)
      compiled("deny.rsl", { clean .. ",,", address(1) .. ",," })
      assert.same({ 403, "list" }, { asking:await() })
    end)
  end)

  it("never misses an entry while its file is replaced again and again", function()
    local rows = many(1)
    start(("{ deny = '%s', interval = 0.1 }"):format(compiled("deny.rsl", rows)))
    local first = directory:read "deny.rsl"
    compiled("other.rsl", many(LONG - MANY))
    local second = directory:read "other.rsl"
    local until_time, round = socket.gettime() + SECONDS, 0
    while socket.gettime() < until_time do
      round = round + 1
      directory:write("deny.rsl", round % 2 == 0 and first or second)
      for number = LONG - MANY, LONG do
        assert.same({ 403, "list" }, { ask(address(number)) })
      end
    end
    assert.is_true(round > 3)
    assert.equal(0, #running.service:requests())
  end)

  it("keeps the old list where the new file is damaged, and says so", function()
    start(("{ deny = '%s', interval = 0.1 }"):format(compiled("deny.rsl", many(1))))
    all_answer(403, address(LONG))
    directory:write("deny.rsl", directory:read("deny.rsl"):sub(1, -2))
    nginx.wait_for("the damaged file to be noticed", function()
      return running.nginx:log():find("was not loaded again, and the old one counts", 1, true)
    end)
    all_answer(403, address(LONG))
    local metrics = prometheus.parse(running.get("/metrics").body)
    local labels = { gate = "default", kind = "deny", file = directory:path "deny.rsl" }
    assert.equal(LONG, metrics:get("riskscreen_local_list_entries", labels))
    assert.is_true(metrics:get("riskscreen_local_list_age_seconds", labels) >= 0)
  end)

  it("keeps the old deny list where the new one is empty, or has lost more than half of its entries", function()
    local path =
      directory:write("deny.csv", "address\n" .. address(1) .. "\n" .. address(2) .. "\n" .. address(3) .. "\n")
    start(("{ deny = '%s', interval = 0.1 }"):format(path))
    all_answer(403, address(1))
    local labels = { gate = "default", kind = "deny", file = path }
    for content, problem in pairs {
      ["address\n"] = "it has no entry",
      ["address\n" .. address(2) .. "\n"] = "it has 1 entry, and the list before it has 3",
    } do
      directory:write("deny.csv", content)
      nginx.wait_for("the new file to be noticed", function()
        return running.nginx:log():find(problem, 1, true)
      end)
      assert.same({ 403, "list" }, { ask(address(1)) })
      nginx.wait_for("the metrics to tell it", function()
        return prometheus.parse(running.get("/metrics").body):get("riskscreen_local_list_faulty", labels) == 1
      end)
    end
  end)

  local function csv(...)
    local rows = { ... }
    for index, row in ipairs(rows) do
      rows[index] = type(row) == "number" and address(row) or row
    end
    return directory:write("deny.csv", "address\n" .. table.concat(rows, "\n") .. "\n")
  end

  -- Kills the workers, and waits for new ones.
  local function kill_workers()
    local killed = tables.set(running.nginx:workers())
    os.execute("kill -KILL " .. table.concat(tables.sorted_keys(killed), " "))
    nginx.wait_for("new workers", function()
      local workers = running.nginx:workers()
      for _, pid in ipairs(workers) do
        if killed[pid] then
          return false
        end
      end
      return #workers == WORKERS
    end)
  end

  it("decides from a worker's first request on by the file that there is then", function()
    local clean = addresses["clean-eth"]
    -- The timer of a worker's later looks does not fire in this spec.
    start(("{ deny = '%s', interval = 3600 }"):format(csv(1)))
    csv(1, clean)
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(clean) })
    end
    csv(1, 2, clean)
    kill_workers()
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(address(2)) })
    end
    assert.equal(0, #running.service:requests())
  end)

  -- Decides in a worker whose clock runs a second with each look at it, and whose timers are those given.
  local FIRST_LOOK = [[
    local path, address, content = (...)[1], (...)[2], (...)[3]
    local runtime = require "riskscreen.runtime"
    local timer, sleep, now, time = ngx.timer, ngx.sleep, runtime.nginx_time, 0
    local looking, look_on = false, require("ngx.semaphore").new()
    runtime.nginx_time = function()
      time = time + 1
      return time
    end
    local settings = { deny = { path }, allow = {}, max_shrink = 1, interval = 1000 }
    local lists = require("riskscreen.nginx.local_lists").new(settings)
    os.remove(path)
    local file = io.open(path, "w")
    file:write(content)
    file:close()
    os.execute("chmod 644 " .. path)
    ngx.timer = { every = function() return EVERY end, at = function(_, look) AT return true end }
    ngx.sleep = function(seconds)
      if looking then
        looking = false
        look_on:wait(60)
      else
        sleep(seconds)
      end
    end
    local decision = lists:decide(address, "eth")
    look_on:post()
    ngx.timer, ngx.sleep, runtime.nginx_time = timer, sleep, now
    return decision and decision.action, decision and decision.reasons[1].message]]

  local function first_look(every, at)
    local rows = { "address" }
    for number = 1, 1000 do
      rows[#rows + 1] = address(number)
    end
    start(("{ deny = '%s' }"):format(csv(1)))
    local code = FIRST_LOOK:gsub("%f[%w]%u%u+%f[%W]", { EVERY = every, AT = at })
    return running.nginx:eval(code, { csv(1), address(1000), table.concat(rows, "\n") })
  end

  it("allows nobody where the first look of a worker takes too long", function()
    local action, message = first_look("true", "looking = true; ngx.thread.spawn(look)")
    assert.equal("unknown", action)
    assert.matches("still loading its local lists", message, 1, true)
  end)

  it("looks while it decides where nginx has no timer, or drops it", function()
    assert.equal("block", (first_look("nil, 'too many pending timers'", "")))
    running.close { "too many pending timers" }
    assert.equal("block", (first_look("true", "")))
  end)

  it("lets a new worker compare a shorter deny list with that of the other workers", function()
    local clean = addresses["clean-eth"]
    start(("{ deny = '%s', interval = 0.1 }"):format(csv(1, 2, 3, 4, 5, 6, 7, 8, 9)))
    csv(1, 2, 3, 4, 10)
    all_answer(403, address(10))
    csv(1, 2, clean)
    all_answer(403, clean)
    kill_workers()
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(clean) })
    end
    csv(1)
    nginx.wait_for("the new file to be noticed", function()
      return running.nginx:log():find("it has 1 entry, and the list before it has 3", 1, true)
    end)
    kill_workers()
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(address(2)) })
    end
  end)

  it("lets a new worker allow nobody by a list that is older than that of the others", function()
    local clean = addresses["clean-eth"]
    start(("{ deny = '%s', interval = 0.1 }"):format(csv(1, 2)))
    all_answer(200, clean)
    local path = directory:write("deny.csv", "what\n")
    nginx.wait_for("the damaged file to be noticed", function()
      return running.nginx:log():find("was not loaded again", 1, true)
    end)
    kill_workers()
    all_answer(200, clean) -- the list of the start is still the latest
    for _, damage in ipairs {
      function()
        csv(3)
      end,
      function()
        directory:write("deny.csv", "what\n")
      end,
      function()
        os.remove(path)
      end,
    } do
      csv(1, 2, clean)
      all_answer(403, clean)
      damage()
      kill_workers()
      for _ = 1, MANY do
        assert.same({ 403, "list" }, { ask(clean) })
      end
      assert.same({ 403, "list" }, { ask(address(1)) })
    end
    csv(1, 2)
    all_answer(200, clean)
  end)

  it("takes its list for the latest beside another gate with the same file", function()
    local list = ("{ deny = '%s', interval = 0.1 }"):format(csv(1, 2))
    start(list, ("} other = new_gate { network = 'eth', name = 'other', lists = %s,"):format(list))
    all_answer(200, addresses["clean-eth"])
    directory:write("deny.csv", "what\n")
    nginx.wait_for("the damaged file to be noticed", function()
      return running.nginx:log():find("was not loaded again", 1, true)
    end)
    kill_workers()
    all_answer(200, addresses["clean-eth"])
    assert.same({ 403, "list" }, { ask(address(1)) })
  end)

  it("is not made by a reload with a deny list that its workers refuse", function()
    start(("{ deny = '%s', interval = 0.1 }"):format(csv(1, 2, 3)))
    all_answer(403, address(3))
    csv(1)
    running.nginx:reload()
    nginx.wait_for("the reload to fail", function()
      return running.nginx:log():find("init_by_lua error.-it has 1 entry, and the list before it has 3")
    end)
    all_answer(403, address(3))
  end)

  it("keeps its record in a dict that others fill", function()
    start(("{ deny = '%s', interval = 0.1 }"):format(csv(1, 2, 3)), "", nil, "40k")
    all_answer(403, address(3))
    local function fill()
      for turn = 1, 30 do -- 200 entries fill the dict, and a busy machine looks at the list every second at least
        socket.sleep(0.15)
        running.nginx:eval("for i = 1, 12 do ngx.shared.riskscreen:set(... .. ':' .. i, ('x'):rep(100)) end", turn)
      end
    end
    fill()
    csv(1)
    nginx.wait_for("the new file to be noticed", function()
      return running.nginx:log():find("it has 1 entry, and the list before it has 3", 1, true)
    end)
    fill()
    running.nginx:reload()
    nginx.wait_for("the reload to fail", function()
      return running.nginx:log():find("init_by_lua error.-it has 1 entry, and the list before it has 3")
    end)
    all_answer(403, address(3))
  end)

  it("follows a new file in a worker that ends after a reload, as long as it has requests", function()
    local clean = addresses["clean-eth"]
    start(("{ deny = '%s', interval = 0.1 }"):format(csv(1)))
    local slow, body = {}, "to=" .. clean
    for number = 1, MANY do
      slow[number] = assert(socket.connect("127.0.0.1", running.nginx.port))
      slow[number]:send(
        "POST /slow HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\n"
          .. "Content-Length: "
          .. #body
          .. "\r\n\r\n"
          .. body:sub(1, 3)
      )
    end
    all_answer(200, clean)
    running.nginx:reload()
    nginx.wait_for("the new workers", function()
      return #running.nginx:workers() == 2 * WORKERS
    end)
    nginx.wait_for("the old workers to end", function()
      local _, count = running.nginx:log():gsub("gracefully shutting down", "")
      return count == WORKERS
    end)
    csv(1, clean)
    all_answer(403, clean)
    local number = 0
    nginx.wait_for("an old worker to refuse", function()
      number = number + 1
      slow[number]:send(body:sub(4))
      return slow[number]:receive "*l" == "HTTP/1.1 403 Forbidden"
    end)
    for _, connection in ipairs(slow) do
      connection:close()
    end
    nginx.wait_for("the old workers to end", function()
      return #running.nginx:workers() == WORKERS
    end)
  end)

  it("kills no worker where a file is cut in place, and lets nobody pass until there is a new one", function()
    if not nginx.with_core then
      return pending "only a list that the core maps can be cut"
    end
    start(("{ deny = '%s', interval = 0.1 }"):format(compiled("deny.rsl", many(1))))
    all_answer(403, address(LONG))
    local good, workers = directory:read "deny.rsl", running.nginx:workers()
    assert(os.execute(": > " .. directory:path "deny.rsl"))
    for _ = 1, MANY do
      assert.same({ 403, "list" }, { ask(addresses["clean-eth"]) })
    end
    assert.equal(0, #running.service:requests())
    directory:write("deny.rsl", good)
    all_answer(200, addresses["clean-eth"])
    assert.same({ 403, "list" }, { ask(address(LONG)) })
    table.sort(workers)
    local later = running.nginx:workers()
    table.sort(later)
    assert.same(workers, later)
  end)

  it("shows its lists to Prometheus and on the status page", function()
    local path = directory:write("allow.csv", "address\nabc\n" .. address(1) .. "\n")
    -- Without the core the age of a text file is not known: with max_age it would not count.
    start(("{ allow = '%s'%s }"):format(path, nginx.with_core and ", max_age = 1e7" or ""))
    local metrics = prometheus.parse(running.get("/metrics").body)
    local labels = { gate = "default", kind = "allow", file = path }
    for name, value in pairs { entries = 1, invalid_rows = 1, stale = 0, faulty = 0 } do
      assert.equal(value, metrics:get("riskscreen_local_list_" .. name, labels))
    end
    local page = running.get("/status", { headers = { "Accept: text/html" } }).body
    assert.matches("Local lists", page, 1, true)
    assert.matches("has 1 row without an entry", page, 1, true)
    assert.matches('"lists":[{', running.get("/status").body, 1, true)
  end)

  it("is not made with a list that cannot be loaded", function()
    local ok, message = pcall(start, ("{ deny = '%s' }"):format(directory:path "none.rsl"))
    assert.is_false(ok)
    assert.matches("gate: the list '.*none.rsl' is not loaded: cannot %a+ it: No such file", message)
  end)
end)
