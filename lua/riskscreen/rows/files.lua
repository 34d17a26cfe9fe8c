-- The bytes of a file of rows, in pieces: of a path, an open file or a pipe, plain or gzip. The first bytes tell its
-- kind, and not its name.
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local optional = require "riskscreen.util.optional"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes that are read at a time
local CHANGED = "it was changed while it was read"
local NO_ZLIB = "reading .gz needs lua-zlib: apt install lua-zlib, or luarocks install lua-zlib"
local HAS_WHOLE_LINES = _VERSION ~= "Lua 5.1" -- LuaJIT has the same version; both lose what follows a NUL byte

---@alias riskscreen.rows.Read fun(): string|nil, string|nil the next piece; nil at the end, with a message at a fault

---@class riskscreen.rows.File
---@field name string for messages
---@field size? integer bytes, where they are known
---@field read_bytes integer so far
---@field beginning string its first bytes, as they are in the file
---@field kind "text"|"json"|"json_array"|"xml"|"compiled"
---@field refusal? string why a file of this kind has no rows
---@field read riskscreen.rows.Read its pieces, inflated
---@field is_whole boolean it can be read twice
---@field change_fault fun(): string|nil the fault of a file that was changed since its opening
---@field rewind fun() begins to read it again
---@field digest fun(): string of all its bytes, if it is whole; it raises what refuses the file
---@field close fun()

local M = {}

