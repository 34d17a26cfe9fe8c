-- How a gate does, for an operator: as JSON for a program, as a page for a person. It says nothing of addresses and
-- holds no key; who may read it is for the location to say. The counts are metrics.lua's.
local json = require "riskscreen.json"
local stats = require "riskscreen.call.stats"
local status_page = require "riskscreen.nginx.metrics.status_page"
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
  local all, total = {}, 0
  for action, sources in pairs(snapshot.decisions) do
    all[action] = { total = sum(sources), by_source = positive(sources) }
    total = total + all[action].total
  end
  all.total = total
  return all
end

local function cache_of(snapshot)
  local tiers = {}
  for tier, hits in pairs(snapshot.hits) do
    local asked = hits + snapshot.misses[tier]
    tiers[tier] = { hits = hits, misses = asked - hits, hit_ratio = asked > 0 and hits / asked or nil }
  end
  return tiers
end

-- The bound below which a share of the look-ups lie; nil where they are slower than the last bound, or none.
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

-- What an operator should know first.
local function notes_of(snapshot, gate)
  local notes = {}
  local function note(text, ...)
    notes[#notes + 1] = text:format(...)
  end
  local breaker, rate_limit, dict = snapshot.breaker, snapshot.rate_limit, snapshot.dict
  local lists = snapshot.lists
  if gate.monitor then
    note "Monitor mode: nobody is refused."
  end
  if breaker and breaker.state ~= "closed" then
    local when = breaker.retry_after and ("; it is tried again in %.1f s"):format(breaker.retry_after) or ""
    note("The circuit is %s: the service has been failing%s.", breaker.state:gsub("_", " "), when)
  end
  if rate_limit and rate_limit.paused > 0 then
    note("The service has refused requests as too many; nothing is sent for %.1f s.", rate_limit.paused)
  end
  if lists and not lists.age_seconds then
    note "The account's lists were not fetched yet."
  elseif lists and lists.age_seconds >= lists.max_age_seconds then
    note("The account's lists were fetched %.0f s ago: the whitelist counts no longer.", lists.age_seconds)
  end
  if snapshot.errors.unauthorized > 0 then
    note("The service has refused the access key %d times.", snapshot.errors.unauthorized)
  end
  if snapshot.worker then
    note("There is no shared dict: the numbers are those of worker %s alone.", snapshot.worker)
  elseif dict.free < dict.capacity * LITTLE_ROOM then
    note "The shared dict is full: what was not asked for the longest is forgotten."
  end
  return notes
end

local M = {}

---@class riskscreen.nginx.GateFacts what the status says of the gate beside its counts
---@field monitor boolean
---@field outcomes table<string, string> what `unknown`, `review` and an invalid request come to

---What there is to say.
---@param snapshot riskscreen.nginx.Snapshot
---@param gate riskscreen.nginx.GateFacts
---@return table status what JSON can say
function M.of(snapshot, gate)
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
    rate_limit = snapshot.rate_limit,
    lists = snapshot.lists,
    dict = snapshot.dict and { capacity_bytes = snapshot.dict.capacity, free_bytes = snapshot.dict.free },
  }
end

-- How much a request wants a type, as its Accept says: from 0 to 1; nil where it does not name it.
local function wanted(accept, kind)
  for range in accept:lower():gmatch "[^,]+" do
    if range:match "^%s*([^%s;]+)" == kind then
      return tonumber(range:match ";%s*q=([%d.]+)") or 1
    end
  end
end

---Whether a request wants the page: it names HTML, and JSON not as much.
---@param accept? string its header
---@return boolean
function M.wants_page(accept)
  local page = accept and wanted(accept, "text/html") or 0
  return page > 0 and page >= (wanted(accept, "application/json") or 0)
end

---Answers the request that is served: a content handler.
---@param recorder riskscreen.nginx.Recorder
---@param gate riskscreen.nginx.GateFacts
function M.serve(recorder, gate)
  local ngx = _G.ngx
  local status = M.of(recorder:snapshot(), gate)
  ngx.header["Cache-Control"] = "no-store"
  ngx.header["Vary"] = "Accept"
  ngx.header["X-Content-Type-Options"] = "nosniff"
  if M.wants_page(ngx.var.http_accept) then
    ngx.header["Content-Type"] = "text/html; charset=utf-8"
    ngx.header["Content-Security-Policy"] = "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"
    ngx.print(status_page.of(status, ngx.time()))
  else
    ngx.header["Content-Type"] = "application/json"
    ngx.print(assert(json.encode(status)))
  end
end

return M
