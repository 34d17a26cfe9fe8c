-- One run of a program in a simulated world: a service, payments, virtual time, a store that outlives the program.
-- A step is an effect outside of the program. A fault may strike at each. init.lua chooses the faults.

local addresses = require "riskscreen.address"
local calls = require "riskscreen.call"
local clients = require "riskscreen.client"
local errors = require "riskscreen.errors"
local json = require "riskscreen.json"
local sandbox = require "riskscreen.sandbox"
local stores = require "riskscreen.store"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local transport = require "riskscreen.sandbox.transport"
local virtual = require "riskscreen.runtime.virtual"

local decoder = json.decoder { duplicates = "refuse" } -- as the client's

local SLOW = 1 -- seconds
local LATE = 600 -- seconds by which a webhook is late
local LONGEST_LIFE = 3600 -- seconds after which a program that still runs is taken as ended
local MOST_STEPS = 1000 -- of a run without faults; after so many no other fault strikes
local ENDLESS = 2000 -- steps without a fault after which a program is taken for one that does not end
local LONGEST_LOOP = 2e7 -- instructions; a program that makes no step in as many does not end
local ENDLESS_LOOP = "%s:%d: a loop without a step of the world does not end"
local KYT_DELAY = 0.5 -- seconds: a transaction is done before the first poll
local KEY = "0-key-of-explore" -- no answer has its beginning: the removal of a key from texts takes long
local SECRET = "the secret of the simulated webhooks"
local HEADER = "X-Webhook-Secret"
local DONE = 1003 -- the status of a final result
local UNREACHED = 503 -- a fault with this status strikes before the service acts

-- The sandbox's fault for each fault of a request.
local of_request = {
  timeout = { kind = "hang", status = UNREACHED },
  late = { kind = "hang" },
  reset = { kind = "reset" },
  unreached = { kind = "reset", status = UNREACHED },
  ["500"] = { kind = "status", status = 500 },
  ["503"] = { kind = "status", status = 503, retry_after = 1 },
  ["429"] = { kind = "status", status = 429, retry_after = 1 },
  ["401"] = { kind = "status", status = 401 },
  html = { kind = "html", status = 403 },
  empty = { kind = "empty" },
  ["invalid-json"] = { kind = "invalid-json" },
  duplicate = { kind = "duplicate" },
  truncate = { kind = "truncate", bytes = 20 },
  slow = { kind = "delay", delay = SLOW },
  drip = { kind = "drip", bytes = 16, every = 0.05 },
}

-- The faults of a step in the order in which they are tried. At the first step of a life a kill changes nothing.
local function list_of(names)
  return { first = text.words(names), later = text.words(names .. " kill") }
end

local READ = "timeout reset 500 503 429 401 html empty invalid-json duplicate truncate slow drip"
local at_read, at_write = list_of(READ), list_of("late unreached " .. READ)
local at_webhook, at_effect = list_of "late doubled forged never", list_of ""

local submits = tables.set { "screenTransaction", "getCustomRiskScore" }

---@class riskscreen.explore.Plan what all runs have in common
---@field program fun(client: riskscreen.Client, world: riskscreen.explore.World)
---@field inputs riskscreen.explore.Input[]
---@field client table the client's options
---@field accept_degraded boolean
---@field truth table<string, riskscreen.Action> the decision about each input where nothing fails

---@class riskscreen.explore.Step
---@field kind string
---@field subject string
---@field faults string[] that may strike here
---@field fault? string that has struck

---@class riskscreen.explore.Run
---@field steps riskscreen.explore.Step[]
---@field struck integer the number of faults
---@field problem? string
---@field id? string of the input that the problem is about
---@field crash? string the failure that ended the program
---@field endless? string that a loop without a step has ended it, and where

local M = {}

local function nothing() end

local function same(value)
  return value
end

-- Ends the life of the program here. A program that catches what cannot yield gets an error at each further step.
local function stop(run)
  run.is_stopped = true
  repeat
    coroutine.yield()
  until false
end

