-- Serves the sandbox over HTTP until interrupted: `./dev sandbox [PORT] [WEBHOOK_URL]`. The first two lines say how to
-- reach it.

local riskscreen = require "riskscreen"

local server, err = riskscreen.sandbox.serve { port = tonumber(arg[1]) or 0, webhook = arg[2] and { url = arg[2] } }
if not server then
  io.stderr:write("sandbox: ", tostring(err), "\n")
  os.exit(1)
end
print("RISKSCREEN_BASE_URL=" .. server.url)
print("RISKSCREEN_ACCESS_KEY=" .. server.access_key)
io.stdout:flush()
while true do
  riskscreen.loop:step()
end
