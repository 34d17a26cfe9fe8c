-- Each option, changed alone, changes the identity of decisions, or stands here with the reason why it cannot change a
-- decision that is kept. An option without an entry fails.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local calls = require "riskscreen.call"
local options = require "riskscreen.options"
local policies = require "riskscreen.policy"
local queues = require "riskscreen.queue"
local riskscreen = require "riskscreen"
local screen = require "riskscreen.client.screen"
local screen_all = require "riskscreen.client.screen_all"
local settings = require "riskscreen.sandbox.settings"
local tables = require "riskscreen.util.tables"
local virtual_time = require "riskscreen.runtime.virtual"
local watches = require "riskscreen.watch"

local default_policy = policies.new()
local strict = policies.new { rules = { { any = true, action = "block" } } }

local function client_identity(given, policy, screening)
  local client = riskscreen.new(given)
  local identity = calls.identity.decision(calls.state_of(client), policy or client.policy or default_policy, screening)
  client:close()
  return identity
end

local BASE = { base_url = "https://service.example/live", access_key = "a-key-of-the-service", account = "a" }

local function transport() end

local rooms = {}

-- How a file of addresses is read gives the subjects.
local function with_row_options(reasons)
  for _, option in ipairs(require "riskscreen.options.rows") do
    reasons[option.name] = "it gives the subjects"
  end
  return reasons
end

-- `changes`: a value other than the default one, alone, or beside others that both clients have. `reasons`: why an
-- option cannot change a decision that is kept; that of a group covers its fields.
rooms.client = {
  options = options.client,
  identity = function(change)
    return client_identity(tables.merge(BASE, change))
  end,
  changes = {
    base_url = "https://service.example/test",
    unix_socket = "/run/service.sock",
    account = "b",
    transport = { transport = transport, identity = "one" },
    identity = { { transport = transport, identity = "one" }, { transport = transport, identity = "two" } },
    policy = strict,
    address_check = "format",
    extend = { network = { sonic = "eth" } },
    ["extend.network"] = { extend = { network = { "sonic" } } },
    ["extend.risk_level"] = { extend = { risk_level = { "medium" } } },
    ["extend.risk_type"] = { extend = { risk_type = { "medium" } } },
    ["extend.risk_source"] = { extend = { risk_source = { "medium" } } },
    transaction_parameters = { transaction_parameters = { custom_id = "ownId" } },
    usage_parameters = { usage_parameters = { group_by = "by" } },
    immediate_results = true,
    final_statuses = { 1003, 1004 },
    runtime = {
      runtime = tables.merge(virtual_time.new(), {
        transport = function()
          return transport
        end,
        problem = function() end,
      }),
      identity = "runtime",
    },
  },
  reasons = {
    access_key = "`account` is its name: keys are short, and are replaced",
    timeout = "a late answer is a failure, and no failure is kept as a decision",
    attempt_timeout = "as timeout",
    connect_timeout = "as timeout",
    concurrency = "it says when a call is made",
    max_response_size = "a longer answer is a failure",
    headers = "they may hold secrets; where they choose a tenant, `account` is its name",
    user_agent = "it names this program",
    http_version = "one answer has one meaning in each version",
    compression = "likewise",
    proxy = "it passes requests on; TLS tells who answers",
    ca_file = "it says whether the service is believed, not which one it is",
    client_cert = "`account` is its name",
    client_key = "`account` is its name",
    lists = "they are asked afresh before anything that is kept is used",
    clock = "decisions have no dates of their own",
    random = "it says when a call is made",
    journal = "it records decisions",
    polling = "it says when a result is asked for",
    pending_statuses = "they say whether to wait longer or to fail",
    store = "it is where things are kept",
    inbox = "it brings results, each of which must belong to its transaction",
    retry = "it says when a call is made",
    rate_limit = "likewise",
    breaker = "likewise",
    hedge = "likewise",
    shared_dict = "clients share limits in it, and no decision",
    shared_as = "likewise",
    on = "hooks only hear",
  },
}
for _, option in ipairs(options.client) do
  for _, field in ipairs(option.name == "endpoints" and option.fields or {}) do
    local endpoint = { method = "POST", path = "/another/path" }
    rooms.client.changes["endpoints." .. field.name] = { endpoints = { [field.name] = endpoint } }
    for name, value in pairs { method = "PUT", path = "/one", envelope = "usage", idempotent = true } do
      rooms.client.changes[("endpoints.%s.%s"):format(field.name, name)] = {
        { endpoints = { [field.name] = endpoint } },
        { endpoints = { [field.name] = tables.merge(endpoint, { [name] = value }) } },
      }
    end
  end
  for _, field in ipairs(option.name:find "_parameters$" and option.fields or {}) do
    rooms.client.changes[option.name .. "." .. field.name] = { [option.name] = { [field.name] = "another" } }
  end
