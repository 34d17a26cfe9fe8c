-- How many instructions a call needs beside the same work by hand in the same run. A change that makes calls dearer
-- fails here. valgrind counts them, see bench/support/instructions.lua. `./dev bench` has the ways with I/O: on a busy
-- machine answers come in other portions, which shifts their counts.

local TOLERANCE = 0.03

-- On x86-64. A count differs by up to 2 % from run to run, because Lua's hashes do. One that is off is counted again.
local RATIOS = {
  ["client:call, no I/O"] = 2.24,
  ["kya:risk, no I/O"] = 2.24,
  ["client:screen, no I/O"] = 2.7,
  ["screen_all, no I/O"] = 3.73,
}

describe("the instructions beside the same work by hand are as many as they were:", function()
  package.path = "bench/?.lua;" .. package.path
  local instructions = require "support.instructions"
  local by_hand

  -- The middle of three counts.
  local function middle(way)
    local counts = {}
    for index = 1, 3 do
      counts[index] = instructions.of(way, 1)
    end
    table.sort(counts)
    return counts[2]
  end

  setup(function()
    by_hand = instructions.of("by hand, no I/O", 1)
  end)

  for way, wanted in pairs(RATIOS) do
    it(way, function()
      local pipe = assert(io.popen "uname -m")
      local machine = pipe:read "*l"
      pipe:close()
      if machine ~= "x86_64" then
        pending "the ratios are for x86-64"
      end
      local found = instructions.of(way, 1) / by_hand
      if math.abs(found / wanted - 1) > TOLERANCE then
        found = middle(way) / middle "by hand, no I/O"
      end
      local message = ("%.3f times the work by hand; it was %.3f"):format(found, wanted)
      assert.is_true(math.abs(found / wanted - 1) <= TOLERANCE, message)
    end)
  end
end)
