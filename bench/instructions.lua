-- The instructions of lookups on Lua 5.4 beside the same work by hand (support/ways.lua), and of requests at the gate
-- beside a gate by hand (nginx/instructions.lua). Unlike times, they repeat on a busy machine. Needs valgrind, nginx
-- and LuaSocket. Usage: ./dev bench instructions

package.path = (arg[0]:match("^(.*)/[^/]*$") or ".") .. "/?.lua;" .. package.path

local bed = require("bed")
local gates = require("nginx.instructions")
local instructions = require("support.instructions")
local reports = require("support.report")

local rounds = reports.rounds(3, 1)

local GOALS = {
  ["client:call, no I/O"] = 2.65,
  ["client:screen, no I/O"] = 3.05,
  ["kya:risk, blocking"] = 1.45,
  ["screen_all, 64 in flight"] = 1.3,
}

local GATE_GOALS = {
  ["a new address"] = 2.4,
  ["an address in the shared dict"] = 2.4,
  ["an address in the worker's memory"] = 1.55,
}

local report = reports.new({
  name = "instructions",
  title = "Instructions of a lookup",
  method = ("medians of %d runs under valgrind, Lua 5.4"):format(rounds),
  runtime = "Lua 5.4",
})

bed.serve(instructions.ANSWER, function(_, port)
  local function of(way)
    local list = {}
    for round = 1, rounds do
      list[round] = instructions.of(way, port)
    end
    return bed.median(list) / 1e3
  end
  local rows = {}
  for _, pair in ipairs(instructions.PAIRS) do
    local hand, own = of(pair.hand), of(pair.way)
    rows[#rows + 1] = { what = pair.hand, group = pair.way, value = hand }
    rows[#rows + 1] = { what = pair.way, group = pair.way, value = own, ours = true }
    local goal = GOALS[pair.way]
    if goal then
      report:goal({ what = pair.way .. " / by hand, instructions", value = own / hand, at_most = goal })
    end
  end
  report:chart({ title = "Instructions of a lookup", unit = "thousand", rows = rows })
end)

local found = {}
for round = 1, rounds do
  found[round] = gates.count()
end
local rows = {}
for index, way in ipairs(gates.WAYS) do
  local hand, gate, ratios = {}, {}, {}
  for round, counts in ipairs(found) do
    hand[round], gate[round] = counts[index].hand / 1e3, counts[index].gate / 1e3
    ratios[round] = gate[round] / hand[round]
  end
  rows[#rows + 1] = { what = "by hand", group = way, value = bed.median(hand) }
  rows[#rows + 1] = { what = "the gate", group = way, value = bed.median(gate), ours = true }
  local what = "the gate, " .. way .. " / by hand, instructions"
  report:goal({ what = what, value = bed.median(ratios), at_most = GATE_GOALS[way] })
end
report:chart({ title = "Instructions of a request in nginx, without the compiler", unit = "thousand", rows = rows })
report:finish()