-- A program cannot go on for ever: it ends where it has made too many steps after the last fault.
local function step(run, kind, list, subject)
  if run.is_stopped or run.quiet == ENDLESS then
    stop(run)
  end
  local number, count = #run.steps + 1, (run.counts[kind] or 0) + 1
  local this = { kind = kind, count = count, subject = subject, faults = list[run.is_begun and "later" or "first"] }
  run.steps[number], run.counts[kind], run.is_begun = this, count, true
  local fault = number <= MOST_STEPS and run.choose(number, this)
  if not fault or not tables.set(this.faults)[fault] then
    run.quiet = run.quiet + 1
    return nil
  end
  this.fault, run.struck, run.quiet = fault, run.struck + 1, 0
  if fault == "kill" then
    run.is_killed = true
    stop(run)
  end
  return fault
end

local function source_of(program)
  return debug.getinfo(program, "S")
end

-- A hook for each task of a life. A program that loops without a step fails at its line.
local function new_watchdog(run)
  local program, steps = source_of(run.plan.program), -1
  return function()
    if steps < #run.steps then
      steps = #run.steps
      return
    end
    local level, place = 2, debug.getinfo(2, "Sl")
    while place and place.source ~= program.source do
      level, place = level + 1, debug.getinfo(level + 1, "Sl")
    end
    place = place or program
    run.is_stopped, run.endless = true, ENDLESS_LOOP:format(place.short_src, place.currentline or place.linedefined)
    error(run.endless, 0)
  end
end

-- Runs the tasks of a life under a hook. That of a debugger stays.
local function watch(tasks, hook)
  local spawn = tasks.spawn
  function tasks.spawn(body, ...)
    return spawn(type(body) ~= "function" and body or function(...)
      if not debug.gethook() then
        debug.sethook(hook, "", LONGEST_LOOP)
      end
      return body(...)
    end, ...)
  end
end

