-- The local lists of a gate. They are loaded before there are workers, which share the memory. Each worker looks at the
-- files by a timer, and loads a new one in small steps between requests. A worker whose timer is late, because it is
-- about to exit, looks when it decides. It decides after its first look: its master may have started long ago.
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local lists = require "riskscreen.lists"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local ngx = _G.ngx

local LONGEST_WAIT = 5 -- seconds of a request for the first look
local LATE = 2 -- times the interval: a look that is older is no longer the timer's
local STILL_LOADING = "this worker is still loading its local lists"

---@class riskscreen.nginx.LocalLists
---@field private lists riskscreen.Lists
---@field private interval number seconds
---@field private started boolean
---@field private obstacle? string why this worker may lack entries that others have
local LocalLists = {}
LocalLists.__index = LocalLists

local function log(message)
  ngx.log(ngx.WARN, "riskscreen: ", message)
end

local function pause()
  runtime.sleep(0)
end

local function look(self, let_others_run)
  local ok, result = pcall(self.lists.refresh, self.lists, let_others_run)
  if not ok then
    result = "the local lists are not refreshed: " .. errors.text(result)
    log(result)
  end
  if self.obstacle and result then
    self.obstacle = not ok and result or self.lists:gap()
  end
end

---Starts the timer of this worker.
function LocalLists:start()
  if self.started then
    return
  end
  local function look_later(premature)
    if not premature then
      look(self, pause)
    end
  end
  local ok, message = ngx.timer.every(self.interval, look_later)
  self.started = ok and true or false
  if ok then
    -- A file may have changed since it was loaded.
    ok, message = ngx.timer.at(0, look_later)
  end
  if not ok then
    look(self)
    if not ngx.worker.exiting() then
      log("the local lists are not refreshed by a timer of this worker: " .. tostring(message))
    end
  end
end

-- Waits for the first look of this worker. It is the timer's, because nginx may end the request meanwhile. A timer may
-- be dropped: then the look is here, without a pause.
local function wait_for_look(self)
  self:start()
  local deadline = runtime.nginx_time() + LONGEST_WAIT
  while self.obstacle == STILL_LOADING and not runtime.refusal() and runtime.nginx_time() < deadline do
    pause()
  end
  if self.obstacle == STILL_LOADING then
    look(self)
  end
end

---The decision of the lists about an address, as of riskscreen.Lists; nil where the service must be asked.
---@param address string canonical
---@param network string
---@return riskscreen.Decision|nil
function LocalLists:decide(address, network)
  if self.obstacle == STILL_LOADING then
    wait_for_look(self)
  end
  local decision = self.lists:decide(address, network)
  if self.obstacle and not (decision and decision.action == "block") then
    decision = decisions.unknown(errors.new("list", self.obstacle, { sent = false, attempts = 0 }))
  end
  if decision then
    decision.address, decision.network = address, network
  end
  return decision
end

---As of riskscreen.Lists.
function LocalLists:before(...)
  return self.lists:before(...)
end

---The state of each list in this worker.
---@return riskscreen.ListFacts[]
function LocalLists:facts()
  return self.lists:facts()
end

local M = {}

---@param settings riskscreen.ListSettings the checked option
---@param level "checksum"|"format"|false how addresses of lists that are not compiled are checked
---@param dict? table an ngx.shared dict
---@return riskscreen.nginx.LocalLists|nil
---@return string|nil problem
function M.new(settings, level, dict)
  local all = tables.merge({ on_problem = log, dict = dict }, settings)
  local opened, problem = lists.open(all, ngx.time, runtime.nginx_time, level, LATE * settings.interval)
  if not opened then
    return nil, problem
  end
  local interval = settings.interval
  return setmetatable({ lists = opened, interval = interval, started = false, obstacle = STILL_LOADING }, LocalLists)
end

return M
