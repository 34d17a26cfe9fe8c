-- The file of a store: opening, damage, full disks, crashes.
local program = require "spec.support.program"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local function open(path, options)
  options = options or {}
  options.path = path
  return riskscreen.store.sqlite(options)
end

-- Runs statements in a database file with SQLite's binding alone.
local function execute(path, ...)
  local connection = assert(require("dbd.sqlite3").New(path))
  connection:autocommit(true)
  for _, sql in ipairs { ... } do
    local statement = assert(connection:prepare(sql))
    assert(statement:execute())
    statement:close()
  end
  connection:close()
end

describe("the file of a store", function()
  local path

  before_each(function()
    path = temporary.path "store.db"
  end)

  after_each(temporary.clean)

  it("keeps its entries for the next program", function()
    local store = assert(open(path))
    store:space("a"):put("key", "value")
    store:close()
    store = assert(open(path))
    assert.equal("value", store:space("a"):get "key")
    store:close()
  end)

  it("may be open twice", function()
    local one, two = assert(open(path)), assert(open(path))
    assert.is_true(one:space("a"):add("key", "one"))
    assert.is_false(two:space("a"):add("key", "two"))
    assert.equal("one", two:space("a"):get "key")
    one:close()
    two:close()
  end)

  -- SQLite's locks belong to the process. The parent is done first, as when a program becomes a daemon.
  for _, way in ipairs { "inherited", "new" } do
    it("keeps what a forked child writes with an " .. way .. " store, after its parent has closed its own", function()
      assert.is_true(program.start("store_fork", { path, way }):close())
      local store = assert(open(path))
      assert.equal("parent", store:space("a"):get "parent")
      assert.equal("child", store:space("a"):get "child")
      store:close()
    end)
  end

  it("may be created by several programs at the same time", function()
    local openers, messages = {}, {}
    for number = 1, 4 do
      openers[number] = program.start("store_opener", { path, "100" })
    end
    for _, opener in ipairs(openers) do
      for message in opener:lines() do
        messages[#messages + 1] = message
      end
      opener:close()
    end
    assert.same({}, messages)
  end)

  it("is refused when a newer library wrote it", function()
    assert(open(path)):close()
    execute(path, "PRAGMA user_version = 7")
    local store, err = open(path)
    assert.is_nil(store)
    assert.equal("storage", err.kind)
    assert.equal("newer", err.reason)
    assert.matches("version 7, and this riskscreen reads up to version 1", err.message)
  end)

  it("is refused, and not changed, when another program wrote it", function()
    execute(path, "CREATE TABLE customers (name TEXT)")
    local before = temporary.read(path)
    local store, err = open(path)
    assert.is_nil(store)
    assert.equal("foreign", err.reason)
    assert.equal(before, temporary.read(path))
  end)

  it("is refused when it is no database", function()
    temporary.write(path, ("no database\n"):rep(100))
    local store, err = open(path)
    assert.is_nil(store)
    assert.equal("foreign", err.reason)
  end)

  it("is refused when its directory does not exist", function()
    local store, err = open(temporary.path "nowhere/store.db")
    assert.is_nil(store)
    assert.equal("missing", err.reason)
  end)

  it("is not read when a page is damaged", function()
    local store = assert(open(path))
    for index = 1, 400 do
      store:space("a"):put("key" .. index, ("v"):rep(500))
    end
    store:close()
    local content = temporary.read(path)
    temporary.write(path, content:sub(1, 4096) .. ("\255"):rep(#content - 8192) .. content:sub(-4096))
    local ok, err = pcall(function()
      for _ in assert(open(path)):space("a"):each() do -- luacheck: ignore 542
      end
    end)
    assert.is_false(ok)
    assert.equal("damaged", err.reason)
  end)

  it("tells that another program writes for longer than busy_timeout", function()
    local store = assert(open(path, { busy_timeout = 0.01 }))
    local other = assert(require("dbd.sqlite3").New(path))
    other:autocommit(true)
    local statement = assert(other:prepare "BEGIN IMMEDIATE")
    assert(statement:execute())
    local made, err = store:space("a"):put("key", "value")
    assert.is_nil(made)
    assert.equal("busy", err.reason)
    assert.is_true(err.retryable)
    statement:close()
    other:close()
    assert.is_true(store:space("a"):put("key", "value"))
    store:close()
  end)

  it("loses no entry when it is full, and takes more when there is room again", function()
    local store = assert(open(path))
    local space = store:space "a"
    local function limit(pages)
      local statement = assert(store.backend.connection.handle:prepare("PRAGMA max_page_count = " .. pages))
      assert(statement:execute())
      statement:close()
    end
    limit(20)
    local kept = 0
    local made, err
    repeat
      made, err = store:batch {
        { kind = "put", space = "a", key = "key" .. kept + 1, value = ("v"):rep(1000) },
        { kind = "put", space = "a", key = "last", value = tostring(kept + 1) },
      }
      kept = made and kept + 1 or kept
    until not made
    assert.equal("storage", err.kind)
    assert.equal("full", err.reason)
    assert.equal("database or disk is full", err.cause)
    assert.matches(": database or disk is full: make room on the disk", err.message, 1, true)
    assert.not_matches("%.lua:%d", err.message)
    assert.matches("make room on the disk", err.message)
    assert.is_true(kept > 10)
    assert.equal(tostring(kept), space:get "last")
    assert.equal(kept, space:count "key")
    limit(1000)
    assert.is_true(space:put("one more", "1"))
    store:close()
    store = assert(open(path))
    assert.equal(kept, store:space("a"):count "key")
    assert.equal("1", store:space("a"):get "one more")
    store:close()
  end)

  it("loses no entry when the system refuses to let the file grow", function()
    local writer = program.start("store_writer", { path, "limit" }, { before = "trap '' XFSZ; ulimit -f 200" })
    local made, reason = 0, nil
    for line in writer:lines() do
      made = tonumber(line:match "^made (%d+)") or made
      reason = reason or line:match "^failed (%S+)"
    end
    writer:close()
    assert.equal("io", reason)
    assert.is_true(made > 10)
    local store = assert(open(path))
    assert.equal(made, store:space("rows"):count())
    store:close()
  end)

  it("has a lock that ends with its program, however that ends", function()
    local holder = program.start("store_writer", { path, "lock" })
    assert.equal("locked", holder:read())
    local store = assert(open(path))
    local release, err = store:lock "run"
    assert.is_nil(release)
    assert.equal("locked", err.reason)
    assert.matches("the lock 'run' is held by another program", err.message)
    holder:kill()
    assert.is_function(store:lock "run")
    store:close()
  end)
end)
