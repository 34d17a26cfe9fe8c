-- The sandbox over HTTP, failing one request in twenty. It prints its address first. GET /soak returns the number of
-- failed requests. GET /soak/stop ends it, and so does a minute without a request.

local core = require "riskscreen.core"
local riskscreen = require "riskscreen"

local EVERY = 20 -- requests
local PATIENCE = 60 -- seconds

-- The faults in turn. The client's timeout ends those that would hang.
local faults = {
  "status=500",
  "status=429; retry-after=1",
  "reset",
  "hang",
  "truncate=20",
  "invalid-json",
  "status=401",
  "html",
  "empty",
  "drip=1; every=1",
  "status=404",
  "status=503; delay=0.01",
}

local service = riskscreen.sandbox.new { log_size = 0 }
local handle = service.handle
local requests, failed, stopped, last = 0, 0, false, core.now()

local function own(request)
  stopped = request.target == "/soak/stop"
  return { status = 200, headers = { ["content-type"] = "application/json" }, body = ('{"failed":%d}'):format(failed) }
end

function service:handle(request)
  last = core.now()
  if request.target:find "^/soak" then
    return own(request)
  end
  requests = requests + 1
  if requests % EVERY == 0 then
    failed = failed + 1
    request.headers["x-sandbox-fault"] = faults[(failed - 1) % #faults + 1]
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
