-- The file of a journal. Several programs and workers may write to one file. Each batch of lines is written under a
-- lock, after the line that is the last one then. The lock is "PATH.head". It holds the head of the chain as it was
-- when the file was last settled. Rotation renames PATH to PATH.1, PATH.2 and so on; the next file continues the chain.

local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local json = require "riskscreen.json"
local lines = require "riskscreen.journal.line"
local optional = require "riskscreen.util.optional"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local BLOCK = 65536 -- bytes that are read at once to find the end of the last whole line
local LOCK_PAUSE = 0.001 -- seconds between two attempts to take the lock
local LONGEST_HEAD = 1024 -- bytes
local HEAD_LENGTH = 160 -- bytes, filled with spaces

---@class riskscreen.journal.File
---@field path string
---@field private settings table
---@field private hash fun(text: string): string
---@field private system table riskscreen.system
---@field private settled_at number when the head was last written
---@field private dirty boolean lines came after the head was written
---@field repaired integer torn lines that were removed
---@field private is_checked boolean the end of the file was checked once
---@field private is_resolved boolean `path` has no links
local File = {}
File.__index = File

local M = {}

function M.failure(path, message, reason)
  local shown = ("journal %s: %s"):format(text.printable(path, 200), message)
  return errors.new("storage", shown, { reason = reason or "io" })
end

-- Raises the failure of a journal. The functions below raise each of theirs, and the journal makes it a result.
local function fail(self, message, reason)
  error(M.failure(self.path, message, reason), 0)
end

-- The result of a call of the system. If it failed, its message tells the reason.
local function expect(self, what, result, message)
  if result then
    return result
  end
  local reason = "io"
  if message:find("No space left", 1, true) then
    reason = "full"
  elseif message:find("Permission denied", 1, true) or message:find("Read-only", 1, true) then
    reason = "read_only"
  elseif message:find("No such file", 1, true) then
    reason = "missing"
  end
  return fail(self, what .. ": " .. message, reason)
end

-- Calls a function, and closes a file when it has ended, also by a failure.
local function closing(file, fn, ...)
  local ok, result = pcall(fn, ...)
  file:close()
  if not ok then
    error(result, 0)
  end
  return result
end

local function open(path, mode)
  local file, message = io.open(path, mode)
  if file then
    file:setvbuf "no" -- a line is handed to the system as a whole, or not at all
  end
  return file, message
end

-- The same for a file that may be new. Only its owner may write to a new one: others could add lines.
local function open_or_make(self, path, mode)
  local is_new = not files.exists(path)
  local file, message = open(path, mode)
  if file and is_new then
    self.system.restrict(file)
  end
  return file, message
end

---The head in the text of a head file, or nil.
---@param content string|nil
---@return riskscreen.JournalHead|nil
function M.parse_head(content)
  local head = content and #content <= LONGEST_HEAD and json.decode(content)
  return lines.is_head(head) and head or nil
end

-- The position of the last line break among the first bytes of a file; 0 where there is none.
local function last_break(file, finish)
  while finish > 0 do
    local start = math.max(0, finish - BLOCK)
    file:seek("set", start)
    local position = file:read(finish - start):match "^.*()\n"
    if position then
      return start + position
    end
    finish = start
  end
  return 0
end

-- The last bytes of the first `finish` ones of a file, enough for the ending of a line.
local function tail_of(file, finish)
  local start = math.max(0, finish - lines.LONGEST_ENDING - 1)
  file:seek("set", start)
  return finish > 0 and file:read(finish - start) or ""
end

-- The end of the last whole line, the head after it, or nil where there is none, and whether its line end is missing.
-- A torn line follows. It may be cut off after a line of a journal, or where the noted head expects a first line.
local function read_end(self, file, expects_first)
  local size = file:seek "end"
  local finish, tail = size, tail_of(file, size)
  local last = lines.chain(tail) -- of a line without its end
  if tail:sub(-1) ~= "\n" then
    finish = last_break(file, size)
    tail = tail_of(file, finish)
  end
  local chain = lines.chain(tail:sub(1, -2))
  -- An answer of the service may have such members, too, and the line be torn behind them.
  local is_whole = last and (finish == 0 or chain and last.prev == chain.hash)
  if is_whole then
    finish, chain = size, last
  end
  if not chain and size > 0 and not (finish == 0 and expects_first) then
    fail(self, "the last line is not one of a journal; run `journal verify`, or name another file", "damaged")
  end
  return finish, chain and { part = chain.part, seq = chain.seq, hash = chain.hash }, is_whole
end

