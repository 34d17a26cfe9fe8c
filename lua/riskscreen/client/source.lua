-- Reads the items of a list, a function or an open file. It reads one at a time, so that a long input needs no memory.

local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

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

-- A file that cannot be read to its end raises: a list must not end early silently.
local function of_file(file)
  return function()
    while true do
      local line, problem = file:read "*l"
      if not line then
        if problem then
          error("the file cannot be read: " .. tostring(problem), 0)
        end
        return nil
      end
      line = line:gsub("\r$", "")
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

local M = {}

---A function that returns the next item of a source, and nil at the end.
---@param source any[]|(fun(): any)|file* of a file the lines, without those that are blank
---@return (fun(): any)|nil read
---@return integer|string|nil total the number of items if it is known; without `read`, the fault of the source
function M.reader(source)
  local kind = io.type(source)
  if type(source) == "function" then
    return source
  elseif kind == "file" then
    return of_file(source)
  elseif kind then
    return nil, "is a file that is closed"
  elseif is_callable(source) then
    return function()
      return source()
    end
  elseif type(source) == "table" then
    return of_list(source)
  end
  return nil, "must be a list, a function or an open file (got " .. text.kind(source) .. ")"
end

return M