-- The text of a program's failure. A function of the world that is called by `return` knows no line of the program. Its
-- message has the first line of the program.
local function text_of(program, failure)
  local message = tostring(failure):gsub("\nstack traceback:\n.*", "")
  local own, its = source_of(text_of).short_src, source_of(program)
  if message:sub(1, #own) == own then
    message = ("%s:%d:%s"):format(its.short_src, its.linedefined, message:sub(#own + 1):gsub("^:%d+:", ""))
  end
  return message
end

-- Judgement

local function key_of(address, network)
  return addresses.key(address, network) or false
end

-- The decisions about an address that the program was given: ALLOWED by a sound decision, also in an earlier life; true
-- by an answer to a question of its own; false by another decision.
local ALLOWED = "allowed"

local function is_sound_allow(plan, decision)
  return decision.action == "allow" and (plan.accept_degraded or not decision.degraded)
end

local function note_decision(run, decision)
  local key = key_of(decision.address, decision.network)
  if run.told[key] ~= ALLOWED then
    run.told[key] = is_sound_allow(run.plan, decision) and ALLOWED
  end
end

local function note_result(run, request_id)
  local task = run.service.tasks:find(request_id)
  if task then
    run.results[task.parameters.hash] = true
  end
end

-- Notes an answer: a complete one about the risks of an address, or the final result of a transaction.
local function note_answer(run, data)
  if data.risks or data.score then
    local key = key_of(data.address, data.network)
    run.told[key] = run.told[key] or true
  elseif data.requestId and data.status == DONE then
    note_result(run, data.requestId)
  end
end

-- Whether the program was told enough to pay. If it has submitted the transaction, it needs its result as well.
local function may_pay(run, input)
  local told, result = run.told[input.key], run.results[input.hash]
  local is_allowed = run.truth[input.id] == "allow" or run.plan.accept_degraded and told == ALLOWED
  return is_allowed and (told or result) and told ~= false and result ~= false
end

-- The problem of a run that has ended.
local function judge(run)
  for _, input in ipairs(run.plan.inputs) do
    local id, truth = input.id, run.truth[input.id]
    local is_excused = run.paid[id] or run.held[id] and (truth ~= "allow" or run.struck > 0)
    if not is_excused and (truth == "allow" or truth == "review") then
      run.problem, run.id = truth == "allow" and "never" or "unheld", id
      return
    end
  end
end

-- The service

-- Takes the place of the service's own faults.
local function meet(run, operation, parameters)
  local subject = parameters.customId or parameters.address or parameters.requestId or parameters.hash or ""
  local list = operation.idempotent and at_read or at_write
  local fault = step(run, "request", list, operation.name .. " " .. tostring(subject))
  if submits[operation.name] and parameters.hash then
    run.results[parameters.hash] = run.results[parameters.hash] or false
  end
  return of_request[fault]
end

local function send(run, request)
  local reply, failure = run.send(request)
  local answer = reply and reply.status == 200 and decoder:decode(reply.body)
  local _ = type(answer) == "table" and type(answer.data) == "table" and note_answer(run, answer.data)
  return reply, failure
end

-- The time of the run that is under way.
local function clock_of(plan)
  return function()
    return plan.run.runtime.now()
  end
end

-- A client whose calls and decisions belong to the run that is under way.
local function new_client(plan, options)
  local given = tables.merge(tables.merge({ account = "sandbox", identity = "sandbox" }, plan.client), options)
  local ok, made = pcall(
    clients.new,
    tables.merge(given, {
      access_key = KEY,
      endpoints = sandbox.endpoints,
      random = function()
        return 0.5
      end,
      runtime = plan.run.runtime,
      clock = clock_of(plan),
      transport = function(request)
        return send(plan.run, request)
      end,
    })
  )
  if not ok then
    error(made, 4) -- at the line of the program
  end
  local state = calls.state_of(made)
  state.is_sandbox, state.settings.journal = true, {}
  function state.settings.journal.append(_, decision)
    note_decision(plan.run, decision)
  end
  return made
end

-- A text of a client's options, the same one in each run; nil where they hold more than scalars and the store.
local function key_of_options(run, options)
  local words = {}
  for name, value in pairs(options) do
    if value ~= run.store and (type(value) == "table" or type(value) == "function") then
      return nil
    end
    words[#words + 1] = ("%s %s %q"):format(tostring(name), type(value), value == run.store and "" or tostring(value))
  end
  table.sort(words)
  return table.concat(words, "\n")
end

-- A client with more options, as new for this life. To make one takes as long as four screenings. So a plan keeps its
-- clients, and a life gets each of them once: only what calls leave behind is made again.
local function client_of(run, options)
  local plan, key = run.plan, key_of_options(run, options)
  local kept, place = plan.clients[key] or {}, (run.taken[key] or 0) + 1
  local made = key and kept[place] or new_client(plan, options)
  if not key then
    return made
  end
  plan.clients[key], kept[place], run.taken[key] = kept, made, place
  local state = calls.state_of(made)
  local fresh = calls.new_state(state.settings, run.runtime, state.settings.transport)
  for _, name in ipairs { "runtime", "transport", "budget", "limiter", "breaker", "hedge", "stats" } do
    state[name] = fresh[name]
  end
  for _, route in pairs(state.routes) do
    route.counts = state.stats:of(route.label)
  end
  state.pendings, state.hook_failures, state.last_hook_failure = nil, 0, nil
  state.settings.store, made.policy = options.store, state.settings.policy
  return made
end

-- An event about the same transaction from an attacker, who does not know the secret.
local function forged(event)
  local data = tables.merge(event.data, { maxScore = "0.00", dirData = { ["in"] = {}, out = {} } })
  return json.encode(tables.merge(event, { webhookId = "forged " .. event.webhookId, data = data }))
end

local function post(run, body, secret)
  local headers = { ["Content-Type"] = "application/json", [HEADER] = secret }
  local ok, status = pcall(run.receive, "POST", headers, body, { target = "/webhooks", remote = "127.0.0.1" })
  return ok and tonumber(status) or 500
end

-- Delivers a webhook, which comes again unless it is answered: the receiver may be killed before.
local function deliver(run, webhook)
  local webhooks, now, event = run.service.webhooks, run.runtime.now(), webhook.event
  webhooks:answered(webhook, nil, now)
  if not run.receive then
    return
  end
  local fault, status = step(run, "webhook", at_webhook, event.data.customId), 200
  if fault == "late" then
    webhooks:answered(tables.merge(webhook, { wait = LATE }), nil, now)
  elseif fault ~= "never" then
    if fault == "forged" then
      post(run, forged(event))
      post(run, forged(event), "guessed")
    end
    note_result(run, event.data.requestId)
    for _ = 1, fault == "doubled" and 2 or 1 do
      status = post(run, webhook.body, SECRET)
    end
  end
  webhook.is_answered = status < 500
end

-- Delivers what is due, now and later.
local function schedule_webhooks(run)
  local webhooks, runtime = run.service.webhooks, run.runtime
  function webhooks.changed()
    local at = webhooks:next_at()
    if at then
      runtime.at(math.max(at - runtime.now(), 0), function()
        for _, webhook in ipairs(webhooks:take(runtime.now())) do
          if not webhook.is_answered then
            runtime.tasks.spawn(deliver, run, webhook)
          end
        end
        webhooks.changed()
      end)
    end
  end
  webhooks.changed()
end

local function new_service(run)
  local service = sandbox.new {
    accounts = { [KEY] = {} },
    clock = clock_of(run.plan),
    kyt_delay = KYT_DELAY,
    log_size = 0,
  }
  service.faults = {
    match = function(_, _, operation, parameters)
      return meet(run, operation, parameters)
    end,
  }
  return service
end

-- A store whose changes are steps. A dead program holds no locks.
local function new_store(run)
  local store = stores.memory { clock = clock_of(run.plan) }
  local batch = store.batch
  function store.batch(self, changes)
    local first = changes[1] or {}
    step(run, "write", at_effect, ("%s %s"):format(tostring(first.space), tostring(first.key)))
    return batch(self, changes)
  end
  local lock = store.lock
  function store.lock(self, name)
    local release, failure = lock(self, name)
    table.insert(run.locks, release)
    return release, failure
  end
  store.close = nothing
  return store
end

-- The program

---@class riskscreen.explore.World the parts of a program's world beside its client
---@field inputs riskscreen.explore.Input[]
---@field store riskscreen.Store it outlives the program
---@field secret { value: string, header: string } of the webhooks, for an inbox
---@field pay fun(id: string) pays an input
---@field hold fun(id: string) leaves an input to a person
---@field paid fun(id: string): boolean asks whether an input was paid
---@field receive fun(receiver: riskscreen.Inbox|function) receives the webhooks from now on
---@field client fun(options?: table): riskscreen.Client a client with more options
---@field now fun(): number seconds
---@field sleep fun(seconds: number)
---@field spawn fun(body: fun(...), ...): riskscreen.Task
---@field gather fun(bodies: function[]): any[], any[]
local function new_world(run)
  local plan, runtime = run.plan, run.runtime
  local function input_of(id)
    return plan.by_id[id] or error("there is no input " .. text.show(id), 3)
  end
  return {
    inputs = tables.deep_copy(plan.inputs),
    store = run.store,
    secret = { value = SECRET, header = HEADER },
    pay = function(id)
      local input = input_of(id)
      step(run, "pay", at_effect, id)
      if run.paid[id] or not may_pay(run, input) then
        run.problem, run.id = run.paid[id] and "twice" or "unallowed", id
        stop(run)
      end
      run.paid[id] = true
    end,
    hold = function(id)
      input_of(id)
      step(run, "hold", at_effect, id)
      run.held[id] = true
    end,
    paid = function(id)
      return run.paid[input_of(id).id] == true
    end,
    receive = function(receiver)
      run.receive = type(receiver) == "function" and receiver
        or function(...)
          return receiver:deliver(...)
        end
    end,
    client = function(options)
      text.expect("world.client: options", options, "table", true)
      local made = client_of(run, options or {})
      return made
    end,
    now = runtime.now,
    sleep = runtime.sleep,
    spawn = runtime.tasks.spawn,
    gather = runtime.tasks.gather,
  }
end

-- Runs the program from its start until it ends or is killed. Returns its failure.
local function live(run)
  local runtime = virtual.new(run.runtime.now())
  local ends = runtime.now() + LONGEST_LIFE
  run.runtime, run.receive, run.is_begun, run.is_killed, run.is_stopped = runtime, nil, false, false, false
  runtime.refusal, runtime.tasks.iterator = nothing, same -- as the option `runtime` of a client would set them
  run.send = transport.new(run.service, runtime.sleep)
  local hook = new_watchdog(run)
  watch(runtime.tasks, hook)
  schedule_webhooks(run)
  for _, release in ipairs(run.locks) do
    release()
  end
  run.locks, run.taken = {}, {}
  local has_ended = false
  local task = runtime.tasks.spawn(function()
    run.plan.program(client_of(run, {}), new_world(run))
    step(run, "end", at_effect, "")
  end)
  runtime.tasks.on_end(task, function()
    has_ended = true
  end)
  local ok, failure = pcall(runtime.drive, function()
    return has_ended or run.is_stopped or runtime.now() >= ends
  end)
  if ok and has_ended then
    ok, failure = pcall(task.await, task)
  end
  if debug.gethook() == hook then
    debug.sethook() -- of LuaJIT, where a hook is that of all tasks
  end
  if not ok and errors.is_interrupt(failure) then
    error(failure, 0)
  end
  return run.endless or not ok and not run.is_stopped and text_of(run.plan.program, failure) or nil
end

---Runs a program. It is started again after a kill. It is also started again after a failure, if a fault has struck
---since the last one.
---@param plan riskscreen.explore.Plan
---@param choose fun(number: integer, step: riskscreen.explore.Step): string|nil the fault that strikes
---@return riskscreen.explore.Run
function M.run(plan, choose)
  local run = { plan = plan, choose = choose, truth = plan.truth, steps = {}, counts = {}, struck = 0, quiet = 0 }
  run.paid, run.held, run.told, run.results, run.locks = {}, {}, {}, {}, {}
  plan.run, run.runtime = run, virtual.new()
  run.service, run.store = new_service(run), new_store(run)
  local forgiven
  repeat
    local before = forgiven or 0
    run.crash = live(run)
    forgiven = run.crash and not run.endless and run.struck or before
  until run.problem or not (run.is_killed or forgiven > before)
  if run.problem then
    return run
  elseif run.struck == 0 and #run.steps > MOST_STEPS then
    local message = "the program makes more than %d steps where nothing fails: it does not end, or has too many inputs"
    error(message:format(MOST_STEPS), 0)
  end
  judge(run)
  return run
end

---Completes a plan: what is decided about each input where nothing fails.
---@param plan riskscreen.explore.Plan
---@return string|nil misuse
function M.find_truth(plan)
  local misuse
  plan.truth, plan.by_id, plan.clients = {}, {}, {}
  local jit = rawget(_G, "jit")
  if jit and source_of(plan.program).what ~= "C" then
    jit.off(plan.program, true) -- a compiled loop calls no hook
  end
  for _, input in ipairs(plan.inputs) do
    plan.by_id[input.id] = tables.merge(input, { key = key_of(input.address, input.network) })
  end
  local function screen_all(client)
    for _, input in ipairs(plan.inputs) do
      local decision = client:screen { address = input.address, network = input.network }
      local is_allow = decision.action ~= "allow" or is_sound_allow(plan, decision)
      plan.truth[input.id] = is_allow and decision.action or "unknown"
      misuse = misuse or decision.error and ("the input %s: %s"):format(text.show(input.id), tostring(decision.error))
    end
  end
  local run = M.run(tables.merge(plan, { program = screen_all, clients = {} }), nothing)
  return misuse or run.crash and run.crash:gsub("^%S+:%d+: ", "") or nil
end

return M