end
rooms.client.changes.endpoints = { endpoints = { kyt_result = { method = "GET", path = "/results" } } }

local of_screening = {
  options = screen.options,
  identity = function(change)
    return client_identity(BASE, change.policy, change)
  end,
  changes = { policy = strict, include = { "entity" }, address_check = "format" },
  reasons = {
    network = "it is a part of the subject's key",
    timeout = "a late answer is a failure",
    retry = "it says when a call is made",
    priority = "likewise",
    traceparent = "it names the request",
    meta = "they are facts for the journal",
  },
}
rooms.screen = of_screening
rooms.screen_all = tables.merge(of_screening, {
  options = screen_all.options,
  reasons = tables.merge(
    of_screening.reasons,
    with_row_options {
      source = "it gives the subjects",
      remember = "how many decisions of the same run are used again",
      concurrency = "it says when a call is made",
      ordered = "it says when a decision is reported",
      on_progress = "it only hears",
      total = "it is for the progress",
      stop_after_failures = "it ends the run",
    }
  ),
})

rooms.policy = {
  options = policies.options,
  identity = function(change)
    return client_identity(BASE, policies.new(change))
  end,
  changes = {
    rules = { { level = "high", action = "block" } },
    extend = { extend = { type = { "other" } } },
    ["extend.level"] = { extend = { level = { "other" } } },
    ["extend.type"] = { extend = { type = { "another" } } },
    ["extend.source"] = { extend = { source = { "other" } } },
    ["extend.category"] = { extend = { category = { "other" } } },
    provider = "Other",
    absent_entity = "none",
    absent_risks = "none",
    absent_opponents = "none",
    absent_freeze_events = "none",
    not_offered = "unknown",
    lifting = "unfreeze",
  },
  reasons = {},
}

rooms.queue = {
  options = queues.options,
  reasons = {
    redis = "it is where outcomes are kept",
    name = "it is a part of every key",
    capacity = "it says when an input is added",
    results = "it says when a job is taken",
    remember = "it bounds the age of an outcome that is used again",
    claim_after = "it says who screens",
    deliveries = "likewise",
    replicas = "it says when a result is shown",
  },
}
rooms.worker = {
  options = queues.worker_options,
  reasons = {
    client = "its identity is the worker's (spec/unit/queue/init_spec.lua)",
    request = "policy, include and address_check are those of a screening, above",
    policy = "it decides about transactions, whose outcomes are not used again",
    concurrency = "it says when a job is screened",
    name = "it says who screens",
    on_result = "it takes results",
    on_problem = "it only hears",
  },
}
rooms.watch = {
  options = watches.options,
  reasons = with_row_options {
    policy = "it is in the identity of a cycle (spec/unit/watch/init_spec.lua)",
    include = "likewise",
    source = "it gives the subjects",
    network = "it is a part of the subject's key",
    store = "it is where verdicts are kept",
    name = "it is a part of every key",
    every = "it says when an address is screened",
    rate = "likewise",
    daily_cap = "likewise",
    on_change = "it takes changes",
    webhook = "likewise",
    on_failure = "it only hears",
    meta = "they are facts for the journal",
  },
}
rooms.service = {
  options = settings.service,
  reasons = {
    accounts = "the client's `account` names one",
    clock = "the sandbox's answers are no real results",
    credits = "they only refuse",
    kyt_delay = "it says when a result comes",
    answers = "they are data of the service, which change at any service",
    profile = "it says how the service writes its answers, which the policy reads anew",
    kyt_results = "it says how a result comes",
    webhook = "likewise",
    faults = "a failure is not kept as a decision",
    log_size = "it is the sandbox's memory",
  },
}
rooms.gate = {
  options = require("riskscreen.nginx.options").gate,
  reasons = {
    decisions = "it says who may ask the gate",
    proxy = "it says whose headers name the subject",
    client = "its identity is in the version of the cache",
    policy = "likewise",
    name = "likewise",
    version = "likewise",
    address_check = "an address is checked before anything kept is looked up",
    is_address = "likewise",
    dict = "it is where decisions are kept",
    redis = "likewise",
    lru = "it says how many are kept",
    ttl = "it bounds the age of a decision when it is made",
    stale = "likewise",
    account_lists = "they are asked before anything kept is used",
    lists = "likewise",
    address = "it gives the subjects",
    subjects = "likewise",
    network = "it is a part of the subject's key",
    on_unknown = "it is applied to each request",
    on_invalid = "likewise",
    on_review = "likewise",
    monitor = "likewise",
    exempt = "likewise",
    methods = "decides before any lookup, and keeps nothing",
    block = "likewise",
    review = "likewise",
    unknown = "likewise",
    invalid = "likewise",
    variables = "likewise",
    log = "likewise",
    timeout = "a late answer is a failure",
    webhook = "it receives events, which the identity of their inbox keeps apart",
    journal = "it records decisions",
  },
}

