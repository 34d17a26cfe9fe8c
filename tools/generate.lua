-- Writes the parts of the documentation and of types/ that follow from the library's tables and annotations.
-- With --check it changes nothing and fails if one of them is out of date.
package.path = "tools/?.lua;" .. package.path

local assumptions = require "riskscreen.sandbox.assumptions"
local annotations = require "generate.annotations"
local commands = require "riskscreen.cli.commands"
local errors = require "riskscreen.errors"
local event_inbox = require "riskscreen.webhook.inbox"
local explore = require "riskscreen.explore"
local faults = require "riskscreen.sandbox.faults"
local files = require "riskscreen.util.files"
local gate = require "riskscreen.nginx.options"
local listener = require "riskscreen.webhook.listener"
local manual = require "generate.manual"
local markdown = require "generate.markdown"
local metrics = require "riskscreen.nginx.metrics.definitions"
local nginx_inbox = require("riskscreen.nginx.inbox").options
local openapi = require "generate.openapi"
local options = require "riskscreen.options"
local packages = require "generate.packages"
local pages = require "riskscreen.client.pages"
local queue = require "riskscreen.queue"
local redis = require "riskscreen.redis"
local reference = require "generate.reference"
local report = require "riskscreen.report"
local sandbox = require "riskscreen.sandbox.settings"
local scenarios = require "riskscreen.sandbox.scenarios"
local screen = require "riskscreen.client.screen"
local screen_all = require "riskscreen.client.screen_all"
local stats = require "riskscreen.call.stats"
local surface = require "generate.surface"
local tables = require "riskscreen.util.tables"
local types = require "generate.types"
local watch = require "riskscreen.watch"
local webhooks = require "riskscreen.sandbox.webhooks"

local function read(path)
  return files.read(path) or ""
end

-- A table with a row for each entry of a list.
local function table_of(head, list, row_of)
  local rows = {}
  for index, entry in ipairs(list) do
    rows[index] = row_of(entry)
  end
  return markdown.table(head, rows)
end

local function error_table()
  return table_of({ "kind", "may succeed later", "what happened" }, errors.kinds, function(entry)
    return { "`" .. entry.kind .. "`", entry.retryable and "yes" or "no", entry.doc }
  end)
end

local function class_fields(index, name)
  return table_of({ "field", "type", "meaning" }, index.classes[name].fields, function(field)
    return { "`" .. field.name .. "`", "`" .. field.type .. "`", field.doc }
  end)
end

-- The fields of a client's option that is a table.
local function fields_of(name)
  for _, option in ipairs(options.client) do
    if option.name == name then
      return option.fields
    end
  end
  error("the client has no option " .. name)
end

local function group_table(name)
  local rows = markdown.option_rows(fields_of(name), true)
  for _, row in ipairs(rows) do
    row[1] = row[1]:gsub("^`", "`" .. name .. ".")
  end
  return markdown.table({ "option", "type", "default", "meaning" }, rows)
end

local function gate_table()
  local of_location = tables.set(tables.pluck(gate.location, "name"))
  local rows = markdown.option_rows(gate.gate, true)
  for _, row in ipairs(rows) do
    table.insert(row, 4, of_location[row.owner] and "yes" or "")
  end
  return markdown.table({ "option", "type", "default", "in a location", "meaning" }, rows)
end

local function metrics_table()
  return table_of({ "metric", "type", "labels besides `gate`", "meaning" }, metrics.list, function(metric)
    return { "`" .. metric.name .. "`", metric.type, table.concat(metric.labels, ", "), metric.doc }
  end)
end

local function scenario_table()
  return table_of({ "scenario", "network", "address", "what the sandbox answers" }, scenarios, function(scenario)
    return { "`" .. scenario.name .. "`", scenario.network, "`" .. scenario.address .. "`", scenario.what }
  end)
end

local function assumption_table()
  local head = { "name in a profile", "what is open", "assumed", "other values, such as", "what to set" }
  return table_of(head, assumptions.list, function(assumption)
    local values = {}
    for index, value in ipairs(assumption.values) do
      values[index] = "`" .. tostring(value) .. "`"
    end
    local assumed, set = table.remove(values, 1), assumption.set and "`" .. assumption.set:format "…" .. "`" or ""
    return { "`" .. assumption.name .. "`", assumption.doc, assumed, table.concat(values, ", "), set }
  end)
end

local function verb_table()
  return table_of({ "verb", "what it does" }, commands.list(), function(command)
    return { "`" .. command.name .. "`", command.summary }
  end)
