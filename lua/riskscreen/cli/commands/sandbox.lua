-- riskscreen sandbox: serves the simulated service over HTTP.

local build = require "riskscreen.options.build"
local riskscreen = require "riskscreen"
local status = require "riskscreen.cli.status"

local function run(context)
  local options, out = context.options, context.world.out
  local server, err = riskscreen.sandbox.serve {
    host = options.host,
    port = options.port,
    webhook = options.webhook_url and { url = options.webhook_url } or nil,
  }
  if not server then
    status.fail(status.unknown, tostring(err):gsub("^riskscreen: ", ""))
  end
  out:write("RISKSCREEN_BASE_URL=", server.url, "\nRISKSCREEN_ACCESS_KEY=", server.access_key, "\n")
  out:flush()
  while true do
    riskscreen.loop:step()
  end
end

return {
  name = "sandbox",
  summary = "Serve the sandbox, a simulated service, over HTTP until interrupted.",
  description = "The first two lines of the output are the settings with which the other verbs ask it.",
  options = {
    { name = "host", type = "string", default = "127.0.0.1", doc = "Address to listen on." },
    build.count("port", "", 0, 0, 65535, "Port to listen on; 0 takes a free one."),
    { name = "webhook_url", type = "string", argument = "URL", doc = "Where results of transactions are sent." },
  },
  examples = {
    { line = "sandbox --port 8080", what = "On a port of your choice" },
  },
  statuses = {},
  run = run,
}
