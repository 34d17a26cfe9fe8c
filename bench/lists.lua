-- Local lists: the time of a build, of a load and of a look-up, and the memory of a process, for two sizes. Look-ups
-- stand beside a Lua table and a shared dict of nginx with the same addresses. CPU time, medians of interleaved rounds.
-- Usage: lua bench/lists.lua, with riskscreen on the path; nginx for the shared dict.

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local build = require("riskscreen.lists.build").build
local core = require("riskscreen.core")
local nginx = require("spec.support.nginx")
local reports = require("support.report")

local SIZES = { 100000, reports.rounds(10000000, 1000000) }
local ROUNDS = reports.rounds(9, 3)
local LOOKUPS = 100000
local IN_TABLE = 1000000 -- entries of the table and of the dict; more do not fit a usual machine's Lua

local directory = os.tmpname()
os.remove(directory)
assert(os.execute("mkdir " .. directory))

local function address(number)
  return ("0x%040x"):format(number)
end

local function write_text(path, count)
  local file = assert(io.open(path, "w"))
  for number = 1, count do
    file:write(address(number), "\n")
  end
  file:close()
end

-- The memory in bytes that this process shares with no other. Pages of a mapped file are the page cache's.
local function own_bytes()
  for line in io.lines("/proc/self/smaps_rollup") do
    local kilobytes = line:match("^Private_Dirty:%s+(%d+)")
    if kilobytes then
      return tonumber(kilobytes) * 1024
    end
  end
end

local function cpu_of(call)
  local before = os.clock()
  call()
  return os.clock() - before
end

-- The addresses that are looked up: on the list, or not.
local function subjects(from, count)
  local list = {}
  for index = 1, LOOKUPS do
    list[index] = address(from + (index * 7919) % count)
  end
  return list
end

local function look_up_in_list(list, wanted)
  for index = 1, #wanted do
    list:find(wanted[index], "eth", 1)
  end
end

local function look_up_in_table(map, wanted)
  local found = 0
  for index = 1, #wanted do
    if map["*:" .. wanted[index]] or map["eth:" .. wanted[index]] then
      found = found + 1
    end
  end
  return found
end

local function open(path)
  local list = assert(core.list(path))
  assert(list:verify(2 ^ 52))
  return list
end

-- The core's part of a build, which sorts and writes. Reading and checking rows is measured with the small list.
local function write_list(path, count)
  local writer = assert(core.list_writer(path, 64 * 1024 * 1024))
  for number = 1, count do
    writer:add("*", address(number), "", 0)
  end
  return assert(writer:finish(1, ""))
end

local function measure_size(count)
  local path = directory .. "/" .. count .. ".rsl"
  local result = { count = count }
  result.build = cpu_of(function()
    write_list(path, count)
  end)
  result.hits, result.misses = subjects(1, count), subjects(count + 1, count)
  collectgarbage()
  collectgarbage()
  local before = own_bytes()
  result.load = cpu_of(function()
    result.list = open(path)
  end)
  look_up_in_list(result.list, result.hits)
  look_up_in_list(result.list, result.misses)
  result.memory = own_bytes() - before
  return result
end

-- Seconds of CPU time for a row of a text, from the file to the list.
local function measure_rows(count)
  local path = directory .. "/rows"
  write_text(path .. ".txt", count)
  return cpu_of(function()
    assert(build({ output = path .. ".rsl", inputs = path .. ".txt" }))
  end) / count
end

-- Seconds of CPU time for a look-up in a shared dict, inside nginx.
local function measure_dict(count)
  local running = nginx.start({ http = "lua_shared_dict addresses 400m;" })
  local seconds, bytes = running:eval(
    [[
    local count, lookups = ...
    count, lookups = count.count, count.lookups
    local dict = ngx.shared.addresses
    local function address(number)
      return ("0x%040x"):format(number)
    end
    for number = 1, count do
      assert(dict:safe_set("*:" .. address(number), true))
    end
    local wanted = {}
    for index = 1, lookups do
      wanted[index] = address(1 + (index * 7919) % count)
    end
    local best
    for _ = 1, 5 do
      local before = os.clock()
      for index = 1, lookups do
        local _ = dict:get("*:" .. wanted[index]) or dict:get("eth:" .. wanted[index])
      end
      local spent = os.clock() - before
      best = math.min(best or spent, spent)
    end
    return best / lookups, dict:capacity() - dict:free_space()
  ]],
    { count = count, lookups = LOOKUPS }
  )
  running:stop()
  return seconds, bytes
