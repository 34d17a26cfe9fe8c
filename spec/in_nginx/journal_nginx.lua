-- The journal of a gate in a real nginx: every decision is written, also when workers are replaced or stopped.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local journals = require "riskscreen.journal"
local nginx = require "spec.support.nginx"
local prometheus = require "spec.support.prometheus"
local temporary = require "spec.support.temporary"

local ENFORCE = "gate:enforce { address = ngx.var.arg_to }"
local GATE = "gate = new_gate { network = 'eth', journal = { path = '%s'%s } }"

describe("the journal of a gate", function()
  local running, path

  before_each(function()
    path = temporary.path "decisions.jsonl"
  end)

  after_each(function()
    local ending = running
    running = nil
    if ending then
      ending.close()
    end
    temporary.clean()
  end)

  local function start(more, workers)
    running = gates.start {
      init = GATE:format(path, more or ""),
      locations = { ["/withdraw"] = ENFORCE },
      server = "location = /metrics { content_by_lua_block { gate:metrics() } }",
      workers = workers,
      http = "exit_worker_by_lua_block { gate:stop() }",
    }
  end

  local function request(name)
    return running.status("/withdraw?to=" .. (addresses[name] or name))
  end

  local function entries()
    local list = {}
    local file = io.open(path)
    if file then
      file:close()
      for entry in journals.entries(path) do
        list[#list + 1] = entry
      end
    end
    return list
  end

  local function wait_for_lines(count)
    return nginx.wait_for(count .. " lines", function()
      local list = entries()
      return #list >= count and list
    end)
  end

  local function check(count)
    local report = assert(journals.verify(path))
    assert.same({}, report.faults)
    assert.equal(count, report.lines)
  end

  if not nginx.with_core then
    it("is refused with the reason, because only the core can lock a file", function()
      local ok, message = pcall(start)
      assert.is_false(ok)
      assert.matches(
        "gate: journal: .*journal%.file needs riskscreen%.system, which is compiled with the library",
        message
      )
    end)
    pending "needs the core for everything else"
    return
  end

  it("has the address of a query", function()
    running = gates.start {
      init = GATE:format(path, ", interval = 0.05")
        .. " gate = gate:location "
        .. "{ address = { argument = 'to' }, network = { argument = 'network' } }",
      locations = { ["/withdraw"] = "gate:enforce()" },
    }
    for _, name in ipairs { "high-eth", "clean-eth", "high-eth" } do
      running.status("/withdraw?network=eth&to=" .. addresses[name])
    end
    local inputs = {}
    for index, entry in ipairs(wait_for_lines(3)) do
      inputs[index] = entry.input
    end
    assert.same({ addresses["high-eth"], addresses["clean-eth"], addresses["high-eth"] }, inputs)
  end)

  it("has the id that a denied request was told", function()
    start ", interval = 0.05"
    local told = running.get("/withdraw?network=eth&to=" .. addresses["high-eth"]).headers["x-request-id"]
    assert.matches("^%x+$", told)
    assert.equal(told, wait_for_lines(1)[1].request_id)
  end)

  it("has a line for each request, with the source of its decision", function()
    start ", interval = 0.05, record = true"
    assert.equal(403, request "high-eth")
    assert.equal(403, request "high-eth")
    assert.equal(200, request "clean-eth")
    assert.equal(403, request "nonsense")
    local list = wait_for_lines(4)
    local shown = {}
    for index, entry in ipairs(list) do
      shown[index] = ("%s %s %s"):format(entry.action, entry.source, entry.input)
      assert.equal(32, #entry.request_id)
    end
    assert.same({
      "block service " .. addresses["high-eth"],
      "block cache " .. addresses["high-eth"],
      "allow service " .. addresses["clean-eth"],
      "unknown none nonsense",
    }, shown)
    assert.equal(addresses["high-eth"]:lower(), list[1].address)
    assert.equal("high", list[1].record.risk.risks[1].riskLevel)
    assert.matches("journal_lines_total{[^}]*written[^}]*} 4", running.get("/metrics").body)
    check(4)
    for _, name in ipairs(temporary.names()) do
      assert.is_nil(temporary.read(temporary.path(name)):find(running.server.access_key, 1, true))
    end
  end)

  it("is one file with one chain for all workers", function()
    start(", interval = 0.02, max_size = 20000", 3)
    for index = 1, 150 do
      request(("0x%040x"):format(index))
    end
    nginx.wait_for("all lines", function()
      return journals.verify(path) and journals.verify(path).lines >= 150
    end)
    check(150)
    local ids = {}
    for entry in journals.entries(path) do
      assert.is_nil(ids[entry.id])
      ids[entry.id] = true
    end
  end)

  for _, name in ipairs { "TERM", "QUIT" } do
    it("loses nothing when nginx is stopped by SIG" .. name, function()
      start(", interval = 3600", 2)
      for index = 1, 20 do
        request(("0x%040x"):format(index))
      end
      assert.equal(0, #entries())
      os.execute(("kill -%s %d"):format(name, running.nginx:master()))
      nginx.wait_for("nginx to end", function()
        return not running.nginx:master()
      end)
      check(20)
    end)
  end

  it("loses nothing when nginx is stopped while a worker waits for the file", function()
    start ", interval = 0.02"
    request "clean-eth"
    wait_for_lines(1)
    local lock = assert(io.open(path .. ".head", "r+b"))
    assert(require("riskscreen.system").lock(lock))
    for index = 1, 19 do
      request(("0x%040x"):format(index))
    end
    nginx.wait_for("a worker to wait in vain", function()
      return running.nginx:log():find("holds the lock for too long", 1, true)
    end)
    os.execute(("kill -TERM %d"):format(running.nginx:master()))
    nginx.wait_for("the worker to write its last lines", function()
      return running.nginx:log():find("exiting", 1, true)
    end)
    lock:close()
    nginx.wait_for("nginx to end", function()
      return not running.nginx:master()
    end)
    check(20)
    local ending = running
    running = nil
    ending.close { "another program holds the lock for too long" }
  end)

  it("counts a line once where a worker ends while its timer waits for the file", function()
    start ", interval = 0.02"
    request "clean-eth"
    wait_for_lines(1)
    running.nginx:eval(
      [[
        local path, address = (...)[1], (...)[2]
        local lock = assert(io.open(path .. ".head", "r+b"))
        assert(require("riskscreen.system").lock(lock))
        for _ = 1, 19 do
          gate:decide { address = address }
        end
        ngx.sleep(0.1) -- the timer waits for the file
        lock:close()
        gate:stop()
        ngx.sleep(0.3)
      ]],
      { path, addresses["clean-eth"] }
    )
    check(20)
    local metrics = prometheus.parse(running.get("/metrics").body)
    assert.equal(20, metrics:get("riskscreen_journal_lines_total", { gate = "default", result = "written" }))
  end)

  it("loses nothing when the configuration is reloaded", function()
    start(", interval = 3600", 2)
    for index = 1, 20 do
      request(("0x%040x"):format(index))
    end
    local old = running.nginx:workers()
    running.nginx:reload()
    nginx.wait_for("the old workers to end", function()
      for _, pid in ipairs(running.nginx:workers()) do
        if pid == old[1] or pid == old[2] then
          return false
        end
      end
      return true
    end)
    check(20)
    request "clean-eth"
    os.execute(("kill -QUIT %d"):format(running.nginx:master()))
    nginx.wait_for("nginx to end", function()
      return not running.nginx:master()
    end)
    check(21)
  end)

  it("notes its head without waiting for another decision", function()
    start ", interval = 0.05"
    request "clean-eth"
    wait_for_lines(1)
    request "high-eth"
    wait_for_lines(2)
    nginx.wait_for("the head", function()
      return temporary.read(path .. ".head"):find('"seq":2', 1, true)
    end)
  end)

  it("goes on when another program renames its file and reloads nginx", function()
    start(", interval = 0.05, required = true", 2)
    for round = 1, 3 do
      for index = 1, 10 do
        request(("0x%040x"):format(index))
      end
      wait_for_lines(10 * round)
      os.rename(path, path .. "." .. round)
      temporary.write(path, "")
      local before = running.nginx:workers()
      running.nginx:reload()
      nginx.wait_for("the old workers to end", function()
        for _, pid in ipairs(running.nginx:workers()) do
          if pid == before[1] or pid == before[2] then
            return false
          end
        end
        return true
      end)
    end
    request "clean-eth"
    wait_for_lines(31)
    check(31)
  end)

  it("loses no more than an interval when a worker is killed, and the chain holds", function()
    start ", interval = 0.05"
    for index = 1, 10 do
      request(("0x%040x"):format(index))
    end
    wait_for_lines(10)
    local worker = running.nginx:workers()[1]
    os.execute("kill -KILL " .. worker)
    nginx.wait_for("a new worker", function()
      local now = running.nginx:workers()
      return now[1] and now[1] ~= worker
    end)
    request "clean-eth"
    wait_for_lines(11)
    check(11)
    local ending = running
    running = nil
    ending.close { "exited on signal 9" }
  end)

  it("records what each decision leads to, and where nobody is refused", function()
    running = gates.start {
      init = GATE:format(path, ", interval = 0.05")
        .. " gate = gate:location { on_review = 'allow' } watcher = gate:location { monitor = true }",
      locations = {
        ["/withdraw"] = ENFORCE,
        ["/watched"] = "watcher:enforce { address = ngx.var.arg_to }",
      },
    }
    for _, name in ipairs { "generally-high-eth", "high-eth", "clean-eth" } do
      request(name)
      assert.equal(200, running.status("/watched?to=" .. addresses[name]))
    end
    running.status "/watched?to=nonsense"
    local shown = {}
    for index, entry in ipairs(wait_for_lines(7)) do
      shown[index] = ("%s %s %s"):format(entry.action, entry.outcome, tostring(entry.monitor))
    end
    assert.same({
      "review allow nil",
      "review allow true",
      "block block nil",
      "block block true",
      "allow allow nil",
      "allow allow true",
      "unknown block true",
    }, shown)
  end)

  it("refuses to start where it is required and cannot be written", function()
    local function refusal(at)
      path = at
      local ok, message = pcall(start, ", required = true")
      running = ok and running or nil
      assert.is_false(ok)
      return message
    end
    local nowhere = temporary.path "nowhere" .. "/decisions.jsonl"
    assert.matches("gate: journal: .*No such file or directory", refusal(nowhere))
    assert.matches("gate: journal: .*Is a directory", refusal(temporary.directory()))
    path = temporary.path "decisions.jsonl"
    temporary.write(path, "another log\n")
    temporary.write(path .. ".head", "")
    assert.matches("the last line is not one of a journal", refusal(path))
  end)

  it("starts where it is required, and leaves the files to the workers", function()
    start ", required = true, interval = 0.05"
    assert.same({}, temporary.names())
    request "clean-eth"
    wait_for_lines(1)
    running.nginx:reload()
    request "clean-eth"
    wait_for_lines(2)
    check(2)
  end)

  it("says at the end of a worker how many decisions it could not write", function()
    path = temporary.path "nowhere" .. "/decisions.jsonl"
    start ", interval = 3600"
    request "high-eth"
    request "clean-eth"
    os.execute(("kill -QUIT %d"):format(running.nginx:master()))
    nginx.wait_for("nginx to end", function()
      return not running.nginx:master()
    end)
    local expected = "%[error%][^\n]*No such file or directory; decisions of this worker: 0 waiting, 2 lost"
    assert.matches(expected, running.nginx:log())
    assert.is_nil(running.nginx:log():find("riskscreen: riskscreen:", 1, true))
    local ending = running
    running = nil
    ending.close { "riskscreen: storage: journal" }
  end)

  it("fails no request when it cannot be written, and warns", function()
    path = temporary.path "nowhere" .. "/decisions.jsonl"
    start ", interval = 0.02, buffer = 2"
    for _ = 1, 5 do
      assert.equal(403, request "high-eth")
      assert.equal(200, request "clean-eth")
    end
    nginx.wait_for("a warning", function()
      return running.nginx:log():find("No such file or directory", 1, true)
    end)
    assert.matches(
      "%[error%][^\n]*No such file or directory; decisions of this worker: %d+ waiting, %d+ lost",
      running.nginx:log()
    )
    assert.matches("journal_lines_total{[^}]*lost[^}]*} [1-9]", running.get("/metrics").body)
    assert.matches("journal_lines_total{[^}]*failed[^}]*} [1-9]", running.get("/metrics").body)
    local ending = running
    running = nil
    ending.close { "riskscreen: storage: journal" }
  end)

  it("is refused at a relative path: the directory of a worker need not be that of the master", function()
    for _, relative in ipairs { "decisions.jsonl", "./decisions.jsonl", "" } do
      path = relative
      local ok, message = pcall(start)
      assert.is_false(ok)
      assert.matches("gate: journal%.path must be a path that begins with '/'", message)
    end
  end)

  it("refuses wrong options", function()
    local ok, message = pcall(start, ", sink = 5")
    assert.is_false(ok)
    assert.matches("unknown option 'sink' in journal", message)
    running = nil
  end)
end)
