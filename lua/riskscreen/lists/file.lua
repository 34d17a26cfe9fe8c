-- One list file in use: it is loaded, searched, and loaded again when it has changed. Until a new file is complete and
-- verified, the old content counts. csrc/lists/reader.c refuses a file that other users may write.
local core = require "riskscreen.util.core"
local digest = require "riskscreen.address.digest"
local files = require "riskscreen.util.files"
local index = require "riskscreen.lists.index"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local texts = require "riskscreen.lists.text"
local time = require "riskscreen.util.time"

local LONGEST_TEXT = 16 * 1024 * 1024 -- bytes of a list that is not compiled
local SLICE = 1048576 -- bytes of a compiled list that are verified before other work runs
local SKEW = 60 -- seconds by which the machine that wrote a list may be ahead
local ROWS = 200 -- entries that are read before other work runs
local MAX_INVALID = 1000 -- rows that are no entries
local RETRY = 10 -- looks between two attempts to load a file that failed: the reason may have passed
local LATEST = "riskscreen:latest_list:" -- keys in a dict of nginx: the entries of a list, and its identity

local M = {}

---@class riskscreen.ListFile
---@field path string
---@field kind "deny"|"allow"
---@field level "checksum"|"format"|false|nil how its addresses are checked
---@field list riskscreen.ListIndex|userdata what is searched
---@field facts { entries: integer, size: integer, built_at?: number, title?: string } and of a text riskscreen.ListText
---@field identity string of the file that is loaded, or was tried last
---@field fault? string why the last file was not loaded
---@field max_shrink number
---@field private dict? table an ngx.shared dict: it has the record of the list that was loaded last
---@field private record? string of this list, in the dict
local File = {}
File.__index = File

local function read_whole(path, longest)
  local content, problem = files.read(path, longest + 1)
  if content and #content > longest then
    return nil, ("it is longer than %d bytes; compile it for the C core"):format(longest)
  end
  return content, problem and "cannot read it: " .. tostring(problem):gsub("^.*: ", "")
end

-- A compiled list through the core: nothing is copied but a short list.
local function load_mapped(self, pause)
  local list, problem = core.list(self.path)
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
  return list, list:facts()
end

local function read_compiled(self)
  local compiled = require "riskscreen.lists.compiled"
  local content, problem = read_whole(self.path, compiled.LONGEST)
  if not content then
    return nil, problem
  end
  return compiled.read(content)
end

-- A list as text: its invalid rows are counted.
local function load_text(self, pause)
  local found, facts, count = index.new(), texts.facts(), 0
  local settings = {
    level = self.level,
    now = self.now(),
    longest = LONGEST_TEXT,
    max_invalid = MAX_INVALID,
    allow_empty = true,
  }
  local ok, problem = texts.read(self.path, facts, settings, function(place, note, expires)
    found:add(place, note, expires)
    count = count + 1
    if count % ROWS == 0 then
      pause()
    end
  end)
  facts.entries = found.count
  return ok and found, ok and facts or problem
end

-- The identity of a file's content, and the time of its last change. Without the core the identity is the content.
local function identify(path)
  if core then
    return core.list_identity(path)
  end
  return read_whole(path, LONGEST_TEXT)
end

---Why a list may not take the place of another one.
---@param before integer entries of the list in use
---@param now integer entries of the new one
---@param max_shrink number the share of its entries that it may lose at once
---@return string|nil
function M.shrinkage(before, now, max_shrink)
  if now < before * (1 - max_shrink) then
    local message = "it has %s, and the list before it has %d: more are lost at once than max_shrink (%g) lets"
    return message:format(text.count(now, "entry"), before, max_shrink)
  end
end

local function latest(self)
  return self.dict and self.dict:get(LATEST .. self.path)
end

-- Loads the file. Nothing changes where that fails.
local function load(self, pause)
  local file, problem = rows.file(self.path)
  if not file then
    return nil, problem
  end
  file.close()
  local read = file.kind ~= "compiled" and load_text or core and load_mapped or read_compiled
  local list, facts = read(self, pause)
  if not list then
    return nil, facts
  end
  facts.invalid, facts.expired = facts.invalid or 0, facts.expired or 0
  -- An allow list may lose its entries: nobody passes by it then.
  if self.kind == "deny" and facts.entries == 0 then
    problem = "it has no entry"
  elseif self.kind == "deny" then
    -- A new worker has the list of its master, which may be older than that of the other workers. A master that reads
    -- its configuration again has none.
    local before = (latest(self) or ""):match "^%d+" or self.list and self.facts.entries
    problem = before and M.shrinkage(tonumber(before), facts.entries, self.max_shrink)
  end
  if problem then
    return nil, problem
  end
  facts.size = facts.size or file.size
  facts.title = facts.title ~= "" and facts.title or nil
  return list, facts
end

-- A dict that others fill lets go of what was not used for long: each look uses the record. A list that is the file as
-- it is now gets a lost record back.
local function keep_record(self, is_same)
  if self.dict and is_same and not self.fault then
    self.dict:add(LATEST .. self.path, self.record)
  else
    latest(self)
  end
end

---Loads the file if it has changed since the last time.
---@param pause? fun() lets other work run
---@return boolean loaded
function File:refresh(pause)
  local identity, changed_at = identify(self.path)
  local is_same = identity and identity == self.identity
  self.looks = is_same and self.looks + 1 or 0
  keep_record(self, is_same)
  if is_same and not (self.fault and self.looks % RETRY == 0) then
    return false
  end
  local list, facts = nil, changed_at
  if identity then
    list, facts = load(self, pause or function() end)
  end
  self.identity = identity
  if list and identify(self.path) ~= identity then
    -- The next look finds it changed, and loads it.
    list, facts = nil, "it was changed while it was read"
  end
  if not list then
    self.fault = text.printable(tostring(facts), 300)
    return false
  end
  -- The core's list is not closed here: a search of another task may be under way. It is collected.
  self.list, self.facts, self.fault = list, facts, nil
  if self.dict then
    self.record = ("%d %s"):format(facts.entries, text.hex(digest.sha256(identity)))
    self.dict:set(LATEST .. self.path, self.record)
  end
  facts.built_at = facts.built_at or type(changed_at) == "number" and changed_at or nil
  return true
end

---Whether no other worker may have loaded a later list.
---@return boolean
function File:is_latest()
  return self.record ~= nil and latest(self) == self.record
end

---Why the file is not loaded as it is now.
---@return string
function File:problem()
  return ("the list %s is not loaded: %s"):format(text.show(self.path), self.fault)
end

---The age of the list in seconds: since it was built, or its text changed. Nil where that is not known, or lies in the
---future.
---@param now number Unix seconds
---@return number|nil
function File:age(now)
  return time.age(self.facts.built_at, now, SKEW)
end

---@param path string
---@param settings { kind: "deny"|"allow", level?: string|false, max_shrink?: number, now?: function, dict?: table }
---@return riskscreen.ListFile|nil
---@return string|nil fault
function M.open(path, settings)
  local self = setmetatable(tables.merge({ max_shrink = 1, now = os.time }, settings), File)
  self.path = path
  if not self:refresh() then
    return nil, self:problem()
  end
  return self
end

return M
