-- The files that verbs of the `riskscreen` command write: which files they never replace, and what stands under their
-- names.
local cli = require "spec.support.cli"
local command_line = require "spec.support.command_line"
local lfs = require "lfs"
local sandbox = require "riskscreen.sandbox"
local tables = require "riskscreen.util.tables"
local temporary = require "spec.support.temporary"

local CLEAN = sandbox.scenario("clean-eth").address
local ROWS = "address,network,action\n" .. CLEAN .. ",eth,allow\n"

local run, path, read, write = cli.run, temporary.path, temporary.read, temporary.write

local function words(line)
  local list = {}
  for word in line:gmatch "%S+" do
    list[#list + 1] = word:gsub("^@", temporary.directory() .. "/")
  end
  return list
end

-- Runs a line: "@name" is a file of the test.
local function try(line, world)
  return run(words(line), world)
end

-- The same as a process, for what needs the streams of the system.
local function shell(line)
  return command_line.run(("sh -c '%s %s'"):format(cli.command, (line:gsub("@", temporary.directory() .. "/"))))
end

describe("a verb with an output", function()
  before_each(function()
    write(path "rows.csv", ROWS)
  end)

  after_each(temporary.clean)

  local verbs = {
    "screen --file @rows.csv --sandbox --force -o %s",
    "report @rows.csv -o %s",
    "list build @rows.csv -o %s",
    "list update --url http://127.0.0.1:1/ -o %s",
    "blacklist export --sandbox -o %s",
    "queue results --redis redis://127.0.0.1:1 -o %s",
    "watch --file @rows.csv --once --sandbox --state %s",
  }

  for _, verb in ipairs(verbs) do
    it("never writes over the journal, by a flag or a variable: " .. verb:match "^[%l ]+", function()
      assert.equal(0, (try("screen --sandbox -q -n eth --journal @j.jsonl " .. CLEAN)))
      assert(lfs.link(path "j.jsonl", path "link", true))
      local before = { read(path "j.jsonl"), read(path "j.jsonl.head") }
      for _, name in ipairs { "@j.jsonl", "@j.jsonl.head", "@link" } do
        for _, world in ipairs { {}, { env = { RISKSCREEN_JOURNAL = path "j.jsonl" } } } do
          local line = verb:format(name) .. (world.env and "" or " --journal @j.jsonl")
          local status, _, err = try(line, world)
          assert.equal(4, status, err)
          assert.matches("is also", err, 1, true)
        end
      end
      assert.same(before, { read(path "j.jsonl"), read(path "j.jsonl.head") })
    end)
  end

  it("writes no message and no result into a file that has the number of a stream that is not there", function()
    for _, closed in ipairs { "2>&-", "2>&- 1>&-", "2>&- 1>&- 0<&-" } do
      shell(("blacklist export --sandbox -o @out %s"):format(closed))
      assert.equal("address,network,risks\r\n", read(path "out"))
      shell(("screen %s -n eth --sandbox --journal @j.jsonl %s"):format(CLEAN, closed))
      assert.equal(0, (try "journal verify @j.jsonl"))
    end
    assert.equal(3, (select(2, shell("screen " .. CLEAN .. " -n eth --sandbox 1>&-"))))
  end)

  it("never writes over the files beside the output of another", function()
    for _, line in ipairs {
      "screen --file %s --sandbox --force -o @out",
      "report %s -o @out",
      "report @rows.csv %s -o @out",
      "list build %s -o @out",
    } do
      for _, name in ipairs { "@out", "@out.riskscreen-part" } do
        write(path(name:sub(2)), ROWS)
        local status, _, err = try(line:format(name))
        assert.equal(4, status)
        assert.matches("would be lost", err, 1, true)
        assert.equal(ROWS, read(path(name:sub(2))))
        os.remove(path(name:sub(2)))
      end
    end
  end)

  it("never writes over a file that its configuration names", function()
    local policy = "return { rules = { { any = true, action = 'block' } } }\n"
    write(path "policy", policy)
    write(path "key", "a-key-of-sixteen-bytes")
    write(path "profile.conf", "timeout = 5\n")
    write(path "list", "address\n" .. CLEAN .. "\n")
    assert(lfs.link("policy", path "link", true))
    for _, given in ipairs {
      { "--policy @policy", "policy", "policy" },
      { "--policy @link", "policy", "policy" },
      { "--policy @policy", "policy", "link" },
      { "--allow @list", "list", "list" },
      { "--deny @list", "list", "list" },
      { "--journal @j --journal-key-file @key", "key", "key" },
      { "--access-key-file @key", "key", "key" },
      { "--profile @profile.conf", "profile.conf", "profile.conf" },
    } do
      local flags, file, output = (table.unpack or unpack)(given) -- luacheck: ignore 113 143
      local before = read(path(file))
      local line = ("screen --file @rows.csv --sandbox --force -o @%s %s"):format(output, flags)
      local status, _, err = try(line)
      assert.equal(4, status, line)
      assert.matches("would be lost", err, 1, true)
      assert.equal(before, read(path(file)))
      assert.equal(4, (select(2, shell(("screen %s -n eth --sandbox %s >>@%s"):format(CLEAN, flags, output)))))
      assert.equal(before, read(path(file)))
    end
    assert.equal(0, (try "list build @rows.csv -o @list --max-shrink 1 --deny @list"))
  end)

  it("never makes the journal of a file that it reads", function()
    write(path "key", "a-key-of-sixteen-bytes")
    write(path "j.head", "return { rules = { { any = true, action = 'block' } } }\n")
    for _, flags in ipairs { "--journal @key --journal-key-file @key", "--journal @j --policy @j.head" } do
      local before = { read(path "key"), read(path "j.head") }
      assert.equal(4, (try("screen --sandbox -q -n eth " .. CLEAN .. " " .. flags)))
      assert.same(before, { read(path "key"), read(path "j.head") })
    end
  end)

  it("makes no journal, list or page of a file beside its output, also before that file is there", function()
    assert(lfs.mkdir(path "folder"))
    assert(lfs.link("folder", path "link", true))
    for _, ending in ipairs { ".state", ".state-wal", ".state-shm", ".state-run.lock", ".state-run.lock-journal" } do
      for _, name in ipairs { "@folder/out" .. ending, "@link/out" .. ending } do
        local line = "screen --file @rows.csv --sandbox -o @folder/out --journal " .. name
        local status, _, err = try(line)
        assert.equal(4, status, line)
        assert.matches("belongs to it: give the journal a file of its own", err, 1, true)
        line = ("screen --file %s --sandbox -o @folder/out"):format(name)
        write((name:gsub("^@", temporary.directory() .. "/")), ROWS)
        assert.equal(4, (try(line)), line)
        assert.equal(4, (try(("report %s -o @folder/out"):format(name))))
        os.remove((name:gsub("^@", temporary.directory() .. "/")))
      end
    end
    for _, ending in ipairs { "-wal", "-watch-default.lock", "-watch-a.b_c.lock-journal" } do
      local line = "watch --file @rows.csv --once --sandbox --journal @rows.csv.watch.db" .. ending
      assert.equal(4, (try(line)), line)
    end
    assert.equal(4, (try("screen --sandbox -q -n eth --journal @j --policy @j.head " .. CLEAN)))
    assert(lfs.rmdir(path "folder")) -- it is empty
    assert.same({ "link", "rows.csv" }, temporary.names())
    assert.equal(4, (try "watch --file @rows.csv --once --sandbox --state @w --journal @w-wal"))
    -- Names that only look alike.
    assert.equal(0, (try "screen --file @rows.csv --sandbox -o @rows --journal @rows-journal"))
    write(path "rows-wal", ROWS)
    assert.equal(0, (try "screen --file @rows-wal --sandbox -o @rows --force"))
  end)

  it("makes no list, state or journal on the standard output, nor a file called '-'", function()
    for line, flag in pairs {
      ["list build @rows.csv -o -"] = "-o",
      ["list update --url http://127.0.0.1:1/ -o -"] = "-o",
      ["watch --file @rows.csv --sandbox --once --state -"] = "--state",
      ["screen --sandbox -n eth --journal - " .. CLEAN] = "--journal",
    } do
      local status, _, err = try(line)
      assert.equal(4, status)
      assert.matches(flag .. " must name a file", err, 1, true)
    end
    assert.is_nil(io.open "-")
  end)

  it("follows a link, and keeps the permissions of the file that it replaces", function()
    for _, line in ipairs {
      "report @rows.csv -o @link",
      "blacklist export --sandbox -o @link",
      "config set network eth --profile @link",
    } do
      write(path "file", "# old\n")
      assert(os.execute("chmod 600 " .. path "file"))
      assert(lfs.link("file", path "link", true))
      -- A link in the place of the unfinished file leads to a file that must stay as it is.
      write(path "other", "kept")
      assert(lfs.link("other", path "file.riskscreen-part", true))
      assert.equal(0, (try(line)))
      assert.equal("link", lfs.symlinkattributes(path "link", "mode"))
      assert.equal("rw-------", lfs.attributes(path "file", "permissions"))
      assert.not_equal("# old\n", read(path "file"))
      assert.equal("kept", read(path "other"))
      assert.is_nil(lfs.symlinkattributes(path "file.riskscreen-part"))
      os.remove(path "link")
    end
    write(path "list", "")
    assert(lfs.link("list", path "link", true))
    assert.equal(0, (try "list build @rows.csv -o @link"))
    assert.equal("link", lfs.symlinkattributes(path "link", "mode"))
  end)

  it("follows a link to the results of a run, whose state stands beside them", function()
    local failing = sandbox.scenario("fault-503").address
    write(path "in.csv", "address,network\n" .. CLEAN .. ",eth\n" .. failing .. ",eth\n")
    assert(lfs.mkdir(path "real"))
    assert(lfs.link("real/results", path "link", true))
    local line = "screen --file @in.csv --sandbox --set retry=false --fail-on block -o @"
    assert.equal(0, (try(line .. "link")))
    assert(os.execute("chmod 600 " .. path "real/results"))
    local before = lfs.attributes(path "real/results", "ino")
    for _, name in ipairs { "link", "real/results" } do
      local status, _, err = try(line .. name .. " --retry-failed")
      assert.equal(0, status, err)
      assert.not_equal(before, lfs.attributes(path "real/results", "ino"))
      assert.equal("rw-------", lfs.attributes(path "real/results", "permissions"))
      assert.equal("link", lfs.symlinkattributes(path "link", "mode"))
      before = lfs.attributes(path "real/results", "ino")
    end
    assert.equal(0, (try(line .. "link --force")))
    assert.equal(before, lfs.attributes(path "real/results", "ino"))
  end)

  it("leaves the unfinished files of other programs alone", function()
    local failing = sandbox.scenario("fault-503").address
    write(path "in.csv", "address,network,action\n" .. failing .. ",eth,unknown\n")
    write(path "out.part", "of another program")
    local line = "screen --file @in.csv --sandbox --set retry=false --fail-on block -o @out"
    for _, other in ipairs {
      line,
      line .. " --retry-failed",
      line .. " --resume",
      line .. " --force",
      "report @in.csv -o @out",
      "blacklist export --sandbox -o @out",
      "list build @in.csv -o @out --max-shrink 1",
    } do
      local status, _, err = try(other)
      assert.equal(0, status, other .. err)
      assert.equal("of another program", read(path "out.part"))
    end
    assert.same({ "in.csv", "out", "out.part", "out.state", "out.state-run.lock", "rows.csv" }, temporary.names())
  end)

  it("leaves the last export as it was where the service fails", function()
    write(path "keep.csv", ROWS)
    local world = { env = { RISKSCREEN_BASE_URL = "http://127.0.0.1:1", RISKSCREEN_ACCESS_KEY = "sandbox-key" } }
    assert.equal(6, (try("blacklist export -o @keep.csv --set retry=false", world)))
    assert.equal(ROWS, read(path "keep.csv"))
    assert.same({ "keep.csv", "rows.csv" }, temporary.names())
  end)

  it("has the status of unknown where it cannot write", function()
    for _, verb in ipairs(tables.concat(verbs, { "report @rows.csv -o - >/dev/full" })) do
      if not verb:find "^queue" and not verb:find "^list update" then
        local output, status = shell(verb:format "/none/x")
        assert.equal(3, status, output)
      end
    end
  end)

  it("refuses what it must read again and cannot", function()
    assert(os.execute("mkfifo " .. path "pipe"))
    assert(lfs.mkdir(path "folder"))
    for _, line in ipairs {
      "watch --file - -n eth --once --sandbox",
      "watch --file @pipe -n eth --once --sandbox",
      "queue results --redis redis://127.0.0.1:1 -o @pipe",
      "queue results --redis redis://127.0.0.1:1 -o -",
      "screen --file @rows.csv --sandbox -o @pipe",
      "screen -n eth --sandbox --journal @folder " .. CLEAN,
      "screen -n eth --sandbox --journal @pipe " .. CLEAN,
    } do
      local output, status = shell(line)
      assert.equal(4, status, line .. output)
      assert.is_nil(output:find("nil value", 1, true))
    end
    assert.same({ "folder", "pipe", "rows.csv" }, temporary.names())
  end)
end)

describe("the command", function()
  after_each(temporary.clean)

  it("refuses arguments and settings that are not UTF-8", function()
    write(path "rows.csv", ROWS)
    local bad = "caf\233"
    for _, given in ipairs {
      { "--meta", "note=" .. bad },
      { "--keep", bad },
      { "--address-column", bad },
      { "--policy", bad },
      { "--set", "policy=" .. bad },
    } do
      local status, _, err = run(tables.concat({ "screen", "--sandbox", "--file", path "rows.csv" }, given))
      assert.equal(4, status)
      assert.matches("is not UTF%-8", err)
    end
    local status, _, err = try("config show", { env = { RISKSCREEN_POLICY = bad } })
    assert.equal(4, status)
    assert.matches("RISKSCREEN_POLICY", err, 1, true)
    assert.same({ "rows.csv" }, temporary.names())
  end)

  it("has no success where its help or the settings of the sandbox cannot be written", function()
    for _, line in ipairs { "--help", "help", "help screen", "--version", "sandbox" } do
      local output, status = shell(line .. " >/dev/full")
      assert.equal(3, status, line .. output)
    end
  end)
end)
