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

---@class riskscreen.JournalFault
---@field file string
---@field line integer in the file; 0: the file as a whole
---@field seq? integer the number in the chain
---@field reason "changed"|"missing"|"moved"|"repeated"|"replaced"|"malformed"|"torn"|"truncated"
---@field message string

---@class riskscreen.JournalReport
---@field ok boolean
---@field lines integer
---@field files string[]
---@field faults riskscreen.JournalFault[] the first 100
---@field first? integer the number of the first line
---@field head? riskscreen.JournalHead after the last line

local M = {}

-- A function that returns the next line of an open file, and whether its line break is missing. In place of a line that
-- is longer than any of a journal it returns an empty one, which is none either.
local function line_reader(path, file)
  local piece, from = "", 1
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
      local message
      piece, message = file:read(PIECE)
      if message then
        error(files.failure(path, "cannot be read: " .. message), 0)
      end
      from = 1
    end
    if length > lines.LONGEST_LINE then
      return "", false
    elseif length > 0 or piece then
      return table.concat(parts), piece == nil
    end
  end
end

-- The part that a file's first line names, or nil.
local function part_of(path)
  local file = io.open(path, "rb")
  local line = file and line_reader(path, file)()
  if file then
    file:close()
  end
  local chain = line and lines.chain(line)
  return chain and chain.part
end

local function read_head(path)
  return files.parse_head((whole_files.read(path .. ".head")))
end

---The files of a journal, the oldest first: PATH.1, PATH.2 and so on, as far as they are still there, and PATH.
---@param path string
---@return string[]
function M.files(path)
  local head = read_head(path)
  local has_last = whole_files.exists(path)
  local part = (has_last and part_of(path)) or (head and head.part + 1) or 1
  local list = has_last and { path } or {}
  while part > 1 and whole_files.exists(path .. "." .. part - 1) do
    part = part - 1
    table.insert(list, 1, path .. "." .. part)
  end
  return list
end

---@class riskscreen.journal.Source where lines come from: an iterator of line, file and number of the line

-- The lines of files: text, file, number, and whether the line break is missing. Raises an error object.
local function lines_of_files(paths)
  local index, file, number, next_line = 0, nil, 0, nil
  return function()
    while true do
      if not file then
        index = index + 1
        if not paths[index] then
          return nil
        end
        local message
        file, message = io.open(paths[index], "rb")
        if not file then
          error(files.failure(paths[index], "cannot be read: " .. message, "missing"), 0)
        end
        number, next_line = 0, line_reader(paths[index], file)
      end
      local line, is_torn = next_line()
      if line then
        number = number + 1
        return line, paths[index], number, is_torn
      end
      file:close()
      file = nil
    end
  end
end

local function lines_of_store(store, address)
  local next_line, number = stored.lines(store, address), 0
  return function()
    local line = next_line()
    number = number + 1
    return line, "store", number, false
  end
end

local function is_store(value)
  return type(value) == "table" and type(value.space) == "function"
end

-- The lines of a journal, its files, and the head that was noted.
local function open(source)
  if is_store(source) then
    return lines_of_store(source), { "store" }, nil
  elseif type(source) == "table" then
    return lines_of_files(source), source, nil
  end
  local paths = M.files(source)
  if not paths[1] then
    error(files.failure(source, "there is no such file", "missing"), 0)
  end
  return lines_of_files(paths), paths, read_head(source)
end

local function is_list_of_paths(source)
  for _, path in ipairs(source) do
    if type(path) ~= "string" then
      return false
    end
  end
  return true
end

local function check_source(what, source, needs_store)
  local is_path = type(source) == "string" or type(source) == "table" and is_list_of_paths(source)
  if not is_store(source) and (needs_store or not is_path) then
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
  end
  self.report.ok = false
end

-- The lines from `first` to `last` are missing before this one. `finish` writes the message, because some of them may
-- still come.
function Check:missing(file, line, first, last)
  self:fault(file, line, first, "missing", nil, last)
end

-- Removes a line from the missing ones, where it belongs to them.
local function find_missing(self, seq)
  local faults = self.report.faults
  for index, fault in ipairs(faults) do
    if fault.reason == "missing" and seq >= fault.seq and seq <= fault.last then
      if fault.seq == fault.last then
        table.remove(faults, index)
      elseif seq == fault.seq then
        fault.seq = seq + 1
      elseif seq == fault.last then
        fault.last = seq - 1
      else
        table.insert(faults, index + 1, tables.merge(fault, { seq = seq + 1 }))
        faults[MOST_FAULTS + 1] = nil
        fault.last = seq - 1
      end
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
      self:missing(file, number, 1, chain.seq - 1)
    end
  elseif chain.seq > expected then
    self:missing(file, number, expected, chain.seq - 1)
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

function Check:line(line, file, number, is_torn)
  local chain = lines.chain(line)
  if is_torn then
    self:fault(file, number, nil, "torn", "the last line is not complete: the program ended while it wrote")
    return
  elseif not chain then
    self:fault(file, number, nil, "malformed", "this is no line of a journal")
    return
  elseif self.hash(chain.content) ~= chain.hash then
    self:fault(file, number, chain.seq, "changed", "the line does not match its hash: it was changed")
  elseif json.decode(line) == nil then
    self:fault(file, number, chain.seq, "malformed", "the line is not JSON")
  end
  local anchor = self.anchors[chain.seq]
  if anchor and anchor ~= chain.hash then
    self:fault(file, number, chain.seq, "replaced", "the line is not the one whose hash was noted")
  end
  self:place(chain, file, number)
end

local function missing_message(first, last)
  return first == last and ("line %d of the chain is missing before this one"):format(first)
    or ("lines %d to %d of the chain are missing before this one"):format(first, last)
end

-- Finds noted heads after the last line, which then was not the last one, and words the lines that are missing.
function Check:finish(file)
  local last = self.head and self.head.seq or 0
  for seq in pairs(self.anchors) do
    if seq > last then
      local message = ("the journal ends at line %d of the chain, but line %d was written"):format(last, seq)
      self:fault(file, 0, seq, "truncated", message)
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
  build.checked("key", "string", function(value)
    return value
  end, "The key of the chain."),
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
  local ok, err = pcall(function()
    local each, paths, noted = open(source)
    report.files = paths
    for _, head in pairs { noted, settings.head } do
      self.anchors[head.seq] = head.seq > 0 and head.hash or nil
    end
    for line, file, number, is_torn in each do
      report.lines = report.lines + 1
      self:line(line, file, number, is_torn)
    end
    self:finish(paths[#paths])
  end)
  if not ok then
    if errors.is(err) then
      return nil, err
    end
    error(err, 0)
  end
  report.head = self.head
  return report
end

---Iterates over the entries of a journal, the oldest first. A line that is not JSON raises an error object, as does a
---journal that cannot be read. A torn last line is left out.
---@param source string|string[]|riskscreen.Store the journal's path, the files in order, or the store
---@param address? string canonical; only with a store, whose index finds the lines about it
---@return fun(): riskscreen.JournalEntry|nil
function M.entries(source, address)
  check_source("journal.entries", source, address ~= nil)
  text.expect("journal.entries: address", address, "string", true)
  local each = address and lines_of_store(source, address) or open(source)
  return function()
    local line, file, number, is_torn = each()
    if not line or is_torn then
      return nil
    end
    local entry = json.decode(line)
    if type(entry) ~= "table" or type(entry.seq) ~= "number" then
      error(files.failure(file, ("line %d is no line of a journal"):format(number), "damaged"), 0)
    end
    return entry
  end
end

return M
