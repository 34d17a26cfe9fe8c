-- Reads the items of a list, a function or an open file. It reads one at a time, so that a long input needs no memory.

local errors = require "riskscreen.errors"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local function of_list(list)
  local count = tables.sequence_length(list)
  if not count then
    return nil, "must be a list: positions 1, 2, 3 … without a gap and no other keys"
  end
  local index = 0
  local function read()
    index = index + 1
    if index <= count and list[count] == nil then
      return nil, "the list became shorter while it was read" -- items that have moved would be left out
    end
    return list[index]
  end
  return read, count
end

-- The reader of each open file that was not read to its end. It holds the bytes that were read ahead.
local unread = setmetatable({}, { __mode = "k" })

local M = {}

---The reader of an open file. That of an earlier run goes on unless the program has moved the file's position.
---@param handle file*
---@param open fun(): { file: riskscreen.rows.File }|nil, any
---@return { file: riskscreen.rows.File }|nil
---@return any err
function M.of_handle(handle, open)
  for other in pairs(unread) do
    unread[other] = io.type(other) == "file" and unread[other] or nil
  end
  local reader, err = unread[handle], nil
  local file = reader and reader.file
  if not reader or handle:seek() ~= (file.start and file.start + file.read_bytes) then
    reader, err = open()
    unread[handle] = reader
  end
  return reader, err
end

---Forgets the reader of a file that was read to its end.
---@param handle file*
function M.finish(handle)
  unread[handle] = nil
end

-- The lines of a file that are not blank. One that cannot be read to its end fails: a list must not end early silently.
local function of_file(handle)
  local rows = require "riskscreen.rows"
  local reader = M.of_handle(handle, function()
    local file = rows.file(handle)
    return { file = file, next_line = rows.records.lines(file.read, "bytes") }
  end)
  return function()
    local line, number, length
    repeat
      line, number, length = reader.next_line()
    until not line or line:find "%S"
    if line then
      line = line:sub(1, length)
      return number == 1 and line:gsub("^\239\187\191", "") or line -- without the mark of the byte order
    end
    M.finish(handle)
    return nil, number
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

---An iterator of the items of a list or a function. If the source fails it raises an error object. An open file has
---rows, and its lines are no items.
---@param source any
---@return fun(): any
function M.items(source)
  local read, fault = nil, "is an open file: give its path"
  if not io.type(source) then
    read, fault = M.reader(source)
  end
  return function()
    local item, problem = nil, "the source " .. tostring(fault)
    if read then
      item, problem = read()
    end
    if item == nil and problem ~= nil then
      local err = errors.new("invalid_argument", tostring(problem), { field = "source", sent = false })
      error(errors.is(problem) and problem or err, 0)
    end
    return item
  end
end

return M
