-- How long entries stay, whatever is done to the date.
local backends = require "riskscreen.store.memory"
local lifetimes = require "riskscreen.store.lifetime"
local temporary = require "spec.support.temporary"

local DAY = 86400

describe("the time of a store", function()
  local backend, date, now

  before_each(function()
    backend, date, now = backends.new(), 1700000000, 50
  end)

  local function new()
    return lifetimes.new(backend, function()
      return date
    end, function()
      return now
    end)
  end

  local function pass(seconds)
    date, now = date + seconds, now + seconds
  end

  local function note(lifetime)
    local change = lifetime:note()
    if change then
      assert(backend:apply({ change }, 0))
    end
    return change ~= nil
  end

  it("is the date in a new file, and goes on", function()
    local one = new()
    assert.equal(date, one:time())
    pass(40 * DAY)
    assert.equal(date, one:time())
  end)

  it("goes on in the next program", function()
    note(new())
    pass(DAY)
    assert.equal(date, new():time())
  end)

  it("does not follow a date that is set forward while the program runs", function()
    local one = new()
    local before = one:time()
    for _ = 1, 3 do
      date = date + 400 * DAY
      pass(61)
      note(one)
    end
    assert.equal(before + 183, one:time())
  end)

  it("follows a date that is set forward between two programs by a day at most", function()
    local before = new():time()
    note(new())
    date, now = date + 400 * DAY, 3
    local one = new()
    assert.equal(before + DAY, one:time())
    note(one)
    pass(10)
    assert.equal(before + DAY + 10, new():time())
    date = date - 400 * DAY
    assert.equal(before + DAY, new():time())
  end)

  it("is never ahead of that of a program which shares the file", function()
    local one = new()
    note(one)
    local before = one:time()
    pass(50 * DAY)
    local two = new()
    note(two)
    assert.equal(before + DAY, two:time())
    assert.equal(two:time(), one:time())
  end)

  it("is noted once a minute", function()
    local one = new()
    assert.same({ true, false }, { note(one), note(one) })
    pass(60)
    assert.is_true(note(one))
  end)
end)

describe("a store", function()
  local date, stores, loaded

  before_each(function()
    date, loaded = 1700000000, {}
    for _, name in ipairs { "riskscreen.store", "riskscreen.util.time" } do
      loaded[name], package.loaded[name] = package.loaded[name], nil
    end
    package.loaded["riskscreen.util.time"] = {
      now = function()
        return date
      end,
    }
    stores = require "riskscreen.store"
  end)

  after_each(function()
    for _, name in ipairs { "riskscreen.store", "riskscreen.util.time" } do
      package.loaded[name] = loaded[name]
    end
  end)

  it("in memory keeps entries while the date is set forward", function()
    local space = stores.memory():space "kyt"
    space:put("submission", "value", 30 * DAY)
    date = date + 365 * DAY
    assert.equal("value", space:get "submission")
  end)

  it("in a file keeps entries of 30 days also for programs that start with a date of a year ahead", function()
    local path = temporary.path "lifetime.db"
    local function open()
      return assert(stores.sqlite { path = path, synchronous = "normal" })
    end
    local store = open()
    store:space("kyt"):put("submission", "value", 30 * DAY)
    for _, ahead in ipairs { 365, 0, 365 } do
      store:close()
      date = 1700000000 + ahead * DAY
      store = open()
      assert.equal(date, store:time())
      assert.is_true(store:space("kyt"):add("other" .. date .. ahead .. tostring(store), "value", DAY)) -- it sweeps
      assert.equal("value", store:space("kyt"):get "submission")
      assert.is_false(store:space("kyt"):add("submission", "another", 30 * DAY))
    end
    store:close()
  end)
end)
