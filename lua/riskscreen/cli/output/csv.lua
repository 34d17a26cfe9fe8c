-- Lines of CSV by RFC 4180. A cell that a spreadsheet would take for a formula gets an apostrophe in front.

local M = {}

---One cell.
---@param value any
---@return string
function M.cell(value)
  if type(value) ~= "string" then
    return value == nil and "" or tostring(value)
  elseif value:find "^[=+%-@\t\r]" then
    value = "'" .. value
  end
  if value:find '[",\r\n]' or value:find "^%s" or value:find "%s$" then
    value = '"' .. value:gsub('"', '""') .. '"'
  end
  return value
end

---One line with its end.
---@param cells any[]
---@param count integer
---@return string
function M.line(cells, count)
  local written = {}
  for index = 1, count do
    written[index] = M.cell(cells[index])
  end
  return table.concat(written, ",") .. "\r\n"
end

return M
