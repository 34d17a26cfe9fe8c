-- The account's blacklist and whitelist, fetched by one worker for all. An address on a list needs no look-up. This
-- file decides when they are fetched, and about an address by them; store.lua keeps them.
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local index = require "riskscreen.lists.index"
local items = require "riskscreen.nginx.account_lists.items"
local leases = require "riskscreen.nginx.lease"
local runtime = require "riskscreen.runtime"
local text = require "riskscreen.util.text"
local stores = require "riskscreen.nginx.account_lists.store"
local tables = require "riskscreen.util.tables"

local TRIES = 4 -- attempts of each worker in an interval to take the lease
local BATCH = 200 -- entries that are written before other requests run
local TAKEN_OVER = "another worker has taken over"
local SLACK = 2 -- times a page's timeout: the length of the lease

---The lists as one policy evaluates them.
---@class riskscreen.nginx.Lists
---@field private refresher riskscreen.nginx.ListRefresher
---@field private policy riskscreen.Policy
local Lists = {}
Lists.__index = Lists

local NO_REASON = { { action = "block", message = "the account has blacklisted the address without a reason" } }
local KEPT = { "action", "reasons", "error", "degraded" }

local function evaluate(self, subject, record)
  return self.policy:decide { risk = tables.merge(record, subject) }
end

-- The decision for an entry of the blacklist, if it is `block`. Any milder one is left to the service, which may know
-- more.
local function block_for(self, subject, entry)
  if not entry then
    return nil
  elseif not entry.risks then
    return { action = "block", reasons = NO_REASON }
  end
  local decision = evaluate(self, subject, { risks = entry.risks })
  return decision.action == "block" and decision or nil
end

-- The decision for an address on the whitelist without any risk, if the policy lets it pass.
local function allow_for(self, subject)
  local decision = evaluate(self, subject, { whitelist = true, risks = {} })
  return decision.action == "allow" and not decision.degraded and decision or nil
end

---The decision of the lists about an address: block or allow. Nil where the service must be asked.
---@param address string canonical
---@param network string canonical
---@param now number seconds
---@return riskscreen.Decision|nil
function Lists:find(address, network, now)
  local store, settings = self.refresher.store, self.refresher.settings
  local subject, is_current = { address = address, network = network }, store:is_current(now, settings.max_age)
  local any_key, own_key = index.keys(address, network)
  local everywhere, here = store:blacklisted(any_key), store:blacklisted(own_key)
  local decision = block_for(self, subject, everywhere) or block_for(self, subject, here)
  if not (everywhere or here) and settings.whitelist and is_current and store:whitelisted(own_key) then
    decision = allow_for(self, subject)
  end
  if decision then
    subject.cached, subject.stale = true, not is_current
    return decisions.new(tables.merge(tables.pick(decision, KEPT), subject))
  end
end

---A value that changes with each refresh of the lists.
---@return string|table
function Lists:generation()
  return self.refresher.store:version()
end

---Starts refreshing in this worker.
function Lists:start()
  self.refresher:start()
end

---@class riskscreen.nginx.ListSettings
---@field dict table an ngx.shared dict
---@field client riskscreen.Client
---@field id string tells these lists from those of other gates
---@field interval number seconds between two refreshes
---@field max_age number seconds after which a whitelist that could not be refreshed stops counting
---@field whitelist boolean whether the whitelist counts
---@field page_size integer
---@field timeout number seconds for a page
---@field refreshed? fun(result: "success"|"failure") called after every refresh
---@field now? fun(): number monotonic seconds
---@field every? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.every
---@field at? fun(seconds: number, callback: fun(premature: boolean)): any ngx.timer.at
---@field log? fun(message: string)
---@field pause? fun() lets other requests run
---@field exiting? fun(): boolean whether the worker is about to exit
---@field identity? fun(): string|number unique to this worker

---@class riskscreen.nginx.ListRefresher
---@field private store riskscreen.nginx.ListStore
---@field private lease_key string in the dict
---@field private lease? string while this worker fetches
---@field private reported? string|false the last message about items that are no address
---@field private started boolean
---@field private obstacle? string why nginx has refused a timer
---@field private running boolean
---@field private shared? riskscreen.nginx.SharedLists
local Refresher = {}
Refresher.__index = Refresher

-- Renews the lease. Raises where it is another worker's by now.
local function renew(self)
  local settings = self.settings
  self.lease = leases.renew(settings.dict, self.lease_key, self.lease, settings.now(), settings.timeout * SLACK)
    or self.lease
  if settings.dict:get(self.lease_key) ~= self.lease then
    error(TAKEN_OVER, 0)
  end
end

-- Ends the lease. No worker takes the next one before the time is over.
local function finish(self, seconds)
  local settings = self.settings
  if seconds > 0 then
    leases.renew(settings.dict, self.lease_key, self.lease, settings.now(), seconds)
  else
    leases.release(settings.dict, self.lease_key, self.lease)
  end
end

-- A function to call for each entry: it lets requests run now and then, and renews the lease.
local function new_pacer(self, batch)
  local count = 0
  return function()
    count = count + 1
    if count % batch == 0 then
      self.settings.pause()
      renew(self)
    end
  end
end