-- The names of options and of the fields of groups.
local function names_of(list, prefix, names)
  for _, option in ipairs(list) do
    names[#names + 1] = prefix .. option.name
    names_of(option.fields or {}, prefix .. option.name .. ".", names)
  end
  return names
end

-- Whether an entry names an option, or a group around it.
local function covers(entries, name)
  while name do
    if entries[name] ~= nil then
      return true
    end
    name = name:match "^(.*)%.[^.]+$"
  end
  return false
end

-- The options before and after a change of one option.
local function change_of(name, change)
  if type(change) == "table" and change[1] and type(change[1]) == "table" and name ~= "rules" then
    return change[1], change[2]
  elseif type(change) == "table" and change[name:match "^[^.]+"] ~= nil then
    return {}, change
  end
  return {}, { [name] = change }
end

describe("identity", function()
  for room, entry in pairs(rooms) do
    local names = names_of(entry.options, "", {})
    local changes = entry.changes or {}

    it("knows every option of " .. room, function()
      local is_option = tables.set(names)
      for _, name in ipairs(names) do
        local decides, reason = changes[name] ~= nil, covers(entry.reasons, name)
        assert.is_true(decides or reason, name .. " has no entry")
        assert.is_false(decides and reason, name .. " has two entries")
      end
      for name in pairs(tables.merge(changes, entry.reasons)) do
        assert.is_true(is_option[name] or false, name .. " is no option")
      end
    end)

    it("changes with each option of " .. room .. " that decides", function()
      for name, change in pairs(changes) do
        local before, after = change_of(name, change)
        assert.not_equal(entry.identity(before), entry.identity(after), name)
      end
    end)
  end

  it("of a client with an option that decides nothing is the same", function()
    local same =
      { access_key = "another-key-1", timeout = 3, headers = { ["X-A"] = "b" }, concurrency = 2, retry = false }
    assert.equal(client_identity(BASE), client_identity(tables.merge(BASE, same)))
  end)

  it("tells a sandbox in this process, a served one and a service apart", function()
    local in_process = riskscreen.sandbox.client { account = "a" }
    local seen = {}
    for _, identity in ipairs {
      calls.identity.account(calls.state_of(in_process)),
      client_identity(tables.merge(BASE, { access_key = riskscreen.sandbox.default_key })),
      client_identity(BASE),
    } do
      assert.is_nil(seen[identity])
      seen[identity] = true
    end
    assert.equal("allow", in_process:screen({ address = addresses["clean-eth"], network = "eth" }).action)
  end)

  it("is refused without a transport to name", function()
    local ok, message = pcall(riskscreen.new, tables.merge(BASE, { identity = "live" }))
    assert.is_false(ok)
    assert.matches("identity names the service behind a transport", message, 1, true)
  end)
end)
