-- A program that submits transactions is killed at random moments, again and again, and goes on each time. Each
-- transaction is submitted once at most, and none is passed over. `./dev soak kills` runs it 200 times.
local open_store = require "spec.support.any_store"
local program = require "spec.support.program"
local random = require "spec.support.random"
local redis_server = require "spec.support.redis"
local riskscreen = require "riskscreen"
local temporary = require "spec.support.temporary"

local RUNS = tonumber(os.getenv "RISKSCREEN_KILLS" or 8)
local MOST_DONE = 12 -- transactions of a run before it is killed

describe("a program that is killed while it submits transactions", function()
  local server, client, url

  before_each(function()
    server = program.start("kyt_server", {})
    url = server:read()
    client = riskscreen.new { base_url = url, access_key = riskscreen.sandbox.default_key }
  end)

  after_each(function()
    client:request("GET", "/stop")
    server:close()
    temporary.clean()
  end)

  local function run_and_kill(place)
    local integer = random.new(random.SEED).integer
    for _ = 1, RUNS do
      local submitter = program.start("kyt_submitter", { place, url })
      for _ = 1, integer(MOST_DONE) do
        assert.is_string(submitter:read())
      end
      submitter:kill()
    end
    local counts = assert(client:request("GET", "/counts"))
    local store = open_store(place)
    local done, uncertain = 0, 0
    for key, outcome in store:space("done"):each() do
      done = done + 1
      assert.equal(done, tonumber(key))
      local count = counts[("0x%064x"):format(done)] or 0
      assert.is_true(count == 1 or (outcome == "uncertain" and count == 0), key .. ": " .. count)
      uncertain = uncertain + (outcome == "uncertain" and 1 or 0)
    end
    store:close()
    for hash, count in pairs(counts) do
      assert.equal(1, count, hash)
    end
    assert.is_true(done >= RUNS and uncertain <= RUNS)
  end

  it(("submits none twice, and passes over none, in %d runs"):format(RUNS), function()
    run_and_kill(temporary.path "kyt.db")
  end)

  if redis_server.is_installed() then
    it(("submits none twice, and passes over none, in %d runs with Redis"):format(RUNS), function()
      local redis = redis_server.start()
      run_and_kill(redis.url)
      redis:stop()
    end)
  end
end)
