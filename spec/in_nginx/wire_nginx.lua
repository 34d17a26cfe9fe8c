-- Both HTTP clients against the same bytes: the table of spec/support/wire.lua, and mutations of it. They never believe
-- two different values. `./dev soak wire` does this for longer, with new mutations.
local clients = require "spec.support.wire_clients"
local mutations = require "spec.support.wire_mutations"
local nginx = require "spec.support.nginx"
local random = require "spec.support.random"
local socket = require "socket"
local wire = require "spec.support.wire"

local BATCH = 250 -- mutations
local SECONDS = tonumber(os.getenv "RISKSCREEN_WIRE_SECONDS" or 0)
local FEWEST = 4 -- batches

local server

setup(function()
  server = nginx.start {}
end)

teardown(function()
  server:stop(nginx.BROKEN_CONNECTIONS)
end)

-- The value that was believed, or nil.
local function belief(outcome)
  return not outcome.kind and { outcome.status, outcome.value, outcome.size, outcome.headers } or nil
end

describe("an answer on the wire", function()
  it("is to nginx's client what the table says, with the headers that the native client has", function()
    local peer = clients.serve(wire.cases)
    local natively, inside = clients.native(peer.url, wire.cases), clients.nginx(server, peer.url, wire.cases)
    peer:close()
    for index, case in ipairs(wire.cases) do
      clients.check(case, inside[index], "nginx")
      assert.same(belief(inside[index]), belief(inside[index]) and belief(natively[index]), case.name)
    end
  end)

  it("is never two values to the two clients, however it is changed", function()
    local deadline, seed = socket.gettime() + SECONDS, random.SEED
    local batches, believed = 0, 0
    repeat
      local cases = mutations.make(BATCH, seed)
      local peer = clients.serve(cases)
      local natively, inside = clients.native(peer.url, cases), clients.nginx(server, peer.url, cases)
      peer:close()
      for index, case in ipairs(cases) do
        local one, other = belief(natively[index]), belief(inside[index])
        if one and other then
          believed = believed + 1
          assert.same(one, other, ("seed %d, %q"):format(seed, case.bytes))
        end
      end
      batches, seed = batches + 1, seed + 1
    until batches >= FEWEST and socket.gettime() >= deadline
    assert.is_true(believed > batches, "hardly any answer was believed")
    if SECONDS > 0 then
      io.stderr:write(("%d answers, %d of them believed by both\n"):format(batches * BATCH, believed))
    end
  end)
end)
