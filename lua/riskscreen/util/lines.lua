-- The lines of a text that comes in pieces, as from a file. It holds one line and one piece at a time.

local M = {}

---A function that returns the next line without its "\n", and its number. A byte order mark before the first one is
---left out. At the end, nil; where the text cannot be read on, nil and the reason.
---@param read fun(): string|nil, string|nil the next piece; nil at the end, with a message where it fails
---@param longest integer bytes of a line
---@return fun(): string|nil, integer|string|nil
function M.reader(read, longest)
  local buffer, from, number = "", 1, 0
  -- Takes the line that ends at a position of the buffer.
  local function take(last, after)
    local line = buffer:sub(from, last)
    from, number = after, number + 1
    if number == 1 then
      line = line:gsub("^\239\187\191", "")
    end
    return line, number
  end
  return function()
    while true do
      local at = buffer:find("\n", from, true)
      if at then
        return take(at - 1, at + 1)
      elseif #buffer - from > longest then
        return nil, ("line %d is longer than %d bytes"):format(number + 1, longest)
      end
      local piece, problem = read()
      if problem then
        return nil, problem
      elseif piece then
        buffer, from = buffer:sub(from) .. piece, 1
      elseif from > #buffer then
        return nil
      else
        return take(#buffer, #buffer + 1)
      end
    end
  end
end

return M
