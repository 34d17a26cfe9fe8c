-- A file of results that goes on after any end of the process. `screen --file` knows from its state how far the file
-- counts, and `queue results` from the rows.
local core = require "riskscreen.core"
local records = require("riskscreen.rows").records
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes

---@class riskscreen.cli.Results
---@field path? string none of a stream
---@field position integer bytes that count
---@field private out table
---@field private chain string of the digests of its lines up to the position
local Results = {}
Results.__index = Results

local M = {}

---Results that go to a stream.
---@param out table
---@return riskscreen.cli.Results
function M.stream(out)
  return setmetatable({ out = out, position = 0, chain = "" }, Results)
end

---Opens a file of results.
---@param path string
---@param mode "rb"|"r+b"|"w+b"|"ab"
---@return riskscreen.cli.Results
function M.open(path, mode)
  local out, problem = io.open(path, mode)
  status.ensure_written(out, problem)
  return setmetatable({ out = out, path = path, position = 0, chain = "" }, Results)
end

local function take(self, lines)
  for line in lines:gmatch "[^\n]*\n" do
    self.position, self.chain = self.position + #line, core.sha256(self.chain .. line)
  end
end

---Writes rows at the position.
---@param rows string
function Results:write(rows)
  status.ensure_written(self.out:write(rows))
  take(self, rows)
end

---The digest of what counts.
---@return string
function Results:digest()
  return text.hex(self.chain)
end

---Forces what was written to the disk.
function Results:sync()
  status.ensure_written((self.path and system.sync or self.out.flush)(self.out))
end

local function lines_of(self)
  self.out:seek "set"
  return records.lines(function()
    return self.out:read(PIECE)
  end, "bytes", records.LONGEST_OWN)
end

---The digest of the file up to a position; nil where no line ends there.
---@param position integer
---@return string|nil
function Results:digest_to(position)
  self.position, self.chain = 0, ""
  local next_line = lines_of(self)
  local line
  repeat
    line = self.position < position and next_line()
    take(self, line or "")
  until not line
  return self.position == position and self:digest() or nil
end

---Removes what stands behind a position, and goes on there.
---@param position integer
function Results:cut(position)
  if self.position ~= position then
    self:digest_to(position)
  end
  status.ensure_written(system.truncate(self.out, position))
  self.out:seek("set", position)
end

---A part of the file.
---@param from integer
---@param count? integer bytes; by default to the end
---@return string
function Results:part(from, count)
  self.out:seek("set", from)
  return self.out:read(count or "*a") or ""
end

---Takes the lock of the file, until it is closed.
---@return boolean|nil
function Results:lock()
  return system.lock(self.out)
end

---The rows of CSV from the beginning on, with the header. Each has its text without the end, its cells, the position
---behind it, and whether it lacks its end. The iterator ends before a row that is not whole.
---@return fun(): string|nil, string[], integer, boolean
function Results:rows()
  local position, lacks_end, cells, next_line = 0, false, {}, lines_of(self)
  local next_row = records.rows(function()
    local line, number, length = next_line()
    lacks_end = line ~= nil and line:sub(-1) ~= "\n"
    if lacks_end then
      line = line:gsub("\r$", "")
    end
    position = position + #(line or "")
    return line, number, lacks_end and #line or length
  end, records.LONGEST_OWN)
  return function()
    local row = next_row()
    local count = row and records.split(row, ",", cells)
    for index = count and count + 1 or 1, #cells do
      cells[index] = nil
    end
    return count and row, cells, position, lacks_end
  end
end

---The lines of the file.
---@return fun(): string|nil
function Results:lines()
  return self.out:lines()
end

function Results:close()
  self.out:close()
end

return M