-- The pieces of a gzip stream, which may consist of several members.
local function inflated(read)
  local zlib = optional "zlib"
  local stream, given, rest = nil, 0, ""
  return function()
    while zlib do
      local piece = rest
      rest = ""
      if piece == "" then
        local problem
        piece, problem = read()
        if not piece then
          return nil, problem or (stream and "the gzip stream ends early: the file is not complete") or nil
        end
      end
      if not stream then
        stream, given = zlib.inflate(), 0
      end
      local ok, output, is_end, taken = pcall(stream, piece)
      if not ok then
        return nil, "the file is not gzip, or it is damaged"
      end
      given = given + #piece
      if is_end then
        stream, rest = nil, piece:sub(#piece - (given - taken) + 1)
      end
      if output ~= "" then
        return output
      end
    end
    return nil, NO_ZLIB
  end
end

-- Closes a pipe, which tells how its program has ended. A program that failed may have written a part of the rows.
local function close_pipe(file)
  local ok, how, code = file:close()
  -- Lua 5.1 has no exit status, and inside nginx the program's process was awaited already.
  if not ok and (how == "exit" or how == "signal") then
    return ("the program behind the pipe failed (%s %s)"):format(tostring(how), tostring(code))
  end
end

-- The next line of a pipe, with its end; or a part of a long one.
local function read_line(handle)
  if HAS_WHOLE_LINES then
    return handle:read "*L"
  end
  local bytes, byte, problem = {}
  repeat
    byte, problem = handle:read(1)
    bytes[#bytes + 1] = byte
  until not byte or byte == "\n" or #bytes == PIECE
  return bytes[1] and table.concat(bytes), problem
end

-- Notes the content of an open file. Returns a function that gives the fault of another content. Other programs may add
-- to a file that may grow.
local function note_content(handle, may_grow)
  local size, version = files.version(handle)
  local fault
  return function()
    local new_size, new_version = files.version(handle) -- none of a pipe, and of a file that is closed
    local is_same = new_size == size and (not size or version:find(new_version, 1, true) == 1)
    if new_size and not is_same and not (may_grow and new_size > size) then
      fault = CHANGED
    end
    return fault
  end
end

-- The pieces of an open file. A pipe may wait, so it is read by lines; the standard input of a command is not.
local function pieces_of(handle, file)
  local is_pipe = io.type(handle) == "file" and handle ~= io.stdin and not file.is_whole
  return function()
    local piece, problem
    if is_pipe and io.type(handle) ~= "file" then
      return nil -- it was closed at its end
    elseif is_pipe then
      piece, problem = read_line(handle)
    else
      piece, problem = handle:read(PIECE)
    end
    problem = problem and "the file cannot be read: " .. tostring(problem) or not is_pipe and file.change_fault()
    if problem then
      return nil, problem
    elseif piece then
      file.read_bytes = file.read_bytes + #piece
      return piece
    end
    return nil, is_pipe and io.type(handle) == "file" and close_pipe(handle) or nil
  end
end

-- A reader that has at least `count` bytes before it, and those bytes. They tell the kind of a text however its pieces
-- come: more than blanks.
local function peek(read, count)
  local pieces, size, problem = {}, 0, nil
  while size < count or size < PIECE and not table.concat(pieces):find "[^%s\239\187\191]" do
    local piece
    piece, problem = read()
    if not piece then
      break
    end
    pieces[#pieces + 1], size = piece, size + #piece
  end
  local index, beginning = 0, table.concat(pieces)
  return function()
    index = index + 1
    if pieces[index] then
      return pieces[index]
    elseif problem then
      return nil, problem
    end
    return read()
  end,
    beginning
end

local UTF16 = "it is UTF-16: save it as UTF-8"

-- Of files without rows: the beginning, the reason, and the kind where a list may be of it.
local refusals = {
  { "^\137RSL", "it is a compiled list", "compiled" },
  { "^%s*<", "it is XML or HTML: save its rows as CSV", "xml" },
  { "^PK[\3\5\7][\4\6\8]", "it is a workbook or another ZIP archive: save its sheet as CSV" },
  { "^\208\207\17\224", "it is an old workbook: save its sheet as CSV" },
  { "^\255\254", UTF16 },
  { "^\254\255", UTF16 },
  { '^[%w"]%z', UTF16 }, -- a zero byte beside an ASCII character: without its mark
  { '^%z[%w"]', UTF16 },
}

-- The kind of a file by its first bytes, and the reason why such a file has no rows.
local function kind_of(beginning)
  beginning = beginning:gsub("^\239\187\191", "")
  for _, entry in ipairs(refusals) do
    if beginning:find(entry[1]) then
      return entry[3] or "text", entry[2]
    end
  end
  local first = beginning:match "%S"
  return first == "{" and "json" or first == "[" and "json_array" or "text"
end

---Opens a file.
---@param source string|file* a path, or an open file
---@param name? string
---@param may_grow? boolean another program may add to it meanwhile
---@return riskscreen.rows.File|nil
---@return string|nil problem
function M.open(source, name, may_grow)
  local is_path = type(source) == "string"
  local handle = source
  if is_path then
    local problem
    handle, problem = io.open(source, "rb")
    if not handle then
      return nil, "the file cannot be read: " .. tostring(problem):gsub("^.*: ", "")
    end
  end
  local start = io.type(handle) == "file" and handle:seek() or nil
  ---@type riskscreen.rows.File
  local file = {
    name = name or is_path and source or "the input",
    is_whole = start ~= nil,
    start = start,
    handle = handle,
    size = start and handle:seek "end",
  }
  file.change_fault = note_content(handle, may_grow)
  function file.rewind()
    local _ = start and handle:seek("set", start)
    file.read_bytes = 0
    local read, beginning = peek(pieces_of(handle, file), 4)
    file.beginning = beginning
    if beginning:sub(1, 2) == "\31\139" then
      read, beginning = peek(inflated(read), 4)
    end
    file.kind, file.refusal = kind_of(beginning)
    file.read = read
  end
  function file.digest()
    local place, read_bytes = handle:seek(), file.read_bytes
    handle:seek("set", start)
    local result, read = "", pieces_of(handle, file)
    local piece, problem = read()
    while piece do
      result = digest.sha256(result .. piece)
      piece, problem = read()
    end
    handle:seek("set", place)
    file.read_bytes = read_bytes
    if problem then
      error(errors.new("invalid_argument", file.name .. ": " .. problem, { field = "source", sent = false }), 0)
    end
    return text.hex(result):sub(1, 16)
  end
  function file.close()
    if is_path and io.type(handle) == "file" then
      handle:close()
    end
  end
  file.rewind()
  return file
end

return M
