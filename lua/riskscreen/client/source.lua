-- Reads the items of a list, a function or an open file. It reads one at a time, so that a long input needs no memory.

local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes of a file that are read at a time
local HAS_WHOLE_LINES = _VERSION ~= "Lua 5.1" -- LuaJIT has the same version

local function of_list(list)
  local count = tables.sequence_length(list)
  if not count then
    return nil, "must be a list: positions 1, 2, 3 … without a gap and no other keys"
  end
  local index = 0
  return function()
    index = index + 1
    return list[index]
  end, count
end

-- Of each file that was read in pieces: the piece, the position in it, and the file's position behind it. The next run
-- over the file goes on there.
local unread = setmetatable({}, { __mode = "k" })

local function state_of(file, position)
  local state = unread[file]
  if not state or state.position ~= position then
    state = { buffer = "", at = 1 }
    unread[file] = state
  end
  return state
end

local function read(file, what)
  local content, problem = file:read(what)
  return content, problem and "the file cannot be read: " .. tostring(problem)
end

-- Returns a function that reads a line with its end, or nil at the end of the file. Lua 5.1 and LuaJIT lose the rest of
-- a line after a NUL byte, and its end. They read pieces instead, and a pipe byte by byte, because it may wait.
local function line_reader(file)
  if HAS_WHOLE_LINES then
    return function()
      return read(file, "*L")
    end
  end
  local position = file:seek()
  local state = state_of(file, position)
  return function()
    local buffer, at = state.buffer, state.at
    local line_end = buffer:find("\n", at, true)
    if line_end then
      state.at = line_end + 1
      return buffer:sub(at, line_end)
    end
    local pieces = { buffer:sub(at) }
    state.buffer, state.at = "", 1
    while not line_end do
      local piece, problem = read(file, position and PIECE or 1)
      if problem then
        return nil, problem
      elseif not piece then
        break
      end
      line_end = piece:find("\n", 1, true)
      pieces[#pieces + 1] = line_end and piece:sub(1, line_end) or piece
      state.buffer, state.at = line_end and piece or "", (line_end or 0) + 1
    end
    state.position = position and file:seek()
    local line = table.concat(pieces)
    return line ~= "" and line or nil
  end
end

-- Closes a pipe, which tells how its program has ended. A program that failed may have written a part of the list.
local function close_pipe(file)
  local ok, how, code = file:close()
  -- Lua 5.1 has no exit status, and inside nginx the program's process was awaited already.
  if not ok and (how == "exit" or how == "signal") then
    return ("the program behind the pipe failed (%s %s)"):format(tostring(how), tostring(code))
  end
end

-- The lines of a file. One that cannot be read to its end fails: a list must not end early silently.
local function of_file(file)
  local read_line, is_first = line_reader(file), true
  local is_pipe = file ~= io.stdin and not file:seek()
  return function()
    while true do
      local line, problem = read_line()
      if not line then
        return nil, problem or (is_pipe and close_pipe(file) or nil)
      end
      if is_first then
        line, is_first = line:gsub("^\239\187\191", ""), false -- a byte order mark
      end
      line = line:gsub("\r?\n$", "")
      if line:find "%S" then
        return line
      end
    end
  end
end

local function is_callable(value)
  local meta = getmetatable(value)
  return type(meta) == "table" and type(meta.__call) == "function"
end

-- An iterator that ends with nil and an error has failed: a list must not end early silently.
local function of_function(source)
  return function()
    local item, problem = source()
    if item == nil and problem ~= nil then
      return nil, type(problem) == "string" and "the source failed: " .. problem or problem
    end
    return item
  end
end

local M = {}

---A function that returns the next item of a source, or nil at the end. If the source fails it returns nil and a
---failure.
---@param source any[]|(fun(): any, any)|file* of a file the lines that are not blank; a pipe is closed at its end
---@return (fun(): any)|nil read
---@return integer|string|nil total the number of items if it is known; without `read`, the fault of the source
function M.reader(source)
  local kind = io.type(source)
  if type(source) == "function" or (not kind and is_callable(source)) then
    return of_function(source)
  elseif kind == "file" then
    return of_file(source)
  elseif kind then
    return nil, "is a file that is closed"
  elseif type(source) == "table" then
    return of_list(source)
  end
  return nil, "must be a list, a function or an open file (got " .. text.kind(source) .. ")"
end

return M
