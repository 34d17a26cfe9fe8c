-- Runs the `riskscreen` command in this process, and keeps its output.

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
  function stream:flush()
    return self
  end
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
    variables = function()
      local names = {}
      for name in pairs(world.env or {}) do
        names[#names + 1] = name
      end
      return names
    end,
    columns = function()
      return world.columns
    end,
  })
  return status, out:text(), err:text()
end

---The command as a process: a line of the shell.
M.command = (os.getenv "RISKSCREEN_LUA" or "lua5.4") .. " bin/riskscreen.in"

---A sandbox in a process of its own, which keeps the target of every request.
---@class riskscreen.spec.CommandSandbox
---@field environment string for the shell, in front of a command
---@field targets fun(): string[]
---@field log string the path of the file that has them
---@field stop string for the shell: ends the sandbox
---@field start fun() starts it again
---@field close fun()

---@param delay? number seconds before each answer
---@return riskscreen.spec.CommandSandbox
function M.sandbox(delay)
  local log = os.tmpname()
  local line = "%s spec/support/logging_sandbox.lua %s %s %s & echo $!; wait"
  local pipe, process, url
  local function start()
    local port = url and url:match "%d+$" or "0"
    pipe = assert(io.popen(line:format(os.getenv "RISKSCREEN_LUA" or "lua5.4", log, port, delay or "")))
    process = pipe:read "*l"
    url = assert(pipe:read "*l")
  end
  start()
  return {
    log = log,
    stop = "kill -KILL " .. process,
    start = function()
      pipe:close()
      start()
    end,
    environment = ("XDG_CONFIG_HOME=/nonexistent RISKSCREEN_BASE_URL=%s RISKSCREEN_ACCESS_KEY=sandbox-key"):format(url),
    targets = function()
      local targets = {}
      for target in io.lines(log) do
        targets[#targets + 1] = target
      end
      return targets
    end,
    close = function()
      os.execute("kill " .. process)
      pipe:close()
      os.remove(log)
    end,
  }
end

---A directory that the test removes.
---@return string path
---@return fun() remove
function M.directory()
  local path = os.tmpname()
  os.remove(path)
  assert(os.execute("mkdir " .. path))
  return path, function()
    os.execute("rm -rf " .. path)
  end
end

return M
