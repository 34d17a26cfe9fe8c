-- The classes of operations that the fault matrix tries: one call of each, about an address without a risk.

local lookups = require "riskscreen.policy.lookups"
local policy = require "riskscreen.policy"
local sandbox = require "riskscreen.sandbox"

local ADDRESS = sandbox.scenario("entity-exchange").address
local MANY = 150 -- addresses; the service takes 100 in one request

---@class riskscreen.spec.Class
---@field name string
---@field idempotent boolean
---@field screening? boolean a call gives a decision
---@field requests integer that a call makes when all is well, those that are spared not counted
---@field spares? string requests whose target holds this text are answered well
---@field spared? integer so many of them
---@field call fun(client: riskscreen.Client, timeout: number): any, any

local everything = policy.new {
  not_offered = "skip",
  extend = { category = { "exchange" } },
  rules = {
    { frozen = true, action = "block" },
    { category = "mixer", action = "block" },
    { counterparty = { type = "csam" }, action = "block" },
    { no_risk = true, action = "allow" },
  },
}

local function many_addresses()
  local list = {}
  for i = 1, MANY do
    list[i] = ("0x%040x"):format(i)
  end
  return list
end

local function screening(given)
  return function(client, timeout)
    local request = { address = ADDRESS, network = "eth", timeout = timeout }
    for name, value in pairs(given) do
      request[name] = value
    end
    return client:screen(request)
  end
end

---@type riskscreen.spec.Class[]
return {
  {
    name = "an idempotent read",
    idempotent = true,
    requests = 1,
    call = function(client, timeout)
      return client.kya:risk({ address = ADDRESS, network = "eth" }, { timeout = timeout })
    end,
  },
  {
    name = "a bulk read",
    idempotent = true,
    requests = 2,
    call = function(client, timeout)
      return client.kya:entities({ addresses = many_addresses(), network = "eth" }, { timeout = timeout })
    end,
  },
  {
    name = "a write",
    idempotent = false,
    requests = 1,
    call = function(client, timeout)
      local item = { address = ADDRESS, risks = { { riskLevel = "high", riskType = "scam" } } }
      return client.blacklist:add({ list = { item }, network = "eth" }, { timeout = timeout })
    end,
  },
  {
    name = "a KYT submission",
    idempotent = false,
    requests = 1,
    call = function(client, timeout)
      local transaction = { network = "eth", hash = "0xabc", outputAddress = ADDRESS, direction = "received" }
      return client:call("screenTransaction", transaction, { timeout = timeout })
    end,
  },
  {
    name = "a screening by the default policy",
    screening = true,
    idempotent = true,
    requests = 1,
    call = screening {},
  },
  {
    name = "a screening of every lookup",
    screening = true,
    idempotent = true,
    requests = #lookups.list,
    call = screening { policy = everything, include = lookups.names },
  },
  {
    name = "a screening of every lookup with the risk assessment alone answered",
    screening = true,
    idempotent = true,
    requests = #lookups.list - 1,
    spares = "/kya/risks",
    spared = 1,
    call = screening { policy = everything, include = lookups.names },
  },
}
