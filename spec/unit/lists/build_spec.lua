local build = require("riskscreen.lists.build").build
local core = require "riskscreen.core"
local list_files = require "spec.support.list_files"

local address = list_files.address

describe("a build", function()
  local directory

  before_each(function()
    directory = list_files.new()
  end)

  after_each(function()
    directory:remove()
  end)

  local function opened()
    local list = assert(core.list(directory:path "out.rsl"))
    assert.is_true(list:verify(2 ^ 40))
    return list
  end

  local function compile(options, ...)
    local inputs = {}
    for number, content in ipairs { ... } do
      inputs[number] = directory:write(number .. ".csv", content)
    end
    options.output, options.inputs, options.time = directory:path "out.rsl", inputs, 1000
    return build(options)
  end

  it("joins files to one list, which both readers find entries in", function()
    local report = compile(
      { title = "ours" },
      ("address,network,note,expires\n%s,eth,one,\n%s,,two,2026-01-01\n"):format(address(1), address(2)),
      ("address\n%s\n"):format(address(3))
    )
    assert.same({ 3, 3, 0, 0 }, { report.entries, report.rows, report.invalid, report.repeated })
    local list = opened()
    -- Only LuaJIT reads a list without the core: inside nginx.
    local index = rawget(_G, "jit") and assert(require("riskscreen.lists.compiled").read(directory:read "out.rsl"))
    assert.same({ entries = 3, built_at = 1000, size = report.size, title = "ours" }, list:facts())
    for _, found in ipairs { list, index } do
      assert.same({ "one", false, 0 }, { found:find(address(1), "eth", 5) })
      assert.is_false(found:find(address(1), "bsc", 5))
      assert.same({ "two", true, 1767225600 }, { found:find(address(2), "bsc", 5) })
      assert.is_false(found:find(address(2), "bsc", 1767225600))
      assert.same({ "", true, 0 }, { found:find(address(3), "base", 5) })
      assert.is_false(found:find(address(4), "base", 5))
    end
  end)

  it("writes a list without entries only where the caller says that it may be empty", function()
    directory:write("out.rsl", "old")
    for content, problem in pairs { ["address\n"] = "no rows", [""] = "no rows", ["address\nabc\n"] = "no entry" } do
      local report, err = compile({}, content)
      assert.is_nil(report)
      assert.matches(problem, err.message)
    end
    assert.same({ "1.csv", "out.rsl" }, directory:names())
    assert.equal("old", directory:read "out.rsl")
    assert.equal(0, compile({ allow_empty = true, max_shrink = 1 }, "address\n").entries)
    assert.is_false(opened():find(address(1), "eth", 1))
  end)

  it("leaves the unfinished list of another build alone, and has a name of its own until it is complete", function()
    directory:write("out.rsl.riskscreen-part", "of another build")
    assert.equal(1, compile({}, "address\n" .. address(1) .. "\n").entries)
    assert.equal("of another build", directory:read "out.rsl.riskscreen-part")
    assert.same({ "1.csv", "out.rsl", "out.rsl.riskscreen-part" }, directory:names())
  end)

  it("keeps one entry for an address and a network: the one that holds longest, or else the first", function()
    local report = compile(
      { buffer = 4096 },
      ("address,network,note,expires\n%s,,a,2026-01-01\n%s,,b,2027-01-01\n"):format(address(1), address(1)),
      ("address,network,note,expires\n%s,,c,2026-06-01\n%s,eth,d,\n%s,,e,\n%s,,f,\n"):format(
        address(1),
        address(1),
        address(2),
        address(2)
      )
    )
    assert.same({ 3, 3 }, { report.entries, report.repeated })
    assert.equal("b", (opened():find(address(1), "bsc", 5)))
    assert.equal("d", (opened():find(address(1), "eth", 1893456000)))
    assert.equal("e", (opened():find(address(2), "eth", 5)))
  end)

  it("merges what does not fit into its memory, with the same result", function()
    local rows = { "address,note" }
    for number = 1, 3000 do
      rows[number + 1] = ("%s,%d"):format(address(number * 7919 % 3001), number)
    end
    local content = table.concat(rows, "\n")
    assert.equal(3000, compile({}, content).entries)
    local whole = directory:read "out.rsl"
    assert.equal(3000, compile({ buffer = 4096 }, content).entries)
    assert.is_true(whole == directory:read "out.rsl")
    local list = opened()
    local found = 0
    for number = 1, 3000 do
      found = found + (list:find(address(number * 7919 % 3001), "eth", 1) == tostring(number) and 1 or 0)
    end
    assert.equal(3000, found)
    assert.is_false(list:find(address(3001), "eth", 1))
  end)

  it("reports rows that are no entries, with their file and line", function()
    local report = compile({}, ("address,network\n%s,eth\nabc,eth\n%s,etj\n"):format(address(1), address(2)))
    assert.same({ 1, 2 }, { report.entries, report.invalid })
    assert.same({ directory:path "1.csv", 3 }, { report.problems[1].file, report.problems[1].line })
    assert.matches("'abc' is not an address of the network eth", report.problems[1].message)
    assert.matches("did you mean 'eth'", report.problems[2].message)
  end)

  it("counts the addresses of each symbol that the service does not screen", function()
    local entry = "<id><idType>Digital Currency Address - %s</idType><idNumber>4Aexample</idNumber></id>"
    local ids = entry:format "XMR" .. entry:format "ZEC" .. entry:format "XMR"
    local path = directory:write("sdn.xml", "<sdnList><sdnEntry>" .. ids .. "</sdnEntry></sdnList>")
    local report = build { output = directory:path "out.rsl", inputs = { path }, allow_empty = true }
    assert.equal(0, report.entries)
    assert.same({ { "XMR", 2 }, { "ZEC", 1 } }, {
      { report.skipped[1].symbol, report.skipped[1].count },
      { report.skipped[2].symbol, report.skipped[2].count },
    })
  end)

  it("refuses a file of a kind that it cannot read", function()
    for _, name in ipairs { "list.doc", "list.rsl" } do
      local report, err = build { output = directory:path "out.rsl", inputs = { directory:write(name, "x") } }
      assert.is_nil(report)
      assert.equal("list", err.kind)
      assert.same({ name }, directory:names())
      os.remove(directory:path(name))
    end
  end)

  it("writes nothing in strict mode where a row is no entry", function()
    directory:write("out.rsl", "old")
    local report, err = compile({ strict = true }, ("address\n%s\nabc\n"):format(address(1)))
    assert.is_nil(report)
    assert.equal("list", err.kind)
    assert.matches("1 row without an entry, the first is .*1%.csv:3: 'abc'", err.message)
    assert.equal(1, err.report.invalid)
    assert.equal("old", directory:read "out.rsl")
  end)

  it("does not replace a file whose entries cannot be counted, unless all may be lost", function()
    directory:write("out.rsl", "damaged")
    local report, err = compile({}, ("address\n%s\n"):format(address(1)))
    assert.is_nil(report)
    assert.matches("is not loaded: .*So its entries cannot be counted: remove it, or set max_shrink to 1", err.message)
    assert.same({ "1.csv", "out.rsl" }, directory:names())
    assert.equal("damaged", directory:read "out.rsl")
    assert.equal(1, assert(compile({ max_shrink = 1 }, ("address\n%s\n"):format(address(1)))).entries)
  end)

  it("leaves the old list and no other file where an input cannot be read", function()
    directory:write("out.rsl", "old")
    local _, err = build { output = directory:path "out.rsl", inputs = { directory:path "none.csv" } }
    assert.matches("none%.csv' is not read: the file cannot be read: No such file", err.message)
    _, err = compile({ buffer = 4096 }, "adress,note\nx,\n")
    assert.matches("did you mean 'address'", err.message)
    assert.same({ "1.csv", "out.rsl" }, directory:names())
    assert.equal("old", directory:read "out.rsl")
  end)

  it("reports a directory that cannot be written", function()
    directory:write("a.csv", address(1))
    local _, err = build { output = directory:path "none/out.rsl", inputs = directory:path "a.csv" }
    assert.matches("is not written: cannot create a temporary file", err.message)
  end)

  it("writes a file that nobody changes in place", function()
    compile({}, address(1))
    local pipe = assert(io.popen("stat -c %a " .. directory:path "out.rsl"))
    assert.equal("444", pipe:read "*l")
    pipe:close()
    assert.same({ "1.csv", "out.rsl" }, directory:names())
  end)

  it("raises for wrong options at the caller's line", function()
    local _, message = pcall(function()
      build { output = "x" }
    end)
    assert.matches("build_spec.lua:%d+: build: inputs is required", message)
  end)
end)
