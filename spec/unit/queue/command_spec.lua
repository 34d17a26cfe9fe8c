-- riskscreen queue add and results: runs, and files of results.
local cjson = require "cjson"
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local queues = require "riskscreen.queue"
local redis = require "riskscreen.redis"
local redis_server = require "spec.support.redis"
local row_reader = require "riskscreen.rows"
local socket = require "socket"

local describe_if = redis_server.is_installed() and describe or pending

local function rows_of(first, last)
  local rows = {}
  for number = first, last do
    rows[#rows + 1] = ("0x%040x,eth,c %d\n"):format(number, number)
  end
  return table.concat(rows)
end

local HEADER = "address,network,customer\n"

describe_if("riskscreen queue", function()
  local server, directory, remove

  setup(function()
    server = redis_server.start()
  end)

  teardown(redis_server.stop_all)

  before_each(function()
    server:command "FLUSHALL"
    directory, remove = cli.directory()
  end)

  after_each(function()
    remove()
  end)

  local function path(name)
    return directory .. "/" .. name
  end

  local function write(name, text)
    local file = assert(io.open(path(name), "wb"))
    file:write(text)
    file:close()
  end

  local function read(name)
    local file = io.open(path(name), "rb")
    local text = file and file:read "*a"
    return text and file:close() and text
  end

  -- Runs `queue VERB`; "@name" is a file of the test's directory.
  local function command_of(verb)
    local environment = "env XDG_CONFIG_HOME=/nonexistent RISKSCREEN_REDIS_URL=%s %s queue %s"
    return environment:format(server.url, cli.command, (verb:gsub("@", directory .. "/")))
  end

  local function queue(verb)
    local text, status = command_line.run(command_of(verb))
    return status, text
  end

  -- Screens what waits, and returns the rows of the file of results by their ids.
  local function results(name, more)
    queue("work --drain --sandbox " .. (more or ""))
    local status, text = queue(("results -o @%s %s"):format(name, more or ""))
    assert.equal(0, status, text)
    local by_id, count = {}, 0
    for line in read(name):gmatch "[^\n]+" do
      local source, row, address = line:match "^([^,]*),(%d+),([^,]*)"
      if source then
        assert.is_nil(by_id[source .. "/" .. row], "twice: " .. line)
        by_id[source .. "/" .. row], count = address, count + 1
      end
    end
    return by_id, count, text
  end

  describe("add", function()
    it("keeps the facts of a run in its results, and those of a worker in the journal", function()
      write("a.csv", HEADER .. rows_of(1, 2))
      assert.equal(4, (queue "add @a.csv --keep case --meta case=17"))
      assert.equal(0, (queue "add @a.csv --meta case=17"))
      results("out.csv", "")
      assert.matches('{""case"":""17""}', read "out.csv", 1, true)
      assert.equal(0, (queue "add @a.csv --run again"))
      assert.equal(0, (queue "work --drain --sandbox --journal @j.jsonl --meta analyst=alice"))
      local count = 0
      for entry in require("riskscreen.journal").entries(path "j.jsonl") do
        assert.same({ analyst = "alice" }, entry.meta)
        count = count + 1
      end
      assert.equal(2, count)
    end)

    it("knows a run by its name and its rows, and not by the name of the file", function()
      write("a.csv", HEADER .. rows_of(1, 20))
      write("b.csv", HEADER .. rows_of(1, 30))
      assert.matches("20 rows: 20 added", select(2, queue "add @a.csv"))
      assert.matches("20 rows: 0 added", select(2, queue "add @./a.csv"))
      assert.matches("30 rows: 10 added", select(2, queue "add @b.csv"))
      assert.matches("30 rows: 30 added", select(2, queue "add @b.csv --run april"))
      assert.equal(60, select(2, results "out.csv"))
    end)

    it("refuses other rows of the same run, and names the remedy", function()
      write("a.csv", HEADER .. rows_of(1, 20))
      queue "add @a.csv --run march"
      local inserted, changed = rows_of(1, 10) .. rows_of(99, 99) .. rows_of(11, 20), rows_of(2, 21)
      for _, rows in ipairs { inserted, changed, rows_of(1, 19) } do
        write("a.csv", HEADER .. rows)
        local status, text = queue "add @a.csv --run march"
        assert.equal(4, status)
        assert.matches("the run 'march' has 20 rows", text, 1, true)
        assert.matches("--run NAME", text, 1, true)
      end
      write("a.csv", HEADER .. rows_of(1, 20))
      assert.equal(4, (queue "add @a.csv --run march -n eth --keep customer"))
      assert.equal(20, select(2, results "out.csv"))
    end)

    it("takes rows of a pipe under a name alone, and reads the pipe once", function()
      write("a.csv", HEADER .. rows_of(1, 20))
      os.execute("mkfifo " .. path "pipe")
      local feed = ("cat %s >%s &"):format(path "a.csv", path "pipe")
      for _, name in ipairs { "@pipe", "-" } do
        local status, text = queue("add " .. name)
        assert.equal(4, status, name)
        assert.matches("give the rows of a pipe a name with --run", text, 1, true)
      end
      os.execute(feed)
      assert.matches("20 rows: 20 added", select(2, queue "add @pipe --run march"))
    end)

    it("refuses a file that is changed while the queue is full", function()
      write("a.csv", HEADER .. rows_of(1, 4000))
      local line = "(timeout 60 %s; echo status $?) 2>&1"
      local pipe = io.popen(line:format(command_of "add @a.csv --run march --capacity 1000"))
      repeat
        socket.sleep(0.05)
      until server:command "XLEN {riskscreen}:queue:default:jobs" == ":1000"
      write("a.csv", HEADER .. rows_of(2, 4001))
      queue "work --drain --sandbox"
      local text = pipe:read "*a"
      pipe:close()
      assert.matches("a.csv: it was changed while it was read", text, 1, true)
      assert.matches("status 4", text, 1, true)
    end)

    it("refuses names that look alike in a file of results", function()
      write("a.csv", HEADER .. rows_of(1, 3))
      local names = { ["M\228rz"] = "is not UTF-8", ['"\'=1"'] = "run must be a UTF-8 text" }
      names["ma\226\128\139rch"], names["ma\194\173rch"] = "without hidden characters", "without hidden characters"
      for name, wanted in pairs(names) do
        local status, text = queue("add @a.csv --run " .. name)
        assert.equal(4, status)
        assert.matches(wanted, text, 1, true)
      end
      assert.equal(0, (queue "add @a.csv --run März"))
    end)

    it("says of every row that it reads whether it is invalid, also of those that the queue has", function()
      write("a.csv", HEADER .. rows_of(1, 3) .. "none,eth,c\nnothing,eth,c\n")
      for _, counts in ipairs { "5 added, 0 were in the queue", "0 added, 5 were in the queue" } do
        local status, text = queue "add @a.csv"
        assert.equal(5, status)
        assert.matches(("5 rows: %s, 2 invalid"):format(counts), text, 1, true)
        assert.equal(4, (queue "add @a.csv --max-invalid 1"))
      end
    end)

    it("takes the rows of a pipe under a name", function()
      write("a.csv", HEADER .. rows_of(1, 3))
      assert.equal(4, (queue "add - <@a.csv"))
      assert.equal(4, (queue "add - --source crm --run march <@a.csv"))
      assert.equal(0, (queue "add - --source crm <@a.csv"))
      assert.matches("3 rows: 0 added", select(2, queue "add - --run crm <@a.csv"))
      assert.is_truthy(results("out.csv")["crm/3"])
    end)

    it("begins again when Redis loses its data meanwhile", function()
      write("a.csv", HEADER .. rows_of(1, 3000))
      -- The queue is full after 1,000 rows. Then Redis is emptied, and a worker makes room.
      local adding = assert(io.popen(command_of "add @a.csv --capacity 1000 2>&1"))
      local text
      repeat
        text = select(2, queue "status --json")
      until text:find '"waiting":1000'
      server:command "FLUSHALL"
      local count
      repeat
        count = select(2, results "out.csv")
      until count == 3000
      text = adding:read "*a"
      adding:close()
      assert.matches("Redis has lost rows: begins again", text, 1, true)
      assert.matches("3,000 rows: 3,000 added", text, 1, true)
    end)
  end)

  describe("results", function()
    before_each(function()
      write("a.csv", HEADER .. rows_of(1, 10))
      queue "add @a.csv --run march"
      results "out.csv"
    end)

    it("leave a file alone to which an editor has added the mark of the byte order", function()
      local marked = "\239\187\191" .. read "out.csv"
      write("out.csv", marked)
      queue "add @a.csv --run april"
      queue "work --drain --sandbox"
      local status, text = queue "results -o @out.csv"
      assert.equal(4, status)
      assert.matches("is not a file of this command", text, 1, true)
      assert.equal(marked, read "out.csv")
    end)

    it("adds no row twice, also after Redis has lost all", function()
      for _ = 1, 2 do
        server:command "FLUSHALL"
        queue "add @a.csv --run march"
        local by_id, count, text = results "out.csv"
        assert.equal(10, count)
        assert.equal(("0x%040x"):format(7), by_id["march/7"])
        assert.matches("0 results, and 10 that the file had", text, 1, true)
      end
      write("a.csv", HEADER .. rows_of(1, 12))
      queue "add @a.csv --run march"
      assert.equal(12, select(2, results "out.csv"))
    end)

    it("tells of another program that removes results at the same time", function()
      queue "add @a.csv --run april"
      queue "work --drain --sandbox"
      local queue_of = queues.new { redis = redis.new { url = server.url } }
      local Queue = getmetatable(queue_of).__index
      local forget = Queue.forget
      finally(function()
        Queue.forget = forget
      end)
      function Queue.forget(own, read_results)
        assert.equal(10, forget(queue_of, read_results)) -- the other program
        return forget(own, read_results)
      end
      local arguments = { "queue", "results", "--redis", server.url, "-o", path "april.csv" }
      local status, _, err = cli.run(arguments)
      assert.equal(0, status, err)
      assert.matches("one program at a time reads the results of a queue", err, 1, true)
    end)

    it("are written, and dead letters listed, also where another program's input is no object", function()
      for _, item in ipairs { "5", '"x"', "null", "[]" } do
        server:command("FLUSHALL")
        local line =
          "XADD {riskscreen}:queue:default:%s * id m/%d item '%s' reason x outcome '{\"action\":\"unknown\"}'"
        server:command(line:format("results", 1, item))
        server:command(line:format("dead", 2, item))
        assert.equal(0, (queue "results -o @foreign.csv"))
        local status, text = queue "dead --csv"
        assert.equal(0, status, text)
        assert.matches("m/2,,,x", text, 1, true)
      end
    end)

    it("are written as unknown where another program's outcome is no object", function()
      for index, outcome in ipairs { "5", '"x"', "null", "[" } do
        server:command "FLUSHALL"
        local line = "XADD {riskscreen}:queue:default:results * id m/%d item {} outcome '%s'"
        server:command(line:format(index, outcome))
        local status, text = queue "results -o @outcomes.csv"
        assert.equal(0, status, text)
        assert.matches(("\nm,%d,,,unknown,"):format(index), read "outcomes.csv", 1, true)
      end
      local _, text = queue "status --json"
      assert.matches('"workers":[]', text, 1, true)
    end)

    it("knows its rows again under names that CSV changes", function()
      for _, run in ipairs { "=march", "a, b", 'a "b"', "-1" } do
        local name = ("run %d.csv"):format(#run):gsub(" ", "")
        for _ = 1, 2 do
          server:command "FLUSHALL"
          queue(("add @a.csv --run='%s'"):format(run))
          queue "work --drain --sandbox"
          assert.equal(0, (queue("results -o @" .. name)))
          assert.equal(11, select(2, read(name):gsub("\n", "")), run)
        end
      end
    end)

    it("refuses another row in the place of one that it has", function()
      server:command "FLUSHALL"
      write("a.csv", HEADER .. rows_of(2, 11))
      queue "add @a.csv --run march"
      queue "work --drain --sandbox"
      local before = read "out.csv"
      local status, text = queue "results -o @out.csv"
      assert.equal(4, status)
      assert.matches("another address in row 1 of the run 'march'", text, 1, true)
      assert.equal(before, read "out.csv")
      assert.equal(10, select(2, results "other.csv"))
    end)

    it("refuses the file of another queue or another Redis, and removes nothing", function()
      local other = redis_server.start()
      local before = read "out.csv"
      for _, flags in ipairs { "--name other", "--redis " .. other.url } do
        queue("add @a.csv --run april " .. flags)
        queue("work --drain --sandbox " .. flags)
        local status, text = queue("results -o @out.csv " .. flags)
        assert.equal(4, status)
        assert.matches("out.csv has the results of the queue 'default@127.0.0.1:", text, 1, true)
        assert.matches('"results":10', select(2, queue("status --json " .. flags)))
      end
      assert.equal(before, read "out.csv")
      other:stop()
    end)

    it("refuses a file that is none of its own, and leaves it as it is", function()
      local other = read("out.csv"):gsub("^source", "sources")
      for _, text in ipairs { "a note", "a note\n", other, HEADER .. rows_of(1, 3) } do
        write("own.csv", text)
        assert.equal(4, (queue "results -o @own.csv"))
        assert.equal(text, read "own.csv")
      end
    end)

    it("keeps the last row where an editor has left out its line end", function()
      local whole = read "out.csv"
      for _, length in ipairs { #whole - 2, #whole - 1 } do
        write("out.csv", whole:sub(1, length))
        assert.equal(0, (queue "results -o @out.csv"))
        assert.equal(whole, read "out.csv")
      end
    end)

    it("removes no part of a row whose result is in Redis no more, nor what follows it", function()
      local whole = read "out.csv"
      local last = #whole:gsub("[^\n]*\n$", "")
      local broken = whole:sub(1, last) .. 'march,11,"0x' .. "\r\n" .. whole:sub(last + 1)
      queue "add @a.csv --run april"
      queue "work --drain --sandbox"
      for _, text in ipairs { whole:sub(1, -4), whole:sub(1, last + 1), broken } do
        write("out.csv", text)
        local status, message = queue "results -o @out.csv"
        assert.equal(4, status)
        assert.matches("mend the file, or -o names", message, 1, true)
        assert.equal(text, read "out.csv")
      end
      assert.matches('"results":10', select(2, queue "status --json"))
    end)

    it("have the kept columns as they came and whole, as JSON", function()
      local memo = ("m"):rep(12000)
      local name = 'bob / "tier" gold\226\128\140\nB'
      write("a.csv", ('address,network,memo,name\n0x%040x,eth,%s,"%s"\n'):format(1, memo, (name:gsub('"', '""'))))
      queue "add @a.csv --run may --keep memo,name"
      queue "work --drain --sandbox"
      for _ = 1, 2 do
        assert.equal(0, (queue "results -o @out.csv"))
      end
      local found
      for row in assert(row_reader.open(path "out.csv", {})):each() do
        found = row
      end
      assert.same({ memo = memo, name = name }, cjson.decode(found.fields.fields))
    end)

    it("have an address that is none as it came, on several lines too", function()
      local odd = "0x\nab\226\128\139c"
      write("a.csv", ('address,network\n"%s",eth\n0x%040x,eth\n'):format(odd, 1))
      assert.equal(5, (queue "add @a.csv --run may"))
      queue "work --drain --sandbox"
      for _ = 1, 2 do
        assert.equal(0, (queue "results -o @out.csv"))
      end
      local seen = {}
      for row in assert(row_reader.open(path "out.csv", {})):each() do
        seen[row.fields.source .. row.fields.row] = row.address
      end
      assert.equal(odd, seen.may1)
      assert.equal(("0x%040x"):format(1), seen.may2)
    end)

    it("goes on in a file that a kill has cut at any byte of its last row or its header", function()
      local whole = read "out.csv"
      local header = whole:match "^[^\n]*\n"
      local last = #whole:gsub("[^\n]*\n$", "")
      for _, length in ipairs { 0, 5, #header - 1, #header, last + 1, last + 30, #whole - 3, #whole - 2, #whole - 1 } do
        write("out.csv", whole:sub(1, length))
        server:command "FLUSHALL"
        queue "add @a.csv --run march"
        assert.equal(10, select(2, results "out.csv"))
      end
    end)
  end)
end)
