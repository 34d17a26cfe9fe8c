-- The runtimes in which the fault matrix is tried. Each runs `run` for every cell, side by side where it can.

local native = require "riskscreen.runtime.native"

---@class riskscreen.spec.Runtime
---@field name string
---@field each fun(cells: table[], run: fun(cell: table))

---@type riskscreen.spec.Runtime[]
return {
  {
    name = "a blocking call",
    each = function(cells, run)
      for _, cell in ipairs(cells) do
        run(cell)
      end
    end,
  },
  {
    name = "a task",
    each = function(cells, run)
      local bodies = {}
      for i, cell in ipairs(cells) do
        bodies[i] = function()
          run(cell)
        end
      end
      native.tasks.gather(bodies)
    end,
  },
}
