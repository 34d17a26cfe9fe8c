-- riskscreen webhook listen: receives the results of transactions, and writes each event once.

local build = require "riskscreen.options.build"
local outputs = require "riskscreen.cli.output"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local SECRET = "RISKSCREEN_WEBHOOK_SECRET"
local NO_SENDER = "deliveries must be authenticated: set %s, or give --allow ADDRESS, or --accept-unauthenticated"

local function run(context)
  local options, world = context.options, context.world
  local secret = world.getenv(SECRET)
  if not secret and not options.allow and not options.accept_unauthenticated then
    status.misuse(NO_SENDER, SECRET)
  end
  local write_line = outputs.line_writer(world.out)
  local made, inbox = pcall(riskscreen.webhook.inbox, {
    secret = secret and { value = secret, path = true } or nil,
    allow = options.allow,
    accept_unauthenticated = options.accept_unauthenticated or nil,
    handlers = {
      ["*"] = function(event)
        local names = { "webhookId", "eventType", "timestamp", "data" }
        return write_line(outputs.json(tables.pick(event, names), names))
      end,
    },
  })
  if not made then
    status.misuse((tostring(inbox):gsub("^[^ ]+:%d+: ", ""):gsub("webhook.inbox: secret.value", SECRET)))
  end
  local listener = status.made(inbox.listen, inbox, {
    host = options.host,
    port = options.port,
    on_refused = function(code, reason, remote)
      context:warn(("refused a delivery from %s: %d, %s"):format(tostring(remote), code, reason))
    end,
  })
  local where = listener.url .. (secret and "/SECRET" or "")
  context:warn("listening on " .. where .. "; Ctrl-C ends it")
  return context:serve()
end

return {
  name = "webhook listen",
  summary = "Receive webhooks over HTTP, and write each event as a JSON line.",
  description = (
    "The secret in %s comes after the path of the URL. An event is answered once its line is written, and "
    .. "a repeated event is written once, while the program runs. "
    .. "A line on stderr names each delivery that is refused, and why."
  ):format(SECRET),
  options = {
    { name = "host", type = "string", default = "127.0.0.1", doc = "Address to listen on." },
    build.count("port", "", 0, 0, 65535, "Port to listen on; 0 takes a free one."),
    { name = "allow", type = "table", list = true, argument = "NETWORK", doc = "Senders, such as 192.0.2.0/24." },
    { name = "accept_unauthenticated", type = "boolean", doc = "Take deliveries of anybody." },
  },
  examples = {
    { line = "webhook listen --port 8090 >> events.jsonl", what = "With the secret in the environment" },
  },
  statuses = status.of_servers,
  run = run,
}
