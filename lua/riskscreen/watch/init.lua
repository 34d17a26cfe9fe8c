-- riskscreen.watch: screens the same addresses again and again, and reports what has changed. The store holds the last
-- verdict of each address, the place in the cycle, and changes that are not delivered yet.
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local calls = require "riskscreen.call"
local check = require "riskscreen.options.check"
local client_options = require "riskscreen.options"
local decisions = require "riskscreen.policy.decision"
local digest = require "riskscreen.address.digest"
local errors = require "riskscreen.errors"
local files = require "riskscreen.util.files"
local http = require "riskscreen.options.http"
local json = require "riskscreen.json"
local limiters = require "riskscreen.call.limiter"
local outboxes = require "riskscreen.watch.outbox"
local random = require "riskscreen.util.random"
local row_options = require "riskscreen.options.rows"
local rows = require "riskscreen.rows"
local screening = require "riskscreen.client.screen"
local sources = require "riskscreen.rows.source"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local times = require "riskscreen.util.time"
local webhook = require "riskscreen.watch.webhook"

local ensure = errors.ensure

local DAY = 86400 -- seconds
local LONGEST_CYCLE = 30 * DAY
local SPREAD = 0.9 -- of the interval: the rest is room for pauses and slow answers
local LONGEST_SLEEP = 1 -- seconds, so that `stop` is seen
local SHORTEST_SLEEP = 0.01 -- seconds
local MOST_HELD = 100 -- rows of an address that may be old ones with another text
local FAILURES = 3 -- cycles in a row without an answer after which an address is reported as unknown

local SOURCE = "The addresses: the path of a file of rows, a list, or a function that returns an iterator. It is read "
  .. "again in each cycle."
local ON_CHANGE = "on_change(change): takes a change. Where it raises, or returns false, or nil and a reason, it is "
  .. "called again later."

local M = {}

---@type riskscreen.Option[]
M.options = tables.concat({
  build.required { name = "source", type = "string|table|function", doc = SOURCE },
  { name = "network", type = "any", doc = "The network of items that name none." },
  build.required(build.object("store", "riskscreen.Store", "riskscreen.store", "What keeps the verdicts.")),
  build.text("name", build.forms.word, "The name of this watch in the store.", "default"),
  build.seconds("every", 6 * 3600, "The time from the beginning of a cycle to the next.", 1, LONGEST_CYCLE),
  build.number("rate", "screenings a second", 5, 0.001, 1000, "The most screenings a second."),
  build.count("daily_cap", "screenings", nil, 1, 1e9, "The most screenings in a day of UTC."),
  client_options.policy,
  screening.include,
  screening.meta,
  build.callback("on_change", ON_CHANGE),
  build.group("webhook", {
    build.required(build.checked("url", "string", http.base_url, "Where changes are posted.")),
    build.required(build.text("secret", build.forms.key, "The key of the signature."), build.NO_VARIABLE),
    build.seconds("timeout", 10, "Time for one delivery."),
  }, "Post each change as JSON."),
  build.notice("on_failure", "on_failure(message): called when a change could not be delivered."),
}, row_options)

---@class riskscreen.WatchRequest
---@field source string|any[]|fun(): (fun(): any)
---@field network? any
---@field store riskscreen.Store
---@field name? string
---@field every? number seconds
---@field rate? number screenings a second
---@field daily_cap? integer
---@field policy? riskscreen.Policy
---@field include? riskscreen.LookupName[]
---@field meta? table<string, string>
---@field on_change? fun(change: riskscreen.Change): any, any
---@field webhook? { url: string, secret: string, timeout?: number }
---@field on_failure? fun(message: string)

---@class riskscreen.Change
---@field id string the same when the change is delivered again
---@field time integer Unix seconds
---@field watch string
---@field address any as the source gave it
---@field network any
---@field action riskscreen.Action
---@field before? riskscreen.Action nil for an address that is screened for the first time
---@field risks string[] such as "high / hack"
---@field risks_before? string[]
---@field reasons string[]
---@field fields? table<string, string> the other columns of its row
---@field test? boolean a test of the receiver: no address was screened

---@class riskscreen.WatchSummary
---@field screened integer
---@field changed integer
---@field failed integer screenings without an answer
---@field waiting integer changes that a receiver has not taken yet
---@field finished boolean all addresses of the source were screened in this cycle

