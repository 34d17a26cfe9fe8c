-- A journal in a store.

local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local files = require "riskscreen.journal.file"
local lines = require "riskscreen.journal.line"
local runtime = require "riskscreen.runtime"

local SPACE = "journal"
local HEAD = "head"
local KEY = "line:%015d"
local ATTEMPTS = 100 -- to write while other programs write as well

local M = {}

---@class riskscreen.journal.OfStore: riskscreen.JournalTarget
---@field private store riskscreen.Store
---@field private space riskscreen.StoreSpace
---@field private hash fun(text: string): string
---@field private in_turn fun(fn: function, ...): any
local OfStore = {}
OfStore.__index = OfStore

-- The head, and its text in the store, which is nil in an empty journal.
local function read_head(self)
  local content = errors.ensure(self.space:get(HEAD))
  if not content then
    return { part = 1, seq = 0, hash = lines.FIRST }
  end
  local head = files.parse_head(content)
  return head or error(files.failure("in the store", "its head is damaged", "damaged"), 0), content
end

-- The changes that append lines after a head: all are made, or none where another program was first.
local function changes_for(self, bodies, head, old)
  local sealed, after = lines.seal(bodies, head, self.hash)
  local changes, content = {}, json.encode(after)
  for index, line in ipairs(sealed) do
    changes[index] = { kind = "add", space = SPACE, key = KEY:format(head.seq + index), value = line }
  end
  changes[#changes + 1] = old and { kind = "replace", space = SPACE, key = HEAD, value = content, expected = old }
    or { kind = "add", space = SPACE, key = HEAD, value = content }
  return changes
end

local function append(self, take)
  local bodies = take()
  for _ = 1, ATTEMPTS do
    if errors.ensure(self.store:batch(changes_for(self, bodies, read_head(self)))) then
      return true
    end
  end
  error(files.failure("in the store", "other programs write all the time", "busy"), 0)
end

---Appends lines. One task of this program does so at a time: each other one would make it try again.
---@param take fun(): string[]
---@return true
function OfStore:write(take)
  return self.in_turn(append, self, take)
end

OfStore.head = read_head

function OfStore:close() -- luacheck: ignore 212
  return true
end

---@param store riskscreen.Store
---@param key? string
---@return riskscreen.JournalTarget
function M.of_store(store, key)
  return setmetatable({
    store = store,
    space = store:space(SPACE),
    hash = lines.hasher(key),
    in_turn = runtime.tasks.turns(),
  }, OfStore)
end

---The lines of a journal in a store, each with a name for messages, its number, and that it is whole.
---@param store riskscreen.Store
---@return fun(): string|nil, string, integer, false
function M.lines(store)
  local each, number = store:space(SPACE):each { prefix = "line:" }, 0
  return function()
    local _, line = each()
    number = number + 1
    return line, "store", number, false
  end
end

return M
