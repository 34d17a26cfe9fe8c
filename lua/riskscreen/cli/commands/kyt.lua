-- riskscreen kyt: submits transactions, awaits their results, and decides about them.

local columns_of = require("riskscreen.cli.output").columns
local decision_record = require "riskscreen.cli.decision_record"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local option_of = require "riskscreen.cli.option"
local options = require "riskscreen.options"
local policies = require "riskscreen.policy"
local riskscreen = require "riskscreen"
local screen = require "riskscreen.client.screen"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"

local HASH = "0x5f16ca1b3b1b6b3d6c9b4b0a4c1bb9e1ae77e42a4f6a6bd9f8b6a4a5b2f5d3c1"

local NO_SCORE_POLICY = "the result has scores, and the default policy has no rule about them: give --policy FILE, "
  .. "whose Lua code returns riskscreen.score_policy { … }"

local NO_RESULTS = "say where results are asked for, as you were told: riskscreen config set "
  .. "endpoints.kyt_result.method GET, and endpoints.kyt_result.path PATH; or receive them with "
  .. "riskscreen webhook listen"

local LOOK_EVERY = 0.05 -- seconds between two looks for the requestId

local SUBMITTED = "the transaction was submitted: kyt wait "

local submission = operations.by_name.screenTransaction

-- The parameters besides hash and network.
local parameter_options = {}
for _, parameter in ipairs(submission.parameters) do
  if parameter.name ~= "network" and parameter.name ~= "hash" then
    parameter_options[#parameter_options + 1] = { name = parameter.name, type = "string", doc = parameter.doc }
  end
end

local call_options = option_of.pick(options.call, { "timeout", "address_check" })

local wait_options = option_of.pick(options.call, { "timeout" }, {
  timeout = { doc = "How long to wait for the result; by default polling.deadline, 600 seconds." },
})

local hash_argument = { name = "hash", doc = "The transaction's hash." }

local function parameters_of(context)
  local parameters = option_of.values(parameter_options, context.options)
  parameters.hash, parameters.network = context.arguments.hash, context:network(true)
  return parameters
end

-- Writes the record of a transaction. Its requestId is told also where that fails: it was submitted, and is paid.
local function write(context, written, record)
  local ok, failure = pcall(context.write_record, context, written, record)
  if not ok and record.requestId then
    context:warn(SUBMITTED .. record.requestId)
  end
  status.ensure(ok or nil, failure)
end

-- The client's own policy is for addresses; a policy of scores decides about results alone.
local function open(context, has_effect)
  return context:client({ policy = false, store = riskscreen.store.memory() }, has_effect)
end

local columns = columns_of.named { "requestId", "customId", "action", "maxScore", "reasons", "source" }

-- Asks for a result, and decides by the policy of the configuration, which is one of risks or of scores.
local function decide(context, network, ask)
  local meta, hash = context.options.meta, context.arguments.hash
  local with_facts = decision_record.with_facts(columns, meta)
  local policy = context:policy() -- before anything is submitted
  local client = open(context)
  local result, other = ask(client)
  if not result and errors.is(other) and other.kind == "invalid_argument" then
    error(other, 0) -- misuse of the command, and no decision
  elseif not policy and result and result.maxScore and not result.risks then
    context:warn(NO_SCORE_POLICY)
  elseif not result and errors.is(other) and other.kind == "unsupported" then
    context:warn(NO_RESULTS)
  end
  policy = policy or policies.new()
  local id = result and result.requestId
  local facts = { input = hash or id or context.arguments.request, request_id = id, meta = meta }
  local decision = screen.transaction(client, policy, facts, network, result, other)
  local record = tables.merge(result or {}, {
    action = decision.action,
    reasons = tables.pluck(decision.reasons, "message"),
    source = result and type(other) == "table" and other.source or nil,
    error = decision.error and decision.error.kind or nil,
    meta = meta,
  })
  write(context, with_facts, record)
  return status.of_decision(decision.action, not result and record.error or nil)
end

local function run_submit(context)
  local parameters, of_call = parameters_of(context), option_of.values(call_options, context.options)
  local transaction = status.ensure(open(context, true).kyt:submit(parameters, of_call))
  local ids = { requestId = transaction.requestId, customId = transaction.customId, ticket = transaction:ticket() }
  write(context, { "requestId", "customId", "ticket" }, ids)
  return context:ended()
end

local function run_wait(context)
  local subject, waited = context.arguments.request, { timeout = context.options.timeout }
  return decide(context, nil, function(client)
    if subject:find "^%s*{" then
      return status.ensure(client.kyt:resume(subject)):await(waited)
    end
    return client.kyt:await(subject, waited)
  end)
end

-- Ends a screening once its transaction has a requestId, and tells it: what was submitted is paid.
local function end_screening(context, client, task)
  while true do
    for _, transaction in client.kyt:kept() do
      if transaction and transaction.requestId then
        context:warn(SUBMITTED .. transaction.requestId)
        return task:cancel()
      end
    end
    riskscreen.sleep(LOOK_EVERY)
  end
end

local function run_screen(context)
  local parameters = parameters_of(context)
  return decide(context, parameters.network, function(client)
    local call = option_of.values(call_options, context.options)
    local task = riskscreen.spawn(client.kyt.screen, client.kyt, parameters, call)
    context:catch_signals(function()
      end_screening(context, client, task)
    end)
    local ok, result, other = pcall(task.await, task)
    if system.ending() and not (ok and result) then
      status.fail(status.interrupted, "interrupted")
    end
    status.ensure(ok or nil, result)
    return result, other
  end)
end

return {
  {
    name = "kyt submit",
    summary = "Submit a transaction for screening; its result comes later.",
    arguments = { hash_argument },
    options = tables.concat(parameter_options, call_options),
    examples = {
      { line = "kyt submit " .. HASH .. " -n eth --direction received --jsonl", what = "Print requestId and ticket" },
    },
    calls = true,
    run = run_submit,
  },
  {
    name = "kyt wait",
    summary = "Await the result of a submitted transaction, and decide about it.",
    description = "The service publishes no way to ask for a result: set endpoints.kyt_result.method and .path.",
    arguments = { { name = "request", doc = "The requestId, or the ticket that kyt submit prints." } },
    options = tables.concat(wait_options, { status.fail_on, decision_record.meta }),
    examples = { { line = "kyt wait REQUEST_ID --timeout 60", what = "Wait for a minute" } },
    statuses = status.of_decisions,
    verdict = "status",
    run = run_wait,
  },
  {
    name = "kyt screen",
    summary = "Submit a transaction, await its result, and decide about it.",
    arguments = { hash_argument },
    options = tables.concat(parameter_options, call_options, { status.fail_on, decision_record.meta }),
    examples = { { line = "kyt screen " .. HASH .. " -n eth --timeout 60", what = "The exit status is the verdict" } },
    statuses = status.of_decisions,
    verdict = "status",
    run = run_screen,
  },
}
