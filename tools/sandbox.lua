-- The process of ./dev sandbox and ./dev gateway: lua5.4 tools/sandbox.lua [PORT [WEBHOOK_URL]].

local riskscreen = require "riskscreen"

local server, err = riskscreen.sandbox.serve { port = tonumber(arg[1]) or 0, webhook = arg[2] and { url = arg[2] } }
if not server then
  io.stderr:write("sandbox: ", tostring(err), "\n")
  os.exit(1)
end
print("RISKSCREEN_BASE_URL=" .. server.url)
print("RISKSCREEN_ACCESS_KEY=" .. server.access_key)
io.stdout:flush()

local _, failure = pcall(function()
  while true do
    riskscreen.loop:step()
  end
end)
server:close()
-- Ctrl-C is the usual end. Lua raises it as this error.
if not tostring(failure):find "interrupted!$" then
  io.stderr:write("sandbox: ", tostring(failure), "\n")
  os.exit(1)
end