-- A misspelt item of the blacklist guards nothing. It is logged again only when the items change.
local function report_invalid(self, invalid)
  local message = invalid[1] ~= nil
    and ("the lists have %s without an address, such as %s"):format(text.count(#invalid, "item"), text.show(invalid[1]))
  if message and message ~= self.reported then
    self.settings.log(message)
  end
  self.reported = message
end

-- Fetches the pages of both lists. The lease is renewed with every page.
local function fetch_pages(self)
  local settings, pages = self.settings, {}
  local call = { timeout = settings.timeout }
  for _, list in ipairs { "blacklist", settings.whitelist and "whitelist" or nil } do
    for page in settings.client[list]:pages({ pageSize = settings.page_size }, call) do
      pages[#pages + 1] = { list = list, items = page }
      if settings.exiting() then
        error(TAKEN_OVER, 0)
      end
      renew(self)
    end
  end
  return pages
end

-- Fetches the lists for all machines; nil while another one does so.
local function fetch(self, at)
  local settings, shared = self.settings, self.shared
  if not shared then
    return fetch_pages(self)
  elseif not shared:take_lease(settings.timeout * SLACK) then
    return nil
  end
  local ok, pages = pcall(fetch_pages, self)
  if ok then
    shared:write(pages, at, settings.interval)
  end
  shared:end_lease()
  return ok and pages or error(pages, 0)
end

-- The pages that another machine has fetched within the interval. After a failover Redis may have older lists than this
-- machine.
local function find_shared(self)
  if not self.shared then
    return nil
  end
  local pages, at = self.shared:read(self.settings.interval)
  local state = self.store:state()
  if pages and (not state or at >= state.refreshed_at) then
    return pages, at
  end
end

-- Returns the time at which the service was asked; nil while another machine fetches.
local function fetch_and_keep(self, asked_at)
  local pages, at = find_shared(self)
  if not pages then
    pages, at = fetch(self, asked_at), asked_at
  end
  if not pages then
    return nil
  end
  local content, pause = items.new(), new_pacer(self, 1)
  for _, page in ipairs(pages) do
    content[page.list](content, page.items)
    pause()
  end
  self.store:keep(content, at, self.settings.now(), new_pacer(self, BATCH))
  report_invalid(self, content.invalid)
  return at
end

local function report_failure(self, failure)
  self.settings.refreshed "failure"
  self.settings.log("the lists are not refreshed: " .. errors.text(failure))
end

---Fetches the lists if this worker gets the lease. The old lists count until both new ones are complete.
function Refresher:refresh()
  local settings = self.settings
  if self.running then
    return
  end
  local dict, holder, seconds = settings.dict, settings.identity(), settings.timeout * SLACK
  local lease, message = leases.take(dict, self.lease_key, holder, settings.now(), seconds)
  if not lease then
    return message and report_failure(self, "the dict has no room for the lists: " .. message)
  end
  self.lease = lease
  self.running = true
  local at = settings.now()
  local ok, result = pcall(fetch_and_keep, self, at)
  self.running = false
  if not ok and settings.exiting() then
    return finish(self, 0)
  end
  at = ok and result or at
  -- A refresh that took longer than the interval still leaves a pause before the next one.
  local is_waiting = ok and not result
  local pause = is_waiting and 0 or at + settings.interval - settings.now()
  finish(self, math.max(pause, settings.interval / TRIES))
  if not ok then
    report_failure(self, result)
  elseif not is_waiting then
    settings.refreshed "success"
  end
end

---Shares the lists with other machines.
---@param shared riskscreen.nginx.SharedLists
function Refresher:share(shared)
  self.shared = shared
end

local function start(self)
  local settings = self.settings
  local function try(premature)
    if not premature then
      self:refresh()
    end
  end
  local ok, message = settings.every(settings.interval / TRIES, try)
  self.started = ok and true or false
  if ok then
    settings.at(0, try)
  -- An exiting worker gets no timers, and needs none.
  elseif not settings.exiting() and message ~= self.obstacle then
    self.obstacle = message
    settings.log("the lists are not refreshed by this worker: " .. tostring(message))
  end
end

---Starts the timers of this worker that try to take the lease. LuaJIT compiles this function: it makes no closure.
function Refresher:start()
  if not self.started then
    start(self)
  end
end

---@class riskscreen.nginx.ListFacts
---@field blacklist integer entries
---@field whitelist integer entries
---@field invalid integer items that are no address
---@field age_seconds? number since the last refresh; nil before the first
---@field max_age_seconds number

---Sizes and age of the lists.
---@return riskscreen.nginx.ListFacts
function Refresher:facts()
  local state = self.store:state()
  return {
    blacklist = state and state.blacklist or 0,
    whitelist = state and state.whitelist or 0,
    invalid = state and state.invalid or 0,
    age_seconds = state and math.max(0, self.settings.now() - state.refreshed_at),
    max_age_seconds = self.settings.max_age,
  }
end

---The lists as a policy evaluates them.
---@param policy riskscreen.Policy
---@return riskscreen.nginx.Lists
function Refresher:under(policy)
  return setmetatable({ refresher = self, policy = policy }, Lists)
end

local M = {}

local function of_nginx()
  local ngx = _G.ngx
  return {
    now = runtime.nginx_time,
    every = ngx.timer.every,
    at = ngx.timer.at,
    identity = ngx.worker.pid,
    exiting = ngx.worker.exiting,
    pause = function()
      runtime.sleep(0)
    end,
    log = function(message)
      ngx.log(ngx.ERR, "riskscreen: ", message)
    end,
    refreshed = function() end,
  }
end

---The lists of one account. It can be made before there are workers: nothing is sent yet.
---@param given riskscreen.nginx.ListSettings
---@return riskscreen.nginx.ListRefresher
function M.new(given)
  local settings = tables.merge(_G.ngx and of_nginx() or {}, given)
  local prefix = "riskscreen:list:" .. given.id .. ":"
  return setmetatable({
    settings = settings,
    store = stores.new(settings.dict, prefix),
    lease_key = prefix .. "lease",
    started = false,
    running = false,
  }, Refresher)
end

return M
