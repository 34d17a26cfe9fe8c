-- Screens every line of a file, many at a time, and shows the progress. Failed addresses get a second try.
-- A line is an address, or an address and a network with a comma between them. Further columns are ignored.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local USAGE = "usage: lua examples/bulk_screen.lua [FILE [CONCURRENCY]]\n"

local riskscreen = require "riskscreen"

if arg[1] == "--help" or arg[1] == "-h" then
  io.write(USAGE)
  os.exit(0)
elseif #arg > 2 or (arg[1] or ""):find "^%-" or (arg[2] and not tonumber(arg[2])) then
  io.stderr:write(USAGE)
  os.exit(2)
end

local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or riskscreen.sandbox.client {}

local path, concurrency = arg[1] or "examples/addresses.csv", tonumber(arg[2]) or 64
local file = assert(io.open(path))

-- Returns the next row. The file is read row by row, because it may be larger than the memory.
local function next_row()
  for line in file:lines() do
    local address, network = line:match "^([^,%s]+),?([^,%s]*)"
    if address and address ~= "address" then
      return { address = address, network = network ~= "" and network or nil }
    end
  end
end

local run = client:screen_all {
  source = next_row,
  network = "eth",
  concurrency = concurrency,
  ordered = false,
  include = { "entity" },
  on_progress = function(done, failed, rate)
    if done % 50 == 0 then
      io.stderr:write(("%d screened, %d failed, %.0f a second\n"):format(done, failed, rate))
    end
  end,
}

local counts, again = { allow = 0, review = 0, block = 0, unknown = 0 }, {}
for decision in run do
  counts[decision.action] = counts[decision.action] + 1
  if decision.error and decision.error.retryable then
    again[#again + 1] = decision.input
  end
end
file:close()

-- Screen the addresses again whose failure may have passed.
for decision in client:screen_all { source = again, network = "eth", concurrency = concurrency } do
  counts.unknown = counts.unknown - 1
  counts[decision.action] = counts[decision.action] + 1
end

print(("%d addresses screened, %d of them twice"):format(run:where().reported, #again))
for _, action in ipairs { "allow", "review", "block", "unknown" } do
  print(("%-8s %6d"):format(action, counts[action]))
end
