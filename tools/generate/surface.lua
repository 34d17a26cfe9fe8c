-- The functions, methods and objects that the reference and the editor types describe, besides the operations of the
-- service. Their texts are the annotations in the source.

---@class surface.Function
---@field name string the name under which a program calls it
---@field source string the name in the source file
---@field file? string a part of the file's path, where several files have that name
---@field operation? string it takes the parameters of this operation, and a call's options

---@class surface.Object
---@field class string
---@field fields? string[] the public fields; without it all that are not private
---@field is_type_only? boolean another page describes its fields

---@class surface.Value
---@field name string
---@field type string
---@field doc string

---@class surface.Section
---@field title string
---@field intro? string
---@field values? surface.Value[]
---@field functions? surface.Function[]
---@field objects? surface.Object[]
---@field operations? boolean the operations stand here

local function fn(name, source, file)
  return { name = name, source = source, file = file }
end

---@type surface.Section[]
return {
  {
    title = "Library",
    intro = '`require "riskscreen"` returns a table with these functions. It also has `webhook`, `sandbox` and `loop`.',
    values = {
      { name = "riskscreen._VERSION", type = "string", doc = "the version of the library" },
      { name = "riskscreen.errors.kinds", type = "table[]", doc = "the kinds of errors: `kind`, `retryable`, `doc`" },
    },
    functions = {
      fn("riskscreen.new", "M.new", "client/init.lua"),
      fn("riskscreen.policy", "M.new", "policy/init.lua"),
      fn("riskscreen.score_policy", "M.new", "policy/score.lua"),
      fn("riskscreen.map", "M.map", "client/map.lua"),
      fn("riskscreen.watch", "M.new", "watch/init.lua"),
      fn("riskscreen.address.validate", "M.validate", "address/init.lua"),
      fn("riskscreen.address.normalize", "M.normalize", "address/init.lua"),
      fn("riskscreen.address.networks_of", "M.networks_of", "address/init.lua"),
      fn("riskscreen.address.explain", "M.explain", "address/init.lua"),
      fn("riskscreen.decimal.compare", "M.compare", "decimal.lua"),
      fn("riskscreen.errors.is", "M.is", "errors.lua"),
    },
  },
  {
    title = "Client",
    functions = {
      fn("client:screen", "Client:screen"),
      fn("client:screen_all", "Client:screen_all"),
      fn("client:decide", "Client:decide", "client/screen.lua"),
      fn("client:call", "Client:call"),
      fn("client:request", "Client:request"),
      fn("client:stats", "Client:stats"),
      fn("client:close", "Client:close"),
    },
    objects = {
      { class = "riskscreen.ScreenRequest", is_type_only = true },
      { class = "riskscreen.ScreenAllRequest", is_type_only = true },
      { class = "riskscreen.Response" },
      { class = "riskscreen.Error", is_type_only = true },
    },
  },
  { title = "Operations", operations = true },
  {
    title = "Transactions",
    functions = {
      { name = "client.kyt:screen", source = "methods.screen", operation = "screenTransaction" },
      fn("client.kyt:submit_custom_score", "methods.submit_custom_score"),
      fn("client.kyt:screen_custom_score", "methods.screen_custom_score"),
      fn("client.kyt:await", "methods.await"),
      fn("client.kyt:resume", "methods.resume"),
      fn("transaction:await", "Transaction:await"),
      fn("client.kyt:kept", "methods.kept"),
      fn("client.kyt:forget", "methods.forget"),
      fn("transaction:ticket", "Transaction:ticket"),
      fn("transaction:forget", "Transaction:forget"),
    },
    objects = { { class = "riskscreen.Transaction" } },
  },
  {
    title = "Runs",
    intro = "`client:screen_all` and `riskscreen.map` return a run: call it, or use it in a `for` loop.",
    functions = { fn("run:where", "Run:where"), fn("run:stop", "Run:stop") },
    objects = { { class = "riskscreen.Run", fields = {} }, { class = "riskscreen.RunStatus" } },
  },
  {
    title = "Decisions and policies",
    functions = {
      fn("policy:decide", "Policy:decide"),
      fn("policy:prove", "Policy:prove"),
      fn("policy:diff", "Policy:diff"),
      fn("policy:check", "Policy:check"),
      fn("score_policy:decide", "ScorePolicy:decide"),
    },
    objects = {
      { class = "riskscreen.Decision" },
      { class = "riskscreen.Reason" },
      { class = "riskscreen.LookupResults" },
      { class = "riskscreen.PolicyOptions", is_type_only = true },
      { class = "riskscreen.PolicyClaim", is_type_only = true },
      { class = "riskscreen.Proof" },
      { class = "riskscreen.PolicyDiff" },
      { class = "riskscreen.PolicyFinding" },
      { class = "riskscreen.PolicyChange" },
      { class = "riskscreen.Rule", is_type_only = true },
      { class = "riskscreen.CounterpartyRule", is_type_only = true },
      { class = "riskscreen.ScoreRule", is_type_only = true },
      { class = "riskscreen.Policy", fields = {} },
      { class = "riskscreen.ScorePolicy", fields = {} },
    },
  },
  {
    title = "Additions to a list",
    intro = "`client.blacklist:add` returns a report.",
    objects = { { class = "riskscreen.Additions" }, { class = "riskscreen.Fate" } },
  },
  {
    title = "Tasks",
    functions = {
      fn("riskscreen.run", "M.run", "runtime/tasks"),
      fn("riskscreen.spawn", "M.spawn", "runtime/tasks"),
      fn("riskscreen.gather", "M.gather", "runtime/tasks"),
      fn("riskscreen.sleep", "M.sleep", "runtime/tasks"),
      fn("riskscreen.defer", "M.defer", "native"),
      fn("task:await", "Task:await"),
      fn("task:cancel", "Task:cancel"),
    },
    objects = { { class = "riskscreen.Task", fields = {} } },
  },
  {
    title = "Loop",
    functions = {
      fn("riskscreen.loop:pollfd", "M.pollable:pollfd"),
      fn("riskscreen.loop:events", "M.pollable:events"),
      fn("riskscreen.loop:timeout", "M.pollable:timeout"),
      fn("riskscreen.loop:step", "M.pollable:step"),
    },
    objects = { { class = "riskscreen.Loop", fields = {} } },
  },
  {
    title = "Webhooks",
    functions = {
      fn("riskscreen.webhook.inbox", "M.new", "webhook/inbox.lua"),
      fn("riskscreen.webhook.parse", "M.parse", "riskscreen/webhook/"),
      fn("inbox:deliver", "Inbox:deliver"),
      fn("inbox:on", "Inbox:on"),
      fn("inbox:listen", "Inbox:listen"),
      fn("inbox:serve", "Inbox:serve"),
      fn("listener:close", "Server:close"),
    },
    objects = {
      { class = "riskscreen.InboxOptions", is_type_only = true },
      { class = "riskscreen.Inbox", fields = {} },
      { class = "riskscreen.InboxListener", fields = { "url", "port" } },
      { class = "riskscreen.WebhookEvent" },
      { class = "riskscreen.Delivery" },
      { class = "riskscreen.WebhookStore" },
    },
  },
  {
    title = "Stores",
    intro = "A store keeps what must last. Each function returns nil and an error where the store fails.",
    functions = {
      fn("riskscreen.store.sqlite", "M.sqlite", "store/init.lua"),
      fn("riskscreen.store.redis", "M.redis", "store/init.lua"),
      fn("riskscreen.store.memory", "M.memory", "store/init.lua"),
      fn("store:space", "Store:space"),
      fn("store:batch", "Store:batch"),
      fn("store:lock", "Store:lock"),
      fn("store:close", "Store:close"),
      fn("space:get", "Space:get"),
      fn("space:put", "Space:put"),
      fn("space:add", "Space:add"),
      fn("space:replace", "Space:replace"),
      fn("space:delete", "Space:delete"),
      fn("space:each", "Space:each"),
      fn("space:count", "Space:count"),
    },
    objects = {
      { class = "riskscreen.SqliteOptions", is_type_only = true },
      { class = "riskscreen.RedisStoreOptions", is_type_only = true },
      { class = "riskscreen.StoreChange" },
      { class = "riskscreen.Store", fields = {} },
      { class = "riskscreen.StoreSpace", fields = { "name" } },
    },
  },
  {
    title = "Redis",
    intro = "A client of Redis. Each function returns nil and an error where it fails.",
    functions = {
      fn("riskscreen.redis.new", "M.new", "redis/init.lua"),
      fn("riskscreen.redis.script", "M.script", "redis/init.lua"),
      fn("redis:call", "Redis:call"),
      fn("redis:pipeline", "Redis:pipeline"),
      fn("redis:script", "Redis:script"),
      fn("redis:wait", "Redis:wait"),
      fn("redis:key", "Redis:key"),
      fn("redis:close", "Redis:close"),
    },
    objects = {
      { class = "riskscreen.RedisScript", fields = { "name", "text", "sha" } },
      { class = "riskscreen.Redis", fields = {} },
    },
  },
  {
    title = "Queue",
    intro = "Work for many machines, over Redis. Each function returns nil and an error where it fails.",
    functions = {
      fn("riskscreen.queue.new", "M.new", "queue/init.lua"),
      fn("queue:add", "Queue:add"),
      fn("queue:worker", "Queue:worker"),
      fn("queue:results", "Queue:results"),
      fn("queue:forget", "Queue:forget"),
      fn("queue:status", "Queue:status"),
      fn("queue:metrics", "Queue:metrics"),
      fn("queue:dead", "Queue:dead"),
      fn("queue:requeue", "Queue:requeue"),
      fn("worker:run", "Worker:run"),
      fn("worker:stop", "Worker:stop"),
    },
    objects = {
      { class = "riskscreen.QueueInput" },
      { class = "riskscreen.QueueResult" },
      { class = "riskscreen.QueueStatus" },
      { class = "riskscreen.QueueWorkerOptions", is_type_only = true },
      { class = "riskscreen.Queue", fields = {} },
      { class = "riskscreen.QueueWorker", fields = { "name", "finished" } },
    },
  },
  {
    title = "Journal",
    intro = "The record of decisions.",
    functions = {
      fn("riskscreen.journal.file", "M.file", "journal/init.lua"),
      fn("riskscreen.journal.store", "M.store", "journal/init.lua"),
      fn("riskscreen.journal.verify", "M.verify", "journal/verify.lua"),
      fn("riskscreen.journal.entries", "M.entries", "journal/verify.lua"),
      fn("riskscreen.journal.files", "M.files", "journal/verify.lua"),
      fn("riskscreen.journal.replay", "M.replay", "journal/replay.lua"),
      fn("journal:append", "Journal:append"),
      fn("journal:flush", "Journal:flush"),
      fn("journal:head", "Journal:head"),
      fn("journal:rotate", "Journal:rotate"),
      fn("journal:stats", "Journal:stats"),
      fn("journal:close", "Journal:close"),
    },
    objects = {
      { class = "riskscreen.JournalOptions", is_type_only = true },
      { class = "riskscreen.Journal", fields = {} },
      { class = "riskscreen.JournalContext" },
      { class = "riskscreen.JournalEntry" },
      { class = "riskscreen.JournalHead" },
      { class = "riskscreen.JournalReport" },
      { class = "riskscreen.JournalFault" },
      { class = "riskscreen.ReplayRow" },
    },
  },
  {
    title = "Watch",
    intro = "`riskscreen.watch` returns a watch.",
    functions = {
      fn("watch:once", "Watch:once"),
      fn("watch:run", "Watch:run"),
      fn("watch:stop", "Watch:stop"),
      fn("watch:test", "Watch:test"),
    },
    objects = {
      { class = "riskscreen.WatchRequest", is_type_only = true },
      { class = "riskscreen.Watch", fields = {} },
      { class = "riskscreen.WatchSummary" },
      { class = "riskscreen.Change" },
    },
  },
  {
    title = "Report",
    functions = { fn("riskscreen.report.write", "M.write", "report/init.lua") },
    objects = {
      { class = "riskscreen.ReportRequest", is_type_only = true },
      { class = "riskscreen.ReportSummary" },
    },
  },
  {
    title = "Explore",
    functions = {
      fn("riskscreen.explore.run", "M.run", "explore/init.lua"),
      fn("riskscreen.explore.replay", "M.replay", "explore/init.lua"),
    },
    objects = {
      { class = "riskscreen.explore.World" },
      { class = "riskscreen.explore.Input" },
      { class = "riskscreen.explore.Finding" },
      { class = "riskscreen.explore.Fault" },
      { class = "riskscreen.explore.Explored" },
    },
  },
  {
    title = "Gate of nginx",
    intro = 'From `require "riskscreen.nginx.gate"`.',
    functions = {
      fn("gates.new", "M.new", "nginx/gate.lua"),
      fn("gate:enforce", "Gate:enforce"),
      fn("gate:decide", "Gate:decide"),
      fn("gate:location", "Gate:location"),
      fn("gate:purge", "Gate:purge"),
      fn("gate:start", "Gate:start"),
      fn("gate:stop", "Gate:stop"),
      fn("gate:metrics", "Gate:metrics"),
      fn("gate:status", "Gate:status"),
      fn("gate:webhook", "Gate:webhook"),
    },
    objects = { { class = "riskscreen.nginx.Gate", fields = {} }, { class = "riskscreen.nginx.GateRequest" } },
  },
  {
    title = "Inbox of nginx",
    intro = 'From `require "riskscreen.nginx.inbox"`. The inbox has the methods `deliver`, `on` and `serve`.',
    functions = { fn("inboxes.new", "M.new", "nginx/inbox.lua") },
    objects = { { class = "riskscreen.nginx.InboxOptions", is_type_only = true } },
  },
  {
    title = "Sandbox",
    values = {
      { name = "riskscreen.sandbox.default_key", type = "string", doc = "the key of an account with empty lists" },
      { name = "riskscreen.sandbox.lists_key", type = "string", doc = "the key of an account with filled lists" },
      { name = "riskscreen.sandbox.scenarios", type = "riskscreen.sandbox.Scenario[]", doc = "all scenarios" },
      {
        name = "riskscreen.sandbox.endpoints",
        type = "table",
        doc = "the sandbox's own paths, for the option `endpoints`",
      },
    },
    functions = {
      fn("riskscreen.sandbox.client", "M.client", "sandbox/init.lua"),
      fn("riskscreen.sandbox.serve", "M.serve", "sandbox/init.lua"),
      fn("riskscreen.sandbox.new", "M.new", "sandbox/init.lua"),
      fn("riskscreen.sandbox.scenario", "M.scenario", "sandbox/init.lua"),
      fn("service:fault", "Service:fault"),
      fn("service:clear_faults", "Service:clear_faults"),
      fn("service:deliver", "Service:deliver"),
      fn("service:deliver_to", "Service:deliver_to"),
      fn("service:requests", "Service:requests"),
      fn("service:account", "Service:account"),
    },
    objects = {
      { class = "riskscreen.sandbox.Service", fields = {} },
      { class = "riskscreen.sandbox.HttpServer" },
      { class = "riskscreen.sandbox.Scenario", fields = { "name", "address", "network", "what" } },
      { class = "riskscreen.sandbox.Fault", is_type_only = true },
      { class = "riskscreen.sandbox.Delivery", is_type_only = true },
      { class = "riskscreen.sandbox.Seen" },
    },
  },
}
