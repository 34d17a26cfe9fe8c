-- Local deny and allow lists: they decide about an address before the service is asked, also while the network is down.
-- A deny list wins over an allow list. file.lua loads the files, index.lua says what an entry is about.
local addresses = require "riskscreen.address"
local builder = require "riskscreen.lists.build"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local files = require "riskscreen.lists.file"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local texts = require "riskscreen.lists.text"

local DAY = 86400 -- seconds

local M = { build = builder.build, show_problem = texts.show }

---@class riskscreen.ListSettings the checked option `lists`
---@field deny string[] paths
---@field allow string[]
---@field allow_without_call boolean an address on an allow list passes without a call
---@field max_age? number seconds
---@field max_shrink number the share of its entries that a deny list may lose at once
---@field interval number seconds between two looks at the files
---@field on_problem? fun(message: string)
---@field dict? table an ngx.shared dict of all workers

---@class riskscreen.Lists
---@field settings riskscreen.ListSettings
---@field private files riskscreen.ListFile[] deny lists first
---@field private now fun(): number Unix seconds
---@field private clock fun(): number monotonic seconds
---@field private latest number the latest date so far: an entry that has ended does not count again
---@field private looked_at number monotonic seconds
---@field private patience number seconds after which `decide` looks at the files itself
---@field private generation integer greater after each change of a file
---@field private is_refreshing boolean
---@field private reported table<riskscreen.ListFile, string> the last problem of each file
local Lists = {}
Lists.__index = Lists

local function is_stale(self, file, now)
  local max_age = self.settings.max_age
  return max_age ~= nil and (file:age(now) or math.huge) > max_age
end

-- The problem of a file, for a person; or nil.
local function problem_of(self, file, now)
  local list = ("the %s list %s"):format(file.kind, text.show(file.path))
  if file.fault then
    return ("%s was not loaded again, and the old one counts: %s"):format(list, file.fault)
  elseif is_stale(self, file, now) then
    local age = file:age(now)
    local old = age and ("is %.1f days old"):format(age / DAY) or "has no known age"
    return ("%s %s%s"):format(list, old, file.kind == "deny" and "" or ", and does not count")
  elseif file.facts.invalid > 0 then
    local first = file.facts.problems[1]
    local rows = text.count(file.facts.invalid, "row")
    return ("%s has %s without an entry: line %s: %s"):format(list, rows, tostring(first.line), first.message)
  elseif file.facts.expired > 0 then
    return ("%s has %s beyond the date of expiry"):format(list, text.count(file.facts.expired, "entry"))
  end
end

-- Tells the operator of each problem once.
local function report(self, now)
  for _, file in ipairs(self.files) do
    local problem = problem_of(self, file, now)
    local kind = problem and problem:gsub("%d[%d.]* days", "days")
    if problem and kind ~= self.reported[file] and self.settings.on_problem then
      self.settings.on_problem(problem)
    end
    self.reported[file] = kind
  end
end

local function refresh_file(self, file, pause)
  local is_loaded = file:refresh(pause)
  self.generation = self.generation + (is_loaded and 1 or 0)
  return is_loaded
end

---Looks at the files and loads those that have changed.
---@param pause? fun() lets other work run
---@return boolean is_done false while another call does it
function Lists:refresh(pause)
  if self.is_refreshing then
    return false
  end
  self.is_refreshing = true
  self.looked_at = self.clock()
  local ok, failure = pcall(function()
    for _, file in ipairs(self.files) do
      refresh_file(self, file, pause)
    end
  end)
  self.is_refreshing = false
  errors.ensure(ok or nil, failure)
  report(self, self.now())
  return true
end

local function keep_up(self)
  if self.clock() - self.looked_at >= self.patience then
    self:refresh()
  end
end

---Why a list may lack entries that another worker has: its file cannot be loaded, and the list is not the latest one.
---@return string|nil
function Lists:gap()
  for _, file in ipairs(self.files) do
    if file.fault and not file:is_latest() then
      return file:problem()
    end
  end
end

local function reason_of(file, action, address, network, note, any_network, expires)
  local about = any_network and "" or " on " .. network
  local message = ("the %s list %s has the address%s"):format(file.kind, text.printable(file.path, 100), about)
  return {
    action = action,
    message = note ~= "" and message .. ": " .. text.printable(note, 200) or message,
    list = file.path,
    entry = {
      address = address,
      network = not any_network and network or nil,
      expires = expires > 0 and expires or nil,
    },
    note = note ~= "" and note or nil,
  }
end

