-- Every order of a few steps of two workers: dates that are set forward and back, reloads, purges, lists. No allow is
-- older than its lifetime. None is used after a purge, a newer block or an entry of a list.
local worlds = require "spec.support.cache_world"

local ADDRESS, NETWORK = "0x52908400098527886e0f7030069857d2e4169ee7", "eth"
local TTL = { allow = 10, block = 20, unknown = 1 }
local DEPTH = tonumber(os.getenv "RISKSCREEN_CLOCK_DEPTH") or 3 -- steps; `./dev soak clock` takes more

local function new_run()
  local world = worlds.new()
  local run = { world = world, says = "allow", is_listed = false, purged = 0, lost = 0, asked = {} }
  local lists = { start = function() end }
  function lists.generation()
    return run.is_listed and 2 or 1
  end
  function lists.find(_, address, network)
    return run.is_listed and world.decision("block", address, network) or nil
  end
  world.answer = function(address, network)
    local answer = { at = world.time, action = run.says, purged = run.purged }
    run.asked[#run.asked + 1] = answer
    if run.during then
      local event = run.during
      run.during = nil
      world:sleep(0.3)
      event()
    end
    world:sleep(0.2)
    return world.decision(answer.action, address, network, tostring(#run.asked))
  end
  function run.reload()
    run.workers = {}
    for index = 1, 2 do
      run.workers[index] = world:worker { ttl = TTL, stale = { block = 20, allow = 0 }, lists = lists }
    end
  end
  run.reload()
  return run
end

-- Whether an allow of the service may be used: the last answer is one, and it has not ended. A dict loses its
-- entries when the date is set forward. Each worker is left with its LRU, for the lifetime of the entries there.
local function may_allow(run, began, purged)
  local asked = run.asked
  for index = #asked, 1, -1 do
    local answer = asked[index]
    if answer.action == "allow" and answer.purged >= purged and began < answer.at + TTL.allow then
      return not run.is_listed
    elseif answer.action == "block" and index > run.lost then
      return false
    end
  end
  return false
end

local function get(run, index)
  local world, purged, began = run.world, run.purged, run.world.time
  local decision = world:call(function(cache)
    return cache:get(ADDRESS, NETWORK, 5)
  end, run.workers[index])
  if run.is_listed and decision.action ~= "block" then
    return "it is on a list"
  elseif decision.action == "allow" and not may_allow(run, began, purged) then
    return "an allow that may not be used"
  elseif decision.action ~= "allow" and decision.action ~= "block" then
    return "no decision"
  end
end

local function jump(seconds)
  return function(run)
    run.world.date = run.world.date + seconds
    run.lost = seconds > 0 and #run.asked + 1 or run.lost
  end
end

local function purge(run)
  run.world:call(run.workers[2].purge, run.workers[2], ADDRESS)
  run.purged = run.purged + 1
  run.world.time = run.world.time + 0.001 -- nginx's clock goes on between two events
end

local function get_during(event)
  return function(run)
    run.during = function()
      event(run)
    end
    local problem = get(run, 1)
    run.during = nil
    return problem
  end
end

local function toggle_list(run)
  run.is_listed = not run.is_listed
  run.world.time = run.world.time + 0.001
end

local STEPS = {
  {
    "worker 1 decides",
    function(run)
      return get(run, 1)
    end,
  },
  {
    "worker 2 decides",
    function(run)
      return get(run, 2)
    end,
  },
  { "worker 1 decides, and the date is set back", get_during(jump(-1e6)) },
  {
    "worker 1 decides, and a purge comes",
    get_during(function(run)
      assert(run.workers[2]:purge(ADDRESS))
      run.purged = run.purged + 1
    end),
  },
  { "worker 1 decides, and a list changes", get_during(toggle_list) },
  {
    "a part of the lifetime passes",
    function(run)
      run.world.time = run.world.time + 6
    end,
  },
  { "the date is set back", jump(-1e6) },
  { "the date is set back a little", jump(-7) },
  { "the date is set forward", jump(1e6) },
  {
    "a reload",
    function(run)
      run.reload()
    end,
  },
  { "a purge", purge },
  {
    "the service changes its mind",
    function(run)
      run.says = run.says == "allow" and "block" or "allow"
    end,
  },
  { "a list changes", toggle_list },
}

local function names_of(sequence)
  local names = {}
  for position, index in ipairs(sequence) do
    names[position] = STEPS[index][1]
  end
  return table.concat(names, ", ")
end

-- Runs the steps after a first decision, which is kept, and decides in both workers at the end.
local function check(sequence)
  local run = new_run()
  local problem = get(run, 1)
  for _, index in ipairs(sequence) do
    problem = problem or STEPS[index][2](run)
  end
  problem = problem or get(run, 1) or get(run, 2)
  if problem then
    error(("%s: %s"):format(names_of(sequence), problem), 0)
  end
end

local function check_all(sequence, depth)
  if depth == 0 then
    check(sequence)
    return
  end
  for index = 1, #STEPS do
    sequence[#sequence + 1] = index
    check_all(sequence, depth - 1)
    sequence[#sequence] = nil
  end
end

describe("the gate's cache", function()
  it(("uses no allow that has ended, in any order of %d steps"):format(DEPTH), function()
    check_all({}, DEPTH)
  end)
end)
