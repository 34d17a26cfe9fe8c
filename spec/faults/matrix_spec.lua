-- The fault matrix: every fault with every class of operation in every runtime.

local busted = require "busted"
local cell = require "spec.faults.cell"
local classes = require "spec.faults.classes"
local expectation = require "spec.faults.expectation"
local fault_server = require "spec.support.fault_server"
local faults = require "spec.faults.faults"
local leftovers = require "spec.support.leftovers"
local runtimes = require "spec.faults.runtimes"

local assert, describe, it, setup, teardown = busted.assert, busted.describe, busted.it, busted.setup, busted.teardown

-- The limit of idle connections of a loop: the sum of `concurrency` of its clients.
local CONNECTIONS_KEPT = 256

-- The descriptors before the first fault. If each cell lost one, they would soon be more than the loop keeps.
local first = leftovers.count()

teardown(fault_server.stop_tls)

for _, runtime in ipairs(runtimes) do
  for _, fault in ipairs(faults) do
    describe(("%s in %s:"):format(fault.name, runtime.name), function()
      local outcomes, before, after = {}, nil, nil

      setup(function()
        local cells = {}
        for _, class in ipairs(classes) do
          cells[#cells + 1] = cell.applies(fault, class) and class or nil
        end
        before = leftovers.count()
        runtime.each(cells, function(class)
          outcomes[class] = cell.run(fault, class)
        end)
        after = leftovers.count()
      end)

      -- Each count collects all garbage, which takes longer the more is kept.
      teardown(function()
        outcomes = nil
      end)

      for _, class in ipairs(classes) do
        if cell.applies(fault, class) then
          local expected = cell.expected(fault, class)
          it(class.name .. expectation.summary(expected), function()
            expectation.check(expected, class, outcomes[class])
          end)
        end
      end

      it("leaves nothing behind but connections that may be used again", function()
        local kept = after.descriptors - first.descriptors
        before.descriptors, after.descriptors = nil, nil
        assert.same(before, after)
        assert.is_true(kept <= CONNECTIONS_KEPT, kept .. " descriptors more than at the beginning")
      end)
    end)
  end
end
