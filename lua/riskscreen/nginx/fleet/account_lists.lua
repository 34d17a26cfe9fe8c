-- The account's lists in Redis: one machine fetches them, and the others take its pages from there. All pages are one
-- sealed text, so that no page of another fetch can take the place of one.
local clock = require "riskscreen.nginx.fleet.clock"
local json = require "riskscreen.json"
local redis = require "riskscreen.redis"
local seals = require "riskscreen.nginx.fleet.seal"
local time = require "riskscreen.util.time"

-- Version of this format, time of the fetch, and pages, each a line of JSON.
local TEXT, PATTERN = "2 %.3f\n%s", "^2 (%d+%.%d+)\n(.*)$"

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

-- The pages of a text; nil where one is none.
local function pages_in(text)
  local pages = {}
  for line in text:gmatch "[^\n]+" do
    local page = json.decode(line)
    if type(page) ~= "table" or not is_list[page.list] or type(page.items) ~= "table" then
      return nil
    end
    pages[#pages + 1] = page
  end
  return pages
end

---The pages that another machine has fetched lately.
---@param max_age number seconds
---@return riskscreen.nginx.ListPage[]|nil
---@return number at seconds of the fetch, as early as it can have been by this machine's clock
function SharedLists:read(max_age)
  local offset = clock.offset(self.client, self.now, self.skew)
  local sealed = self.client:call("GET", self.key)
  local text = type(sealed) == "string" and self.seal:open(self.key, sealed)
  local at, content = (text or ""):match(PATTERN)
  at = tonumber(at)
  local now = offset and self.now() + offset
  if not now or not at or not time.age(at, now, self.skew) or now >= at - self.skew + max_age then
    return nil, 0
  end
  local pages = pages_in(content)
  self.refused_at = not pages and self.refused_at or nil
  return pages, at - offset - self.skew
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

---Writes the pages of a fetch.
---@param pages riskscreen.nginx.ListPage[]
---@param asked_at number seconds of the fetch
---@param seconds number that they are kept
function SharedLists:write(pages, asked_at, seconds)
  local offset, lines = clock.offset(self.client, self.now, self.skew), {}
  for index, page in ipairs(offset and pages or {}) do
    lines[index] = assert(json.encode(page))
  end
  if offset then
    local sealed = self.seal:close(self.key, TEXT:format(asked_at + offset, table.concat(lines, "\n")))
    self.client:call("SET", self.key, sealed, "PX", math.ceil(seconds * 1000))
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
