-- The status of a gate: JSON for a program, a page for a person. It holds no address and no key. The location decides
-- who may read it.
local json = require "riskscreen.json"
local stats = require "riskscreen.call.stats"
local status_page = require "riskscreen.nginx.metrics.status_page"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local LITTLE_ROOM = 0.05 -- of the dict

local function sum(map)
  local total = 0
  for _, count in pairs(map) do
    total = total + count
  end
  return total
end

local function positive(map)
  local kept = {}
  for name, count in pairs(map) do
    if count > 0 then
      kept[name] = count
    end
  end
  return kept
end

local function decisions_of(snapshot)
  local all = { total = 0 }
  for action, sources in pairs(snapshot.decided) do
    all[action] = { total = sum(sources), by_source = positive(sources) }
    all.total = all.total + all[action].total
  end
  return all
end

local function cache_of(snapshot)
  local tiers = {}
  for tier, results in pairs(snapshot.lookups) do
    local asked = sum(results)
    local ratio = asked > 0 and results.hit / asked or nil
    tiers[tier] = { hits = results.hit, misses = results.miss, hit_ratio = ratio }
  end
  return tiers
end

-- The upper bound of a share of the fetches, or nil where they are slower than the last bound.
local function quantile(buckets, share)
  local rank, seen = share * sum(buckets), 0
  for index, count in ipairs(buckets) do
    seen = seen + count
    if count > 0 and seen >= rank then
      return stats.bounds[index]
    end
  end
end

local function upstream_of(snapshot)
  local buckets, count = snapshot.upstream.buckets, sum(snapshot.upstream.buckets)
  return {
    lookups = count,
    in_flight = snapshot.in_flight,
    mean_seconds = count > 0 and snapshot.upstream.sum / count or nil,
    p50_seconds_at_most = quantile(buckets, 0.5),
    p95_seconds_at_most = quantile(buckets, 0.95),
    p99_seconds_at_most = quantile(buckets, 0.99),
    errors = positive(snapshot.errors),
    answers = snapshot.answers and positive(snapshot.answers),
    client = snapshot.client and positive(snapshot.client),
  }
end

local function redis_of(snapshot)
  local facts = snapshot.fleet
  return facts
    and {
      circuit = facts.circuit.state,
      unheard_seconds = facts.unheard_seconds,
      mean_seconds = sum(snapshot.redis.buckets) > 0 and snapshot.redis.sum / sum(snapshot.redis.buckets) or nil,
      errors = positive(snapshot.redis_errors),
      refused = positive(snapshot.redis_refused),
      writes = positive(snapshot.redis_writes),
      purges = positive(snapshot.redis_purges),
    }
end

-- The notes that an operator should read first.
local function notes_of(snapshot, gate)
  local notes = {}
  local function note(message, ...)
    notes[#notes + 1] = message:format(...)
  end
  local breaker, rate_limit, dict = snapshot.breaker, snapshot.rate_limit, snapshot.dict
  local lists = snapshot.lists
  if gate.monitor then
    note "Monitor mode: no request is refused."
  end
  if breaker and breaker.state ~= "closed" then
    local when = breaker.retry_after and ("; the next probe is in %.1f s"):format(breaker.retry_after) or ""
    note("The circuit is %s because the service was failing%s.", breaker.state:gsub("_", " "), when)
  end
  if rate_limit and rate_limit.paused > 0 then
    note("The service answered 429: nothing is sent for %.1f s.", rate_limit.paused)
  end
  local fleet = snapshot.fleet
  if fleet and fleet.unheard_seconds >= fleet.purge_delay then
    note "The purges of other machines are not heard: decisions other than block are asked for again."
  end
  if fleet and fleet.circuit.state ~= "closed" then
    note("The circuit to Redis is %s.", (fleet.circuit.state:gsub("_", " ")))
  end
  if lists and not lists.age_seconds then
    note "The account's lists have not been fetched yet."
  elseif lists and lists.age_seconds >= lists.max_age_seconds then
    note("The account's lists were fetched %.0f s ago: the whitelist no longer counts.", lists.age_seconds)
  end
  for _, list in ipairs(snapshot.local_lists or {}) do
    if list.problem then
      note("%s.", (list.problem:gsub("^%l", string.upper)))
    end
  end
  if snapshot.errors.unauthorized > 0 then
    note("The service has refused the access key %s.", text.count(snapshot.errors.unauthorized, "time"))
  end
  if snapshot.worker then
    note("There is no shared dict: the numbers are those of worker %s.", snapshot.worker)
  elseif dict.free_bytes < dict.capacity_bytes * LITTLE_ROOM then
    note "The shared dict is full: the least recently used entries are pushed out."
  end
  return notes
end

local M = {}

---@class riskscreen.nginx.GateFacts the part of the status that is not counted
---@field monitor boolean
---@field outcomes table<string, string> the effective actions of `unknown`, `review` and an invalid request

---The status as a table for JSON.
---@param snapshot riskscreen.nginx.Snapshot
---@param gate riskscreen.nginx.GateFacts
---@param minutes? riskscreen.nginx.Minute[]
---@return table status
function M.of(snapshot, gate, minutes)
  local notes = notes_of(snapshot, gate)
  return {
    gate = snapshot.name,
    version = version,
    worker = snapshot.worker,
    counted_since = snapshot.since,
    monitor = gate.monitor,
    outcomes = gate.outcomes,
    notes = notes[1] and notes or json.empty_array(),
    decisions = decisions_of(snapshot),
    cache = cache_of(snapshot),
    upstream = upstream_of(snapshot),
    circuit = snapshot.breaker,
    redis = redis_of(snapshot),
    rate_limit = snapshot.rate_limit,
    account_lists = snapshot.lists,
    lists = snapshot.local_lists,
    dict = snapshot.dict,
    minutes = minutes,
  }
end

---Whether a request gets the page: its Accept names HTML.
---@param accept? string its header
---@return boolean
function M.wants_page(accept)
  return accept ~= nil and accept:lower():find("text/html", 1, true) ~= nil
end

---Answers the current request with the status: a content handler.
---@param recorder riskscreen.nginx.Recorder
---@param gate riskscreen.nginx.GateFacts
function M.serve(recorder, gate)
  local ngx = _G.ngx
  local status = M.of(recorder:snapshot(), gate, recorder:minutes())
  ngx.header["Cache-Control"] = "no-store"
  ngx.header["Vary"] = "Accept"
  ngx.header["X-Content-Type-Options"] = "nosniff"
  if M.wants_page(ngx.var.http_accept) then
    ngx.header["Content-Type"] = "text/html; charset=utf-8"
    ngx.header["Refresh"] = (ngx.var.arg_refresh or ""):match "^[1-9]%d?%d?%d?$"
    ngx.header["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    ngx.print(status_page.of(status, ngx.time()))
  else
    ngx.header["Content-Type"] = "application/json"
    ngx.print(assert(json.encode(status)))
  end
end

return M
