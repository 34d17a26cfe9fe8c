-- The account's lists in Redis: one machine fetches them, and the others take its pages from there. Each page is sealed
-- with the number of its run, so that no page of another run can take its place.
local clock = require "riskscreen.nginx.fleet.clock"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local redis = require "riskscreen.redis"
local seals = require "riskscreen.nginx.fleet.seal"
local time = require "riskscreen.util.time"

local VERSION = "1"
local HEAD = VERSION .. " %.3f %d" -- time of the fetch, number of pages
local HEAD_PATTERN = "^1 (%d+%.%d+) (%d+)$"
local MAX_PAGES = 100000
local BATCH = 50 -- pages that are read or written at once

local is_list = { blacklist = true, whitelist = true }

---@class riskscreen.nginx.ListPage
---@field list "blacklist"|"whitelist"
---@field items table[] as the service lists them

---@class riskscreen.nginx.SharedLists
---@field private client riskscreen.Redis
---@field private seal riskscreen.nginx.Seal
---@field private key string
---@field private skew number seconds by which two machines may differ in the time of Redis
---@field private now fun(): number monotonic seconds
---@field private holder string this machine and this worker
local SharedLists = {}
SharedLists.__index = SharedLists

local function page_key(self, at, number)
  return ("%s:%.3f:%d"):format(self.key, at, number)
end

-- Runs commands a few at a time. Returns nil if one fails.
local function run(client, commands)
  local all = {}
  for first = 1, #commands, BATCH do
    local batch = {}
    for index = first, math.min(first + BATCH - 1, #commands) do
      batch[#batch + 1] = commands[index]
    end
    local replies = client:pipeline(batch)
    for _, reply in ipairs(replies or {}) do
      if errors.is(reply) then
        return nil
      end
      all[#all + 1] = reply
    end
    if not replies then
      return nil
    end
  end
  return all
end

local function read_page(self, key, sealed)
  local text = type(sealed) == "string" and self.seal:open(key, sealed)
  local page = text and json.decode(text)
  if type(page) == "table" and is_list[page.list] and type(page.items) == "table" then
    return page
  end
end

---The pages that another machine has fetched lately.
---@param max_age number seconds
---@return riskscreen.nginx.ListPage[]|nil
---@return number at seconds of the fetch, as early as it can have been by this machine's clock
function SharedLists:read(max_age)
  local offset = clock.offset(self.client, self.now, self.skew)
  local sealed = self.client:call("GET", self.key)
  local head = type(sealed) == "string" and self.seal:open(self.key, sealed)
  local at, count = (head or ""):match(HEAD_PATTERN)
  at, count = tonumber(at), tonumber(count)
  local now = offset and self.now() + offset
  if not now or not at or count > MAX_PAGES or not time.age(at, now, self.skew) or now >= at - self.skew + max_age then
    return nil, 0
  end
  local commands, pages = {}, {}
  for number = 1, count do
    commands[number] = { "GET", page_key(self, at, number) }
  end
  local replies = run(self.client, commands)
  for number = 1, replies and count or 0 do
    pages[number] = read_page(self, commands[number][2], replies[number])
    if not pages[number] then
      return nil, 0
    end
  end
  self.refused_at = nil
  return replies and pages, at - offset - self.skew
end

---Takes the lease of all machines. Its end is by the date of Redis, which may be set back, and others may write to
---Redis. So it counts for `seconds` by this machine's clock.
---@param seconds number after which it ends by itself
---@return boolean taken false if another machine has it; true also if Redis fails
function SharedLists:take_lease(seconds)
  local reply = self.client:call("SET", self.key .. ":lease", self.holder, "NX", "PX", math.ceil(seconds * 1000))
  self.refused_at = reply == false and (self.refused_at or self.now()) or nil
  return not self.refused_at or self.now() >= self.refused_at + seconds
end

function SharedLists:end_lease()
  self.client:call("EVAL", redis.RELEASE, 1, self.key .. ":lease", self.holder)
end

---Writes the pages of a fetch. The head comes last, so that it never names pages that are not there yet.
---@param pages riskscreen.nginx.ListPage[]
---@param asked_at number seconds of the fetch
---@param seconds number that they are kept
function SharedLists:write(pages, asked_at, seconds)
  local commands, milliseconds = {}, math.ceil(seconds * 1000)
  local offset = clock.offset(self.client, self.now, self.skew)
  if not offset then
    return
  end
  local at = tonumber(("%.3f"):format(asked_at + offset))
  for number, page in ipairs(pages) do
    local key = page_key(self, at, number)
    commands[number] = { "SET", key, self.seal:close(key, assert(json.encode(page))), "PX", milliseconds }
  end
  if run(self.client, commands) then
    self.client:call("SET", self.key, self.seal:close(self.key, HEAD:format(at, #pages)), "PX", milliseconds)
  end
end

local M = {}

---@param client riskscreen.Redis
---@param keys string[] of the operator
---@param id string tells these lists from those of other gates
---@param skew number seconds
---@param now fun(): number
---@param holder string unique to this machine and this worker
---@return riskscreen.nginx.SharedLists
function M.new(client, keys, id, skew, now, holder)
  return setmetatable({
    client = client,
    seal = seals.new(keys, "lists"),
    key = client:key("lists:" .. id),
    skew = skew,
    now = now,
    holder = holder,
  }, SharedLists)
end

return M