-- Takes the lock: the open head file. Waits for other writers, whose batches are short.
local function take_lock(self)
  local path = self.path .. ".head"
  local file, message = open(path, "r+b")
  local beside = not file and open(self.path, "rb")
  if beside then
    -- No head file is made beside a file that is no journal.
    closing(beside, read_end, self, beside)
  end
  if not file then
    file, message = open_or_make(self, path, "ab")
    file = file and file:close() and open(path, "r+b")
  end
  expect(self, "the head file cannot be opened", file, message)
  local waited = 0
  while not self.system.lock(file) do
    if waited >= self.settings.lock_timeout then
      file:close()
      fail(self, "another program holds the lock for too long", "busy")
    end
    self.settings.sleep(LOCK_PAUSE)
    waited = waited + LOCK_PAUSE
  end
  return file
end

local function sync(self, file)
  local is_done = not self.settings.sync or self.system.sync(file)
  expect(self, "the file cannot be synchronised", is_done, "fdatasync failed")
end

-- Writes the head into the head file.
local function note(self, lock_file, head, is_rotated)
  local ending = is_rotated and ',"next":true}' or "}"
  local content = ('{"part":%d,"seq":%d,"hash":"%s"'):format(head.part, head.seq, head.hash) .. ending
  -- One write of always the same length: a program that is killed leaves the old head or the new one.
  lock_file:seek "set"
  local written, message = lock_file:write(content .. (" "):rep(HEAD_LENGTH - 1 - #content) .. "\n")
  expect(self, "the head cannot be written", written, message)
  self.settled_at, self.dirty = self.settings.now(), false
end

-- Notes the head when the lines are on the disk, where `sync` says so.
local function settle(self, lock_file, file, head, is_rotated)
  sync(self, file)
  note(self, lock_file, head, is_rotated)
  return true
end

-- The head after the last line, or nil where there is none, and the size of the file. A torn line is removed, unless
-- the noted head says that it was written.
local function mend_end(self, file, settled, expects_first)
  local size, last, lacks_end = read_end(self, file, expects_first)
  if last and settled and settled.seq > last.seq then
    local message = "the file ends at line %d, but line %d was written; run `journal verify`"
    fail(self, message:format(last.seq, settled.seq), "damaged")
  elseif size < file:seek "end" then
    expect(self, "a torn line cannot be removed", self.system.truncate(file, size))
    self.repaired = self.repaired + 1
  elseif lacks_end then
    expect(self, "the end of the last line cannot be written", file:write "\n")
    size = size + 1
  end
  return last, size
end

-- Checks that the last line was written with this key: a chain never changes its key.
local function check_last(self, file, size)
  local start = last_break(file, size - 1)
  if size - start > lines.LONGEST_LINE then
    local message = "the last line is longer than %d bytes; run `journal verify`"
    fail(self, message:format(lines.LONGEST_LINE), "damaged")
  end
  file:seek("set", start)
  local chain = size > 0 and lines.chain(file:read(size - 1 - start))
  if chain and self.hash(chain.content) ~= chain.hash then
    fail(self, "the last line does not match its hash: it was changed, or written with another key", "damaged")
  end
end

local function fail_as_lost(self, settled)
  local message = "the file is missing or empty, but line %d was written to it; bring it back, or move %s.head and "
    .. "all older files away to begin a new journal"
  fail(self, message:format(settled.seq, self.path), "damaged")
end

-- Notes the end of a part whose file another program has renamed, or a writer that ended before its note. The noted
-- head may not know the last lines in it, and so a new file must not follow that head.
local function note_renamed(self, lock_file, settled, part)
  local renamed = tables.merge(self, { path = self.path .. "." .. part }) -- failures name it
  local file = expect(renamed, "the file cannot be opened", open(renamed.path, "a+b"))
  return closing(file, function()
    local last, size = mend_end(renamed, file, settled)
    self.repaired = renamed.repaired
    if last and (last.part ~= part or last.seq == settled.seq and last.hash ~= settled.hash) then
      local message = "this is not part %d of the journal, which was written last; give the files their names back"
      fail(renamed, message:format(part), "damaged")
    elseif not last and settled.seq > 0 and not settled.next then
      fail_as_lost(self, settled)
    end
    check_last(renamed, file, size)
    local head = { part = part, seq = (last or settled).seq, hash = (last or settled).hash }
    settle(self, lock_file, file, head, true)
    return tables.merge(head, { next = true })
  end)
end

-- The head for an empty or a new file: after the last line of the file before it.
local function head_of_new_file(self, lock_file, settled)
  if not settled and files.exists(self.path .. ".1") then
    local message = "the head file is missing, but there are older files; bring it back, or move them away to begin a "
      .. "new journal"
    fail(self, message, "damaged")
  end
  settled = settled or { part = 1, seq = 0, hash = lines.FIRST }
  local part = settled.part + (settled.next and 1 or 0)
  if files.exists(self.path .. "." .. part) then
    return head_of_new_file(self, lock_file, note_renamed(self, lock_file, settled, part))
  elseif settled.seq > 0 and not settled.next then
    fail_as_lost(self, settled)
  end
  return { part = part, seq = settled.seq, hash = settled.hash }
end

-- The place where the next line goes: the head, and the size of the file.
local function find_place(self, lock_file, file)
  lock_file:seek "set"
  local content = lock_file:read(LONGEST_HEAD)
  local settled = M.parse_head(content)
  if content and content:find "[^%s%z]" and not content:find '^{"part":' then
    fail(self, self.path .. ".head is not the head of a journal", "damaged")
  end
  local last, size = mend_end(self, file, settled, settled and (settled.next or settled.seq == 0))
  local head = last or head_of_new_file(self, lock_file, settled)
  if not settled and not last then
    -- From now on the file is known as a journal's, and its head has its place on the disk.
    note(self, lock_file, head)
  end
  return head, size
end

local function rotate(self, lock_file, file, head)
  settle(self, lock_file, file, head)
  local target = self.path .. "." .. head.part
  if files.exists(target) then
    fail(self, target .. " exists; move it away, so that nothing is overwritten")
  end
  expect(self, "the file cannot be rotated", os.rename(self.path, target))
  return settle(self, lock_file, file, head, true)
end

-- Runs a function with the lock, the open file, the head and the size.
local function with_lock(self, fn)
  if not self.is_resolved then
    -- All names of a journal have one lock: that of the file behind the links, which therefore has to be there.
    local made = open_or_make(self, self.path, "ab")
    self.is_resolved = made and made:close() or false
    self.path = files.target(self.path)
  end
  local lock_file = take_lock(self)
  return closing(lock_file, function() -- which releases the lock
    local file = expect(self, "the file cannot be opened", open_or_make(self, self.path, "a+b"))
    return closing(file, function()
      return fn(lock_file, file, find_place(self, lock_file, file))
    end)
  end)
end

-- Appends all of the lines, or none. Returns false where they belong into the next file.
local function append(self, bodies, lock_file, file, head, size)
  if not bodies[1] then
    return true
  end
  local sealed, after = lines.seal(bodies, head, self.hash)
  local content = table.concat(sealed, "\n") .. "\n"
  local max_size = self.settings.max_size
  if max_size and size > 0 and size + #content > max_size then
    rotate(self, lock_file, file, head)
    return false
  end
  -- Once a file has a line, its head says so: a file that is gone is not taken for one that was never written.
  local is_due = size == 0 or self.settings.now() >= self.settled_at + (self.settings.sync or self.settings.settle)
  local ok, err = pcall(function()
    expect(self, "the line cannot be written", file:write(content))
    if is_due then
      sync(self, file)
    end
  end)
  if not ok then
    self.system.truncate(file, size)
    error(err, 0)
  end
  self.dirty = true
  if is_due then
    pcall(note, self, lock_file, after) -- the lines are there also without it: the next ones, or `close`, note it again
  end
  return true
end

---Appends lines.
---@param take fun(): string[] called under the lock: another flush may write them before
---@return true
function File:write(take)
  if not self.is_checked then
    self:open()
  end
  local is_written
  repeat
    is_written = with_lock(self, function(...)
      return append(self, take(), ...)
    end)
  until is_written
  return true
end

---Begins a new file.
---@return true
function File:rotate()
  return with_lock(self, function(lock_file, file, head, size)
    return size == 0 or rotate(self, lock_file, file, head)
  end)
end

---The head of the chain.
---@return riskscreen.JournalHead
function File:head()
  return with_lock(self, function(_, _, head)
    return head
  end)
end

---Writes the head, so that a file that is cut at its end is found out. Without a line in the file, the head was noted
---when the file before it got its new name.
---@return true
function File:close()
  return not self.dirty
    or with_lock(self, function(lock_file, file, head, size)
      if size > 0 then
        settle(self, lock_file, file, head)
      end
      self.dirty = false
      return true
    end)
end

---Opens the file for the first time: creates it, removes a torn line, and checks that the chain can go on.
---@return true
function File:open()
  self.is_checked = with_lock(self, function(_, file, _, size)
    check_last(self, file, size)
    return true
  end)
  return true
end

---@param path string
---@param settings { key?: string, max_size?: integer, sync: number|false, settle: number, lock_timeout: number,
---now: (fun(): number), sleep: fun(seconds: number) }
---@return riskscreen.journal.File|nil
---@return riskscreen.Error|nil err
function M.new(path, settings)
  local system = optional "riskscreen.system"
  if not system then
    local message = "journal.file needs riskscreen.system, which is compiled with the library"
    return nil, errors.new("unsupported", message)
  end
  local kind = files.kind(path)
  if kind == "directory" or kind == "pipe" then
    return nil, M.failure(path, "Is a " .. kind) -- as the system says of a directory
  end
  return setmetatable({
    path = path,
    settings = tables.without(settings, "key"),
    hash = lines.hasher(settings.key),
    system = system,
    settled_at = settings.now(),
    dirty = false,
    repaired = 0,
    is_checked = false,
    is_resolved = false,
  }, File)
end

return M
