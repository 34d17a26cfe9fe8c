local json = require "riskscreen.json"
local run = require("spec.support.cli").run
local sandbox = require "riskscreen.sandbox"

local folder

local function read(name)
  local file = assert(io.open(folder .. "/" .. name, "rb"))
  local content = file:read "*a"
  file:close()
  return content
end

local function write(name, content)
  local file = assert(io.open(folder .. "/" .. name, "wb"))
  file:write(content)
  file:close()
  return folder .. "/" .. name
end

describe("riskscreen report", function()
  before_each(function()
    folder = os.tmpname()
    os.remove(folder)
    assert(os.execute("mkdir " .. folder))
  end)

  after_each(function()
    os.execute("rm -r " .. folder)
  end)

  it("reads all files of a journal", function()
    local path = folder .. "/decisions.jsonl"
    local journal = assert(require("riskscreen.journal").file(path, { max_size = 1500 }))
    local client = sandbox.client { journal = journal }
    for _ = 1, 12 do
      client:screen { address = sandbox.scenario("clean-eth").address, network = "eth" }
    end
    assert(journal:close())
    local status, out, err = run { "report", path, "-o", folder .. "/page.html", "--json" }
    assert.equal(0, status, err)
    assert.is_true(#require("riskscreen.journal").files(path) > 1)
    assert.matches('"rows":12', out, 1, true)
    status, out = run { "report", path, path .. ".1", "-o", folder .. "/page.html", "--json" }
    assert.equal(0, status)
    assert.matches('"rows":12', out, 1, true)
    assert.matches('"notes":[]', out, 1, true)
  end)

  it("is never written over the head of its journal, also by a link or of its library", function()
    local journal_path = folder .. "/decisions.jsonl"
    local journal = assert(require("riskscreen.journal").file(journal_path))
    local client = sandbox.client { journal = journal }
    client:screen { address = sandbox.scenario("clean-eth").address, network = "eth" }
    assert(journal:close())
    local head = read "decisions.jsonl.head"
    assert(os.execute(("cd %s && ln -s decisions.jsonl link && ln decisions.jsonl.head hard"):format(folder)))
    for _, names in ipairs { { "decisions.jsonl", "decisions.jsonl.head" }, { "link", "hard" } } do
      local input, output = folder .. "/" .. names[1], folder .. "/" .. names[2]
      local status, _, err = run { "report", input, "-o", output }
      assert.equal(4, status)
      assert.matches("the output belongs to the input", err, 1, true)
      assert.is_nil((require("riskscreen.report").write { input = input, output = output }))
      assert.equal(head, read "decisions.jsonl.head")
    end
  end)

  it("is never written over the state of a run, whose results it reads", function()
    local input, results = write("in.csv", "address\n" .. sandbox.scenario("clean-eth").address), folder .. "/r.csv"
    assert.equal(0, (run { "screen", "--file", input, "-n", "eth", "--sandbox", "-q", "-o", results }))
    local state = read "r.csv.state"
    assert.equal(4, (run { "report", results, "-o", results .. ".state" }))
    assert.equal(state, read "r.csv.state")
  end)

  for _, format in ipairs { "csv", "jsonl" } do
    it("shows the decision, and a kept column beside it, of screen --file --" .. format, function()
      local hacked, clean = sandbox.scenario("type-hack").address, sandbox.scenario("clean-eth").address
      local header = "address,level,type,Types,error_kind,date,reason\n"
      local input =
        write("in.csv", header .. ("%s,gold,retail,a,b,c,d\n%s,high,retail,a,b,c,d\n"):format(hacked, clean))
      local results = folder .. "/results." .. format
      local line = { "screen", "--file", input, "-n", "eth", "--sandbox", "-q", "--" .. format, "-o", results }
      line[#line + 1], line[#line + 2] = "--keep", "level,type,Types,error_kind,date,reason"
      assert.equal(2, (run(line)))
      assert.equal(0, (run { "report", results, "-o", folder .. "/page.html" }))
      local data = json.decode(read("page.html"):match '<script type="application/json" id="data">(.-)</script>')
      local shown = {}
      for index, row in ipairs(data.rows) do
        local level, types, failure = row[5], row[13], row[10]
        shown[index] = { data.texts[level] or level, data.texts[types[1]] or types[1], failure }
      end
      assert.same({ { "high", "hack", 0 }, { 0, nil, 0 } }, shown)
      for _, text in ipairs { "gold", "retail", "error_kind", "reason" } do
        assert.matches(('"%s"'):format(text), read "page.html", 1, true)
      end
    end)

    it("reads what screen --" .. format .. " writes", function()
      local blocked = sandbox.scenario("type-hack").address
      local _, results = run { "screen", blocked, sandbox.scenario("clean-eth").address, "-n", "eth", "--" .. format }
      local input = write("results", results)
      local status, out, err = run { "report", input, "-o", folder .. "/page.html", "--json", "--title", "Today" }
      assert.equal(0, status, err)
      assert.matches('"rows":2', out, 1, true)
      assert.matches('"block":1', out, 1, true)
      assert.matches('"allow":1', out, 1, true)
      local page = read "page.html"
      assert.matches(blocked, page, 1, true)
      assert.matches("<title>Today</title>", page, 1, true)
      assert.matches('"hack"', page, 1, true)
    end)
  end

  it("says that decisions of a run and of its journal are counted twice", function()
    local input, results = write("in.csv", "address\n" .. sandbox.scenario("clean-eth").address), folder .. "/r.csv"
    local journal = folder .. "/d.jsonl"
    local line = { "screen", "--file", input, "-n", "eth", "--sandbox", "-q", "-o", results, "--journal", journal }
    assert.equal(0, (run(line)))
    for _, files in ipairs { { results, journal }, { journal, results } } do
      local status, _, err = run { "report", files[1], files[2], "-o", folder .. "/page.html" }
      assert.equal(0, status)
      assert.matches("d.jsonl is a journal, and r.csv is none: a decision in both is counted twice", err, 1, true)
      assert.matches("a decision in both is counted twice", read "page.html", 1, true)
    end
    for _, files in ipairs { { results, folder .. "/./r.csv" }, { journal, folder .. "/./d.jsonl" } } do
      local _, out, err = run { "report", files[1], files[2], "-o", folder .. "/page.html", "--json" }
      assert.is_nil(err:find("twice", 1, true))
      assert.matches('"rows":1', out, 1, true)
    end
  end)

  it("says which time is no date, and shows it beside the row", function()
    local input = write("r.csv", "address,action,time\na1,allow,18.11.2026\na2,allow,2026-11-18\na3,allow,\n")
    local status, _, err = run { "report", input, "-o", folder .. "/page.html" }
    assert.equal(0, status)
    assert.matches("r.csv, line 2 counts without a time: '18.11.2026' is no date and no Unix time", err, 1, true)
    assert.is_nil(err:find("line 3", 1, true) or err:find("line 4", 1, true))
    assert.matches('"18.11.2026"', read "page.html", 1, true)
  end)

  it("has a status of its own for lines that cannot be read, and names them", function()
    local status, out, err =
      run { "report", write("r.jsonl", '{"action":"allow"}\n{"act'), "-o", folder .. "/page.html" }
    assert.equal(5, status)
    assert.matches("unreadable +1", out)
    assert.matches("r.jsonl, line 2 cannot be read", err, 1, true)
  end)

  it("says which file it cannot read", function()
    local status, _, err = run { "report", folder .. "/none.csv", "-o", folder .. "/page.html" }
    assert.equal(4, status)
    assert.matches("none.csv", err, 1, true)
  end)
end)