---@class riskscreen.Watch
---@field private client riskscreen.Client
---@field private settings table
---@field private store riskscreen.Store
---@field private verdicts riskscreen.StoreSpace
---@field private rows riskscreen.StoreSpace the cycle in which each row was compared
---@field private outboxes riskscreen.watch.Outbox[]
---@field private stopped boolean
local Watch = { __name = "riskscreen.Watch" }
Watch.__index = Watch

-- The key of an address, and its key in a store of 0.9.0. A text with a wrong checksum has a key of its own: its
-- screening fails, and that of the address must not.
local function keys_of(address, network)
  local key, canonical = addresses.key(address, network, "checksum")
  local plain = key and canonical or "?" .. text.printable(tostring(address), 500)
  local old_key = text.printable(tostring(network), 100) .. " " .. plain
  return key or old_key, old_key
end

-- The text of a change for a value of an item. One that is not JSON, such as NaN, must not stop the watch.
local function shown(value)
  if value ~= nil and not json.encode(value) then
    return text.show(value)
  end
  return value
end

-- The address could not be screened; the failure says nothing about it.
local function has_failed(decision)
  return decision.action == "unknown" and decision.error ~= nil and decision.error.kind ~= "invalid_argument"
end

-- The entry of an address after a screening: its verdict, the one before, and how many rows name it.
local function screened(self, decision, before)
  local state = calls.state_of(self.client)
  local risks = decisions.risks(decision, state.hide_key)
  local entry = { cycle = self.cycle.number, action = decision.action, risks = risks }
  entry.reasons = decisions.reasons(decision, state.is_sandbox)
  local known = before and before.action and tables.pick(before, { "action", "risks" }) or nil
  entry.known, entry.rows = known, 0
  entry.rows_before = before and before.rows -- 0.9.0 kept none
  if has_failed(decision) then
    entry.failures = (before and before.failures or 0) + 1
    entry.action, entry.risks = "unknown", json.empty_array()
    if entry.failures ~= FAILURES then
      entry.action, entry.risks = known and known.action, known and known.risks
    end
  end
  entry.is_new = not (known and known.action == entry.action and tables.equal(known.risks, entry.risks))
  return entry
end

