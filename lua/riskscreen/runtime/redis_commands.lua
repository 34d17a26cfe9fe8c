-- The bytes of commands to Redis, by its protocol RESP2. Pure.

local M = {}

---@param commands (string|integer)[][]
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
        argument = ("%.0f"):format(argument)
      end
      pieces[count + 1], pieces[count + 2], pieces[count + 3] = "$" .. #argument .. "\r\n", argument, "\r\n"
      count = count + 3
    end
  end
  return pieces
end

return M
