-- The process of ./dev soak command: a run over many rows, ended twice with SIGKILL and Ctrl-C and resumed. Every row
-- must be in the results once, and no answer may be asked for again.
local runs = require "spec.support.interrupted_runs"

local options = {
  rows = tonumber(arg[1]),
  ends = 2,
  concurrency = 32,
  seed = os.time(),
}
local outcome, remove = runs.run(options)
local faults = runs.faults(outcome, options)
remove()
local message = "%d rows, ended %d times: %d requests, %d of them repeated"
print(message:format(options.rows, outcome.ended, outcome.requests, outcome.repeats))
for _, fault in ipairs(faults) do
  io.stderr:write(("%s (seed %d)\n"):format(fault, options.seed))
end
os.exit(#faults == 0 and 0 or 1)
