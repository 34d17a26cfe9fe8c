-- The account's blacklist and whitelist, fetched by one worker for all: who is on them needs no look-up. Here it is
-- decided when they are fetched and what an entry means; how they are kept is beside it.
local items = require "riskscreen.nginx.lists.items"
local stores = require "riskscreen.nginx.lists.store"
local turns = require "riskscreen.nginx.lists.lease"

local LOOKS = 4 -- times in an interval that each worker looks whether it is its turn
local BATCH = 200 -- entries that are written before requests get their turn
local SLACK = 2 -- times a page's timeout, after which a worker that is not heard of has crashed

---@class riskscreen.nginx.ListSettings
---@field dict table an ngx.shared dict
---@field client riskscreen.Client
---@field id string whose lists they are, beside those of other gates
---@field interval number seconds between two refreshes
---@field max_age number seconds after which a whitelist that could not be refreshed is not believed
---@field whitelist boolean whether the whitelist counts
---@field page_size integer
---@field timeout number seconds for a page
---@field refreshed? fun(result: "success"|"failure") told of every refresh
---@field now? fun(): number Unix seconds
---@field every? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.every
---@field at? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.at
---@field log? fun(message: string)
---@field pause? fun() lets requests have their turn
---@field exiting? fun(): boolean whether the worker is about to end
---@field checksum? fun(text: string): number
---@field identity? fun(): string|number what no other worker has

---@class riskscreen.nginx.ListRefresher
---@field private store riskscreen.nginx.ListStore
---@field private turn riskscreen.nginx.Turn
---@field private started boolean
---@field private running boolean
local Refresher = {}
Refresher.__index = Refresher

---What a policy makes of the lists.
---@class riskscreen.nginx.Lists
---@field private refresher riskscreen.nginx.ListRefresher
---@field private policy riskscreen.Policy
local Lists = {}
Lists.__index = Lists

-- One list, or an error; the turn is kept from page to page.
local function fetch(self, list, content)
  local settings = self.settings
  local call = { timeout = settings.timeout }
  for page in self.settings.client[list]:pages({ pageSize = settings.page_size }, call) do
    content[list](content, page)
    if settings.exiting() or not self.turn:keep(settings.timeout * SLACK) then
      error("another worker has taken over", 0)
    end
  end
end

local function breather(self)
  local written = 0
  return function()
    written = written + 1
    if written % BATCH == 0 then
      self.settings.pause()
      return self.turn:keep(self.settings.timeout * SLACK)
    end
    return true
  end
end

local function fetch_and_keep(self, at)
  local content = items.new()
  fetch(self, "blacklist", content)
  if self.settings.whitelist then
    fetch(self, "whitelist", content)
  end
  local kept, message = self.store:keep(content, at, breather(self))
  if not kept then
    error(message, 0)
  end
end

---Fetches the lists, if it is this worker's turn. What was known before is forgotten only when all of both has come.
function Refresher:refresh()
  local settings = self.settings
  if self.running then
    return
  end
  local taken, message = self.turn:take(settings.timeout * SLACK)
  if not taken then
    return message and self:failed("the dict has no room for the lists: " .. message)
  end
  self.running = true
  local at = settings.now()
  local ok, failure = pcall(fetch_and_keep, self, at)
  self.running = false
  if not ok and settings.exiting() then
    return self.turn:pass(0)
  end
  -- One that took longer than the interval leaves the service a moment, too.
  self.turn:pass(math.max(at + settings.interval - settings.now(), settings.interval / LOOKS))
  if ok then
    settings.refreshed "success"
  else
    self:failed(failure)
  end
end

---@private
---@param failure any
function Refresher:failed(failure)
  self.settings.refreshed "failure"
  self.settings.log("the lists are not refreshed: " .. tostring(failure))
end

---Has this worker look from now on whether it is its turn.
function Refresher:start()
  if self.started then
    return
  end
  local settings = self.settings
  local function look(premature)
    if not premature then
      self:refresh()
    end
  end
  self.started = true
  local ok, message = settings.every(settings.interval / LOOKS, look)
  if ok then
    ok, message = settings.at(0, look)
  end
  -- A worker that is ending gets no timers, and needs none.
  if not ok and not settings.exiting() then
    settings.log("the lists are not refreshed by this worker: " .. tostring(message))
  end
