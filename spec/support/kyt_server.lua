-- The sandbox over HTTP, which counts how often each transaction is submitted. It prints its address. GET /counts
-- returns the counts by hash, and GET /stop ends it, as does a minute without a request.

local core = require "riskscreen.core"
local json = require "riskscreen.json"
local riskscreen = require "riskscreen"

local PATIENCE = 60 -- seconds

local service = riskscreen.sandbox.new { kyt_delay = 0.001 }
local handle = service.handle
local counts, stopped, last = {}, false, core.now()

function service:handle(request)
  last = core.now()
  stopped = stopped or request.target == "/stop"
  if request.target == "/counts" or request.target == "/stop" then
    local body = assert(json.encode(counts))
    return { status = 200, headers = { ["content-type"] = "application/json" }, body = body }
  end
  local hash = request.method == "POST" and request.body and request.body:match '"hash":"([^"]+)"'
  if hash then
    counts[hash] = (counts[hash] or 0) + 1
  end
  return handle(self, request)
end

local server = assert(riskscreen.sandbox.serve { service = service })
print(server.url)
io.stdout:flush()
while not stopped and core.now() - last < PATIENCE do
  riskscreen.loop:step(1)
end
server:close()
