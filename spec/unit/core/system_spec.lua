local system = require "riskscreen.system"

describe("riskscreen.system", function()
  local path, file

  before_each(function()
    path = os.tmpname()
    file = assert(io.open(path, "w+b"))
  end)

  after_each(function()
    if io.type(file) == "file" then
      file:close()
    end
    os.remove(path)
  end)

  local function permissions(name)
    return select(2, system.stat(name))
  end

  local function content()
    local reader = assert(io.open(path, "rb"))
    local text = reader:read "*a"
    reader:close()
    return text
  end

  it("writes what is buffered when it syncs a file", function()
    file:write "a line\n"
    assert.is_true(system.sync(file))
    assert.equal("a line\n", content())
  end)

  it("cuts a file, and writing goes on behind the cut", function()
    file:write "one\ntwo\nthr"
    assert.is_true(system.truncate(file, 8))
    file:seek "end"
    file:write "three\n"
    file:flush()
    assert.equal("one\ntwo\nthree\n", content())
  end)

  it("locks a file against every other opening until it is closed", function()
    local other = assert(io.open(path, "rb"))
    assert.is_true(system.lock(file))
    assert.is_nil((system.lock(other)))
    file:close()
    assert.is_true(system.lock(other))
    other:close()
  end)

  it("returns the permissions of a file", function()
    os.execute(("chmod 640 '%s'"):format(path))
    assert.equal(tonumber("640", 8), permissions(path))
    os.execute(("chmod 600 '%s'"):format(path))
    assert.equal(tonumber("600", 8), permissions(path))
  end)

  it("takes permissions of a file away, and gives none", function()
    for before, after in pairs { ["666"] = "640", ["600"] = "600", ["777"] = "640", ["604"] = "600" } do
      os.execute(("chmod %s '%s'"):format(before, path))
      assert.is_true(system.restrict(file))
      assert.equal(tonumber(after, 8), permissions(path))
    end
  end)

  it("tells what a path names, and where a link leads", function()
    os.execute(("ln -s '%s' '%s.link'; ln -s /dev/null '%s.null'; mkfifo '%s.pipe'"):format(path, path, path, path))
    local kinds = {}
    for index, name in ipairs { path, path .. ".link", path .. ".pipe", "/tmp", "/dev/null", path .. ".null" } do
      kinds[index] = system.stat(name)
    end
    assert.same({ "file", "file", "pipe", "directory", "device", "device" }, kinds)
    assert.equal(path, system.link_target(path .. ".link"))
    for _, name in ipairs { path, "/tmp", path .. ".null", path .. ".missing" } do
      assert.is_nil(system.link_target(name))
    end
    for _, name in ipairs { path, path .. ".link", (path:gsub("/([^/]*)$", "/.//%1")) } do
      assert.equal(path, system.real_path(name))
    end
    assert.is_nil(system.real_path(path .. ".missing"))
    for _, ending in ipairs { ".link", ".pipe", ".null" } do
      os.remove(path .. ending)
    end
    assert.matches("No such file", select(2, system.stat(path .. ".missing")))
  end)

  it("notes a signal, also one that comes twice at once, and is ended by a later one", function()
    if os.getenv "LD_PRELOAD" then
      return pending "the shell's programs do not end under a sanitizer that is loaded into them"
    end
    local program = [[local s = require "riskscreen.system"; s.catch_end(); print(); io.stdout:flush()
      while not s.ending() do end; print(s.ending()); io.stdout:flush(); while true do end]]
    file:write(program)
    file:close()
    local line = "timeout 20 %s %s >%s.out & p=$!; until [ -s %s.out ]; do sleep 0.05; done; p=$(pgrep -P $p); "
      .. "kill $p; kill $p; sleep 0.7; kill -0 $p && echo alive; kill $p; wait; cat %s.out"
    local pipe = io.popen(line:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", path, path, path, path))
    assert.equal("alive\n\n15\n", pipe:read "*a")
    pipe:close()
    os.remove(path .. ".out")
  end)

  it("tells the names of one file from those of another", function()
    os.execute(
      ("ln -s '%s' '%s.link'; ln '%s' '%s.hard'; cp '%s' '%s.copy'"):format(path, path, path, path, path, path)
    )
    local identity = select(3, system.stat(file))
    assert.equal(identity, select(3, system.stat(path .. ".link")))
    assert.equal(identity, select(3, system.stat(path .. ".hard")))
    assert.not_equal(identity, select(3, system.stat(path .. ".copy")))
    assert.is_nil((select(3, system.stat "/dev/null")))
    for _, ending in ipairs { ".link", ".hard", ".copy" } do
      os.remove(path .. ending)
    end
  end)

  it("makes a new file with the permissions of another, never behind a link or over a file", function()
    os.execute(("chmod 640 '%s'; ln -s '%s' '%s.new'"):format(path, path, path))
    file:write "kept"
    file:flush()
    assert.matches("File exists", select(2, system.make_like(path .. ".new", path)))
    assert.equal("kept", content())
    os.remove(path .. ".new")
    assert.is_true(system.make_like(path .. ".new", path))
    assert.equal(tonumber("640", 8), permissions(path .. ".new"))
    os.remove(path .. ".new")
    assert.is_true(system.make_like(path .. ".new", path .. ".missing"))
    os.remove(path .. ".new")
    assert.matches("No such file", select(2, system.make_like("/nonexistent/new", path)))
  end)

  it("tells whether an open file has another content", function()
    local size, version = system.version(file)
    assert.same({ size, version }, { system.version(file) })
    file:write "more"
    file:flush()
    assert.equal(size + 4, (system.version(file)))
    -- The removal of its name leaves the beginning of the text as it was.
    local _, now = system.version(file)
    local other = path .. ".other"
    os.rename(path, other)
    assert(io.open(path, "w")):close()
    os.remove(other)
    local _, later = system.version(file)
    assert.equal(1, (now:find(later, 1, true)))
    local null = assert(io.open "/dev/null")
    assert.is_nil((system.version(null)))
    null:close()
  end)

  it("finds no terminal behind a file", function()
    assert.is_nil(system.columns(file))
  end)

  it("returns nil and the system's message for a failure", function()
    local kind, message = system.stat(path .. ".missing")
    assert.is_nil(kind)
    assert.matches("No such file", message)
    local reader = assert(io.open(path, "rb"))
    assert.is_nil((system.truncate(reader, 0)))
    reader:close()
  end)

  it("raises for a closed file and for what is no file", function()
    file:close()
    assert.error_matches(function()
      system.sync(file)
    end, "closed")
    assert.error_matches(function()
      system.columns "text"
    end, "FILE")
    assert.error_matches(function()
      system.stat {}
    end, "FILE")
  end)

  it("raises for a size that is none", function()
    for _, size in ipairs { -1, 0.5, 2 ^ 60, "8" } do
      assert.error_matches(function()
        system.truncate(file, size)
      end, "size in bytes")
    end
  end)
end)
