-- Uses an object once, and again in a finalizer that runs while the Lua state closes, after the objects' own ones. It
-- prints both results.
local used

local function finish()
  print(used())
  io.stdout:flush()
end

-- Made before everything else, so that its finalizer is the last one.
local last = newproxy and newproxy(true) or setmetatable({}, { __gc = finish }) -- luacheck: ignore 113
if newproxy then -- luacheck: ignore 113
  getmetatable(last).__gc = finish
end

local riskscreen = require "riskscreen"

local ADDRESS = "0xf9410a55b94b72b3be0e33912be89d4f7da143f3"
local objects = {}

-- A client over HTTP; nothing listens at the port.
function objects.client()
  local client = riskscreen.new { base_url = "http://127.0.0.1:1", access_key = "a-key-of-tests", retry = false }
  return function()
    local ok, decision = pcall(client.screen, client, { address = ADDRESS, network = "eth" })
    return ok and decision.action or tostring(decision):match "[^:]*$"
  end
end

function objects.journal(path)
  local journal, client = assert(riskscreen.journal.file(path)), riskscreen.sandbox.client {}
  return function()
    local ok, failure = journal:append(client:screen { address = ADDRESS, network = "eth" })
    return ok and "written" or tostring(failure)
  end
end

function objects.loop()
  return function()
    local ok, failure = pcall(riskscreen.sleep, 0)
    return ok and "waited" or tostring(failure):match "[^:]*$"
  end
end

used = objects[...](select(2, ...))
print(used())
io.stdout:flush()
_G.kept = last
