-- How many instructions a request at the gate needs beside a gate by hand in the same run. A change that makes hits or
-- misses dearer fails here. valgrind counts them, see bench/nginx/instructions.lua.

local TOLERANCE = 0.03

-- On x86-64, in the order of WAYS. A ratio differs by half a per cent from run to run.
local RATIOS = { 2.32, 2.08, 1.49 }

describe("the instructions of a request at the gate beside a gate by hand are as many as they were:", function()
  package.path = "bench/?.lua;" .. package.path
  local instructions = require "nginx.instructions"
  local counts

  setup(function()
    local pipe = assert(io.popen "uname -m")
    local is_known = pipe:read "*l" == "x86_64"
    pipe:close()
    counts = is_known and instructions.count()
  end)

  for index, way in ipairs(instructions.WAYS) do
    it(way, function()
      if not counts then
        pending "the ratios are for x86-64"
      end
      local found, wanted = counts[index].gate / counts[index].hand, RATIOS[index]
      local message = ("%.3f times the work by hand; it was %.3f"):format(found, wanted)
      assert.is_true(math.abs(found / wanted - 1) <= TOLERANCE, message)
    end)
  end
end)
