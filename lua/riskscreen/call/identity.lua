-- The identity of a client's service and account, and of its decisions. Everything that is kept and used again is kept
-- under one of these texts: cached decisions, submissions, events, outcomes, runs. Local lists are no part of it: they
-- are asked afresh before anything kept is used.
local access_key = require "riskscreen.call.access_key"
local digest = require "riskscreen.address.digest"
local policies = require "riskscreen.policy"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LENGTH = 32 -- hexadecimal digits: 128 bits
-- The keys of the sandbox's own accounts, also of a served sandbox. A service may give keys that begin like them.
local SANDBOX_KEYS = tables.set { "sandbox-key", "sandbox-lists-key" }

-- The options that change what the service is asked, or how its answers are read.
local EXTENSIONS = {
  "extend",
  "endpoints",
  "usage_parameters",
  "transaction_parameters",
  "immediate_results",
  "final_statuses",
}

---The owner of what is kept: a client's state; or a client that is not the library's, by its field `identity`.
---@alias riskscreen.IdentityOwner riskscreen.State|{ identity?: string }

local default_policy = policies.new()

local M = {}

local function named(facts)
  return text.hex(digest.sha256(tables.fingerprint(facts))):sub(1, LENGTH)
end

local function has_own_transport(settings)
  return settings.transport ~= nil or (settings.runtime ~= nil and settings.runtime.transport ~= nil)
end

local function is_sandbox(state)
  local key = state.settings.access_key and access_key.read(state.settings.access_key)
  return state.is_sandbox or SANDBOX_KEYS[key or false] or false
end

-- The one spelling of a URL's origin: neither the default port nor a final dot makes another service.
local function origin_of(base_url)
  local origin = base_url.origin:gsub("^(https:.*):443$", "%1"):gsub("^(http:.*):80$", "%1")
  return (origin:gsub("%.(:%d+)$", "%1"):gsub("%.$", ""))
end

local function account_facts(owner)
  local settings = owner.settings
  if not settings then
    return { identity = owner.identity }
  end
  local base_url = settings.base_url
  return {
    service = base_url and origin_of(base_url) .. base_url.prefix,
    unix_socket = settings.unix_socket,
    identity = settings.identity,
    account = settings.account,
    is_sandbox = is_sandbox(owner),
  }
end

local function service_facts(owner)
  return tables.merge(account_facts(owner), tables.pick(owner.settings or {}, EXTENSIONS))
end

---The service and the account. A kept submission is found by it, also after other options have changed.
---@param owner riskscreen.IdentityOwner
---@return string
function M.account(owner)
  return named(account_facts(owner))
end

---The service, the account, and the client's options that change requests or the reading of answers.
---@param owner riskscreen.IdentityOwner
---@return string
function M.service(owner)
  return named(service_facts(owner))
end

---The identity of a policy: the same for policies with the same rules and settings.
---@type fun(policy: riskscreen.Policy|riskscreen.ScorePolicy): string
M.policy = tables.memoize(function(policy)
  return named(policy.settings)
end)

---The identity of decisions: `service`, the policy, and the options of the screening.
---@param owner riskscreen.IdentityOwner
---@param policy? riskscreen.Policy the default policy
---@param options? { include?: string[], address_check?: "checksum"|"format"|false }
---@return string
function M.decision(owner, policy, options)
  policy = policy or default_policy
  options = options or {}
  local facts, address_check = service_facts(owner), options.address_check
  if address_check == nil and owner.settings then
    address_check = owner.settings.address_check
  end
  facts.policy, facts.include, facts.address_check = M.policy(policy), tables.set(options.include), address_check
  return named(facts)
end

---The reason why nothing of this owner may be kept outside of its program, or nil. The text follows an option's name.
---Without a name, one service's answers would pass for another's.
---@param owner riskscreen.IdentityOwner
---@param leaves_machine boolean it is kept in a store or in Redis, and not in memory that one nginx shares
---@return string|nil
function M.misuse(owner, leaves_machine)
  local settings = owner.settings
  if settings and has_own_transport(settings) and not settings.identity or not settings and not owner.identity then
    return "needs a client with `identity`: a name for the service behind a transport or a client of your own"
  elseif settings and leaves_machine and not settings.account then
    return "needs a client with `account`: a name for your account at the service, the same after the key is replaced"
  end
end

return M