-- The reasons of the lists of a kind; or nil, the error where a list cannot be searched, and whether one that has the
-- address is stale. A stale allow list does not count.
local function reasons_of(self, kind, address, network, now)
  local reasons, err, any_stale = nil, nil, false
  for _, file in ipairs(self.files) do
    if file.kind == kind and not (kind == "allow" and is_stale(self, file, now)) then
      local note, any_network, expires = file.list:find(address, network, now)
      if note == nil and refresh_file(self, file) then -- it was changed in place
        note, any_network, expires = file.list:find(address, network, now)
      end
      if note then
        reasons = reasons or {}
        local action = kind == "deny" and "block" or "allow"
        reasons[#reasons + 1] = reason_of(file, action, address, network, note, any_network, expires)
        any_stale = any_stale or is_stale(self, file, now)
      elseif note == nil then
        local message = ("the %s list %s cannot be searched: %s"):format(file.kind, text.show(file.path), any_network)
        err = err or errors.new("list", message, { sent = false, attempts = 0 })
      end
    end
  end
  return reasons, err, any_stale
end

local function decided(action, reasons, stale)
  return decisions.new {
    action = action,
    reasons = reasons,
    source = "list",
    stale = stale,
    -- An allow list speaks instead of the service: the operator wrote that, and the decision says so.
    degraded = action == "allow",
  }
end

---The decision of the lists about an address. It is allow only where the operator says that an allow list may pass it.
---It is unknown if a deny list cannot be searched. Nil where the service must be asked; then the allow lists' reasons.
---@param address string canonical
---@param network string
---@return riskscreen.Decision|nil decision
---@return riskscreen.Reason[]|nil notes
function Lists:decide(address, network)
  local now = self.now()
  keep_up(self)
  self.latest = math.max(self.latest, now)
  network = addresses.canonical_network(network)
  local reasons, err, stale = reasons_of(self, "deny", address, network, now)
  if reasons then
    return decided("block", reasons, stale)
  elseif err then
    return decisions.unknown(err)
  elseif not self.has_allow then
    return nil
  end
  local notes = reasons_of(self, "allow", address, network, self.latest)
  if notes and self.settings.allow_without_call then
    return decided("allow", notes, false)
  end
  return nil, notes
end

---Decides by the lists, or else in a way that may wait. Lists that change meanwhile are asked again, so that an entry
---counts at once. All arguments that follow are given to both functions.
---@param find fun(...): riskscreen.Decision|nil, riskscreen.Reason[]|nil as `decide`
---@param ask fun(...): riskscreen.Decision, any
---@return riskscreen.Decision decision
---@return any second of `ask`; nil where the lists decide
---@return riskscreen.Reason[]|nil notes
function Lists:before(find, ask, ...)
  keep_up(self)
  local generation = self.generation
  local decision, notes = find(...)
  if decision then
    return decision
  end
  local answer, second = ask(...)
  keep_up(self)
  if self.generation ~= generation then
    decision, notes = find(...)
    if decision then
      return decision
    end
  end
  return answer, second, notes
end

---@class riskscreen.ListFacts
---@field file string as the option names it
---@field kind "deny"|"allow"
---@field entries integer
---@field bytes integer
---@field age_seconds? number since it was built, or its text changed
---@field stale boolean
---@field invalid integer rows that are no entries
---@field faulty boolean whether the file on disk was not loaded, and the old content counts
---@field problem? string

---The state of each list.
---@return riskscreen.ListFacts[]
function Lists:facts()
  local list, now = {}, self.now()
  for position, file in ipairs(self.files) do
    list[position] = {
      file = file.path,
      kind = file.kind,
      entries = file.facts.entries,
      bytes = file.facts.size,
      age_seconds = file:age(now),
      stale = is_stale(self, file, now),
      invalid = file.facts.invalid,
      faulty = file.fault ~= nil,
      problem = problem_of(self, file, now),
    }
  end
  return list
end

---Loads the lists.
---@param settings riskscreen.ListSettings
---@param now fun(): number Unix seconds, for the age of lists and of their entries
---@param clock fun(): number monotonic seconds
---@param level? "checksum"|"format"|false how the addresses of lists that are not compiled are checked
---@param patience? number seconds after which `decide` looks at the files itself; by default the interval
---@return riskscreen.Lists|nil
---@return string|nil fault
function M.open(settings, now, clock, level, patience)
  local self = setmetatable({
    settings = settings,
    files = {},
    now = now,
    clock = clock,
    latest = now(),
    looked_at = clock(),
    generation = 0,
    patience = patience or settings.interval,
    is_refreshing = false,
    has_allow = settings.allow[1] ~= nil,
    reported = {},
  }, Lists)
  local of_files = { level = level, max_shrink = settings.max_shrink, now = now, dict = settings.dict }
  for _, kind in ipairs { "deny", "allow" } do
    for _, path in ipairs(settings[kind]) do
      local file, fault = files.open(path, tables.merge(of_files, { kind = kind }))
      if not file then
        return nil, fault
      end
      table.insert(self.files, file)
    end
  end
  report(self, now())
  return self
end

---@class riskscreen.LoadedList
---@field facts { entries: integer, size: integer, built_at?: number, invalid: integer, title?: string }
---@field find fun(address: string, network: string): string|false|nil, boolean|string|nil, number|nil as the index's

---Loads and verifies one list file, to look at it. Only an allow list may be empty.
---@param path string
---@param kind? "deny"|"allow" by default deny
---@return riskscreen.LoadedList|nil
---@return string|nil fault
function M.load(path, kind)
  local file, fault = files.open(path, { kind = kind or "deny" })
  local function find_here(address, network)
    return file.list:find(address, addresses.canonical_network(network), os.time())
  end
  return file and { facts = file.facts, find = find_here }, fault
end

return M
