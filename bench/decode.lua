-- JSON text to Lua values, beside lua-cjson and a C function that builds the same tables without parsing. CPU time,
-- medians of interleaved rounds. Needs a C compiler. Usage: lua bench/decode.lua [rounds] [payload names...], with
-- riskscreen.core and cjson on the path.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local core = require("riskscreen.core")
local cjson = require("cjson")
local median = require("bed").median
local payloads = require("support.payloads")
local reports = require("support.report")

local ROUND_SECONDS = 0.01
local FIRST_CALLS = 20 -- in a round, each with a new decoder

local rounds = tonumber(arg[1]) or reports.rounds(25, 7)
local wanted = {}
for i = 2, #arg do
  wanted[arg[i]] = true
end

local is_jit = rawget(_G, "jit") ~= nil

-- Compiles and loads the floor for this Lua.
local function load_floor()
  local package_name = is_jit and "luajit" or "lua" .. _VERSION:match("%d.%d")
  local path = os.tmpname()
  local command = "cc -O2 -shared -fPIC $(pkg-config --cflags %s) -o %s %s/decode_floor.c"
  local result = os.execute(command:format(package_name, path, arg[0]:match("^(.*)/[^/]*$") or "."))
  assert(result == true or result == 0, "the floor does not compile")
  local open = assert(package.loadlib(path, "luaopen_decode_floor"))
  os.remove(path)
  return open()
end

local floor = load_floor()

local function seconds_of(decode, text, times)
  collectgarbage()
  local before = os.clock()
  for _ = 1, times do
    decode(text)
  end
  return os.clock() - before
end

-- How many calls fill a round.
local function calibrate(decode, text)
  local times = 1
  while true do
    local took = seconds_of(decode, text, times)
    if took >= ROUND_SECONDS then
      return times
    end
    times = took < ROUND_SECONDS / 10 and times * 10 or times * 2
  end
end

-- The microseconds of a call of each function: a list of rounds for each.
local function measure(ways, text)
  local costs = {}
  local times = calibrate(ways[1], text)
  for index, way in ipairs(ways) do
    calibrate(way, text)
    costs[index] = {}
  end
  for round = 1, rounds do
    for index, way in ipairs(ways) do
      costs[index][round] = seconds_of(way, text, times) / times * 1e6
    end
  end
  return costs
end

local function median_ratio(costs, others)
  local list = {}
  for round, cost in ipairs(costs) do
    list[round] = cost / others[round]
  end
  return median(list)
end

local report = reports.new({
  name = "decode",
  title = "JSON text to Lua values",
  method = ("CPU time, median of %d interleaved rounds"):format(rounds),
  peers = { "lua-cjson " .. cjson._VERSION, "the same tables built by C without parsing" },
})

local rows = {}
local function add(payload, size, costs)
  local group = ("%s: %s, %s"):format(payload.name, payload.what, size)
  rows[#rows + 1] = { group = group, what = "lua-cjson", value = median(costs[1]) }
  rows[#rows + 1] = { group = group, what = "riskscreen", value = median(costs[2]), ours = true }
  if costs[3] then
    rows[#rows + 1] = { group = group, what = "no parsing", value = median(costs[3]) }
  end
end

local function size_of(text)
  return #text >= 1e6 and ("%.1f MB"):format(#text / 1e6) or ("%.1f KB"):format(#text / 1e3)
end

local function is_wanted(name)
  return next(wanted) == nil or wanted[name]
end

-- Times as fast as lua-cjson. The first five are the speed of a C decoder that was written for these texts and checks
-- less, minus 5 %. It is not in this tree.
local GOALS = {
  p1 = is_jit and 3.6 or 2.7,
  p2 = is_jit and 2.9 or 2.7,
  p3 = is_jit and 3.2 or 2.3,
  p4 = is_jit and 2.2 or 2.1,
  p5 = is_jit and 2.2 or 2.75,
  escapes = 2,
  foreign = 5,
  fractions = 3.7,
  ["unique keys"] = 2.4,
}

for _, payload in ipairs(payloads.all()) do
  if is_wanted(payload.name) then
    local text = payload.text
    floor.record(cjson.decode(text))
    local costs = measure({ cjson.decode, core.decode, floor.build }, text)
    add(payload, size_of(text), costs)
    if GOALS[payload.name] then
      local speed = median_ratio(costs[1], costs[2])
      report:goal({
        what = payload.name .. ": times as fast as lua-cjson",
        value = speed,
        at_least = GOALS[payload.name],
      })
    end
  end
end

if is_wanted("first call") then
  local payload = payloads.all()[1]
  local ways = {
    function(text)
      for _ = 1, FIRST_CALLS do
        cjson.new().decode(text)
      end
    end,
    function(text)
      for _ = 1, FIRST_CALLS do
        core.decoder():decode(text)
      end
    end,
  }
  local costs = measure(ways, payload.text)
  for index = 1, #ways do
    for round = 1, rounds do
      costs[index][round] = costs[index][round] / FIRST_CALLS
    end
  end
  add({ name = "first call", what = "p1 with a new decoder" }, size_of(payload.text), costs)
  local speed = median_ratio(costs[1], costs[2])
  report:goal({ what = "first call: times as fast as lua-cjson", value = speed, at_least = 1.2 })
end

report:chart({ title = "Time of a text", unit = "us", rows = rows })
report:finish()