end

---@class riskscreen.nginx.ListFacts
---@field blacklist integer entries
---@field whitelist integer entries
---@field age_seconds? number since the last refresh; nil where there was none
---@field max_age_seconds number

---How the lists stand.
---@return riskscreen.nginx.ListFacts
function Refresher:facts()
  local state = self.store:state()
  return {
    blacklist = state and state.blacklist or 0,
    whitelist = state and state.whitelist or 0,
    age_seconds = state and math.max(0, self.settings.now() - state.refreshed_at),
    max_age_seconds = self.settings.max_age,
  }
end

---What a policy makes of the lists.
---@param policy riskscreen.Policy
---@return riskscreen.nginx.Lists
function Refresher:under(policy)
  return setmetatable({ refresher = self, policy = policy }, Lists)
end

local function decision(subject, verdict, is_stale)
  return {
    action = verdict.action,
    reasons = verdict.reasons,
    address = subject.address,
    network = subject.network,
    error = verdict.error,
    degraded = verdict.degraded,
    cached = true,
    stale = is_stale,
    elapsed = 0,
  }
end

local UNSAID = {
  action = "block",
  reasons = { { action = "block", message = "the account has blacklisted the address, and does not say why" } },
  degraded = false,
}

-- The verdict about an entry of the blacklist, if it is a block: anything milder the service may know more about.
local function block_for(self, subject, entry)
  if not entry then
    return nil
  end
  local verdict = UNSAID
  if entry.risks then
    verdict = self.policy:decide {
      risk = { address = subject.address, network = subject.network, risks = entry.risks },
    }
  end
  return verdict.action == "block" and verdict or nil
end

-- The verdict about an address of which nothing is known but that it is on the whitelist, if it may pass.
local function pass_for(self, subject)
  local verdict = self.policy:decide {
    risk = { address = subject.address, network = subject.network, whitelist = true, risks = {} },
  }
  return verdict.action == "allow" and not verdict.degraded and verdict or nil
end

---What the lists say of an address: that it is blocked, or that it may pass. Nil where the service must be asked.
---@param subject riskscreen.nginx.Subject
---@param now number Unix seconds
---@return { decision: riskscreen.Decision, valid_until: number }|nil
function Lists:find(subject, now)
  local store, settings = self.refresher.store, self.refresher.settings
  local believed_until = store:believed_until(now, settings.max_age)
  local everywhere, here = store:blacklisted(items.everywhere(subject.address)), store:blacklisted(subject.key)
  local block = block_for(self, subject, everywhere) or block_for(self, subject, here)
  if block then
    return { decision = decision(subject, block, not believed_until), valid_until = now + settings.interval }
  elseif everywhere or here or not settings.whitelist or not believed_until then
    return nil
  end
  local pass = store:whitelisted(subject.key) and pass_for(self, subject)
  return pass
      and {
        decision = decision(subject, pass, false),
        valid_until = math.min(believed_until, now + settings.interval),
      }
    or nil
end

---Has the lists refreshed in this worker's turn from now on.
function Lists:start()
  self.refresher:start()
end

local M = {}

local function of_nginx()
  local ngx = _G.ngx
  return {
    now = ngx.now,
    every = ngx.timer.every,
    at = ngx.timer.at,
    checksum = ngx.crc32_long,
    identity = ngx.worker.pid,
    exiting = ngx.worker.exiting,
    pause = function()
      ngx.sleep(0.001) -- with 0 this worker would go on at once
    end,
    log = function(message)
      ngx.log(ngx.ERR, "riskscreen: ", message)
    end,
    refreshed = function() end,
  }
end

---The lists of one account. Nothing is sent and nothing waited for: it can be made before there are workers.
---@param given riskscreen.nginx.ListSettings
---@return riskscreen.nginx.ListRefresher
function M.new(given)
  local settings = _G.ngx and of_nginx() or {}
  for name, value in pairs(given) do
    settings[name] = value
  end
  local prefix = "riskscreen:list:" .. given.id .. ":"
  return setmetatable({
    settings = settings,
    store = stores.new(settings.dict, prefix, settings.checksum),
    turn = turns.new(settings.dict, prefix .. "turn", settings.identity, settings.now),
    started = false,
    running = false,
  }, Refresher)
end

return M
