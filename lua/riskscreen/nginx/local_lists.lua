-- The local lists of a gate. They are loaded before there are workers, which share the memory. Each worker looks at the
-- files by a timer, and loads a new one in small steps between requests.
local lists = require "riskscreen.lists"
local runtime = require "riskscreen.runtime"
local tables = require "riskscreen.util.tables"

local ngx = _G.ngx

local PAUSE = 0.001 -- seconds; ngx.sleep(0) would not let other requests run

---@class riskscreen.nginx.LocalLists
---@field private lists riskscreen.Lists
---@field private interval number seconds
---@field private started boolean
local LocalLists = {}
LocalLists.__index = LocalLists

local function log(message)
  ngx.log(ngx.WARN, "riskscreen: ", message)
end

local function pause()
  ngx.sleep(PAUSE)
end

---Starts the timer of this worker.
function LocalLists:start()
  if self.started then
    return
  end
  self.started = true
  local function look(premature)
    local ok, failure = true, nil
    if not premature then
      ok, failure = pcall(self.lists.refresh, self.lists, pause)
    end
    if not ok then
      log("the local lists are not refreshed: " .. tostring(failure))
    end
  end
  -- A file may have changed since it was loaded. An exiting worker gets no timers, and needs none.
  local ok, message = ngx.timer.at(0, look)
  if ok then
    ok, message = ngx.timer.every(self.interval, look)
  end
  if not ok and not ngx.worker.exiting() then
    log("the local lists are not refreshed by this worker: " .. tostring(message))
  end
end

---The decision of the lists about an address, as of riskscreen.Lists; nil where the service must be asked.
---@param address string canonical
---@param network string
---@return riskscreen.Decision|nil
function LocalLists:decide(address, network)
  if not self.started then
    self:start()
  end
  local decision = self.lists:decide(address, network)
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
---@return riskscreen.nginx.LocalLists|nil
---@return string|nil problem
function M.new(settings, level)
  local opened, problem =
    lists.open(tables.merge({ on_problem = log }, settings), ngx.time, runtime.nginx_time, level, true)
  if not opened then
    return nil, problem
  end
  return setmetatable({ lists = opened, interval = settings.interval, started = false }, LocalLists)
end

return M
