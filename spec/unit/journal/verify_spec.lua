-- `verify` finds each change of a journal.
local command_line = require "spec.support.command_line"
local journals = require "riskscreen.journal"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

describe("the check of a journal", function()
  local path, lines

  before_each(function()
    path = temporary.path "decisions.jsonl"
    local journal = assert(journals.file(path))
    local decide = riskscreen.policy()
    for number = 1, 8 do
      local decision = decide:decide { risk = { whitelist = false, risks = {} } }
      decision.address, decision.network = ("0x%040x"):format(number), "eth"
      assert(journal:append(decision))
    end
    assert(journal:close())
    lines = {}
    for line in io.lines(path) do
      lines[#lines + 1] = line
    end
  end)

  after_each(temporary.clean)

  -- The faults of the journal with these lines: reason, line in the file, number in the chain.
  local function faults_of(changed, options)
    temporary.write(path, table.concat(changed, "\n") .. "\n")
    local report = assert(journals.verify(path, options))
    local faults = {}
    for _, fault in ipairs(report.faults) do
      assert.equal(path, fault.file)
      assert.is_string(fault.message)
      faults[#faults + 1] = ("%s %d %s"):format(fault.reason, fault.line, fault.seq or "-")
    end
    assert.equal(faults[1] == nil, report.ok)
    return faults
  end

  local function without(...)
    local changed = {}
    local removed = {}
    for _, number in ipairs { ... } do
      removed[number] = true
    end
    for number, line in ipairs(lines) do
      if not removed[number] then
        changed[#changed + 1] = line
      end
    end
    return changed
  end

  it("finds each file of a rotated journal that cannot be read", function()
    local journal = assert(journals.file(path))
    for _ = 1, 2 do
      assert(journal:rotate())
      assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
    end
    assert(journal:close())
    for _, unreadable in ipairs { path .. ".1", path .. ".2", path } do
      assert(os.rename(unreadable, path .. ".kept"))
      os.execute(("ln -s %s %s"):format(unreadable, unreadable)) -- a loop, which not even root can open
      local report = assert(journals.verify(path))
      local fault = report.faults[1]
      assert.same({ unreadable, "unreadable", 3 }, { fault.file, fault.reason, #report.files })
      assert(os.rename(path .. ".kept", unreadable))
    end
    assert.is_true(assert(journals.verify(path)).ok)
  end)

  it("finds a head that cannot be read: it may know of lines that are missing", function()
    local journal = assert(journals.file(path))
    assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
    assert(journal:close())
    local head, seen = path .. ".head", {}
    assert(os.remove(head))
    os.execute(("ln -s %s %s"):format(head, head))
    local report = assert(journals.verify(path))
    assert.same({ false, head, "unreadable" }, { report.ok, report.faults[1].file, report.faults[1].reason })
    for entry in
      journals.entries(path, nil, function(fault)
        seen[#seen + 1] = fault.file
      end)
    do
      seen[#seen + 1] = entry.seq
    end
    assert.same({ head, 1 }, { seen[1], seen[2] })
    os.remove(head)
  end)

  it("finds nothing in one that is whole", function()
    assert.same({}, faults_of(lines))
  end)

  it("finds a changed line, whatever byte was changed", function()
    for position = 2, #lines[3] do
      local byte = lines[3]:sub(position, position)
      local other = byte == "a" and "b" or "a"
      lines[3] = lines[3]:sub(1, position - 1) .. other .. lines[3]:sub(position + 1)
      local faults = faults_of(lines)
      assert.is_true(#faults > 0, position)
      assert.matches("^%a+ [34] ", faults[1])
      lines[3] = lines[3]:sub(1, position - 1) .. byte .. lines[3]:sub(position + 1)
    end
    lines[3] = lines[3]:gsub('"allow"', '"block"')
    assert.same({ "changed 3 3" }, faults_of(lines))
  end)

  it("finds dropped lines", function()
    assert.same({ "missing 3 3" }, faults_of(without(3)))
    assert.same({ "missing 1 1" }, faults_of(without(1, 2)))
    assert.same({ "missing 2 2", "missing 4 6" }, faults_of(without(2, 3, 6)))
  end)

  it("names how many lines were dropped", function()
    temporary.write(path, table.concat(without(3, 4, 5), "\n") .. "\n")
    local fault = journals.verify(path).faults[1]
    assert.equal("lines 3 to 5 of the chain are missing before this one", fault.message)
  end)

  it("finds lines in another order", function()
    lines[4], lines[5] = lines[5], lines[4]
    assert.same({ "moved 5 4" }, faults_of(lines))
  end)

  it("does not call a line missing that comes later", function()
    local later = without(3, 4, 5, 6)
    table.insert(later, lines[4])
    assert.same({ "missing 3 3", "missing 3 5", "moved 5 4" }, faults_of(later))
    assert.equal("lines 5 to 6 of the chain are missing before this one", journals.verify(path).faults[2].message)
    table.insert(later, lines[4])
    assert.same({ "missing 3 3", "missing 3 5", "moved 5 4", "repeated 6 4" }, faults_of(later))
  end)

  it("finds a line that is there twice", function()
    table.insert(lines, 5, lines[2])
    assert.same({ "repeated 5 2" }, faults_of(lines))
  end)

  it("finds a line that was written anew with a hash of its own", function()
    local line = require "riskscreen.journal.line"
    local chain = line.chain(lines[3])
    local body = lines[3]:match '^(.*),"part":':gsub('"allow"', '"block"')
    lines[3] = line.seal({ body }, { part = 1, seq = 2, hash = chain.prev }, line.hasher())[1]
    assert.same({ "replaced 4 4" }, faults_of(lines))
  end)

  it("finds text that is no line", function()
    table.insert(lines, 3, "hello")
    table.insert(lines, 6, "")
    assert.same({ "malformed 3 -", "malformed 6 -" }, faults_of(lines))
  end)

  it("finds that lines were cut at the end, from the noted head", function()
    assert.same({ "truncated 0 8" }, faults_of(without(7, 8)))
  end)

  it("finds it from a head that was kept elsewhere, also when PATH.head is gone", function()
    local head = journals.verify(path).head
    os.remove(path .. ".head")
    assert.same({}, faults_of(without(8)))
    assert.same({ "truncated 0 8" }, faults_of(without(8), { head = head }))
  end)

  it("finds a journal that was written anew as a whole, from a head that was kept elsewhere", function()
    local line = require "riskscreen.journal.line"
    local head = journals.verify(path).head
    for number in ipairs(lines) do
      lines[number] = lines[number]:match '^(.*),"part":':gsub('"allow"', '"block"')
    end
    lines = line.seal(lines, { part = 1, seq = 0, hash = line.FIRST }, line.hasher())
    os.remove(path .. ".head")
    assert.same({}, faults_of(lines)) -- a chain without a key cannot show it
    assert.same({ "replaced 8 8" }, faults_of(lines, { head = head }))
  end)

  for name, text in pairs {
    ["a number with a fraction"] = '{"part":1,"seq":9.5,"hash":"%s"}',
    ["a number that no line can have"] = '{"part":1,"seq":1e300,"hash":"%s"}',
    ["a negative number"] = '{"part":1,"seq":-9,"hash":"%s"}',
    ["a part with a fraction"] = '{"part":1.5,"seq":9,"hash":"%s"}',
    ["a hash of another length"] = '{"part":1,"seq":9,"hash":"%s0"}',
    ["no members"] = "{}",
    ["another value than an object"] = "[1]",
  } do
    it("takes a head file with " .. name .. " as damaged, and finds the other faults", function()
      local head, seen = path .. ".head", {}
      temporary.write(head, text:format(("0"):rep(64)) .. "\n")
      temporary.write(path, table.concat(without(3), "\n") .. "\n")
      for index, fault in ipairs(journals.verify(path).faults) do
        seen[index] = ("%s %s %d"):format(fault.file, fault.reason, fault.line)
      end
      assert.same({ head .. " unreadable 0", path .. " missing 3" }, seen)
    end)

    it("refuses a kept head with " .. name .. " as misuse", function()
      local head = require("riskscreen.json").decode((text:format(("0"):rep(64))))
      local ok, message = pcall(journals.verify, path, { head = head })
      assert.is_false(ok)
      assert.matches("journal.verify: head must be a head that `journal:head%(%)` returned", message)
    end)
  end

  it("finds a torn last line", function()
    temporary.write(path, table.concat(lines, "\n"):sub(1, -2))
    local report = journals.verify(path)
    assert.equal("torn", report.faults[1].reason)
    assert.equal(8, report.faults[1].line)
  end)

  it("reads a last line that lacks only its line end", function()
    temporary.write(path, table.concat(lines, "\n"))
    assert.same({ true, 8 }, { assert(journals.verify(path)).ok, journals.verify(path).lines })
    local seen = 0
    for entry in journals.entries(path) do
      seen = entry.seq
    end
    assert.equal(8, seen)
  end)

  it("tells a reader of entries what is missing at the end, from the noted head", function()
    for _, content in ipairs { table.concat(without(7, 8), "\n") .. "\n", table.concat(lines, "\n"):sub(1, -2), "" } do
      temporary.write(path, content)
      local told, count = {}, 0
      local function tell(fault)
        told[#told + 1] = ("%s %s %d %d"):format(fault.reason, fault.file, fault.line, fault.seq)
      end
      for _ in journals.entries(path, nil, tell) do
        count = count + 1
      end
      assert.same({ ("truncated %s 0 8"):format(path) }, told)
      local ok, err = pcall(function()
        for _ in journals.entries(path) do -- luacheck: ignore 542
        end
      end)
      assert.is_false(ok)
      assert.matches(("the journal ends at line %d of the chain, but line 8 was written"):format(count), err.message)
    end
  end)

  it("calls no line missing that stands too late", function()
    lines[7], lines[8] = lines[8], lines[7]
    temporary.write(path, table.concat(lines, "\n") .. "\n")
    local told = {}
    for _ in
      journals.entries(path, nil, function(fault)
        told[#told + 1] = fault.reason .. " " .. fault.seq
      end)
    do -- luacheck: ignore 542
    end
    assert.same({ "missing 7" }, told)
  end)

  it("refuses a pipe, of which it would read the rest alone", function()
    local pipe = temporary.path "pipe"
    assert(os.execute("mkfifo " .. pipe))
    local report, err = journals.verify(pipe)
    assert.is_nil(report)
    assert.matches("cannot be read: Is a pipe", err.message, 1, true)
    local ok = pcall(function()
      for _ in journals.entries(pipe) do -- luacheck: ignore 542
      end
    end)
    assert.is_false(ok)
  end)

  -- The faults of the journal, from a program that may use 256 MiB of memory.
  local function faults_in_little_memory()
    local interpreter = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local code = "for _, fault in ipairs(assert(require([[riskscreen.journal]]).verify(arg[1])).faults) do "
      .. "print(fault.reason, fault.line) end"
    local program = temporary.path "verify.lua"
    temporary.write(program, code)
    return (command_line.run(("sh -c 'ulimit -v 262144; exec %s %s %s'"):format(interpreter, program, path)))
  end

  it("takes no memory for a line that is longer than any of a journal", function()
    local file = assert(io.open(path, "r+b"))
    file:seek("end", 400 * 1024 * 1024)
    file:write("\n", lines[8], "\n")
    file:close()
    assert.equal("malformed\t9\nrepeated\t10\n", faults_in_little_memory())
  end)

  it("takes no memory for a file without line breaks", function()
    local file = assert(io.open(path, "wb"))
    file:seek("end", 400 * 1024 * 1024)
    file:write "x"
    file:close()
    assert.equal("malformed\t1\ntruncated\t0\n", faults_in_little_memory())
  end)

  it("does not call a journal whole that cannot be read", function()
    local report, err = journals.verify { temporary.directory() }
    assert.is_nil(report)
    assert.matches("cannot be read", err.message, 1, true)
  end)

  it("finds a file that is missing between two others", function()
    local journal = assert(journals.file(path))
    for _ = 1, 3 do
      assert(journal:rotate())
      assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
    end
    assert.is_true(journals.verify(path).ok)
    local report = journals.verify { path .. ".1", path .. ".3", path }
    assert.same({ "missing", path .. ".3", 1, 9 }, {
      report.faults[1].reason,
      report.faults[1].file,
      report.faults[1].line,
      report.faults[1].seq,
    })
  end)

  it("names a file beside it that it does not count", function()
    temporary.write(path .. ".1", "")
    assert.is_true(journals.verify(path).ok)
    temporary.write(path .. ".1", temporary.read(path))
    local report = journals.verify(path)
    assert.same({ false, 8, 1 }, { report.ok, report.lines, #report.faults })
    assert.same({ "moved", path .. ".1", 0 }, {
      report.faults[1].reason,
      report.faults[1].file,
      report.faults[1].line,
    })
    local count = 0
    for _ in journals.entries(path) do
      count = count + 1
    end
    assert.equal(8, count)
  end)

  describe("of several files", function()
    before_each(function()
      local journal = assert(journals.file(path, { record = true }))
      for _ = 1, 3 do
        assert(journal:rotate())
        for _ = 1, 2 do
          assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
        end
      end
      assert(journal:close())
    end)

    local function check(expected, numbers)
      local found, told, seen = {}, {}, {}
      for index, fault in ipairs(assert(journals.verify(path)).faults) do
        found[index] = ("%s %s %d"):format(fault.reason, fault.file:sub(#path + 1), fault.line)
      end
      assert.same(expected, found)
      local function tell(fault)
        told[#told + 1] = ("%s %s %d"):format(fault.reason, fault.file:sub(#path + 1), fault.line)
      end
      for entry in journals.entries(path, nil, tell) do
        seen[#seen + 1] = entry.seq
      end
      assert.same(expected, told)
      assert.same(numbers, seen)
      told = {}
      for row in journals.replay(path, riskscreen.policy(), tell) do
        assert.equal(table.remove(seen, 1), row.seq)
      end
      assert.same(expected, told)
      assert.same({}, seen)
      assert.has_error(function()
        for _ in journals.entries(path) do -- luacheck: ignore 542
        end
      end)
    end

    it("names a rotated file that is missing, and goes on with the rest", function()
      os.remove(path .. ".2")
      check({ "missing .2 0", "missing .3 1" }, { 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14 })
    end)

    it("names the last rotated file when it is missing", function()
      os.remove(path .. ".3")
      check({ "missing .3 0", "missing  1" }, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 14 })
    end)

    it("names a rotated file that is torn, and goes on with the rest", function()
      temporary.write(path .. ".2", temporary.read(path .. ".2"):sub(1, -20))
      check({ "torn .2 2", "missing .3 1" }, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 14 })
    end)

    it("names a rotated file that is no file, and goes on with the rest", function()
      os.remove(path .. ".2")
      assert(os.execute("mkdir " .. path .. ".2"))
      check({ "unreadable .2 0", "missing .3 1" }, { 1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13, 14 })
    end)

    it("reads on where a program rotates meanwhile", function()
      local journal, seen = assert(journals.file(path)), {}
      for entry in journals.entries(path) do
        seen[#seen + 1] = entry.seq
        if entry.seq == 5 then
          assert(journal:rotate())
          assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
        end
      end
      assert.same({ 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 }, seen)
    end)

    it("reads on where programs rotate several times meanwhile", function()
      local journal, seen, expected = assert(journals.file(path)), {}, {}
      for entry in journals.entries(path) do
        seen[#seen + 1], expected[#expected + 1] = entry.seq, #seen + 1
        if entry.seq % 5 == 0 and entry.seq < 30 then
          for _ = 1, 3 do
            assert(journal:rotate())
            for _ = 1, 2 do
              assert(journal:append(riskscreen.policy():decide { risk = { whitelist = false, risks = {} } }))
            end
          end
        end
      end
      assert.same(expected, seen)
      assert.equal(44, #seen)
      assert.is_true(journals.verify(path).ok)
    end)

    it("finds the older files where the first line of the last one was damaged", function()
      os.remove(path .. ".head")
      temporary.write(path, "x" .. temporary.read(path):sub(2, 40) .. "\n" .. temporary.read(path):match "\n(.*)$")
      check({ "malformed  1", "missing  2" }, { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14 })
    end)

    it("takes older files as moved away, and newer ones as the whole", function()
      os.remove(path .. ".1")
      os.remove(path .. ".2")
      local report = journals.verify(path)
      assert.same({ true, 11, 4 }, { report.ok, report.first, report.lines })
    end)
  end)

  it("lists no more than a hundred faults", function()
    local junk = {}
    for number = 1, 300 do
      junk[number] = "junk"
    end
    assert.equal(100, #faults_of(junk))
    assert.is_true(journals.verify(path).has_more)
    faults_of { unpack(junk, 1, 99) } -- and the end that is missing
    assert.is_nil(journals.verify(path).has_more)
  end)

  it("reports a hundred faults of any reason when lines are missing after them", function()
    local changed = { lines[1] }
    for _ = 1, 100 do
      changed[#changed + 1] = "junk"
    end
    changed[#changed + 1] = lines[4]
    changed[#changed + 1] = lines[3]
    local faults = faults_of(changed)
    assert.equal(100, #faults)
    assert.equal("malformed 2 -", faults[1])
    assert.equal("malformed 101 -", faults[100])
  end)

  it("lists no more than a hundred faults when a line comes that was missing among others", function()
    local changed = without(3, 4, 5, 6)
    for _ = 1, 99 do
      changed[#changed + 1] = "junk"
    end
    changed[#changed + 1] = lines[4]
    local faults = faults_of(changed)
    assert.equal(100, #faults)
    assert.equal("missing 3 3", faults[1])
    assert.equal("missing 3 5", faults[2])
  end)

  it("says that there is no such journal", function()
    local report, err = journals.verify(temporary.path "nowhere")
    assert.is_nil(report)
    assert.equal("missing", err.reason)
  end)
end)
