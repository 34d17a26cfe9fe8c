-- The time that a game loses in each frame: `step` with a budget while many tasks screen addresses without a pause, and
-- without a budget for comparison. CPU time: other work of the machine counts little. Against an nginx process.
-- Usage: lua bench/frames.lua [frames], with riskscreen on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local reports = require("support.report")
local riskscreen = require("riskscreen")
local socket = require("socket")

local frames = tonumber(arg[1]) or reports.rounds(3000, 1000)
local BUDGET = 0.002 -- seconds of a frame
local OVERRUN = 0.0002 -- seconds
local COLLECTION = 0.0005 -- seconds of a frame for the garbage collector, as in examples/embed/game_loop.c
local GROWTH = 1.5 -- of the memory until a collection begins
local ROUNDS = 5 -- with and without a budget, in turn
local PAUSE = 0.002 -- seconds between two steps, in which answers arrive
local WARM = 50 -- frames before the measurement
local UNBOUNDED = 0.1 -- share of the frames that are also measured without a budget
local SIZES = { { tasks = 64, concurrency = 64 }, { tasks = 1024, concurrency = 256 } }

-- nginx puts in what was asked for: an answer about another address would be refused.
local BODY = '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1767225600000,"address":"$arg_address",'
  .. '"network":"$arg_network","whitelist":false,"risks":[{"riskLevel":"low","riskType":"online-gambling",'
  .. '"riskSource":"Provider"}]}}'

local collecting = false
local kept = 0 -- kilobytes at the end of the last collection

-- The collector works in small steps, and only here. It begins when memory has grown by half.
local function collect()
  collecting = collecting or collectgarbage("count") > kept * GROWTH
  local stop = os.clock() + COLLECTION
  while collecting and os.clock() < stop do
    if collectgarbage("step", 0) then
      collecting, kept = false, collectgarbage("count")
    end
  end
  collectgarbage("stop") -- Lua 5.1 has started it again
end

local names = { [0.5] = "median", [0.99] = "99th percentile", [0.999] = "99.9th percentile", [1] = "longest" }

local function quantile(list, share)
  table.sort(list)
  return list[math.max(1, math.ceil(#list * share))]
end

local function append(list, more)
  for _, item in ipairs(more) do
    list[#list + 1] = item
  end
end

-- Runs frames while the tasks screen. Returns the sorted CPU seconds of the steps and those of an address.
local function run_frames(port, size, count, wait)
  local client = riskscreen.new({
    base_url = "http://127.0.0.1:" .. port,
    access_key = "0123456789abcdef0123456789abcdef",
    concurrency = size.concurrency,
  })
  local running, number, screened, ended = true, 0, 0, 0
  for _ = 1, size.tasks do
    riskscreen.spawn(function()
      while running do
        number = number + 1
        local decision = client:screen({ address = ("0x%040x"):format(number), network = "eth" })
        assert(decision.action == "allow", tostring(decision))
        screened = screened + 1
      end
      ended = ended + 1
    end)
  end
  local costs, wholes, total, before, memory = {}, {}, 0, 0, nil
  collectgarbage()
  if _VERSION == "Lua 5.4" then
    collectgarbage("incremental", 0, 20, 8)
  end
  collectgarbage("stop")
  collecting, kept = false, collectgarbage("count")
  for frame = 1 - WARM, count do
    local began = os.clock()
    riskscreen.loop:step(wait)
    local cost = os.clock() - began
    collect()
    local whole = os.clock() - began
    if frame > 0 then
      costs[frame], wholes[frame] = cost, whole
      total = total + cost
    elseif frame == 0 then
      before, memory = screened, collectgarbage("count")
    end
    socket.sleep(PAUSE)
  end
  running = false
  local rate, grown = total / (screened - before), collectgarbage("count")
  collectgarbage("restart")
  repeat
    riskscreen.loop:step(0.01)
  until ended == size.tasks
  client:close()
  return { costs = costs, wholes = wholes, rate = rate, growth = grown / memory }
end

bed.run(BODY, function(_, port)
  local report = reports.new({
    name = "frames",
    title = "Stepping in the frames of a game",
    method = ("%d frames with a budget of %.0f ms for each size"):format(frames, BUDGET * 1e3),
  })
  for _, size in ipairs(SIZES) do
    local free, bounded = { costs = {}, rates = {} }, { costs = {}, wholes = {}, rates = {}, growth = 0 }
    for round = 1, ROUNDS do
      local one = run_frames(port, size, math.ceil(frames / ROUNDS * UNBOUNDED), 0)
      local other = run_frames(port, size, math.ceil(frames / ROUNDS), { budget = BUDGET })
      append(free.costs, one.costs)
      append(bounded.costs, other.costs)
      append(bounded.wholes, other.wholes)
      free.rates[round], bounded.rates[round] = one.rate, other.rate
      bounded.growth = math.max(bounded.growth, other.growth)
    end
    local rows = {}
    for _, share in ipairs({ 0.5, 0.99, 0.999, 1 }) do
      local group = names[share]
      rows[#rows + 1] = { group = group, what = "step(0)", value = quantile(free.costs, share) * 1e3 }
      local cost, whole = quantile(bounded.costs, share), quantile(bounded.wholes, share)
      rows[#rows + 1] = { group = group, what = "step with a budget", value = cost * 1e3, ours = true }
      rows[#rows + 1] = { group = group, what = "and the collector", value = whole * 1e3, ours = true }
    end
    report:chart({
      title = ("Duration of step, %d tasks, %d requests under way"):format(size.tasks, size.concurrency),
      unit = "ms CPU",
      rows = rows,
    })
    local goals = {
      { "99.9th percentile of step, in ms", quantile(bounded.costs, 0.999) * 1e3, (BUDGET + OVERRUN) * 1e3 },
      { "cost of an address with a budget / without", bed.ratio(bounded.rates, free.rates), 1.2 },
      { "memory after the frames / before", bounded.growth, 2 },
    }
    for _, goal in ipairs(goals) do
      report:goal({ what = ("%d tasks: %s"):format(size.tasks, goal[1]), value = goal[2], at_most = goal[3] })
    end
  end
  report:finish()
end)
