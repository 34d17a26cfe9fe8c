-- The garbage of a miss of the gate. The bytes repeat, so the bound is close. It fails for one more table in a miss,
-- and for a table that Lua rebuilds because it has one field too many.
local nginx = require "spec.support.nginx"

local EMPTY_TABLE = 56 -- bytes
local BYTES = nginx.with_core and 5270 or 5815 -- of a miss, when it was counted; lower them with each table less
local MISSES = 64 -- in a round
local ROUNDS = 8 -- the least counts: in some, Lua enlarges its table of texts, or a second begins

-- Without the compiler, which leaves out some tables by chance, and without the hook of `./dev coverage`, which makes
-- others.
local HTTP = [[
lua_shared_dict riskscreen 8m;
server {
  listen unix:DIR/service.sock;
  location / {
    default_type application/json;
    set $risk '{"riskLevel":"low","riskType":"online-gambling","riskSource":"Provider"}';
    set $subject '"address":"$arg_address","network":"$arg_network"';
    set $data '{"time":1767225600000,$subject,"whitelist":false,"risks":[$risk]}';
    return 200 '{"success":true,"code":1,"msg":"SUCCESS","data":$data}';
  }
}
init_by_lua_block {
  jit.off()
  debug.sethook()
  gate = require("riskscreen.nginx.gate").new {
    client = { base_url = "http://127.0.0.1", unix_socket = "DIR/service.sock", access_key = "key-71ab" },
    dict = "riskscreen", lru = 8, on_unknown = "block",
  }
}
]]

-- The fewest bytes that a miss of a round took.
local COUNT = [[
local settings = ...
local request, address = { network = "eth" }, 0
local function misses()
  for _ = 1, settings.misses do
    address = address + 1
    request.address = ("0x%040x"):format(address)
    local _, source = gate:decide(request)
    assert(source == "upstream", source)
  end
end
misses()
local least = math.huge
for _ = 1, settings.rounds do
  collectgarbage()
  collectgarbage "stop"
  local before = collectgarbage "count"
  misses()
  least = math.min(least, (collectgarbage "count" - before) * 1024 / settings.misses)
  collectgarbage "restart"
end
return least
]]

describe("a miss", function()
  local server

  setup(function()
    server = nginx.start { http = HTTP }
  end)

  teardown(function()
    server:stop()
  end)

  it("makes no table more than it did", function()
    local bytes = server:eval(COUNT, { misses = MISSES, rounds = ROUNDS })
    assert.is_true(bytes < BYTES + EMPTY_TABLE, ("%.0f bytes, and not %d"):format(bytes, BYTES))
  end)
end)
