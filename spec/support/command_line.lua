-- Commands as a person types them, with their output and exit status.

local SECONDS = 20 -- until a command that hangs is ended

local M = {}

local function read_rest(pipe)
  local output, status = pipe:read("*a"):match "^(.*)exit (%d+)\n$"
  pipe:close()
  return output, tonumber(status)
end

---Runs a command to its end.
---@param command string
---@return string output of both streams
---@return integer status
function M.run(command)
  local line = "timeout %d env -u LUA_INIT %s 2>&1; echo exit $?"
  return read_rest(assert(io.popen(line:format(SECONDS, command))))
end

---Starts a command, reads the lines up to one that matches a pattern, and interrupts the whole process group, as Ctrl-C
---does.
---@param command string
---@param pattern string
---@return string output after that line
---@return integer status
function M.interrupt(command, pattern)
  local line = "timeout %d sh -c 'echo $$; exec setsid env -u LUA_INIT %s 2>&1'; echo exit $?"
  local pipe = assert(io.popen(line:format(SECONDS, command)))
  local group, read = pipe:read "*n", {}
  repeat
    read[#read + 1] = pipe:read "*l"
    if not read[#read] or read[#read]:find "^exit %d" then
      error("ended before it was ready:\n" .. table.concat(read, "\n"), 2)
    end
  until read[#read]:find(pattern)
  os.execute(("env kill -INT -- -%d"):format(group))
  return read_rest(pipe)
end

return M
