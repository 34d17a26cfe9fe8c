-- The process of ./dev soak queue: a queue that is killed, emptied, failed over and denied commands at random, with
-- 50,000 addresses by default.
local kills = require "spec.support.queue_kills"

local options = {
  rows = tonumber(arg[1]),
  distinct = math.ceil(tonumber(arg[1]) * 0.9),
  kills = 60,
  shortest = 0.2,
  longest = 1.5,
  seed = os.time(),
  seconds = 600,
}
local outcome, remove = kills.run(options)
local faults = kills.faults(outcome, options)
remove()
local parts = {}
for name, count in pairs(outcome.counts) do
  parts[#parts + 1] = ("%s %d"):format(name, count)
end
table.sort(parts)
print(("%d addresses; while there was work: %s"):format(options.rows, table.concat(parts, ", ")))
for index, fault in ipairs(faults) do
  if index <= 20 then
    io.stderr:write(("%s (seed %d)\n"):format(fault, options.seed))
  end
end
os.exit(#faults == 0 and 0 or 1)