end

local function run()
  local report = reports.new({
    name = "lists",
    title = "Local lists",
    method = ("%d rounds of %d look-ups of addresses in a random order; CPU time."):format(ROUNDS, LOOKUPS),
    peers = { "a Lua table", "ngx.shared" },
  })
  local row_seconds = measure_rows(SIZES[1])
  local small, large = measure_size(SIZES[1]), measure_size(SIZES[2])
  local in_table = math.min(IN_TABLE, large.count)
  local before = collectgarbage("count")
  local map = {}
  for number = 1, in_table do
    map["*:" .. address(number)] = true
  end
  local table_bytes = (collectgarbage("count") - before) * 1024
  local table_hits, table_misses = subjects(1, in_table), subjects(in_table + 1, in_table)

  local ways = {}
  for _, one in ipairs({ small, large }) do
    for _, kind in ipairs({ "hits", "misses" }) do
      ways[#ways + 1] = {
        what = ("compiled, %.0f entries, %s"):format(one.count, kind),
        run = function()
          look_up_in_list(one.list, one[kind])
        end,
        ours = true,
      }
    end
  end
  ways[#ways + 1] = {
    what = ("a Lua table, %d entries, hits"):format(in_table),
    run = function()
      look_up_in_table(map, table_hits)
    end,
  }
  ways[#ways + 1] = {
    what = ("a Lua table, %d entries, misses"):format(in_table),
    run = function()
      look_up_in_table(map, table_misses)
    end,
  }
  local costs = {}
  for round = 1, ROUNDS do
    for index, way in ipairs(ways) do
      costs[index] = costs[index] or {}
      costs[index][round] = cpu_of(way.run) / LOOKUPS * 1e6
    end
  end
  local dict_seconds, dict_bytes = measure_dict(in_table)

  local rows = {}
  for index, way in ipairs(ways) do
    rows[index] = { what = way.what, value = bed.median(costs[index]), ours = way.ours }
  end
  rows[#rows + 1] = { what = ("ngx.shared, %d entries, hits"):format(in_table), value = dict_seconds * 1e6 }
  report:chart({ title = "A look-up", unit = "us", rows = rows })

  local function per_million(one, what)
    return one[what] / one.count * 1e6
  end
  report:chart({
    title = "For each million entries",
    unit = "s of CPU time",
    rows = {
      { what = "building from text, addresses checked", value = row_seconds * 1e6, ours = true },
      {
        what = ("writing %.0f entries"):format(small.count),
        value = per_million(small, "build"),
        ours = true,
      },
      {
        what = ("writing %.0f entries"):format(large.count),
        value = per_million(large, "build"),
        ours = true,
      },
      { what = ("loading %.0f entries"):format(large.count), value = per_million(large, "load"), ours = true },
    },
  })
  report:chart({
    title = "Memory of a worker for each million entries",
    unit = "MB",
    rows = {
      { what = "a Lua table", value = table_bytes / in_table },
      { what = "compiled, private", value = per_million(large, "memory") / 1e6, ours = true },
      { what = "ngx.shared, one for all workers", value = dict_bytes / in_table },
    },
  })
  report:goal({
    what = ("us for a look-up in %.0f entries that finds nothing"):format(large.count),
    value = rows[4].value,
    at_most = 1,
  })
  report:goal({
    what = ("us for a look-up in %.0f entries that finds one"):format(large.count),
    value = rows[3].value,
    at_most = 1,
  })
  report:goal({
    what = "MB of private memory for each million entries",
    value = per_million(large, "memory") / 1e6,
    at_most = 1,
  })
  report:finish()
end

local ok, failure = pcall(run)
os.execute("rm -rf " .. directory)
assert(ok, failure)
