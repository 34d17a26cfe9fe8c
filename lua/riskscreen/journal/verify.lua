-- Reads a journal: its files in order, its lines, and whether the chain holds. A fault names the file, the line and the
-- reason. Everything is read line by line, so a journal of any size takes the same memory, also without line breaks.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local errors = require "riskscreen.errors"
local files = require "riskscreen.journal.file"
local json = require "riskscreen.json"
local lines = require "riskscreen.journal.line"
local stored = require "riskscreen.journal.stored"
local tables = require "riskscreen.util.tables"
local whole_files = require "riskscreen.util.files"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes that are read at a time
local MOST_FAULTS = 100

local TORN = "the last line is not complete: the program ended while it wrote"
local CHANGED = "the line does not match its hash: it was changed, or written with another key"
local MALFORMED = "this is no line of a journal"

---@class riskscreen.JournalFault
---@field file string
---@field line integer in the file; 0: the file as a whole
---@field seq? integer the number in the chain
---@field reason "changed"|"missing"|"moved"|"repeated"|"replaced"|"malformed"|"torn"|"truncated"|"unreadable"
---@field message string

---@class riskscreen.JournalReport
---@field ok boolean
---@field lines integer
---@field files string[]
---@field faults riskscreen.JournalFault[] the first 100
---@field has_more? boolean there are further faults
---@field first? integer the number of the first line
---@field head? riskscreen.JournalHead after the last line

local M = {}

local function cut_message(last, noted)
  return ("the journal ends at line %d of the chain, but line %d was written"):format(last, noted)
end

local function missing_message(first, last)
  return first == last and ("line %d of the chain is missing before this one"):format(first)
    or ("lines %d to %d of the chain are missing before this one"):format(first, last)
end

