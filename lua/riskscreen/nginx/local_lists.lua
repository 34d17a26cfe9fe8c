-- The local lists of a gate. They are loaded before there are workers, which share the memory. Each worker looks at the
-- files by a timer, and loads a new one in small steps between requests. It decides after its first look: its master
-- may have started long ago.
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local lists = require "riskscreen.lists"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local ngx = _G.ngx

local PAUSE = 0.001 -- seconds; ngx.sleep(0) would not let other requests run
local LONGEST_WAIT = 5 -- seconds of a request for the first look
local STILL_LOADING = "this worker is still loading its local lists"

---@class riskscreen.nginx.LocalLists
---@field private lists riskscreen.Lists
---@field private interval number seconds
---@field private started boolean
---@field private has_looked boolean in this worker
local LocalLists = {}
LocalLists.__index = LocalLists

local function log(message)
  ngx.log(ngx.WARN, "riskscreen: ", message)
end

local function pause()
  ngx.sleep(PAUSE)
end

local function look(self, let_others_run)
  local ok, result = pcall(self.lists.refresh, self.lists, let_others_run)
  if not ok then
    log("the local lists are not refreshed: " .. tostring(result))
  end
  self.has_looked = self.has_looked or result ~= false
end

---Starts the timer of this worker.
function LocalLists:start()
  if self.started then
    return
  end
  self.started = true
  local function look_later(premature)
    if not premature then
      look(self, pause)
    end
  end
  -- A file may have changed since it was loaded. An exiting worker gets no timers.
  local ok, message = ngx.timer.at(0, look_later)
  if ok then
    ok, message = ngx.timer.every(self.interval, look_later)
  end
  if not ok then
    look(self)
    if not ngx.worker.exiting() then
      log("the local lists are not refreshed by this worker: " .. tostring(message))
    end
  end
end

-- Waits for the first look of this worker. It is the timer's, because nginx may end the request meanwhile.
local function wait_for_look(self)
  self:start()
  if runtime.refusal() then
    look(self)
  end
  local deadline = runtime.nginx_time() + LONGEST_WAIT
  while not self.has_looked and not runtime.refusal() and runtime.nginx_time() < deadline do
    pause()
  end
end

---The decision of the lists about an address, as of riskscreen.Lists; nil where the service must be asked.
---@param address string canonical
---@param network string
---@return riskscreen.Decision|nil
function LocalLists:decide(address, network)
  if not self.has_looked then
    wait_for_look(self)
  end
  local decision
  if self.has_looked then
    decision = self.lists:decide(address, network)
  else
    decision = decisions.unknown(errors.new("list", STILL_LOADING, { sent = false, attempts = 0 }))
  end
  if decision then
    decision.address, decision.network = address, network
  end
  return decision
end

---A number that changes with the lists of this worker.
---@return integer
function LocalLists:generation()
  return self.lists.generation
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
  local opened, problem = lists.open(all, ngx.time, runtime.nginx_time, level, true)
  if not opened then
    return nil, problem
  end
  return setmetatable({ lists = opened, interval = settings.interval, started = false, has_looked = false }, LocalLists)
end

return M
