-- Reads CSV (RFC 4180), also as spreadsheets export it: with a byte order mark, and with semicolons or tabs. It holds
-- one row at a time.

local lines = require "riskscreen.util.lines"

local MAX_ROW = 1048576 -- bytes

local M = {}

-- The separator that a header uses most outside its quotes. A header of one column has none.
local function separator_of(header)
  local bare, best, most = header:gsub('"[^"]*"', ""), ",", 0
  for _, separator in ipairs { ",", ";", "\t" } do
    local _, count = bare:gsub(separator, "")
    if count > most then
      best, most = separator, count
    end
  end
  return best
end

local function split(line, separator)
  local fields, from = {}, 1
  while true do
    local at = line:find(separator, from, true)
    fields[#fields + 1] = line:sub(from, at and at - 1)
    if not at then
      return fields
    end
    from = at + 1
  end
end

-- The fields of a row with quotes, or nil and the fault.
local function split_quoted(row, separator)
  local fields, from = {}, 1
  while true do
    local field, after
    if row:sub(from, from) == '"' then
      local close = from
      repeat
        close = row:find('"', close + 1, true)
        local is_pair = close and row:sub(close + 1, close + 1) == '"'
        close = is_pair and close + 1 or close
      until not is_pair
      if not close then
        return nil, "a quote has no end"
      end
      field, after = row:sub(from + 1, close - 1):gsub('""', '"'), close + 1
      if after <= #row and row:sub(after, after) ~= separator then
        return nil, "text follows a closing quote"
      end
    else
      after = row:find(separator, from, true) or #row + 1
      field = row:sub(from, after - 1)
    end
    fields[#fields + 1] = field
    if after > #row then
      return fields
    end
    from = after + 1
  end
end

-- A row with the lines that its quotes hold together; the count of those lines.
local function read_row(next_line)
  local row, problem = next_line()
  local count = row and 1 or 0
  while row do
    local _, quotes = row:gsub('"', "")
    if quotes % 2 == 0 then
      break
    elseif #row > MAX_ROW then
      return nil, "a quote has no end", count
    end
    local line
    line, problem = next_line()
    if not line then
      return nil, problem or "a quote has no end", count
    end
    row, count = row .. "\n" .. line, count + 1
  end
  return row, problem, count
end

---A function that returns the next row, as a list of fields, and the line on which it begins. A row that is not CSV is
---`false`, its line and the fault. At the end, nil; where the text cannot be read on, nil and the reason.
---@param read fun(): string|nil, string|nil the next piece of the text; nil at its end, with a message where it fails
---@return fun(): string[]|false|nil, integer|string|nil, string|nil
function M.reader(read)
  local next_line, separator, next_number = lines.reader(read, MAX_ROW), nil, 1
  return function()
    while true do
      local row, problem, count = read_row(next_line)
      local number = next_number
      next_number = number + count
      if not row then
        if count > 0 then
          return false, number, problem
        end
        return nil, problem
      end
      row = row:gsub("\r$", "")
      if row ~= "" then
        separator = separator or separator_of(row)
        if not row:find('"', 1, true) then
          return split(row, separator), number
        end
        local fields, fault = split_quoted(row, separator)
        return fields or false, number, fault
      end
    end
  end
end

return M
