-- client:screen: makes the lookups that a policy needs, side by side, and lets the policy decide. It always returns a
-- decision: any failure becomes one, and never `allow` by itself. screen_all.lua screens many addresses.

local access_key = require "riskscreen.call.access_key"
local addresses = require "riskscreen.address"
local build = require "riskscreen.options.build"
local calls = require "riskscreen.call"
local client_options = require "riskscreen.options"
local decisions = require "riskscreen.policy.decision"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local lookups = require "riskscreen.policy.lookups"
local policies = require "riskscreen.policy"
local reliability = require "riskscreen.options.reliability"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local SHORTEST_TIMEOUT = build.SHORTEST_WAIT
local NO_OPTIONS = {}
local LONGEST_NAME = 64 -- bytes of a name in `meta`
local LONGEST_META = 1000 -- bytes of a text there
local MAX_CLEAN, LONGEST_CLEAN = 200, 300 -- messages without the access key that are known, and their bytes
local default_policy = policies.new()

---@class riskscreen.ScreenRequest
---@field address any an address; anything else makes the decision unknown
---@field network any the chain's short name
---@field policy? riskscreen.Policy the client's, or the default policy
---@field include? riskscreen.LookupName[] lookups to make besides those that the policy needs
---@field timeout? number seconds for all lookups together
---@field retry? table|boolean as for a call
---@field priority? "high"|"normal"|"low" as for a call
---@field traceparent? string as for a call
---@field address_check? "checksum"|"format"|false as for a client
---@field id? string|number your identifier of the request, for the decision and the journal
---@field meta? table<string, string> facts for the journal, such as the case and the analyst

-- Names and texts. None is too long for a line of a journal.
local function checked_meta(value)
  local copy = {}
  for name, content in pairs(value) do
    if type(name) ~= "string" or not name:find(build.forms.word.pattern) or #name > LONGEST_NAME then
      return nil, ("must have names of letters, digits, '_' and '-' (got %s)"):format(text.show(name))
    elseif type(content) ~= "string" or content == "" or #content > LONGEST_META then
      return nil, ("must have texts of 1 to %d bytes (that of %s is none)"):format(LONGEST_META, name)
    end
    copy[name] = content
  end
  return copy
end

local NETWORK = { name = "network", type = "any", doc = "The chain's short name." }

local M = {}

---The fields that name what is screened, of one request or of an item of many.
---@type riskscreen.Option[]
M.subject = {
  { name = "address", type = "any", doc = "The address." },
  NETWORK,
  { name = "id", type = "string|number", doc = "Your identifier, for the decision and the journal." },
}

---@type riskscreen.Option
M.include = build.list(
  "include",
  build.choice("lookup", lookups.names, nil, "A lookup."),
  "Lookups to make besides those that the policy needs."
)

---@type riskscreen.Option
M.meta =
  build.dictionary("meta", checked_meta, "Names and texts for the journal, such as `case`, `analyst` and `note`.")

---The options of every screening, whatever its address and its network are.
---@type riskscreen.Option[]
M.more = tables.concat({
  client_options.policy,
  client_options.address_check,
  M.include,
  build.seconds("timeout", nil, "Time for all lookups of a decision."),
  M.meta,
}, reliability.call)

---The options of every screening, of one address or of many.
---@type riskscreen.Option[]
M.options = tables.concat({ NETWORK }, M.more)

local one_options = tables.concat({ M.subject[1], M.subject[3] }, M.options)

local lookups_of = tables.memoize(lookups.wanted)

---A screening with certain options and a policy. It screens addresses one after another or side by side.
---@class riskscreen.Screening
---@field private state riskscreen.State
---@field private given_policy riskscreen.Policy without the values that the operator has added to the client
---@field private policy riskscreen.Policy
---@field private wanted riskscreen.Lookup[]
---@field private options table the checked options of each lookup's call
---@field private timed? table the options of the last call with a timeout of its own
---@field private address_check "checksum"|"format"|false
---@field private added_networks? table<string, string|true> by the operator
---@field private look_up fun(state: riskscreen.State, operation: riskscreen.Operation, subject: table, options: table):
---any, any makes one lookup
---@field private checked table the options of the screening
---@field private identity? string of its decisions, where they are recorded
local Screening = {}
Screening.__index = Screening

