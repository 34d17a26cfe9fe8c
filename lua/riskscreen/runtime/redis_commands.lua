-- The bytes of commands to Redis, by its protocol RESP2. Pure.

local text = require "riskscreen.util.text"

local M = {}

-- Redis has no other numbers than these texts. "%d" shows no fraction and no exponent.
local function number_text(value)
  local is_whole = value == math.floor(value) and math.abs(value) <= 2 ^ 53
  return is_whole and ("%d"):format(value) or text.number("%.17g", value)
end

---@param commands (string|number)[][]
---@return string[] pieces of one text
function M.pieces(commands)
  local pieces, count = {}, 0
  for index = 1, #commands do
    local arguments = commands[index]
    count = count + 1
    pieces[count] = ("*%d\r\n"):format(#arguments)
    for position = 1, #arguments do
      local argument = arguments[position]
      if type(argument) == "number" then
        argument = number_text(argument)
      end
      pieces[count + 1], pieces[count + 2], pieces[count + 3] = "$" .. #argument .. "\r\n", argument, "\r\n"
      count = count + 3
    end
  end
  return pieces
end

return M
