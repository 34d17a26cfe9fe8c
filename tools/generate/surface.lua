-- The functions, methods and objects that the reference and the editor types describe, besides the operations of the
-- service. Their texts are the annotations in the source.

---@class surface.Function
---@field name string the name under which a program calls it
---@field source string the name in the source file
---@field file? string a part of the file's path, where several files have that name
---@field receiver? string of a method: its object in the file of types
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

local tables = require "riskscreen.util.tables"
local words = require("riskscreen.util.text").words

local all = tables.concat

local function fn(name, source, file)
  return { name = name, source = source, file = file }
end

-- The functions of a module, which have the same names in the table M of a file.
local function functions(module, file, names)
  local list = {}
  for index, name in ipairs(words(names)) do
    list[index] = fn(module .. "." .. name, "M." .. name, file)
  end
  return list
end

-- The methods of an object, which have the same names in the table `source` of a file. Its class has another name than
-- that table if `class` says so.
local function methods(receiver, source, names, class, file)
  local list = {}
  for index, name in ipairs(words(names)) do
    list[index] = fn(receiver .. name, source .. name, file)
    list[index].receiver = "riskscreen_" .. (class or source:sub(1, -2)):gsub("%.", "_")
  end
  return list
end

-- Classes: with all their fields, with fields that another page describes, and without public fields.
local function classes(described, elsewhere, opaque)
  local list = {}
  local function add(names, fields)
    for _, name in ipairs(words(names or "")) do
      list[#list + 1] = tables.merge({ class = "riskscreen." .. name }, fields)
    end
  end
  add(described)
  add(elsewhere, { is_type_only = true })
  add(opaque, { fields = {} })
  return list
end

-- A class with some public fields.
local function class(name, fields)
  return { class = "riskscreen." .. name, fields = words(fields) }
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
    functions = all(
      {
        fn("riskscreen.new", "M.new", "client/init.lua"),
        fn("riskscreen.policy", "M.new", "policy/init.lua"),
        fn("riskscreen.score_policy", "M.new", "policy/score.lua"),
        fn("riskscreen.map", "M.map", "client/map.lua"),
        fn("riskscreen.watch", "M.new", "watch/init.lua"),
      },
      functions("riskscreen.address", "address/init.lua", "validate normalize networks_of explain"),
      functions("riskscreen.decimal", "decimal.lua", "compare"),
      functions("riskscreen.errors", "errors.lua", "is")
    ),
  },
  {
    title = "Client",
    functions = all(
      methods("client:", "Client:", "screen screen_all"),
      methods("client:", "Client:", "decide", nil, "client/screen.lua"),
      methods("client:", "Client:", "call request stats close")
    ),
    objects = classes("Response", "ScreenRequest ScreenAllRequest Error"),
  },
  {
    title = "Operations",
    operations = true,
  },
  {
    title = "Transactions",
    functions = all(
      {
        {
          name = "client.kyt:screen",
          source = "methods.screen",
          operation = "screenTransaction",
          receiver = "riskscreen_kyt",
        },
      },
      methods("client.kyt:", "methods.", "submit_custom_score screen_custom_score await resume", "kyt"),
      methods("transaction:", "Transaction:", "await"),
      methods("client.kyt:", "methods.", "kept forget", "kyt"),
      methods("transaction:", "Transaction:", "ticket forget")
    ),
    objects = classes("Transaction"),
  },
  {
    title = "Runs",
    intro = "`client:screen_all` and `riskscreen.map` return a run: call it, or use it in a `for` loop.",
    functions = methods("run:", "Run:", "where stop"),
    objects = classes("RunStatus", "", "Run"),
  },
  {
    title = "Decisions and policies",
    functions = all(
      methods("policy:", "Policy:", "decide prove diff check"),
      methods("score_policy:", "ScorePolicy:", "decide")
    ),
    objects = classes(
      "Decision Reason LookupResults Proof PolicyDiff PolicyFinding PolicyChange",
      "PolicyOptions PolicyClaim Rule CounterpartyRule ScoreRule",
      "Policy ScorePolicy"
    ),
  },
  {
    title = "Additions to a list",
    intro = "`client.blacklist:add` returns a report.",
    objects = classes("Additions Fate"),
  },
  {
    title = "Tasks",
    functions = all(
      functions("riskscreen", "runtime/tasks", "run spawn gather sleep"),
      functions("riskscreen", "native", "defer"),
      methods("task:", "Task:", "await cancel")
    ),
    objects = classes("", "", "Task"),
  },
  {
    title = "Loop",
    functions = methods("riskscreen.loop:", "M.pollable:", "pollfd events timeout step", "Loop"),
    objects = classes("", "", "Loop"),
  },
  {
    title = "Webhooks",
    functions = all(
      { fn("riskscreen.webhook.inbox", "M.new", "webhook/inbox.lua") },
      functions("riskscreen.webhook", "riskscreen/webhook/", "parse"),
      methods("inbox:", "Inbox:", "deliver on listen serve"),
      methods("listener:", "Server:", "close", "InboxListener")
    ),
    objects = all(
      classes("WebhookEvent Delivery WebhookStore", "InboxOptions", "Inbox"),
      { class("InboxListener", "url port") }
    ),
  },
  {
    title = "Stores",
    intro = "A store keeps what must last. Each function returns nil and an error where the store fails.",
    functions = all(
      functions("riskscreen.store", "store/init.lua", "sqlite redis memory"),
      methods("store:", "Store:", "space batch lock close"),
      methods("space:", "Space:", "get put add replace delete each count", "StoreSpace")
    ),
    objects = all(classes("StoreChange", "SqliteOptions RedisStoreOptions", "Store"), { class("StoreSpace", "name") }),
  },
  {
    title = "Redis",
    intro = "A client of Redis. Each function returns nil and an error where it fails.",
    functions = all(
      functions("riskscreen.redis", "redis/init.lua", "new script"),
      methods("redis:", "Redis:", "call pipeline script wait key close")
    ),
    objects = all(classes("", "", "Redis"), { class("RedisScript", "name text sha") }),
  },
  {
    title = "Queue",
    intro = "Work for many machines, over Redis. Each function returns nil and an error where it fails.",
    functions = all(
      functions("riskscreen.queue", "queue/init.lua", "new"),
      methods("queue:", "Queue:", "add worker results forget status metrics dead requeue"),
      methods("worker:", "Worker:", "run stop", "QueueWorker")
    ),
    objects = all(
      classes("QueueInput QueueResult QueueStatus", "QueueWorkerOptions", "Queue"),
      { class("QueueWorker", "name finished") }
    ),
  },
  {
    title = "Journal",
    intro = "The record of decisions.",
    functions = all(
      functions("riskscreen.journal", "journal/init.lua", "file store"),
      functions("riskscreen.journal", "journal/verify.lua", "verify entries files"),
      functions("riskscreen.journal", "journal/replay.lua", "replay"),
      methods("journal:", "Journal:", "append flush head rotate stats close")
    ),
    objects = classes(
      "JournalContext JournalEntry JournalHead JournalReport JournalFault ReplayRow",
      "JournalOptions",
      "Journal"
    ),
  },
  {
    title = "Watch",
    intro = "`riskscreen.watch` returns a watch.",
    functions = methods("watch:", "Watch:", "once run stop test"),
    objects = classes("WatchSummary Change", "WatchRequest", "Watch"),
  },
  {
    title = "Report",
    functions = functions("riskscreen.report", "report/init.lua", "write"),
    objects = classes("ReportSummary", "ReportRequest"),
  },
  {
    title = "Explore",
    functions = functions("riskscreen.explore", "explore/init.lua", "run replay"),
    objects = classes("explore.World explore.Input explore.Finding explore.Fault explore.Explored"),
  },
  {
    title = "Gate of nginx",
    intro = 'From `require "riskscreen.nginx.gate"`.',
    functions = all(
      functions("gates", "nginx/gate.lua", "new"),
      methods("gate:", "Gate:", "enforce decide location purge start stop metrics status webhook", "nginx.Gate")
    ),
    objects = classes("nginx.GateRequest", "", "nginx.Gate"),
  },
  {
    title = "Inbox of nginx",
    intro = 'From `require "riskscreen.nginx.inbox"`. The inbox has the methods `deliver`, `on` and `serve`.',
    functions = functions("inboxes", "nginx/inbox.lua", "new"),
    objects = classes("", "nginx.InboxOptions"),
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
    functions = all(
      functions("riskscreen.sandbox", "sandbox/init.lua", "client serve new scenario"),
      methods("service:", "Service:", "fault clear_faults deliver deliver_to requests account", "sandbox.Service")
    ),
    objects = all(
      classes("sandbox.HttpServer sandbox.Seen", "sandbox.Fault sandbox.Delivery", "sandbox.Service"),
      { class("sandbox.Scenario", "name address network what") }
    ),
  },
}
