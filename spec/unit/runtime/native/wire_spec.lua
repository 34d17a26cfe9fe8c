-- The native HTTP client against the table of answers in spec/support/wire.lua. spec/in_nginx/wire_nginx.lua has the
-- other client.
local clients = require "spec.support.wire_clients"
local frames = require "spec.support.http2_frames"
local native = require "riskscreen.runtime.native"
local native_driver = require "spec.support.native_driver"
local outcome_of = require "spec.support.wire_outcome"
local peer = require "spec.support.peer"
local tls_server = require "spec.support.tls_server"
local wire = require "spec.support.wire"

local SECONDS = 20

describe("an answer on the wire", function()
  local serving

  after_each(function()
    serving:close()
  end)

  it("is to the native client what the table says", function()
    serving = clients.serve(wire.cases)
    local outcomes = clients.native(serving.url, wire.cases)
    for index, case in ipairs(wire.cases) do
      clients.check(case, outcomes[index], "native")
    end
  end)

  it("has a status line of the HTTP version that its connection speaks, also over TLS", function()
    local server, ending = tls_server.start(), {} -- that server waits for the end of the answer
    for index, case in ipairs(wire.status_lines) do
      ending[index] = { bytes = case.bytes }
    end
    serving = clients.serve(ending)
    local outcomes = clients.native("https://localhost", wire.status_lines, {
      unix_socket = server.path "split",
      ca_file = server.path "ca.pem",
      prefix = "/to/" .. serving.url:match "%d+$",
    })
    server.stop()
    for index, case in ipairs(wire.status_lines) do
      clients.check(case, outcomes[index], "native")
    end
  end)

  it("is refused if it is compressed and compression is off", function()
    serving = clients.serve(wire.cases)
    local outcomes = clients.native(serving.url, wire.cases, { compression = false })
    for index, case in ipairs(wire.cases) do
      if case.bytes:lower():find("\r\ncontent-encoding: gzip\r\ncontent-length", 1, true) then
        assert.equal("protocol", outcomes[index].kind, case.name)
      end
    end
  end)

  it("is never part of the next one, and leaves its connection open where the table says so", function()
    local stale = "/first"
    for _, case in ipairs(wire.cases) do
      serving = peer.tcp(native_driver, function(connection, request)
        local is_first = request:find(stale, 1, true)
        connection:send(is_first and case.bytes or peer.response '{"next":true}')
        if is_first and not case.kept then
          connection:finish()
        end
      end)
      local transport = native.transport {
        base_url = { origin = serving.url },
        concurrency = 1,
        max_response_size = wire.LIMIT,
        compression = true,
        connect_timeout = SECONDS,
      }
      local function get(target, method)
        local request = { method = method or "GET", target = target, headers = {}, timeout = SECONDS }
        request.connect_timeout = SECONDS
        return outcome_of(transport(request))
      end
      clients.check(case, get(stale, case.method), "native")
      assert.same({ next = true }, get("/second").value, case.name)
      assert.equal((case.native or case).kept and 1 or 2, serving.connections, case.name)
      serving:close()
    end
  end)

  for _, case in ipairs(frames.cases) do
    it("of HTTP/2 is what the table says: " .. case.name, function()
      serving = frames.serve(native_driver, case)
      clients.check(case, clients.native(serving.url, { {} }, { http_version = "2" })[1], "native")
    end)
  end
end)