-- A function that returns the next line of a file, and whether its line break is missing; at the end nil, and the
-- reason if the file cannot be read. In place of a line that is longer than any of a journal it returns an empty one,
-- which is none either. A pipe cannot be read: what looks for the part of its lines would take them away.
local function line_reader(path)
  local kind = whole_files.kind(path) or "file"
  local file, message = nil, "Is a " .. kind
  if kind == "file" then
    file, message = io.open(path, "rb")
  end
  local piece, from = file and "", 1
  return function()
    local parts, length = {}, 0
    while piece do
      local at = piece:find("\n", from, true)
      local part = piece:sub(from, at and at - 1)
      length = length + #part
      if length <= lines.LONGEST_LINE then
        parts[#parts + 1] = part
      end
      if at then
        from = at + 1
        break
      end
      piece, message = file:read(PIECE)
      from = 1
      local _ = piece or file:close()
    end
    if length > lines.LONGEST_LINE then
      return "", false
    elseif message or not piece and length == 0 then
      return nil, message
    end
    return table.concat(parts), piece == nil
  end
end

-- The part that the lines of a file name, or nil.
local function part_of(path)
  for line in line_reader(path) do
    local chain = lines.chain(line)
    if chain then
      return chain.part
    end
  end
end

-- The head that was noted, or nil; and why it cannot be read, where it is there. That of a new journal is blank.
local function read_head(path)
  local content, message = whole_files.read(path .. ".head")
  local head = files.parse_head(content)
  local is_damaged = content and not head and content:find "[^%s%z]"
  local is_there = not content and whole_files.exists(path .. ".head")
  return head, is_damaged and "it is no head of a journal" or is_there and message or nil
end

-- Iterates over the files of a journal: PATH.1, PATH.2 and so on, from the oldest one that is still there, and PATH.
-- Returns the name of each, and what `open` returns. A program may rotate PATH meanwhile, also several times. What was
-- opened as PATH may have its later name then. The second result is a file that has the next name, and is none of them.
local function each_file(path, open)
  local exists, head, part = whole_files.exists, read_head(path), part_of(path)
  local last = part or head and head.part + (head.next and 1 or 0) or 1
  local stranger = part and exists(path .. "." .. last) and path .. "." .. last or nil
  if stranger and part_of(path) ~= part then
    return each_file(path, open) -- a program has rotated it meanwhile
  end
  local number, is_last = 1, false
  while number < last and not exists(path .. "." .. number) do
    number = number + 1
  end
  local function is_rotated()
    local name = path .. "." .. number
    return name ~= stranger and exists(name)
  end
  return function()
    if is_last and not is_rotated() then
      return nil
    end
    number = number + (is_last and 1 or 0)
    local opened = number >= last and exists(path) and open(path)
    is_last = number >= last and not is_rotated()
    if is_last then
      return opened and path or nil, opened
    end
    local name = path .. "." .. number
    number = number + 1
    return name, open(name)
  end,
    stranger
end

-- The lines of files: text, file, number, whether the line break is missing, and whether no file follows then. A file
-- that cannot be read is a fault. Where there is no other file it raises an error object.
local function lines_of_files(next_file, paths, tell)
  local name, next_line = next_file()
  local number = 0
  paths[1] = name
  return function()
    while name do
      local line, other = next_line()
      local file, at = name, number + 1
      number = at
      if not line or other then
        name, next_line = next_file()
        number, paths[#paths + 1] = 0, name
      end
      if line then
        return line, file, at, other, not name
      elseif other then
        local message, reason = "cannot be read: " .. other, whole_files.exists(file) and "unreadable" or "missing"
        if not paths[2] then
          error(files.failure(file, message, reason), 0)
        end
        tell { file = file, line = 0, reason = reason, message = "the file " .. message }
      end
    end
  end
end

local function is_store(value)
  return type(value) == "table" and type(value.space) == "function"
end

-- The lines of a journal, each with its chain, its file and its number there; its files as far as they are read; the
-- head that was noted. Text that is no line is a fault. `is_beyond` says whether all lines are read nevertheless.
local function open(source, tell)
  local paths, noted = {}, nil
  local each
  if is_store(source) then
    paths, each = { "store" }, stored.lines(source)
  elseif type(source) == "table" then
    local index = 0
    each = lines_of_files(function()
      index = index + 1
      return source[index], source[index] and line_reader(source[index])
    end, paths, tell)
  else
    source = whole_files.target(source)
    local problem
    noted, problem = read_head(source)
    local next_file, stranger = each_file(source, line_reader)
    each = lines_of_files(next_file, paths, tell)
    if not paths[1] then
      error(files.failure(source, "there is no such file", "missing"), 0)
    end
    if problem then -- it may know of lines that are missing
      local message = "the file cannot be read: " .. problem
      tell { file = source .. ".head", line = 0, reason = "unreadable", message = message }
    end
    local line, fault = line_reader(stranger or "")()
    if stranger and (line or fault) then
      local message = "the file is not counted: " .. source .. " does not follow it"
      tell({ file = stranger, line = 0, reason = "moved", message = message }, true)
    end
  end
  return function()
    for line, file, number, is_torn, is_last in each do
      local chain = lines.chain(line)
      if chain then
        return line, chain, file, number
      end
      local reason, message = is_torn and "torn" or "malformed", is_torn and TORN or MALFORMED
      tell({ file = file, line = number, reason = reason, message = message }, is_torn and is_last)
    end
  end,
    paths,
    noted
end

local function is_path(value)
  return type(value) == "string"
end

local function check_source(what, source)
  local is_list = type(source) == "table" and build.list_of(source, "paths", is_path)
  if not (is_path(source) or is_list or is_store(source)) then
    error(what .. ": expected a path, a list of paths or a store (got " .. text.kind(source) .. ")", 3)
  end
end

---@class riskscreen.journal.Check the state of one verification
---@field hash fun(text: string): string
---@field report riskscreen.JournalReport
---@field faults riskscreen.JournalFault[]
---@field head? riskscreen.JournalHead the last line in its place
---@field anchors table<integer, string> hashes by the number of the line
local Check = {}
Check.__index = Check

function Check:fault(file, line, seq, reason, message, last)
  local faults = self.report.faults
  if #faults < MOST_FAULTS then
    faults[#faults + 1] = { file = file, line = line, seq = seq, reason = reason, message = message, last = last }
  else
    self.report.has_more = true
  end
  self.report.ok = false
end

-- Removes a line from the missing ones, where it belongs to them: what is left stands before and behind it.
local function find_missing(self, seq)
  local faults = self.report.faults
  for index, fault in ipairs(faults) do
    if fault.last and seq >= fault.seq and seq <= fault.last then
      table.remove(faults, index)
      for _, left in ipairs { { seq = seq + 1, last = fault.last }, { seq = fault.seq, last = seq - 1 } } do
        local _ = left.seq <= left.last and table.insert(faults, index, tables.merge(fault, left))
      end
      self.report.has_more = faults[MOST_FAULTS + 1] ~= nil or self.report.has_more
      faults[MOST_FAULTS + 1] = nil
      return true
    end
  end
  return false
end

-- Compares a line with the line before it.
function Check:place(chain, file, number)
  local head = self.head
  local expected = head and head.seq + 1 or chain.seq
  if not head then
    self.report.first = chain.seq
    if chain.seq == 1 and chain.prev ~= lines.FIRST then
      self:fault(file, number, chain.seq, "replaced", "the first line does not begin a chain")
    elseif chain.part == 1 and chain.seq > 1 then
      self:fault(file, number, 1, "missing", nil, chain.seq - 1)
    end
  elseif chain.seq > expected then
    -- Some of them may still come: `finish` writes the message.
    self:fault(file, number, expected, "missing", nil, chain.seq - 1)
  elseif chain.seq < expected then
    if find_missing(self, chain.seq) then
      local message = ("this is line %d of the chain: it stands too late"):format(chain.seq)
      self:fault(file, number, chain.seq, "moved", message)
    else
      self:fault(file, number, chain.seq, "repeated", ("line %d of the chain was there before"):format(chain.seq))
    end
    return
  elseif chain.prev ~= head.hash then
    local message = "the line before this one is not the one that was written: it was replaced"
    self:fault(file, number, chain.seq, "replaced", message)
  end
  self.head = { part = chain.part, seq = chain.seq, hash = chain.hash }
end

function Check:line(line, chain, file, number)
  if self.hash(chain.content) ~= chain.hash then
    self:fault(file, number, chain.seq, "changed", CHANGED)
  elseif json.decode(line) == nil then
    self:fault(file, number, chain.seq, "malformed", "the line is not JSON")
  end
  local anchor = self.anchors[chain.seq]
  if anchor and anchor ~= chain.hash then
    self:fault(file, number, chain.seq, "replaced", "the line is not the one whose hash was noted")
  end
  self:place(chain, file, number)
end

-- Finds noted heads after the last line, which then was not the last one, and words the lines that are missing.
function Check:finish(file)
  local last = self.head and self.head.seq or 0
  for seq in pairs(self.anchors) do
    if seq > last then
      self:fault(file, 0, seq, "truncated", cut_message(last, seq))
    end
  end
  for _, fault in ipairs(self.report.faults) do
    if fault.last then
      fault.message = missing_message(fault.seq, fault.last)
      fault.last = nil
    end
  end
end

local verify_options = {
  { name = "key", type = "string", doc = "The key of the chain." },
  build.checked("head", "table", function(value)
    return lines.is_head(value) and value or nil, "must be a head that `journal:head()` returned"
  end, "A head that `journal:head()` returned, kept elsewhere."),
}

---Checks a journal. Without a key the chain shows changes by accident, or by someone who does not compute it anew.
---With a key only its owner can do that. Lines that were cut at the end are found where a head is known: the one in
---PATH.head, or `head`, kept elsewhere.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param options? { key?: string, head?: riskscreen.JournalHead }
---@return riskscreen.JournalReport|nil report
---@return riskscreen.Error|nil err where the journal cannot be read
function M.verify(source, options)
  check_source("journal.verify", source)
  local settings = check.arguments("journal.verify", verify_options, options or {})
  local report = { ok = true, lines = 0, faults = {} }
  local self = setmetatable({ hash = lines.hasher(settings.key), report = report, anchors = {} }, Check)
  return errors.result(pcall(function()
    local each, paths, noted = open(source, function(fault)
      report.lines = report.lines + math.min(fault.line, 1)
      self:fault(fault.file, fault.line, nil, fault.reason, fault.message)
    end)
    report.files = paths
    for _, head in pairs { noted, settings.head } do
      self.anchors[head.seq] = head.seq > 0 and head.hash or nil
    end
    for line, chain, file, number in each do
      report.lines = report.lines + 1
      self:line(line, chain, file, number)
    end
    self:finish(paths[#paths])
    report.head = self.head
    return report
  end))
end

---Iterates over the entries of a journal, the oldest first. A line that cannot be read, a file that cannot be read and
---missing lines are faults, also at the end of what PATH.head knows. A torn last line is left out: a program may be
---writing it.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param address? string canonical: only the entries about it
---@param on_fault? fun(fault: riskscreen.JournalFault) told of each fault; the entries after it follow. By default a
---fault raises an error object
---@return fun(): riskscreen.JournalEntry|nil
function M.entries(source, address, on_fault)
  check_source("journal.entries", source)
  text.expect("journal.entries: address", address, "string", true)
  text.expect("journal.entries: on_fault", on_fault, "function", true)
  local last = 0
  local function tell(fault, is_beyond)
    if on_fault and not is_beyond then
      on_fault(fault)
    elseif not is_beyond then
      local place = fault.line > 0 and ("line %d: "):format(fault.line) or ""
      error(files.failure(fault.file, place .. fault.message, "damaged"), 0)
    end
  end
  local each, paths, noted = open(source, tell)
  return function()
    for line, chain, file, number in each do
      local entry = json.decode(line)
      if not entry then
        tell { file = file, line = number, reason = "malformed", message = MALFORMED }
      elseif last > 0 and chain.seq > last + 1 then
        local message = missing_message(last + 1, chain.seq - 1)
        tell { file = file, line = number, seq = last + 1, reason = "missing", message = message }
      end
      last = math.max(last, chain.seq)
      if entry and (not address or entry.address == address) then
        return entry
      end
    end
    if noted and noted.seq > last then
      local message, seq = cut_message(last, noted.seq), noted.seq
      noted = nil
      tell { file = paths[#paths], line = 0, seq = seq, reason = "truncated", message = message }
    end
  end
end

---The files of a journal, the oldest first; of another file, the file alone. A head or the first line tells a journal.
---@param path string
---@return string[]
function M.files(path)
  text.expect("journal.files: path", path, "string")
  local target = whole_files.target(path)
  if not (read_head(target) or lines.chain((line_reader(target)()) or "")) then
    return { path }
  end
  local list = {}
  for name in each_file(target, whole_files.exists) do
    list[#list + 1] = name
  end
  return list
end

return M
