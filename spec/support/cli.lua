-- Runs the `riskscreen` command in this process, and keeps what it writes.

local cli = require "riskscreen.cli"

local M = {}

local function buffer()
  local stream = { pieces = {} }
  function stream:write(...)
    for _, piece in ipairs { ... } do
      self.pieces[#self.pieces + 1] = tostring(piece)
    end
    return self
  end
  function stream:flush() end
  function stream:text()
    return table.concat(self.pieces)
  end
  return stream
end

---Runs the command.
---@param arguments string[]
---@param world? { env?: table<string, string>, columns?: integer, input?: table } columns: of a terminal
---@return integer status
---@return string out
---@return string err
function M.run(arguments, world)
  world = world or {}
  local out, err = buffer(), buffer()
  local status = cli.main(arguments, {
    out = out,
    err = err,
    input = world.input,
    getenv = function(name)
      return (world.env or {})[name]
    end,
    columns = function()
      return world.columns
    end,
  })
  return status, out:text(), err:text()
end

return M
