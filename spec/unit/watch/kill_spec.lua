-- A watch is killed at random moments, again and again. No change may be lost, and one that is told twice has one id.
local program = require "spec.support.program"
local random = require "spec.support.random"
local redis_server = require "spec.support.redis"
local temporary = require "spec.support.temporary"

local KILLS = tonumber(os.getenv "RISKSCREEN_KILLS" or 12)
local ROUNDS = 3

local function run_and_kill(place)
  local integer = random.new(random.SEED).integer
  local round, kills, finished = 0, 0, false
  local told, ids = {}, {}

  local function note(line)
    local id, address, action = (line or ""):match "^change (%x+) (%w+) (%w+)$"
    if id then
      local key = round .. " " .. address
      assert.is_true(ids[id] == nil or ids[id] == key, "an id of two changes")
      assert.is_true(told[key] == nil or told[key].id == id, "a change with two ids")
      ids[id], told[key] = key, { id = id, action = action }
    end
    finished = finished or line == "done 0 true"
  end

  while round < ROUNDS do
    finished = false
    local watch = program.start("watch_program", { place, tostring(round) })
    local lines = kills < KILLS and integer(25) or math.huge
    for line in watch:lines() do
      note(line)
      lines = lines - 1
      if lines == 0 then
        break
      end
    end
    kills = kills + 1
    for _, line in ipairs(watch:kill()) do
      note(line)
    end
    if finished then
      -- Of 60 addresses a third is risky in each round, another third has become clean since the round before.
      for index = 1, 60 do
        local address, remainder = ("0x%040x"):format(index), (index + round) % 3
        local change = told[round .. " " .. address]
        local expected = remainder == 0 and "block" or (remainder == 1 and round > 0 and "allow") or nil
        assert.equal(expected, change and change.action, ("round %d, %s"):format(round, address))
      end
      round = round + 1
    end
  end
  assert.is_true(kills >= ROUNDS)
end

describe("a watch that is killed", function()
  after_each(temporary.clean)

  it("tells every change, and a change that it tells twice with the same id", function()
    run_and_kill(temporary.path "watch.db")
  end)

  if redis_server.is_installed() then
    it("does so with Redis", function()
      local server = redis_server.start()
      run_and_kill(server.url)
      server:stop()
    end)
  end
end)