end

-- The options of screen_all that client:screen does not have.
local function options_without(all, others)
  local known, list = tables.set(tables.pluck(others, "name")), {}
  for _, option in ipairs(all) do
    list[#list + 1] = not known[option.name] and option or nil
  end
  return list
end

-- A page with each of its tables in its place, between two comments with the table's name.
local function page(path, contents)
  local text = read(path)
  for name, content in pairs(contents) do
    local open, close = ("<!-- %s -->"):format(name), ("<!-- /%s -->"):format(name)
    local _, from = text:find(open, 1, true)
    local to = text:find(close, 1, true)
    assert(from and to, path .. " has no place for the table of " .. name)
    text = text:sub(1, from) .. "\n" .. content .. "\n" .. text:sub(to)
  end
  return text
end

local index = annotations.new()
for path in io.popen("git ls-files -co --exclude-standard 'lua/*.lua'"):lines() do
  if read(path) ~= "" then
    annotations.read(index, path)
  end
end

local generated = types.files(index, surface, {
  { class = "riskscreen.ClientOptions", options = options.client },
  { class = "riskscreen.CallOptions", options = options.call },
  { class = "riskscreen.RedisOptions", options = redis.options },
  { class = "riskscreen.Walk", options = pages.parameters },
  { class = "riskscreen.nginx.GateOptions", options = gate.gate },
})
generated["docs/reference.md"] = reference.page(index, surface)
generated["docs/errors.md"] = page("docs/errors.md", {
  errors = error_table(),
  error_fields = class_fields(index, "riskscreen.Error"),
})
generated["docs/options.md"] = page("docs/options.md", {
  options = markdown.options(options.client),
  call = markdown.options(options.call),
  screen = markdown.options(screen.options),
  screen_all = markdown.options(options_without(screen_all.options, screen.options)),
  map = markdown.options(options.map),
  walk = markdown.options(pages.parameters),
  watch = markdown.options(watch.options, true),
  report = markdown.options(report.options),
  inbox = markdown.options(event_inbox.options, true),
  listen = markdown.options(listener.options),
  sandbox = markdown.options(sandbox.service, true),
  serve = markdown.options(sandbox.server),
})
generated["docs/reliability.md"] = page("docs/reliability.md", {
  retry = group_table "retry",
  rate_limit = group_table "rate_limit",
  breaker = group_table "breaker",
  hedge = group_table "hedge",
  on = group_table "on",
  counters = markdown.meanings({ "counter", "what it counts" }, stats.counters),
})
generated["docs/queue.md"] = page("docs/queue.md", {
  queue = markdown.options(queue.options, true),
  worker = markdown.options(queue.worker_options, true),
})
generated["docs/redis.md"] = page("docs/redis.md", { redis = markdown.options(redis.options, true) })
generated["docs/assumptions.md"] = page("docs/assumptions.md", { assumptions = assumption_table() })
generated["docs/sandbox.md"] = page("docs/sandbox.md", {
  faults = markdown.options(faults.fields, true),
  deliver = markdown.options(webhooks.fields),
  scenarios = scenario_table(),
})
generated["docs/explore.md"] = page("docs/explore.md", { explore = markdown.options(explore.options) })
generated["docs/nginx.md"] = page("docs/nginx.md", { gate = gate_table() })
generated["docs/nginx-library.md"] = page("docs/nginx-library.md", { inbox = markdown.options(nginx_inbox, true) })
generated["docs/operating-nginx.md"] = page("docs/operating-nginx.md", { metrics = metrics_table() })

generated["docs/command.md"] = page("docs/command.md", { verbs = verb_table() })
generated["docs/riskscreen.1"] = manual.page()
generated["docs/openapi.json"] = openapi.page()

for path, text in pairs(packages.files()) do
  generated[path] = text
end

local is_check, is_stale = arg[1] == "--check", false
-- Rockspecs of another version.
for path in io.popen("find . -maxdepth 3 -name '*.rockspec' -not -path './build*'"):lines() do
  if not generated[path:sub(3)] then
    is_stale = true
    print((is_check and "not generated: " or "removed: ") .. path)
    if not is_check then
      os.remove(path)
    end
  end
end
for path, text in pairs(generated) do
  if text ~= read(path) then
    is_stale = true
    print((is_check and "out of date: " or "written: ") .. path)
    if not is_check then
      os.execute("mkdir -p ./" .. (path:match "^(.*)/" or ""))
      assert(files.write(path, text))
    end
  end
end
os.exit((is_check and is_stale) and 1 or 0)
