-- Screens every address of a CSV file and prints a table and a summary. A row is an address, a network, and anything.
-- The exit status is 1 if a row names no network, or if no address could be decided.
-- Asks the service that RISKSCREEN_BASE_URL and RISKSCREEN_ACCESS_KEY name, or the sandbox.

local USAGE = "usage: lua examples/screen_list.lua [FILE]\n"

local riskscreen = require "riskscreen"

if arg[1] == "--help" or arg[1] == "-h" then
  io.write(USAGE)
  os.exit(0)
elseif #arg > 1 or (arg[1] or ""):find "^%-" then
  io.stderr:write(USAGE)
  os.exit(2)
end

-- The rows of the file, and the lines that have no network.
local function read_rows(path)
  local file, problem = io.open(path)
  if not file then
    io.stderr:write("screen_list: ", problem, "\n")
    os.exit(2)
  end
  local rows, incomplete, number = {}, {}, 0
  for line in file:lines() do
    number = number + 1
    local address, network = line:match "^%s*([^,%s]+)%s*,?%s*([^,%s]*)"
    if address and network == "" then
      incomplete[#incomplete + 1] = number
    elseif address and address ~= "address" then
      rows[#rows + 1] = { address = address, network = network }
    end
  end
  file:close()
  return rows, incomplete
end

local function progress(done, total)
  if done % 20 == 0 or done == total then
    io.stderr:write(("\rscreened %d of %d"):format(done, total), done == total and "\n" or "")
  end
end

local function count(counts, key)
  counts[key] = (counts[key] or 0) + 1
end

local function print_counts(title, counts)
  local keys = {}
  for key in pairs(counts) do
    keys[#keys + 1] = key
  end
  table.sort(keys, function(a, b)
    return counts[a] > counts[b] or (counts[a] == counts[b] and a < b)
  end)
  print("\n" .. title)
  for _, key in ipairs(keys) do
    print(("  %-22s %5d"):format(key, counts[key]))
  end
end

local base_url = os.getenv "RISKSCREEN_BASE_URL"
local client = base_url and riskscreen.new { base_url = base_url, access_key = os.getenv "RISKSCREEN_ACCESS_KEY" }
  or riskscreen.sandbox.client {}
local rows, incomplete = read_rows(arg[1] or "examples/addresses.csv")
local decisions, verdicts, types = {}, {}, {}

for decision in client:screen_all { source = rows } do
  decisions[#decisions + 1] = decision
  progress(#decisions, #rows)
end

print(("%-64s %-10s %-8s %s"):format("address", "network", "verdict", "why"))
for _, decision in ipairs(decisions) do
  count(verdicts, decision.action)
  for _, risk in ipairs(decision.record and decision.record.risks or {}) do
    count(types, risk.riskType or "(no type)")
  end
  local why = decision.reasons[1].message
  print(("%-64s %-10s %-8s %s"):format(decision.address, decision.network, decision.action, why))
end
print_counts("by verdict", verdicts)
print_counts("by risk type", types)

for _, number in ipairs(incomplete) do
  io.stderr:write(("line %d: no network; it was not screened\n"):format(number))
end
local decided = #decisions - (verdicts.unknown or 0)
os.exit(decided > 0 and not incomplete[1] and 0 or 1)
