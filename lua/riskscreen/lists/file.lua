-- One list file in use: it is loaded, searched, and loaded again when it has changed. Until a new file is complete and
-- verified, the old content counts. csrc/lists/permissions.c refuses a file that other users may write.
local compiled = require "riskscreen.lists.compiled"
local core = require "riskscreen.util.core"
local entries = require "riskscreen.lists.entry"
local index = require "riskscreen.lists.index"
local loaders = require "riskscreen.lists.loaders"
local text = require "riskscreen.util.text"

local PIECE = 65536 -- bytes that are read at a time
local LONGEST_TEXT = 16 * 1024 * 1024 -- bytes of a list that is not compiled
local SLICE = 1048576 -- bytes of a compiled list that are verified before other work runs
local SKEW = 60 -- seconds by which the machine that wrote a list may be ahead
local ROWS = 200 -- rows that are read before other work runs

local M = {}

---@class riskscreen.ListFile
---@field path string
---@field kind "deny"|"allow"
---@field level "checksum"|"format"|false|nil how its addresses are checked
---@field list riskscreen.ListIndex|userdata what is searched
---@field facts { entries: integer, size: integer, built_at?: number, invalid: integer, title?: string }
---@field identity string of the file that is loaded, or was tried last
---@field fault? string why the last file was not loaded
local File = {}
File.__index = File

local function nothing() end

-- A function that reads pieces of an open file.
local function pieces_of(file)
  return function()
    local piece, problem = file:read(PIECE)
    return piece, problem and "cannot read it: " .. tostring(problem)
  end
end

---Opens a file for a loader.
---@param path string
---@return (fun(): string|nil, string|nil)|nil read
---@return fun()|string close or the fault
function M.pieces(path)
  local file, problem = io.open(path, "rb")
  if not file then
    return nil, "cannot open it: " .. tostring(problem):gsub("^.*: ", "")
  end
  return pieces_of(file), function()
    file:close()
  end
end

local function read_whole(path, longest)
  local read, close = M.pieces(path)
  if not read then
    return nil, close
  end
  local pieces, size = {}, 0
  repeat
    local piece, problem = read()
    if problem then
      close()
      return nil, problem
    end
    pieces[#pieces + 1], size = piece, size + #(piece or "")
  until not piece or size > longest
  close()
  if size > longest then
    return nil, ("it is longer than %d bytes; compile it with `riskscreen list build`"):format(longest)
  end
  return table.concat(pieces)
end

-- A compiled list through the core: nothing is copied but a short list.
local function load_mapped(path, pause)
  local list, problem = core.list(path)
  local done = false
  while list and not done do
    done, problem = list:verify(SLICE)
    if done == nil then
      list:close()
      list = nil
    elseif not done then
      pause()
    end
  end
  if not list then
    return nil, problem
  end
  local facts = list:facts()
  facts.invalid = 0
  return list, facts
end

local function load_compiled(path, pause)
  if core then
    return load_mapped(path, pause)
  end
  local content, problem = read_whole(path, compiled.LONGEST)
  if not content then
    return nil, problem
  end
  local list, facts = compiled.read(content)
  if list then
    facts.invalid = 0
  end
  return list, facts
end

-- A list as text: its invalid rows are counted, and the first one is told.
local function load_text(path, kind, level, pause)
  local content, problem = read_whole(path, LONGEST_TEXT)
  if not content then
    return nil, problem
  end
  local found, facts, rows = index.new(), { invalid = 0, size = #content }, 0
  local sink = {}
  function sink.invalid(line, fault)
    facts.invalid = facts.invalid + 1
    facts.first_invalid = facts.first_invalid or ("line %s: %s"):format(tostring(line), fault)
  end
  function sink.row(row)
    local entry, fault = entries.read(row, level)
    if not entry then
      return sink.invalid(row.line, fault)
    end
    for _, place in ipairs(entry.places) do
      found:add(place, entry.note, entry.expires)
    end
    rows = rows + 1
    if rows % ROWS == 0 then
      pause()
    end
  end
  local is_read = false
  local ok
  ok, problem = loaders[kind](function()
    local piece = not is_read and content or nil
    is_read = true
    return piece
  end, sink)
  if not ok then
    return nil, problem
  end
  facts.entries = found.count
  return found, facts
end

-- The identity of a file's content, and the time of its last change. Without the core the identity is the content.
local function identify(path)
  if core then
    return core.list_identity(path)
  end
  return read_whole(path, LONGEST_TEXT)
end

-- Loads the file. Nothing changes where that fails.
local function load(self, pause)
  local kind = loaders.kind_of(self.path)
  if not kind then
    return nil, "its name must end in .rsl, .csv, .json, .jsonl or .txt"
  elseif kind == "xml" then
    return nil, "compile it first with `riskscreen list build`"
  end
  local list, facts
  if kind == "rsl" then
    list, facts = load_compiled(self.path, pause)
  else
    list, facts = load_text(self.path, kind, self.level, pause)
  end
  if not list then
    return nil, facts
  end
  facts.title = facts.title ~= "" and facts.title or nil
  return list, facts
end

---Loads the file if it has changed since the last time.
---@param pause? fun() lets other work run
---@return boolean loaded
function File:refresh(pause)
  local identity, changed_at = identify(self.path)
  if identity and identity == self.identity then
    return false
  end
  local list, facts
  if identity then
    list, facts = load(self, pause or nothing)
  else
    facts = changed_at
  end
  self.identity = identity
  if not list then
    self.fault = text.printable(tostring(facts), 300)
    return false
  end
  -- The core's list is not closed here: a search of another task may be under way. It is collected.
  self.list, self.facts, self.fault = list, facts, nil
  facts.built_at = facts.built_at or type(changed_at) == "number" and changed_at or nil
  return true
end

---The age of the list in seconds: since it was built, or its text changed. Nil where that is not known, or lies in the
---future.
---@param now number Unix seconds
---@return number|nil
function File:age(now)
  local built_at = self.facts.built_at
  return built_at and built_at <= now + SKEW and math.max(0, now - built_at) or nil
end

---@param path string
---@param kind "deny"|"allow"
---@param level? "checksum"|"format"|false
---@return riskscreen.ListFile|nil
---@return string|nil fault
function M.open(path, kind, level)
  local self = setmetatable({ path = path, kind = kind, level = level }, File)
  if not self:refresh() then
    return nil, ("the list %s is not loaded: %s"):format(text.show(path), self.fault)
  end
  return self
end

return M
