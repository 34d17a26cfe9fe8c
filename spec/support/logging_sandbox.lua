-- Serves the sandbox over HTTP and appends the target of every request to a file:
-- lua spec/support/logging_sandbox.lua LOG [PORT [DELAY]]. The first line of the output is the URL. The delay of each
-- answer is in seconds.

local riskscreen = require "riskscreen"

local log = assert(io.open(arg[1], "ab"))
log:setvbuf "line"

local service = riskscreen.sandbox.new {
  log_size = 1,
  accounts = { ["sandbox-key"] = {}, ["the-new-key-of-an-account"] = {} },
}
if tonumber(arg[3]) then
  service:fault { kind = "delay", delay = tonumber(arg[3]) }
end
local handle = service.handle
function service:handle(request)
  log:write(request.target, "\n")
  return handle(self, request)
end

local server = assert(riskscreen.sandbox.serve { service = service, port = tonumber(arg[2]) })
print(server.url)
io.stdout:flush()
while true do
  riskscreen.loop:step()
end
