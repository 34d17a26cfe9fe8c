-- riskscreen sandbox: serves the simulated service over HTTP.

local build = require "riskscreen.options.build"
local configuration = require "riskscreen.cli.configuration"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"

local HEADER = "A header of these deliveries, such as 'X-Webhook-Secret: …'. Repeat it for more."

-- The table of the headers that were written. A message shows none: it may be a secret.
local function headers_of(list)
  local headers = {}
  for index, written in ipairs(list) do
    local name, value = written:match "^([%w_%-]+):%s*(.+)$"
    if not name or headers[name] then
      return nil, ("must be such as 'X-Webhook-Secret: …', each name once (header %d is not)"):format(index)
    end
    headers[name] = value
  end
  return headers
end

local function run(context)
  local options, out = context.options, context.world.out
  local server = status.made(riskscreen.sandbox.serve, {
    host = options.host,
    port = options.port,
    answers = options.answers,
    profile = options.imitation,
    webhook = { url = options.webhook_url, headers = options.webhook_header },
  })
  out:write("RISKSCREEN_BASE_URL=", server.url, "\nRISKSCREEN_ACCESS_KEY=", server.access_key, "\n")
  for _, name in ipairs(tables.sorted_keys(server.endpoints)) do
    local setting, endpoint = "endpoints." .. name, server.endpoints[name]
    for _, field in ipairs { "method", "path" } do
      out:write(configuration.variable(setting .. "." .. field), "='", endpoint[field], "'\n")
    end
  end
  status.ensure_written(out:flush())
  return context:serve()
end

return {
  name = "sandbox",
  summary = "Serve the sandbox, a simulated service, over HTTP until interrupted.",
  description = "The output has the settings with which the other verbs ask it, as lines for a shell. The last are "
    .. "the endpoints that a real service does not publish.",
  options = {
    { name = "host", type = "string", default = "127.0.0.1", doc = "Address to listen on." },
    build.count("port", "", 0, 0, 65535, "Port to listen on; 0 takes a free one."),
    { name = "answers", type = "string", argument = "FILE", doc = "JSON file of answers for your own addresses." },
    { name = "imitation", type = "string", argument = "FILE", doc = "What doctor --assumptions wrote, to imitate it." },
    { name = "webhook_url", type = "string", argument = "URL", doc = "Where results of transactions are sent." },
    tables.merge(build.checked("webhook_header", "table", headers_of, HEADER), {
      argument = "HEADER",
      is_repeated = true,
    }),
  },
  examples = {
    { line = "sandbox --port 8080", what = "On a port of your choice" },
    { line = "sandbox > sandbox.env & set -a; sleep 1; . ./sandbox.env", what = "For the other verbs of this shell" },
  },
  statuses = status.of_servers,
  run = run,
}
