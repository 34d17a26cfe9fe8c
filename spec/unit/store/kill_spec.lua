-- A program that writes to a store is killed at random moments, again and again, and goes on each time. No row that it
-- was told is kept may be lost, and none may be there twice. `./dev soak kills` runs it 200 times.
local program = require "spec.support.program"
local random = require "spec.support.random"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local RUNS = tonumber(os.getenv "RISKSCREEN_KILLS" or 12)
local MOST_ROWS = 60 -- of a run before it is killed

local function number_of(line)
  return tonumber(line and line:match "^made (%d+)$")
end

-- Reads some of the program's reports, kills it, and returns the last row that it reported.
local function interrupt(path, rows)
  local writer = program.start("store_writer", { path })
  local reported
  for _ = 1, rows do
    reported = number_of(writer:read()) or reported
  end
  for _, line in ipairs(writer:kill()) do
    reported = number_of(line) or reported
  end
  return reported
end

-- How many rows there are, up to the first that is missing, twice there or incomplete.
local function whole_rows(rows)
  local number = 0
  for key, value in rows:each() do
    if tonumber(key) ~= number + 1 or #value ~= number % 700 then
      break
    end
    number = number + 1
  end
  return number
end

-- Kills the program again and again, and lets it end at last. `open` opens the store that the program writes to.
local function run_and_kill(place, open)
  local integer = random.new(random.SEED).integer
  local reported = 0
  for run = 1, RUNS do
    reported = interrupt(place, integer(MOST_ROWS)) or reported
    local store = assert(open(place))
    local last = tonumber(store:space("state"):get "last" or "0")
    -- The program may have been killed between the write and its report.
    assert.is_true(last == reported or last == reported + 1, ("run %d: %d of %d"):format(run, last, reported))
    assert.equal(last, whole_rows(store:space "rows"))
    -- In Redis the lock outlives the program for a second.
    local release
    repeat
      release = store:lock "run"
    until release
    release()
    reported = last
    store:close()
  end
  local writer, total = program.start("store_writer", { place, tostring(reported + 10) }), nil
  for line in writer:lines() do
    total = line:match "^total (%d+)$" or total
  end
  assert.equal(reported + 10, tonumber(total))
end

describe("a program that is killed while it writes to a store", function()
  after_each(temporary.clean)

  it(("loses no row and writes none twice, in %d runs"):format(RUNS), function()
    run_and_kill(temporary.path "runs.db", riskscreen.store.sqlite)
  end)

  if redis_server.is_installed() then
    it(("loses no row and writes none twice in Redis, in %d runs"):format(RUNS), function()
      local server = redis_server.start()
      run_and_kill(server.url, riskscreen.store.redis)
      server:stop()
    end)
  end
end)
