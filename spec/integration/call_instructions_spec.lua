-- How many instructions a call needs beside the same work by hand in the same run. A change that makes calls dearer
-- fails here. valgrind counts them, see bench/support/instructions.lua.

local TOLERANCE = 0.03
local TRIES = 3 -- a count differs by 1 % from run to run: Lua's hashes do, and the moments when answers arrive

-- On x86-64.
local RATIO = {
  ["client:call, no I/O"] = 3.57,
  ["client:screen, no I/O"] = 4.04,
  ["kya:risk, blocking"] = 1.7,
  ["screen_all, 64 in flight"] = 1.75,
}

describe("the instructions beside the same work by hand are as many as they were:", function()
  package.path = "bench/?.lua;" .. package.path
  local bed, instructions = require "bed", require "support.instructions"

  for _, pair in ipairs(instructions.PAIRS) do
    it(pair.way, function()
      local pipe = assert(io.popen "uname -m")
      local machine = pipe:read "*l"
      pipe:close()
      if machine ~= "x86_64" then
        pending "the ratios are for x86-64"
      end
      local found, wanted = {}, RATIO[pair.way]
      bed.serve(instructions.ANSWER, function(_, port)
        repeat
          found[#found + 1] = instructions.of(pair.way, port) / instructions.of(pair.hand, port)
          local off = math.abs(bed.median(found) / wanted - 1)
        until off <= TOLERANCE or #found == TRIES
      end)
      local message = ("%.3f times the work by hand; it was %.3f"):format(bed.median(found), wanted)
      assert.is_true(math.abs(bed.median(found) / wanted - 1) <= TOLERANCE, message)
    end)
  end
end)
