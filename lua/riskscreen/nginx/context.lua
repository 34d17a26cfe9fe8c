-- The parts that a gate shares with its locations: client, recorder, lists, and one cache for each policy.
local addresses = require "riskscreen.address"
local caches = require "riskscreen.nginx.cache"
local calls = require "riskscreen.call"
local clients = require "riskscreen.client"
local identity = require("riskscreen.call").identity
local metrics = require "riskscreen.nginx.metrics"
local policies = require "riskscreen.policy"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local ngx = _G.ngx

-- The client. One that is made here shares one circuit over all workers.
local function client_of(value, dict, inbox)
  if type(value.screen) == "function" then
    return value
  end
  local ok, client = pcall(clients.new, tables.merge({ shared_dict = dict, inbox = inbox }, value))
  if not ok then
    return nil, "client: " .. tostring(client):gsub("^[^\n]-:%d+: ", "")
  end
  return client
end

-- Returns the canonical address, or nil and the reason why the text is not an address.
local function address_reader(is_address, level)
  return function(address, network)
    if not is_address then
      return addresses.validate(address, network, level)
    end
    local canonical, problem = addresses.validate(address, network, false)
    if canonical and is_address(address, network) ~= true then
      return nil, ("%s is not an address of the network %s"):format(text.show(address), network)
    end
    return canonical, problem
  end
end

local function address_check(own, client)
  if own == nil then
    own = clients.address_check(client)
  end
  return own == nil and "checksum" or own
end

-- The owner of the identity of kept decisions: the client's state, or a client that is not the library's.
local function owner_of(client)
  return calls.state_of(client) or client
end

-- The reason why decisions of the client may not be kept where the options say; or nil.
local function identity_misuse(checked, client)
  for _, name in ipairs { "redis", "dict" } do
    local misuse = checked[name] and identity.misuse(owner_of(client), name == "redis")
    if misuse then
      return name .. " " .. misuse
    end
  end
end

---@class riskscreen.nginx.Context
---@field client table
---@field policy riskscreen.Policy the policy of locations that have none of their own
---@field recorder riskscreen.nginx.Recorder
---@field lists? riskscreen.nginx.ListRefresher
---@field local_lists? riskscreen.nginx.LocalLists
---@field inbox? table
---@field journal? riskscreen.nginx.Journal
---@field decisions? riskscreen.nginx.Decisions
---@field caches table<string, riskscreen.nginx.Cache> by version
---@field fleet? riskscreen.nginx.Fleet
---@field private settings table the gate's checked options
---@field read_address fun(address: any, network: any): string|nil, string|nil canonical, or nil and a problem
---@field private is_canonical boolean the addresses that it reads are addresses of the network, and not any text
local Context = {}
Context.__index = Context

local M = {}

-- Asks the service about one canonical address.
local function fetcher(client, policy, is_canonical)
  return clients.decider(client, policy, is_canonical)
    or function(address, network, timeout)
      return client:screen { address = address, network = network, policy = policy, timeout = timeout }
    end
end

---The cache for a policy. Decisions of another identity, or of another gate, are not found in it.
---@param policy riskscreen.Policy
---@return riskscreen.nginx.Cache
function Context:cache_for(policy)
  local settings = self.settings
  local decision = identity.decision(owner_of(self.client), policy)
  local fingerprint = tables.fingerprint { decision, settings.name, settings.version }
  -- 96 bits: the dict reads each byte of a key twice.
  local version = ngx.encode_base64(ngx.md5_bin(fingerprint):sub(1, 12))
  local cache = self.caches[version]
  if not cache then
    cache = caches.new {
      dict = settings.dict and ngx.shared[settings.dict],
      lru = settings.lru,
      ttl = settings.ttl,
      stale = settings.stale,
      version = version,
      lists = self.lists and self.lists:under(policy),
      fleet = self.fleet,
      metrics = self.recorder,
      fetch = fetcher(self.client, policy, self.is_canonical),
    }
    self.caches[version] = cache
  end
  return cache
end

---Forgets what is cached about an address, in all workers of this machine.
---@param address string
---@param network? string
---@return boolean|nil ok
---@return riskscreen.Error|nil err
function Context:forget(address, network)
  local failure
  for _, cache in pairs(self.caches) do
    local _, err = cache:purge(address, network)
    failure = failure or err
  end
  return not failure or nil, failure
end

local function new_lists(self, dict, options, id)
  return require("riskscreen.nginx.account_lists").new(tables.merge({
    dict = dict,
    client = self.client,
    id = id,
    refreshed = function(result)
      self.recorder:count("refreshes", result)
    end,
  }, options))
end

local function join_fleet(self, dict, options)
  return require("riskscreen.nginx.fleet").new {
    options = options,
    dict = dict,
    name = self.settings.name,
    recorder = self.recorder,
    forget = function(address, network)
      assert(self:forget(address, network))
    end,
    forget_all = function()
      local _, cache = next(self.caches)
      assert(cache:forget_all())
    end,
  }
end

---@param checked table the gate's checked options
---@return riskscreen.nginx.Context|nil
---@return string|nil problem
function M.new(checked)
  local client, failure = client_of(checked.client, checked.dict, checked.webhook)
  local state = client and calls.state_of(client)
  local problem = client and identity_misuse(checked, client) or failure
  if problem then
    return nil, problem
  elseif state and state.lists then
    return nil, "give `lists` to the gate and not to its client: behind the cache a new list would come late"
  elseif checked.account_lists and not (client.blacklist and client.whitelist) then
    return nil, "account_lists needs a client with a blacklist and a whitelist"
  end
  local dict = checked.dict and ngx.shared[checked.dict]
  local level, hide_key = address_check(checked.address_check, client), state and state.hide_key
  local self = setmetatable({
    settings = tables.without(checked, "client", "redis", "journal", "decisions"), -- they have secrets
    client = client,
    policy = checked.policy or client.policy or policies.new(),
    read_address = address_reader(checked.is_address, level),
    is_canonical = level ~= false and not checked.is_address,
    inbox = checked.webhook,
    caches = {},
  }, Context)
  local list_id = ngx.md5(tables.fingerprint { identity.service(owner_of(client)), checked.name, checked.version })
  self.lists = checked.account_lists and new_lists(self, dict, checked.account_lists, list_id)
  if checked.lists then
    self.local_lists, problem = require("riskscreen.nginx.local_lists").new(checked.lists, level, dict)
  end
  self.recorder = metrics.new {
    has_journal = checked.journal ~= nil,
    dict = dict,
    name = checked.name,
    client = type(client.stats) == "function" and client or nil,
    inbox = checked.webhook,
    lists = self.lists,
    local_lists = self.local_lists,
    has_redis = checked.redis ~= nil,
  }
  if checked.journal and not problem then
    self.journal, problem = require("riskscreen.nginx.journal").new(checked.journal, self.recorder, hide_key)
  end
  if problem then
    return nil, problem
  end
  self.decisions = checked.decisions and require("riskscreen.nginx.decisions").new(checked.decisions.secret, hide_key)
  self.fleet = checked.redis and join_fleet(self, dict, checked.redis)
  self.recorder.fleet = self.fleet
  if self.fleet and self.lists then
    self.lists:share(self.fleet:lists(ngx.md5(tables.fingerprint { list_id, checked.account_lists.whitelist })))
  end
  return self
end

return M
