-- The rows of a text that comes in pieces: its lines, and the fields of CSV (RFC 4180). It takes linear time and holds
-- one row. Text that two programs could read in two ways is a fault.
local text = require "riskscreen.util.text"

local MIB = 1024 * 1024
local QUOTE_WITHIN = 'a quote stands within a field: such a field is written "…""…"'
local OTHER_END = "its end is not that of the first line"
local NOT_UTF8 = "it has bytes that are not UTF-8: save the file as UTF-8, or give its encoding: --encoding latin1"

local M = {
  LONGEST = 4 * MIB, -- bytes of a row
  LONGEST_OWN = 32 * MIB, -- of a row that the library has written: in JSON and CSV its texts are longer
}

-- Characters of ISO 8859-1 as UTF-8.
local latin1 = {}
for byte = 128, 255 do
  latin1[string.char(byte)] = string.char(192 + math.floor(byte / 64), 128 + byte % 64)
end

---A function that returns the next line with its end, its number, and its length without the end. Lines end with
---LF or CRLF, or all of them with CR. At the end it returns nil. Where the text cannot be read on, it returns nil, the
---reason and perhaps the line.
---@param read riskscreen.rows.Read
---@param encoding? "utf-8"|"latin1"|"bytes"
---@param longest? integer bytes
---@return fun(): string|nil, integer|string|nil, integer|nil
function M.lines(read, encoding, longest)
  local buffer, from, searched, number, ending, at_end = "", 1, 1, 0, nil, false
  longest = longest or M.LONGEST
  -- The end of the first line tells the end of all lines. A CR at the end of a piece may be a half of CRLF.
  local function find_ending()
    local lf, cr = buffer:find("\n", searched, true), buffer:find("\r", searched, true)
    if cr and (not lf or cr < lf - 1) then
      if cr == #buffer and not at_end then
        return nil
      end
      return "\r"
    end
    return lf and "\n" or nil
  end
  local function take(last, after)
    local line = buffer:sub(from, after - 1)
    local length = last - from + 1
    from, searched, number = after, after, number + 1
    if number == 1 and encoding ~= "bytes" and line:sub(1, 3) == "\239\187\191" then
      line, length = line:sub(4), length - 3
    end
    if encoding == "latin1" then
      local before = #line
      line = line:gsub("[\128-\255]", latin1)
      length = length + #line - before
    elseif encoding ~= "bytes" and line:find "[\128-\255]" and not text.is_utf8(line) then
      return nil, NOT_UTF8, number
    end
    return line, number, length
  end
  return function()
    while true do
      ending = ending or find_ending()
      local at = ending and buffer:find(ending, searched, true)
      if at then
        local is_pair = ending == "\n" and at > from and buffer:byte(at - 1) == 13
        return take(is_pair and at - 2 or at - 1, at + 1)
      elseif #buffer - from >= longest then
        return nil, ("the line is longer than %d bytes"):format(longest), number + 1
      elseif at_end then
        if from > #buffer then
          return nil
        end
        return take(#buffer, #buffer + 1)
      end
      local pieces, size = { buffer:sub(from) }, #buffer - from
      local piece, problem
      searched = math.max(from, #buffer) - from + 1
      repeat
        piece, problem = read()
        pieces[#pieces + 1], size = piece, size + #(piece or "")
      until not (piece and ending) or size >= longest or piece:find(ending, 1, true)
      if problem then
        return nil, problem
      end
      at_end = not piece
      buffer, from = table.concat(pieces), 1
    end
  end
end

local function count_of(line)
  local _, count = line:gsub('"', "")
  return count
end

---A function that returns the next row that is not blank, the number of its first line, and whether it has quotes. The
---fourth result is true if the row is one line without an end: a program may have been killed while it wrote it. The
---fifth is true if the row has no end and the first one has CRLF. At the end it returns nil. At a fault it returns nil,
---the fault, the line and the fourth result.
---@param next_line fun(): string|nil, integer|string|nil, integer|nil of `lines`
---@param longest? integer bytes
---@return fun(): string|nil, integer|string|nil, boolean|integer|nil, boolean|nil, boolean|nil
function M.rows(next_line, longest)
  local first_end
  longest = longest or M.LONGEST
  return function()
    local line, number, length
    repeat
      line, number, length = next_line()
    until not line or line:find "%S"
    if not line then
      return nil, number, length
    end
    -- The lines that a quote holds together.
    local parts, size, first, is_open = { line }, #line, number, #line == length
    local quotes = line:find('"', 1, true) and count_of(line) or 0
    while quotes % 2 == 1 do
      local problem, at
      line, problem, length = next_line()
      at = length
      if not line and problem then
        return nil, problem, at or first
      elseif not line or size > longest then
        return nil, "a quote has no end", first, is_open
      end
      parts[#parts + 1], size, quotes = line, size + #line, quotes + count_of(line)
      is_open = false
    end
    line = parts[#parts]
    local content = line:sub(1, length)
    first_end = first_end or line:sub(length + 1)
    if quotes == 0 and content:find "[\r\n]" then
      return nil, OTHER_END, first, is_open
    end
    parts[#parts] = content
    return table.concat(parts), first, quotes > 0, is_open, first_end == "\r\n" and content == line
  end
end

---Puts the fields of a row into a table, and returns their count; or nil and the fault.
---@param row string
---@param separator string a pattern of one character
---@param fields string[] those behind the count are of an earlier row
---@return integer|nil count
---@return string|nil fault
function M.split(row, separator, fields)
  local count, from = 0, 1
  while true do
    local field, after
    if row:byte(from) == 34 then
      local close = from
      repeat
        close = row:find('"', close + 1, true)
        local is_pair = close and row:byte(close + 1) == 34
        close = is_pair and close + 1 or close
      until not is_pair
      if not close then
        return nil, "a quote has no end"
      end
      field, after = row:sub(from + 1, close - 1):gsub('""', '"'), close + 1
      if after <= #row and row:find(separator, after) ~= after then
        return nil, "text follows a closing quote"
      end
    else
      after = row:find(separator, from) or #row + 1
      field = row:sub(from, after - 1)
      local other = field:match '["\r\n]'
      if other then
        return nil, other == '"' and QUOTE_WITHIN or OTHER_END
      end
    end
    count = count + 1
    fields[count] = field
    if after > #row then
      return count
    end
    from = after + 1
  end
end

return M