-- The rows that learn of an entry, now that one of them comes. A row that was not in the last cycle learns of a verdict
-- that is not new. It may be an old row with another text in a column: it waits until there are more rows than then.
local function rows_to_tell(entry, item)
  local row = { address = shown(item.address), network = shown(item.network), fields = item.columns }
  local told = {}
  entry.rows = (entry.rows or 0) + 1
  if entry.is_new and entry.action and (entry.known or entry.action ~= "allow") then
    return { row }
  elseif entry.rows_before and not entry.is_new and entry.action ~= "allow" then
    entry.held = entry.held or {}
    entry.held[#entry.held + 1] = not item.compared_in and row or nil
    if entry.rows > entry.rows_before or #entry.held > MOST_HELD then
      told, entry.held = entry.held, nil
    end
  end
  return told
end

local function change_of(self, entry, row)
  local before = entry.is_new and entry.known or nil
  return tables.merge(row, {
    id = random.token(),
    time = math.floor(self.clock()),
    watch = self.settings.name,
    action = entry.action,
    before = before and before.action,
    risks = entry.risks,
    risks_before = before and before.risks,
    reasons = entry.reasons,
  })
end

-- Keeps an entry, the changes in every outbox, and the count of the day: all or nothing.
local function keep(self, item, entry)
  local told, meta = rows_to_tell(entry, item), self.meta.name
  local used = assert(json.encode(tables.pick(self.cap, { "day", "began", "taken" })))
  local changes = {
    { kind = "put", space = self.verdicts.name, key = item.key, value = assert(json.encode(entry)) },
    { kind = "put", space = self.rows.name, key = item.row, value = tostring(self.cycle.number) },
    { kind = "put", space = meta, key = "cap", value = used },
  }
  for _, row in ipairs(told) do
    self.serial = self.serial + 1
    local body, key = assert(json.encode(change_of(self, entry, row))), ("%015d"):format(self.serial)
    changes[#changes + 1] = { kind = "put", space = meta, key = "serial", value = tostring(self.serial) }
    for _, outbox in ipairs(self.outboxes) do
      changes[#changes + 1] = { kind = "put", space = outbox.name, key = key, value = body }
    end
  end
  ensure(self.store:batch(changes))
  self.summary.changed = self.summary.changed + #told
end

local function deliver(self, at_once)
  for _, outbox in ipairs(self.outboxes) do
    local message = outbox:flush(self.runtime.now(), at_once)
    if message and self.settings.on_failure then
      self.settings.on_failure(message)
    end
  end
end

-- Sleeps, and repeats deliveries meanwhile.
local function wait(self, seconds)
  local now = self.runtime.now
  local deadline = now() + seconds
  while not self.stopped and now() < deadline do
    -- The deadline may pass between two readings of the clock.
    local pause = math.max(0, math.min(deadline - now(), LONGEST_SLEEP))
    for _, outbox in ipairs(self.outboxes) do
      local retry_at = outbox:retry_at()
      pause = retry_at and math.min(pause, math.max(SHORTEST_SLEEP, retry_at - now())) or pause
    end
    self.runtime.sleep(pause)
    deliver(self)
  end
end

-- The rows of a file. One that is changed meanwhile is read again from the first row on: the rows that were compared
-- are passed over.
local function rows_of(settings)
  local function open()
    local of_file = { name = settings.source, checked_first = true, most_invalid = settings.max_invalid }
    return ensure(rows.open(settings.source, tables.merge(settings, of_file)))
  end
  local input = open()
  return function()
    local row, err = input:next()
    while err and input.file.change_fault() do
      input:close()
      input = open()
      row, err = input:next()
    end
    ensure(row, err)
    if not row then
      input:close()
    elseif not addresses.spellings(row.address, "format")[1] then
      input:count_invalid(row.line, text.show(row.address) .. " is no address")
    end
    return row
  end
end

-- The items of the source: tables of `address`, `network` and `fields`. It is read anew in each cycle, one row in
-- memory at a time. A source without addresses is an error: no verdict is forgotten for it.
local function items_of(settings)
  local source, count = settings.source, 0
  if type(source) == "string" then
    return rows_of(settings)
  elseif type(source) == "function" then
    source = source()
  end
  local next_item = sources.items(source)
  return function()
    local item = next_item()
    if item == nil and count == 0 and not settings.allow_empty then
      error(errors.new("invalid_argument", "the source has no addresses", { field = "source", sent = false }), 0)
    end
    count = count + 1
    if item == nil or type(item) == "table" then
      return item
    end
    return { address = item }
  end
end

-- The rows of the source that this cycle has not compared yet.
local function remaining(self)
  local next_item = items_of(self.settings)
  return function()
    for given in next_item do
      local item = { address = given.address, network = given.network or self.settings.network }
      item.columns = not tables.equal(given.fields, {}) and shown(given.fields) or nil
      item.key, item.old_key = keys_of(item.address, item.network)
      -- By tables.fingerprint the rows that stores hold would be told again, after an upgrade from 0.9.0.
      item.row = item.key .. " " .. text.hex(digest.sha256(json.ordered(item.columns)):sub(1, 12))
      item.compared_in = ensure(self.rows:get(item.row))
      local entry = ensure(self.verdicts:get(item.key)) or ensure(self.verdicts:get(item.old_key))
      entry = entry and json.decode(entry)
      item.entry = type(entry) == "table" and entry or nil
      item.is_screened = item.entry and item.entry.cycle == self.cycle.number
      if item.compared_in ~= tostring(self.cycle.number) then
        return item
      end
    end
  end
end

-- Forgets addresses and rows that have left the source. Another file of this watch may still have them.
local function forget(self)
  if self.other_files[1] then
    return
  end
  for row, cycle in self.rows:each() do
    if cycle ~= tostring(self.cycle.number) then
      ensure(self.rows:delete(row))
    end
  end
  for key, value in self.verdicts:each() do
    local entry = json.decode(value)
    if type(entry) ~= "table" or entry.cycle ~= self.cycle.number then
      ensure(self.verdicts:delete(key))
    end
  end
end

-- The real path of a source that is a file; "" for all others.
local function source_of(self)
  return type(self.settings.source) == "string" and files.real(self.settings.source) or ""
end

local function save_cycle(self)
  self.last_file = source_of(self)
  local name, files_of = self.meta.name, tables.concat(self.other_files, { self.last_file })
  ensure(self.store:batch {
    { kind = "put", space = name, key = "files", value = assert(json.encode(files_of)) },
    { kind = "put", space = name, key = "cycle", value = assert(json.encode(self.cycle)) },
    { kind = "put", space = name, key = "account", value = calls.identity.account(calls.state_of(self.client)) },
  })
end

-- The seconds until the cycle has lasted so long. Its start is a date, because it outlives the program. Where the date
-- was set back, the wait is no longer than a whole cycle.
local function left_of(self, seconds)
  return times.wait(self.cycle.started + seconds, self.clock(), seconds)
end

local function screen(self, item)
  local settings = self.settings
  local request = tables.pick(settings, { "policy", "include", "meta" })
  local decision = self.client:screen(tables.merge(request, { address = item.address, network = item.network }))
  if has_failed(decision) and errors.ends_run(decision.error) then
    error(decision.error, 0)
  end
  self.cap:take(1)
  self.summary.screened = self.summary.screened + 1
  self.summary.failed = self.summary.failed + (has_failed(decision) and 1 or 0)
  return screened(self, decision, item.entry)
end

-- Screens what is left of the cycle. With `spread` the screenings fill the interval. Returns whether it has reached the
-- end.
local function pass(self, spread)
  local items = remaining(self)
  local item = items() -- a source that cannot be read raises, before anything is kept
  save_cycle(self)
  local interval = 1 / self.settings.rate
  if spread then
    local count = 0
    for _ in remaining(self) do
      count = count + 1
    end
    interval = math.max(interval, left_of(self, self.settings.every * SPREAD) / math.max(1, count))
  end
  local now = self.runtime.now
  local next_at = now()
  while item do
    local entry = item.is_screened and item.entry
    while not (entry or self.stopped) and self.cap:left() < 1 do
      if not spread then
        return false
      end
      wait(self, self.cap:rest())
    end
    wait(self, entry and 0 or next_at - now())
    if self.stopped then
      return false
    elseif not entry then
      next_at = math.max(next_at + interval, now())
      entry = screen(self, item)
    end
    keep(self, item, entry)
    deliver(self)
    item = items()
  end
  return true
end

-- Runs a function under the watch's lock. An error object becomes a result.
local function locked(self, run)
  local release, err = self.store:lock("watch-" .. self.settings.name)
  if not release then
    return nil, err
  end
  local ok, result = self.runtime.tasks.pcall(run)
  release()
  return errors.result(ok, result)
end

-- The identity of this watch's decisions. A cycle under another one is not gone on with.
local function identity_of(self)
  local settings = self.settings
  local policy = settings.policy or self.client.policy
  return calls.identity.decision(calls.state_of(self.client), policy, { include = settings.include })
end

local function load(self)
  local account, own = ensure(self.meta:get "account"), calls.identity.account(calls.state_of(self.client))
  if account and account ~= own then
    local message = "the store's verdicts of the watch '%s' are of another service or account: give this watch another "
      .. "name, or a store of its own"
    error(errors.new("storage", message:format(self.settings.name), { reason = "other_account" }), 0)
  end
  local cycle, used = ensure(self.meta:get "cycle"), ensure(self.meta:get "cap")
  self.cycle = cycle and json.decode(cycle) or { number = 0, finished = true }
  local rule = { cap = self.settings.daily_cap or math.huge, clock = self.clock, now = self.runtime.now }
  self.cap = limiters.daily(tables.merge(used and json.decode(used) or {}, rule))
  self.serial = tonumber((ensure(self.meta:get "serial"))) or 0
  local paths = json.decode(ensure(self.meta:get "files") or "[]") or {}
  self.last_file, self.other_files = paths[#paths] or "", {}
  for _, path in ipairs(paths) do
    self.other_files[#self.other_files + 1] = path ~= source_of(self) and files.exists(path) and path or nil
  end
end

-- A file that has no address of the one before is another watch: the verdicts of this one would be forgotten.
local function check_source(self)
  local before, now = self.last_file, source_of(self)
  if before == "" or now == "" or before == now or ensure(self.verdicts:count()) == 0 then
    return
  end
  for item in remaining(self) do
    if item.entry then
      return
    end
  end
  local message = "the watch '%s' of this store is one of %s, and %s has none of its addresses: give it another name, "
    .. "or a store of its own"
  error(errors.new("storage", message:format(self.settings.name, before, now), { reason = "other_source" }), 0)
end

-- Goes on with the cycle, or begins the next one. Returns its summary.
local function go_on(self, spread)
  local summary = { screened = 0, changed = 0, failed = 0, waiting = 0 }
  local identity = identity_of(self)
  self.summary = summary
  if self.cycle.finished or self.cycle.identity ~= identity then
    self.cycle = { number = self.cycle.number + 1, started = self.clock(), finished = false, identity = identity }
  end
  check_source(self)
  summary.finished = pass(self, spread)
  if summary.finished then
    forget(self)
    self.cycle.finished = true
    save_cycle(self)
  end
  for _, outbox in ipairs(self.outboxes) do
    summary.waiting = summary.waiting + outbox:waiting()
  end
  return summary
end

---Screens every address once, as fast as `rate` allows, and delivers the changes. A cycle that was interrupted goes on
---where it ended. For a timer such as cron.
---@return riskscreen.WatchSummary|nil summary
---@return riskscreen.Error|nil err the source or the store failed, or another process watches
function Watch:once()
  text.expect_self(self, Watch, "watch:once")
  return locked(self, function()
    load(self)
    deliver(self, true)
    return go_on(self, false)
  end)
end

---Watches until `stop`: a cycle every `every` seconds, its screenings spread over that time.
---@param on_cycle? fun(summary: riskscreen.WatchSummary) called after each cycle
---@return true|nil
---@return riskscreen.Error|nil err the source or the store failed, or another process watches
function Watch:run(on_cycle)
  text.expect_self(self, Watch, "watch:run")
  self.stopped = false
  return locked(self, function()
    load(self)
    while not self.stopped do
      if self.cycle.finished and self.cycle.started and self.cycle.identity == identity_of(self) then
        wait(self, left_of(self, self.settings.every))
      end
      if not self.stopped then
        local summary = go_on(self, true)
        if on_cycle then
          on_cycle(summary)
        end
      end
    end
    return true
  end)
end

---Ends `run` soon, after the screening under way.
function Watch:stop()
  text.expect_self(self, Watch, "watch:stop")
  self.stopped = true
end

---Sends one change that is marked as a test to each receiver. It needs no lock, and keeps nothing.
---@return true|nil
---@return string|nil message of a receiver that did not take it
function Watch:test()
  text.expect_self(self, Watch, "watch:test")
  local entry =
    { action = "unknown", risks = json.empty_array(), reasons = { "this is a test: no address was screened" } }
  local row = { address = "test", network = "test", test = true }
  local body = assert(json.encode(change_of(self, entry, row)))
  for _, outbox in ipairs(self.outboxes) do
    local message = outbox:attempt(body)
    if message then
      return nil, message
    end
  end
  return true
end

---Screens the same addresses again and again, and reports what has changed.
---@param client riskscreen.Client
---@param request riskscreen.WatchRequest
---@return riskscreen.Watch
function M.new(client, request)
  local state = calls.state_of(client) or error("watch: the first argument must be a client", 2)
  local checked = check.arguments("watch", M.options, request)
  if not (checked.on_change or checked.webhook) then
    error("watch: on_change or webhook must say where changes go", 2)
  elseif checked.webhook and not state.runtime.transport then
    error("watch: the client's runtime has no transport for the webhook", 2)
  end
  local misuse = calls.identity.misuse(state, true)
  if misuse then
    error("watch: store " .. misuse, 2)
  end
  local prefix = "watch:" .. checked.name
  local self = setmetatable({
    client = client,
    settings = tables.without(checked, "webhook"), -- it has a secret
    store = checked.store,
    verdicts = checked.store:space(prefix .. ":verdicts"),
    rows = checked.store:space(prefix .. ":rows"),
    meta = checked.store:space(prefix),
    runtime = state.runtime,
    clock = state.clock,
    outboxes = {},
    stopped = false,
  }, Watch)
  if checked.on_change then
    self.outboxes[1] = outboxes.new(self.store, prefix .. ":call", checked.on_change)
  end
  if checked.webhook then
    local send = webhook(checked.webhook, state.runtime, state.clock)
    self.outboxes[#self.outboxes + 1] = outboxes.new(self.store, prefix .. ":webhook", function(change, body)
      return send(change.id, body)
    end)
  end
  return self
end

return M
