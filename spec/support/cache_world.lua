-- Simulated workers of nginx that share a dict, in this process. Their clock jumps to the next event. With a seed,
-- their threads take turns in a random order, also between two steps at the dict.
local caches = require "riskscreen.nginx.cache"
local random = require "spec.support.random"
local shared_dict = require "spec.support.shared_dict"

local unpack = table.unpack or unpack -- luacheck: ignore 113 143

local START = 1000 -- seconds since the machine has started
local DATE = 1700000000 -- Unix seconds at that time
local MOST_STEPS = 1000000

local function nothing() end

local M = {
  -- The services of nginx that a cache lacks here.
  without_nginx = { hold = nothing, release = nothing, may_end = nothing, exiting = nothing },
}

-- A pcall of functions that may wait, for every Lua.
local function contain(fn, ...)
  local thread = coroutine.create(fn)
  local function after(ok, ...)
    if not ok then
      return false, ...
    elseif coroutine.status(thread) == "dead" then
      return true, ...
    end
    return after(coroutine.resume(thread, coroutine.yield(...)))
  end
  return after(coroutine.resume(thread, ...))
end

---@class riskscreen.spec.CacheWorld
---@field time number of the monotonic clock
---@field date number Unix seconds at the time 0; the dict's entries expire by the date
---@field dict riskscreen.spec.SharedDict
---@field asked { address: any, network: any, seconds: number, at: number }[] of the service, so far
---@field answer fun(address: any, network: any, seconds: number): riskscreen.Decision|nil the answer; may wait
local World = {}
World.__index = World

---@param options? { seed?: integer } with a seed, threads take turns at random
---@return riskscreen.spec.CacheWorld
function M.new(options)
  local world = setmetatable({ time = START, date = DATE - START, threads = {}, asked = {}, workers = 0 }, World)
  world.draw = options and options.seed and random.new(options.seed).integer
  world.dict = shared_dict.new(function()
    return world.date + world.time
  end)
  world.answer = function(address, network)
    return world.decision("allow", address, network)
  end
  return world
end

---A decision as a client gives it.
---@return riskscreen.Decision
function World.decision(action, address, network, message)
  return {
    action = action,
    reasons = { { action = action, message = message or "because of " .. action } },
    records = { { address = address } },
    address = address,
    network = network,
    degraded = false,
    cached = false,
    stale = false,
    elapsed = 0.1,
  }
end

-- Lets the other threads run, until `is_due` or the time is up. Without threads it only sets the clock.
local function wait(self, seconds, is_due)
  if not self.running then
    self.time = self.time + seconds
    return
  end
  coroutine.yield(self.time + seconds, is_due)
end

---Lets time pass in the service.
---@param seconds number
function World:sleep(seconds)
  wait(self, seconds)
end

local function semaphore_of(world)
  local posted = 0
  local function is_due()
    return posted > 0
  end
  return {
    wait = function(_, seconds)
      if posted == 0 then
        wait(world, seconds, is_due)
      end
      if posted > 0 then
        posted = posted - 1
        return true
      end
      return nil, "timeout"
    end,
    post = function(_, count)
      posted = posted + count
    end,
  }
end

-- The dict; other threads may run before each step.
local function stepping(self)
  return setmetatable({}, {
    __index = function(_, name)
      return function(_, ...)
        if self.running and self.draw then
          wait(self, 0)
        end
        return self.dict[name](self.dict, ...)
      end
    end,
  })
end

---A worker's cache.
---@param settings? table of the cache; `dict = false`: none
---@return riskscreen.nginx.Cache
function World:worker(settings)
  self.workers = self.workers + 1
  local number = self.workers
  local given = settings or {}
  local function now()
    return self.time
  end
  local all = {
    fetch = function(address, network, seconds)
      table.insert(self.asked, { address = address, network = network, seconds = seconds, at = self.time })
      return self.answer(address, network, seconds)
    end,
    clock = now,
    sleep = function(seconds)
      wait(self, seconds)
    end,
    new_semaphore = function()
      return semaphore_of(self)
    end,
    pcall = contain,
    -- It runs with the other threads.
    spawn = function(work)
      table.insert(self.threads, { coroutine = coroutine.create(work), due = self.time })
      return true
    end,
    is_alone = function()
      return self.workers == 1
    end,
    holder = function()
      return number
    end,
  }
  for name, value in pairs(M.without_nginx) do
    all[name] = value
  end
  for name, value in pairs(given) do
    all[name] = value
  end
  if given.dict == nil then
    all.dict = stepping(self)
  end
  all.dict = all.dict or nil
  return caches.new(all)
end

local function is_due(self, thread)
  return thread.due <= self.time or (thread.is_due and thread.is_due())
end

local function due_threads(self)
  local list, earliest = {}, math.huge
  for _, thread in ipairs(self.threads) do
    if is_due(self, thread) then
      list[#list + 1] = thread
    end
    earliest = math.min(earliest, thread.due)
  end
  return list, earliest
end

local function remove(list, thread)
  for index, other in ipairs(list) do
    if other == thread then
      table.remove(list, index)
      return
    end
  end
end

---Stops a thread for ever, as a crash does.
---@param thread table
function World:kill(thread)
  remove(self.threads, thread)
end

---Makes a thread that begins with the next run.
---@param body function
---@return table thread
function World:thread(body)
  local thread = { coroutine = coroutine.create(body), due = self.time }
  table.insert(self.threads, thread)
  return thread
end

local function resume(self, thread)
  local ok, due, condition = coroutine.resume(thread.coroutine)
  if not ok then
    self:kill(thread)
    error(due, 0)
  elseif coroutine.status(thread.coroutine) == "dead" then
    self:kill(thread)
  else
    thread.due, thread.is_due = due, condition
    -- At the end of the list: threads that are due at the same time take turns.
    remove(self.threads, thread)
    table.insert(self.threads, thread)
  end
end

---Runs functions and all other threads side by side, until all have ended.
---@param bodies? function[]
function World:run(bodies)
  for _, body in ipairs(bodies or {}) do
    self:thread(body)
  end
  self.running = true
  local steps = 0
  while self.threads[1] do
    steps = steps + 1
    assert(steps < MOST_STEPS, "threads go on for ever")
    local due, earliest = due_threads(self)
    if due[1] then
      resume(self, due[self.draw and self.draw(#due) or 1])
    else
      self.time = earliest
    end
  end
  self.running = false
end

---Calls a function that may wait.
function World:call(fn, ...)
  local arguments, n = { ... }, select("#", ...)
  local results
  self:run {
    function()
      results = { fn(unpack(arguments, 1, n)) }
    end,
  }
  return unpack(results)
end

return M
