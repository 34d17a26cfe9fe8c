local errors = require "riskscreen.errors"
local maps = require "riskscreen.client.map"
local riskscreen = require "riskscreen"
local virtual_time = require "riskscreen.runtime.virtual"

local map = riskscreen.map

local function collect(run)
  local results = {}
  for index, value, err, item in run do
    results[#results + 1] = { index = index, value = value, err = err, item = item }
  end
  return results
end

local function values(run)
  local list = {}
  for _, value in run do
    list[#list + 1] = value
  end
  return list
end

local function numbers(count)
  local list = {}
  for index = 1, count do
    list[index] = index
  end
  return list
end

local function counter(count)
  local index = 0
  return function()
    index = index + 1
    return index <= count and index or nil
  end
end

local function double(number)
  return number * 2
end

-- Both inside a task and outside of any.
local function in_both(name, body)
  it(name .. ", outside of a task", body)
  it(name .. ", in a task", function()
    riskscreen.run(body)
  end)
end

describe("map", function()
  in_both("reports a result for every item of a list, in order", function()
    assert.same({ 2, 4, 6, 8, 10 }, values(map(numbers(5), double, { concurrency = 2 })))
  end)

  in_both("takes the items of a function", function()
    assert.same({ 2, 4, 6 }, values(map(counter(3), double)))
  end)

  it("reports the index, both results and the item", function()
    local results = collect(map({ "a" }, function(item, index)
      return nil, item .. index
    end))
    assert.same({ { index = 1, err = "a1", item = "a" } }, results)
  end)

  it("ends at once over an empty list", function()
    assert.same({}, values(map({}, double)))
  end)

  it("takes the lines of a file, without blank ones", function()
    local file = assert(io.tmpfile())
    file:write "one\r\n\n  \ntwo\nthree"
    file:seek "set"
    local lines = values(map(file, function(line)
      return line
    end))
    file:close()
    assert.same({ "one", "two", "three" }, lines)
  end)

  it("raises when a function returns nil and an error", function()
    local function broken()
      return nil, "Input/output error"
    end
    assert.has_error(map(broken, double), "the source failed: Input/output error")
    local failure = { "an object" }
    local ok, err = pcall(map(function()
      return nil, failure
    end, double))
    assert.same({ false, failure }, { ok, err })
    assert.has_error(map(setmetatable({}, { __call = broken }), double), "the source failed: Input/output error")
  end)

  it("raises when a file cannot be read", function()
    local directory = assert(io.open(".", "r"))
    local ok, message = pcall(map(directory, double))
    assert.is_false(ok)
    assert.matches("the file cannot be read", message)
    directory:close()
    local closed = assert(io.tmpfile())
    local run = map(closed, double)
    closed:close()
    assert.is_false((pcall(run)))
  end)

  it("ends where a pipe has nothing, or less than four bytes", function()
    for text, count in pairs { [""] = 0, a = 1, ["a\\n"] = 1, ["ab"] = 1, ["a\\nb"] = 2 } do
      local pipe, seen = assert(io.popen(("printf '%s'"):format(text))), 0
      for _ in map(pipe, string.upper) do
        seen = seen + 1
      end
      assert.equal(count, seen, text)
    end
  end)

  it("raises when the program behind a pipe fails", function()
    local lines = {}
    local pipe = assert(io.popen "echo one; echo two; exit 3")
    if pipe:seek() then
      pending "this Lua does not tell pipes from files"
    end
    local ok, message = pcall(function()
      for _, value in
        map(pipe, function(line)
          return line
        end)
      do
        lines[#lines + 1] = value
      end
    end)
    assert.same({ "one", "two" }, lines)
    -- Lua 5.1 does not report how a program ended.
    if _VERSION ~= "Lua 5.1" then
      assert.is_false(ok)
      assert.matches("the program behind the pipe failed (exit 3)", message, 1, true)
    end
  end)

  it("takes the items of a callable object", function()
    local inner = map(numbers(3), double)
    assert.same(
      { 4, 8, 12 },
      values(map(function()
        local _, value = inner()
        return value
      end, double))
    )
    local callable = setmetatable({ next = counter(2) }, {
      __call = function(self)
        return self.next()
      end,
    })
    assert.same({ 2, 4 }, values(map(callable, double)))
  end)

  in_both("runs `concurrency` items at a time", function()
    local running, most = 0, 0
    local run = map(numbers(20), function()
      running = running + 1
      most = math.max(most, running)
      riskscreen.sleep(0)
      running = running - 1
      return true
    end, { concurrency = 3 })
    assert.equal(20, #values(run))
    assert.equal(3, most)
  end)

  -- The workers of a run over 100 items, 10 at a time.
  local function workers_of(body)
    local runtime, workers = require "riskscreen.runtime", 0
    local tasks = setmetatable({
      spawn = function(...)
        workers = workers + 1
        return runtime.tasks.spawn(...)
      end,
    }, { __index = runtime.tasks })
    local counting = setmetatable({ tasks = tasks }, { __index = runtime })
    local run = assert(maps.new(counting, numbers(100), body, { concurrency = 10, ordered = true }))
    assert.equal(100, #values(run))
    return workers
  end

  in_both("has one worker for many items that do not wait", function()
    assert.is_true(workers_of(double) <= 5)
  end)

  in_both("has a worker for each place where items wait", function()
    local running, most = 0, 0
    local workers = workers_of(function()
      running = running + 1
      most = math.max(most, running)
      riskscreen.sleep(0)
      running = running - 1
      return true
    end)
    assert.equal(10, most)
    assert.is_true(workers >= 10)
  end)

  in_both("reports items as they finish when unordered", function()
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(3600)
    end)
    local run = map(numbers(3), function(number)
      if number == 1 then
        gate:await()
      end
      return number
    end, { ordered = false })
    local order = {}
    for index in run do
      order[#order + 1] = index
      if #order == 2 then
        gate:cancel()
      end
    end
    assert.equal(1, order[3])
  end)

  in_both("reports many items while the first one is under way when unordered", function()
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(3600)
    end)
    local run = map(numbers(200), function(number)
      if number == 1 then
        gate:await()
      end
      return number
    end, { ordered = false, concurrency = 2 })
    local seen = {}
    for index in run do
      seen[#seen + 1] = index
      if #seen == 100 then
        assert.equal(1, run:where().pending[1].index)
      elseif #seen == 199 then
        gate:cancel()
      end
    end
    assert.equal(1, seen[200])
  end)

  in_both("ends an item when the tasks that its function has spawned have ended", function()
    local ended = 0
    local run = map(numbers(10), function(number)
      riskscreen.spawn(function()
        riskscreen.sleep(0)
        ended = ended + 1
      end)
      return number
    end, { concurrency = 1 })
    for index, value in run do
      assert.equal(index, value)
      assert.is_true(ended >= index)
    end
    assert.equal(10, ended)
  end)

  in_both("raises an error of a task that its function has left behind", function()
    local run = map(numbers(3), function(number)
      if number == 2 then
        riskscreen.spawn(function()
          error({ code = 8 })
        end)
      end
      return number
    end, { concurrency = 1 })
    assert.equal(1, (run()))
    local ok, failure = pcall(run)
    assert.is_false(ok)
    assert.equal(8, failure.code)
  end)

  it("reports items in order when ordered", function()
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(0.01)
    end)
    local finished = {}
    local run = map(numbers(3), function(number)
      if number == 1 then
        gate:await()
      end
      finished[#finished + 1] = number
      return number
    end)
    assert.same({ 1, 2, 3 }, values(run))
    assert.equal(1, finished[3])
  end)

  it("takes at most 8 times its concurrency from the source", function()
    local taken = 0
    local function endless()
      taken = taken + 1
      return taken
    end
    local gate = riskscreen.spawn(function()
      riskscreen.sleep(0.01)
    end)
    local run = map(endless, function(number)
      if number == 1 then
        gate:await()
      end
      return number
    end, { concurrency = 4 })
    assert.equal(1, (run()))
    assert.is_true(taken <= 4 * 8)
    run:stop()
  end)

  it("reports a result while its source has no further item yet", function()
    local count, given = 0, {}
    for _, value in
      map(function()
        riskscreen.sleep(count > 0 and 0.02 or 0)
        count = count + 1
        given[count] = true
        return count <= 4 and count or nil
      end, double)
    do
      assert.is_nil(given[value / 2 + 2])
    end
    assert.equal(5, count)
  end)

  it("takes nothing before the first result is wanted", function()
    local taken = 0
    map(function()
      taken = taken + 1
      return taken
    end, double)
    assert.equal(0, taken)
  end)

  in_both("raises an error of its function", function()
    local run = map(numbers(3), function(number)
      if number == 2 then
        error({ code = 7 })
      end
      return number
    end, { concurrency = 1 })
    assert.equal(1, (run()))
    local ok, failure = pcall(run)
    assert.is_false(ok)
    assert.equal(7, failure.code)
    assert.is_nil((run()))
  end)

  it("raises when a file cannot be read to its end", function()
    local directory = assert(io.open ".")
    local run = map(directory, double)
    assert.has_error(function()
      run()
    end, "the file cannot be read: Is a directory")
    directory:close()
  end)

  it("raises an error of its source and does not read it again", function()
    local asked = 0
    local run = map(function()
      asked = asked + 1
      error("the source broke", 0)
    end, double)
    assert.has_error(function()
      run()
    end, "the source broke")
    assert.is_false((pcall(run)))
    assert.equal(1, asked)
  end)

  it("raises an error of its source after the results of the items before, also while they are under way", function()
    for _, failure in ipairs { "the database is away", { "an object" } } do
      for _, concurrency in ipairs { 1, 32 } do
        local count, seen = 0, {}
        local run = map(function()
          count = count + 1
          if count == 50 then
            riskscreen.sleep(0.001)
            error(failure, 0)
          end
          return count
        end, function(number)
          riskscreen.sleep(0.001)
          return number
        end, { concurrency = concurrency })
        local ok, raised = pcall(function()
          while true do
            seen[#seen + 1] = assert(run())
          end
        end)
        assert.same({ false, failure, 49, 50 }, { ok, raised, #seen, count })
      end
    end
    local silent = map(function()
      error()
    end, double)
    assert.has_error(silent, "the source failed")
  end)

  it("reports the items before a source that raises an error of any kind", function()
    for _, kind in ipairs { "cancelled", "server" } do
      local failure = errors.new(kind, "the source ended")
      local count = 0
      local run = map(function()
        count = count + 1
        if count > 3 then
          error(failure, 0)
        end
        return count
      end, function(number)
        riskscreen.sleep(0.001)
        return number
      end, { concurrency = 4 })
      local seen = {}
      local ok, raised = pcall(function()
        for index in run do
          seen[#seen + 1] = index
        end
      end)
      assert.same({ false, kind, 3 }, { ok, raised.kind, #seen })
    end
  end)

  it("does not end silently after the task that read its source was cancelled", function()
    if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then
      return -- a loop blocks there
    end
    local count = 0
    local run = map(function()
      count = count + 1
      riskscreen.sleep(count > 2 and 60 or 0)
      return count
    end, double)
    local reader = riskscreen.spawn(function()
      return run()
    end)
    while count < 3 do
      riskscreen.sleep(0)
    end
    reader:cancel()
    assert.equal("cancelled", select(2, reader:await()).kind)
    local seen = {}
    local ok, raised = pcall(function()
      for _, value in run do
        seen[#seen + 1] = value
      end
    end)
    assert.same({ false, "cancelled", { 2, 4 } }, { ok, errors.is(raised) and raised.kind, seen })
  end)

  it("lets a task be cancelled that reads its source", function()
    if _VERSION == "Lua 5.1" and not rawget(_G, "jit") then
      return -- a loop blocks there
    end
    local ended
    local task = riskscreen.spawn(function()
      map(function()
        riskscreen.sleep(60)
      end, double)()
      ended = true
    end)
    riskscreen.sleep(0)
    task:cancel()
    assert.equal("cancelled", select(2, task:await()).kind)
    assert.is_nil(ended)
  end)

  it("reports every item exactly once, ordered and unordered", function()
    for _, ordered in ipairs { true, false } do
      local seen = {}
      local run = map(counter(1000), function(number)
        riskscreen.sleep(number % 7 == 0 and 0.001 or 0)
        return number
      end, { concurrency = 64, ordered = ordered })
      for index, value in run do
        assert.is_nil(seen[index])
        assert.equal(index, value)
        seen[index] = true
      end
      assert.equal(1000, #seen)
    end
  end)
end)

describe("a run", function()
  it("reports its progress: done, failed, rate and eta", function()
    local calls = {}
    local run = map({ 1, 2, 3, 4 }, function(number)
      if number ~= 2 then
        return number
      end
    end, {
      on_progress = function(done, failed, rate, eta)
        calls[#calls + 1] = { done = done, failed = failed, rate = rate, eta = eta }
      end,
    })
    values(run)
    assert.equal(4, #calls)
    assert.equal(2, calls[2].done)
    assert.equal(1, calls[2].failed)
    assert.equal("number", type(calls[4].rate))
    assert.equal(0, calls[4].eta)
  end)

  it("tells the items a second, and the time that is left", function()
    local time, told = virtual_time.new(), {}
    function time.tasks.iterator(iterate)
      return iterate
    end
    time.sleep(100)
    local run = assert(maps.new(time, numbers(4), function(number)
      time.sleep(2)
      return number
    end, {
      concurrency = 1,
      ordered = true,
      on_progress = function(...)
        told[#told + 1] = { ... }
      end,
    }))
    time.tasks.run(function()
      for _ = 1, 4 do
        maps.next(run)
      end
    end)
    assert.same({ { 1, 0, 0.5, 6 }, { 2, 0, 0.5, 4 }, { 3, 0, 0.5, 2 }, { 4, 0, 0.5, 0 } }, told)
  end)

  it("tells its progress for each of many items", function()
    local told = 0
    values(map(numbers(100), double, {
      concurrency = 2,
      on_progress = function(done)
        told = told + 1
        assert.equal(told, done)
      end,
    }))
    assert.equal(100, told)
  end)

  it("reports an item once where several tasks take results and on_progress waits", function()
    local seen = {}
    local run = map(numbers(20), double, {
      on_progress = function()
        riskscreen.sleep(0)
      end,
    })
    local function take_all()
      for index, value in run do
        assert.equal(2 * index, value)
        seen[#seen + 1] = index
      end
    end
    riskscreen.run(function()
      riskscreen.gather { take_all, take_all, take_all }
    end)
    table.sort(seen)
    assert.same(numbers(20), seen)
  end)

  it("gives each item its own result after one that left tasks behind", function()
    for index, value in
      map(numbers(40), function(number)
        if number % 10 == 1 then
          riskscreen.spawn(riskscreen.sleep, 0)
        end
        return number
      end, { concurrency = 2 })
    do
      assert.equal(index, value)
    end
  end)

  in_both("loses no result when on_progress raises", function()
    local told, stderr = {}, io.stderr
    io.stderr = { write = function() end } -- luacheck: ignore 122
    local run = map(numbers(3), function(number)
      return number ~= 2 and number or nil, "err " .. number
    end, {
      on_progress = function(done, failed)
        told[#told + 1] = done .. "/" .. failed
        error "disk full"
      end,
    })
    local results = {}
    for index = 1, 4 do
      local position, value, err = run()
      results[index] = { position, value, err }
    end
    io.stderr = stderr -- luacheck: ignore 122
    for index = 1, 3 do
      assert.same({ index, index ~= 2 and index or nil, "err " .. index }, results[index])
    end
    assert.is_nil(results[4][1])
    assert.same({ "1/0", "2/1", "3/1" }, told)
    assert.same({ 3, 1 }, { run:where().reported, run:where().failed })
  end)

  it("has an eta only with a total", function()
    local etas = {}
    local function note(_, _, _, eta)
      etas[#etas + 1] = eta or "none"
    end
    values(map(counter(2), double, { on_progress = note }))
    assert.same({ "none", "none" }, etas)
    etas = {}
    values(map(counter(2), double, { on_progress = note, total = 2 }))
    assert.equal(0, etas[2])
  end)

  in_both("can be stopped: it aborts the tasks under way and returns its position", function()
    local aborted
    local run = map(numbers(10), function(number)
      if number > 2 then
        aborted = riskscreen.spawn(function()
          riskscreen.sleep(3600)
        end)
        aborted:await()
      end
      return number
    end, { concurrency = 4 })
    local reported = {}
    local standing
    for index in run do
      reported[#reported + 1] = index
      if index == 2 then
        riskscreen.sleep(0)
        standing = run:stop()
      end
    end
    assert.equal("cancelled", select(2, aborted:await()).kind)
    assert.same({ 1, 2 }, reported)
    assert.equal(2, standing.reported)
    assert.equal(2, standing.position)
    assert.equal(standing.taken - 2, #standing.pending)
    assert.equal(3, standing.pending[1].index)
    assert.equal(3, standing.pending[1].item)
  end)

  in_both("can be finished: it begins no further item, and ends after the results of those under way", function()
    local begun, run = 0, nil
    run = map(numbers(100), function(number)
      begun = begun + 1
      riskscreen.sleep(0.002)
      if number == 2 then
        local standing = run:finish()
        assert.is_true(#standing.pending > 4, #standing.pending .. " items are pending")
        begun = 0
      end
      return number
    end, { concurrency = 4, ordered = false })
    local reported = {}
    for _, number in run do
      reported[number] = true
    end
    assert.is_true(reported[2])
    assert.equal(0, begun)
    local standing = run:where()
    assert.equal(standing.taken, standing.reported)
    assert.same({}, standing.pending)
  end)

  it("drops the item that a slow source gives after the run was finished", function()
    local run
    run = map(function()
      riskscreen.sleep(0.01)
      return 1
    end, double)
    riskscreen.run(function()
      riskscreen.spawn(function()
        riskscreen.sleep(0.001)
        run:finish()
      end)
      assert.is_nil((run()))
    end)
    assert.equal(0, run:where().taken)
  end)

  it("lists the items that are taken and not reported", function()
    local run = map(numbers(3), function(number)
      if number == 1 then
        riskscreen.sleep(3600)
      end
      return number
    end, { concurrency = 3, ordered = false })
    run()
    run()
    local standing = run:stop()
    assert.equal(0, standing.position)
    assert.same({ { index = 1, item = 1 } }, standing.pending)
    assert.is_nil((run()))
  end)

  in_both("ends after so many failures in a row, with the last one as the cause", function()
    local run = map(numbers(10), function(number)
      return number == 2 or nil, "failure " .. number
    end, { stop_after_failures = 3, concurrency = 2 })
    local reported = {}
    local ok, err = pcall(function()
      for index in run do
        reported[#reported + 1] = index
      end
    end)
    assert.is_false(ok)
    assert.same({ 1, 2, 3, 4, 5 }, reported)
    assert.same({ "cancelled", 3, "failure 5" }, { err.kind, err.failures, err.cause })
    assert.matches("3 failures in a row; the last: failure 5", err.message, 1, true)
    assert.equal(6, run:where().pending[1].index)
  end)

  it("has nothing pending after its end", function()
    local run = map(numbers(3), double)
    values(run)
    local standing = run:where()
    assert.same({ taken = 3, reported = 3, failed = 0, position = 3, pending = {} }, standing)
  end)
end)

describe("misuse of map", function()
  local function raises(message, ...)
    local arguments = { n = select("#", ...), ... }
    local line = debug.getinfo(1, "l").currentline + 2
    local ok, problem = pcall(function()
      map(arguments[1], arguments[2], arguments[3])
    end)
    assert.is_false(ok)
    assert.matches("map_spec.lua:" .. line .. ":", problem, 1, true)
    assert.matches(message, problem, 1, true)
  end

  it("raises at the caller's line", function()
    raises("expected a function", { 1 }, nil)
    raises("source must be a list", { 1, nil, 3 }, double)
    raises("source must be a list, a function or an open file", "addresses.txt", double)
    raises("did you mean 'concurrency'?", {}, double, { concurency = 2 })
    raises("concurrency must be between 1", {}, double, { concurrency = 0 })
  end)

  it("raises for a closed file", function()
    local file = io.tmpfile()
    file:close()
    raises("closed", file, double)
  end)
end)
