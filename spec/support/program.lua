-- A Lua program beside the test, whose output the test reads and which the test may kill.

---@class Program
---@field pid integer
---@field private pipe file*
local Program = {}
Program.__index = Program

---The next line that the program prints, or nil when it has ended.
---@return string|nil
function Program:read()
  return self.pipe:read "*l"
end

---@return fun(): string|nil
function Program:lines()
  return self.pipe:lines()
end

---Kills the program at once, and waits until it has ended.
---@return string[] rest the lines that the program had still printed
function Program:kill()
  os.execute("kill -KILL " .. self.pid)
  local rest = {}
  for line in self.pipe:lines() do
    rest[#rest + 1] = line
  end
  self.pipe:close()
  return rest
end

---Waits until the program has ended.
---@return any ok
---@return string|nil how
---@return integer|nil status
function Program:close()
  return self.pipe:close()
end

local M = {}

local function quote(text)
  return "'" .. text:gsub("'", "'\\''") .. "'"
end

---Starts spec/support/NAME.lua with the interpreter of the tests.
---@param name string
---@param arguments string[]
---@param options? { before?: string } shell commands before the program
---@return Program
function M.start(name, arguments, options)
  local quoted = {}
  for index, argument in ipairs(arguments) do
    quoted[index] = quote(argument)
  end
  local lua = os.getenv "RISKSCREEN_LUA" or "lua5.4"
  local before = options and options.before and options.before .. "; " or ""
  local command = ("%secho $$; exec %s spec/support/%s.lua %s"):format(before, lua, name, table.concat(quoted, " "))
  local pipe = assert(io.popen(command, "r"))
  return setmetatable({ pid = tonumber(pipe:read "*l"), pipe = pipe }, Program)
end

return M
