-- What a gate and its locations have in common, made from the gate's options before any request comes: the client, the
-- recorder, the lists, and a cache for each policy.
local addresses = require "riskscreen.address"
local caches = require "riskscreen.nginx.cache"
local clients = require "riskscreen.client"
local fingerprint = require "riskscreen.nginx.fingerprint"
local lists = require "riskscreen.nginx.lists"
local metrics = require "riskscreen.nginx.metrics"
local policies = require "riskscreen.policy"
local subjects = require "riskscreen.nginx.cache.subject"
local text = require "riskscreen.util.text"
local unasked = require "riskscreen.nginx.fixed_decisions"

local ngx = _G.ngx

-- The client, and where it sends to, if that is known. One made here has one circuit for all workers, and gets what the
-- gate's webhooks bring.
local function client_of(value, dict, inbox)
  if type(value.screen) == "function" then
    return value, ""
  end
  local given = { shared_dict = dict, inbox = inbox }
  for name, option in pairs(value) do
    given[name] = option
  end
  local ok, client = pcall(clients.new, given)
  if not ok then
    return nil, "client: " .. tostring(client):gsub("^[^\n]-:%d+: ", "")
  end
  return client, value.base_url or ""
end

-- The lists, where the gate has the option.
local function lists_of(checked, client, service, refreshed)
  local settings = {
    dict = ngx.shared[checked.dict],
    client = client,
    refreshed = refreshed,
    id = ngx.md5(fingerprint.of { service, checked.name, checked.version }),
  }
  for name, value in pairs(checked.lists) do
    settings[name] = value
  end
  return lists.new(settings)
end

local function address_check(is_address)
  if not is_address then
    return addresses.problem
  end
  return function(address, network)
    local problem, field = addresses.problem(address, network)
    if field == "network" or type(address) ~= "string" or #address > addresses.LONGEST then
      return problem
    elseif is_address(address, network) ~= true then
      return ("the address is none of the network %s (got %s)"):format(network, text.show(address))
    end
  end
end

---@class riskscreen.nginx.Parts
---@field settings table the gate's checked options
---@field client table
---@field service string where the client sends to, if that is known
---@field policy riskscreen.Policy where a location has none of its own
---@field problem_of fun(address: any, network: any): string|nil
---@field recorder riskscreen.nginx.Recorder
---@field lists? riskscreen.nginx.ListRefresher
---@field inbox? table
---@field caches table<string, riskscreen.nginx.Cache> by version
local Parts = {}
Parts.__index = Parts

---The cache for a policy: verdicts of one must not be found under another, nor those of another gate, which may have
---another account at the service.
---@param policy riskscreen.Policy
---@return riskscreen.nginx.Cache
function Parts:cache_for(policy)
  local settings, client, problem_of = self.settings, self.client, self.problem_of
  local version = ngx.md5(fingerprint.of { policy.settings, settings.name, settings.version, self.service })
  local cache = self.caches[version]
  if cache then
    return cache
  end
  local screen_one = clients.decider(client, policy)
    or function(address, network, timeout)
      return client:screen { address = address, network = network, policy = policy, timeout = timeout }
    end
  cache = caches.new {
    dict = settings.dict and ngx.shared[settings.dict],
    lru = settings.lru,
    ttl = settings.ttl,
    stale = settings.stale,
    version = version,
    lists = self.lists and self.lists:under(policy),
    metrics = self.recorder,
    look_up = function(address, network, timeout)
      local problem = problem_of(address, network)
      if problem then
        return unasked.invalid(problem, address, network)
      end
      -- What the service says is remembered for every spelling: it must not be asked in one that it may not know, or
      -- whose letters do not add up to the checksum that some give them.
      return screen_one(subjects.canonical(address, network) or address, network, timeout)
    end,
  }
  self.caches[version] = cache
  return cache
end

local M = {}

---@param checked table the gate's checked options
---@return riskscreen.nginx.Parts|nil
---@return string|nil problem
function M.of(checked)
  local client, service = client_of(checked.client, checked.dict, checked.webhook)
  if not client then
    return nil, service
  elseif checked.lists and not (client.blacklist and client.whitelist) then
    return nil, "lists needs a client with a blacklist and a whitelist"
  end
  local recorder
  local refresher = checked.lists
    and lists_of(checked, client, service, function(result)
      recorder:refreshed(result)
    end)
  recorder = metrics.new {
    dict = checked.dict and ngx.shared[checked.dict],
    name = checked.name,
    client = type(client.stats) == "function" and client or nil,
    inbox = checked.webhook,
    lists = refresher,
  }
  return setmetatable({
    settings = checked,
    client = client,
    service = service,
    policy = checked.policy or client.policy or policies.new(),
    problem_of = address_check(checked.is_address),
    recorder = recorder,
    lists = refresher,
    inbox = checked.webhook,
    caches = {},
  }, Parts)
end

return M