-- The results of the lookups that the service offers for the network.
local function look_up_offered(screening, subject, options)
  local offered, functions, found = {}, {}, {}
  for _, lookup in ipairs(screening.wanted) do
    if lookups.applies(lookup, subject.network) then
      offered[#offered + 1] = lookup
      functions[#offered] = function()
        return screening.look_up(screening.state, lookup.operation, subject, options)
      end
    else
      found.not_offered = found.not_offered or {}
      found.not_offered[lookup.name] = true
    end
  end
  local runtime, values, errs = screening.state.runtime, {}, {}
  if runtime.refusal() then
    for index, call in ipairs(functions) do
      values[index], errs[index] = call() -- nil and an error that says why nothing can wait
    end
  else
    values, errs = runtime.tasks.gather(functions)
  end
  for index, lookup in ipairs(offered) do
    found[lookup.name] = values[index]
    if not values[index] then
      found.errors = found.errors or {}
      found.errors[lookup.name] = errs[index]
      errs[index].asked = lookup.name
    end
  end
  return found
end

-- The result of a lookup that is not made, because the text is no address of the network.
local function refused(state, problem, field)
  local fields = { field = field, sent = false, attempts = 0, elapsed = 0 }
  return { errors = { risk = errors.new("invalid_argument", state.hide_key(problem), fields) } }
end

-- Networks that the operator has added.
local function added_networks(state)
  local extend = state.settings.extend
  return extend and extend.network
end

-- The policy with the values that the operator has added to the client.
local function extended_policy(state, policy)
  local extend = state.settings.extend
  if not extend then
    return policy
  end
  state.extended = state.extended or tables.memoize(function(given)
    return policies.extended(given, extend)
  end)
  return state.extended(policy)
end

-- The interface's fields of a risk, without the key, which the service may send back; and whether they did not have it.
local function bare(hide, risk)
  local own, is_clean = {}, true
  for _, name in ipairs { "riskLevel", "riskType", "riskSource" } do
    local value = risk[name]
    own[name] = type(value) == "string" and hide(value) or type(value) ~= "table" and value or nil
    is_clean = is_clean and own[name] == value
  end
  return own, is_clean
end

-- Removes the key from the reasons of a decision. Few differ: those that do not have the key are known by their
-- messages, and share a table of their risk.
local function redact_reasons(state, decision)
  local hide, reasons, clean = access_key.hide_of(state, decision), decision.reasons, state.clean
  if clean.hide ~= hide then
    clean = { hide = hide, risks = {}, count = 0 }
    state.clean = clean
  end
  for index = 1, #reasons do
    local reason = reasons[index]
    local message, risk = reason.message, reason.risk or NO_OPTIONS
    local own = clean.risks[message]
    if
      not own
      or own.riskLevel ~= risk.riskLevel
      or own.riskType ~= risk.riskType
      or own.riskSource ~= risk.riskSource
    then
      local is_clean
      own, is_clean = bare(hide, risk)
      reason.message = hide(message)
      if is_clean and reason.message == message and #message <= LONGEST_CLEAN then
        clean.risks = clean.count > 0 and clean.risks or {}
        clean.count = (clean.count + 1) % MAX_CLEAN
        clean.risks[message] = own
      end
    end
    if reason.risk then
      reason.risk = own
    end
  end
end

-- Adds what the allow lists say to a decision.
local function add_notes(decision, notes)
  decision.reasons = decisions.worst_first(tables.concat(decision.reasons, notes))
end

---Records a decision in the client's journal, without the access key.
---@param decision riskscreen.Decision
---@param canonical? string its address
---@param source? string where it is not a new one
function Screening:record(decision, canonical, source)
  local state, checked = self.state, self.checked
  self.identity = self.identity or calls.identity.decision(state, self.given_policy, checked)
  state.settings.journal:append(decision, {
    address = canonical,
    source = source,
    policy = self.policy,
    identity = self.identity,
    request_id = decision.id,
    meta = checked.meta,
    is_sandbox = state.is_sandbox,
    hide = state.hide_key,
  })
end

---Records a decision that is used again.
---@param decision riskscreen.Decision
function Screening:record_again(decision)
  self:record(decision, nil, self.state.is_sandbox and "sandbox" or "cache")
end

-- The decision about a canonical address by the service alone. If it follows from the risk assessment alone, also the
-- text of its answer.
local function ask_service(screening, subject, options, address)
  local state, wanted, policy = screening.state, screening.wanted, screening.policy
  local decision, answer
  if wanted[2] then
    decision = policy:decide(look_up_offered(screening, subject, options))
  else
    -- The risk assessment alone is offered for every network and needs no task.
    local lookup = wanted[1]
    local value, other = screening.look_up(state, lookup.operation, subject, options)
    if value then
      decision, answer = policy:decide_record(value, address, subject.network), other
    else
      other.asked = lookup.name
      decision = policy:decide { errors = { risk = other } }
    end
  end
  redact_reasons(state, decision)
  if answer and state.redactors and state.hide_key(answer, decision) ~= answer then
    answer = nil -- a decision from its text would show the key
  end
  return decision, answer
end

local function find_in_lists(screening, subject)
  return screening.state.lists:decide(subject.address, subject.network)
end

-- The options of lookups with a timeout of their own, which replaces the other options. It counts in milliseconds, so
-- that most lookups have the options of the last one.
local function options_with(screening, timeout)
  timeout = math.max(math.floor(timeout * 1000 + 0.5) / 1000, SHORTEST_TIMEOUT)
  local timed = screening.timed
  if not timed or timed.timeout ~= timeout then
    timed = { timeout = timeout, value_only = true, address_check = false }
    screening.timed = timed
  end
  return timed
end

---Decides about an address.
---@param address any
---@param network any
---@param id? string|number
---@param canonical? string the canonical spelling of the address, if its caller has checked it
---@param timeout? number seconds
---@return riskscreen.Decision
---@return string|nil answer the text of the answer, where the decision follows from it alone
function Screening:decide(address, network, id, canonical, timeout)
  local state = self.state
  local now, lists, options = state.runtime.now, state.lists, self.options
  local started = now()
  local decision, notes, answer, problem, field
  if timeout then
    options = options_with(self, timeout)
  end
  if not canonical then
    canonical, problem, field = addresses.validate(address, network, self.address_check, self.added_networks)
  end
  local subject = { address = canonical, network = network }
  if not canonical then
    decision = self.policy:decide(refused(state, problem, field))
    redact_reasons(state, decision)
    -- The caller may have taken the key for an address.
    address = type(address) == "string" and state.hide_key(address) or address
    network = type(network) == "string" and state.hide_key(network) or network
  elseif lists then
    decision, answer, notes = lists:before(find_in_lists, ask_service, self, subject, options, address)
    if notes then
      add_notes(decision, notes)
      answer = nil
    end
  else
    decision, answer = ask_service(self, subject, options, address)
  end
  decision.address, decision.network = address, network
  decision.elapsed = now() - started
  if id ~= nil then
    decision.id = id
  end
  if state.settings.journal then
    self:record(decision, canonical)
  end
  return decision, answer
end

---Decides from the text of an answer, as `decide` has returned it. The decision has no address and no network.
---@param answer string
---@return riskscreen.Decision
function Screening:decide_again(answer)
  local decision = self.policy:decide_record(json.decode(answer).data)
  redact_reasons(self.state, decision)
  return decision
end

---A screening.
---@param state riskscreen.State
---@param policy? riskscreen.Policy the client's
---@param checked table by M.options
---@return riskscreen.Screening
function M.new(state, policy, checked)
  policy = checked.policy or policy or default_policy
  local kept = state.screening
  if kept and kept.checked == checked and kept.given_policy == policy then
    return kept -- a fifth of a screening on Lua 5.4
  end
  local level = calls.address_check(state, checked.address_check, "checksum")
  -- The headers of a lookup's response are not used.
  local options = { timeout = checked.timeout, value_only = true, address_check = false }
  for _, option in ipairs(reliability.call) do
    options[option.name] = checked[option.name]
  end
  local screening = setmetatable({
    state = state,
    given_policy = policy,
    policy = extended_policy(state, policy),
    wanted = checked.include and lookups.wanted(policy, checked.include) or lookups_of(policy),
    options = options,
    checked = checked,
    address_check = level,
    added_networks = added_networks(state),
    -- An address of its network needs no second check. Without a check the call's own one remains.
    look_up = level and calls.make or calls.perform,
  }, Screening)
  if next(checked) == nil then
    state.screening = screening
  end
  return screening
end

-- Whether a request has no options. Then there is nothing to check.
local function names_subject_alone(request)
  if type(request) ~= "table" or getmetatable(request) ~= nil then
    return false
  end
  for name in next, request do
    if name ~= "address" and name ~= "network" and name ~= "id" then
      return false
    end
  end
  local id = request.id
  return id == nil or type(id) == "string" or type(id) == "number"
end

-- The decision of the local lists about results that were looked up before. Without an address in the assessment the
-- lists cannot be searched.
local function decide_by_lists(state, policy, results)
  local risk = results and results.risk or results
  local subject = type(risk) == "table" and risk or NO_OPTIONS
  local level = calls.address_check(state, nil, "checksum")
  local canonical, problem, field = addresses.validate(subject.address, subject.network, level, added_networks(state))
  if not canonical then
    return policy:decide(refused(state, problem, field))
  end
  return state.lists:decide(canonical, subject.network)
end

---Decides about what `client.kyt` returned, and records that as `screen` does, without the access key.
---@param client riskscreen.Client
---@param policy riskscreen.Policy|riskscreen.ScorePolicy
---@param facts riskscreen.JournalContext
---@param network? string
---@param result table|nil
---@param other? riskscreen.Response|riskscreen.Error
---@return riskscreen.Decision
function M.transaction(client, policy, facts, network, result, other)
  local state = calls.state_of(client)
  local decision, journal = policy:decide(result, other), state.settings.journal
  redact_reasons(state, decision)
  if journal then
    local own = { policy = policy, is_sandbox = state.is_sandbox, hide = state.hide_key }
    journal:append(tables.merge(decision, { network = network }), tables.merge(facts, own))
  end
  return decision
end

---Adds `screen` to the client's methods.
---@param Client table
function M.install(Client)
  ---Screens one address.
  ---@param request riskscreen.ScreenRequest
  ---@return riskscreen.Decision
  function Client:screen(request)
    local specs = not names_subject_alone(request) and one_options or nil
    local state, checked = calls.open(self, "client", nil, specs, request, "screen")
    return (M.new(state, rawget(self, "policy"), checked):decide(request.address, request.network, request.id))
  end

  ---Decides as `screen` does, from results that were looked up before: a risk assessment, or the kept answer of a
  ---journal. It calls nothing and records nothing. With local lists the risk assessment must name its address.
  ---@param results riskscreen.LookupResults|table
  ---@return riskscreen.Decision
  function Client:decide(results)
    local state = calls.open(self, "client")
    text.expect("client:decide: results", results, "table", true)
    local policy = extended_policy(state, self.policy or default_policy)
    local decision, notes
    if state.lists then
      decision, notes = decide_by_lists(state, policy, results)
    end
    if not decision then
      decision = policy:decide(results)
      redact_reasons(state, decision)
      if notes then
        add_notes(decision, notes)
      end
    end
    return decision
  end
end

return M
