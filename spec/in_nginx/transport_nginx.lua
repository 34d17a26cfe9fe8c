-- A custom transport inside nginx: the one of examples/nginx/resty_http.lua, over lua-resty-http where it is installed,
-- else over a stand-in.
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local HTTP = [[
  init_by_lua_block {
    package.path = package.path .. ";ROOT/examples/nginx/?.lua;ROOT/spec/support/stand_in/?.lua"
  }
]]

local SCREEN = [[
  local given = ...
  local client = require("riskscreen").new {
    access_key = given.key,
    transport = require "resty_http" { scheme = "http", host = "127.0.0.1", port = given.port },
    timeout = given.timeout,
    retry = false,
  }
  local decision = client:screen { address = given.address, network = "eth" }
  local err = decision.error or {}
  return decision.action, err.kind, err.sent
]]

describe("the example of a transport over lua-resty-http", function()
  local server, served

  before_each(function()
    server = nginx.start { http = HTTP }
    served = assert(riskscreen.sandbox.serve {})
  end)

  after_each(function()
    served:close()
    server:stop { "recv%(%) failed .*reset by peer", "send%(%) failed %(104:", "failed to load module `resty.openssl" }
  end)

  local function screen(name, more)
    local given = {
      port = tonumber(served.url:match ":(%d+)$"),
      key = served.access_key,
      address = riskscreen.sandbox.scenario(name).address,
    }
    for field, value in pairs(more or {}) do
      given[field] = value
    end
    return server:eval(SCREEN, given)
  end

  it("gives the same records as the library's own HTTP, over kept connections", function()
    for _ = 1, 3 do
      assert.equal("allow", (screen "clean-eth"))
      assert.equal("block", (screen "type-sanction"))
    end
  end)

  it("sends bodies", function()
    local name = server:eval(
      [[
        local given = ...
        local client = require("riskscreen").new {
          access_key = given.key,
          transport = require "resty_http" { scheme = "http", host = "127.0.0.1", port = given.port },
        }
        local records = assert(client.kya:entities { addresses = { given.address }, network = "eth" })
        return records[1].address
      ]],
      {
        port = tonumber(served.url:match ":(%d+)$"),
        key = served.access_key,
        address = riskscreen.sandbox.scenario("entity-exchange").address,
      }
    )
    assert.equal(riskscreen.sandbox.scenario("entity-exchange").address, name)
  end)

  it(
    "makes no verdict of a refusal, of silence, of an answer that trickles, is cut or no JSON, nor of a closed port",
    function()
      local function fate(action, kind, sent)
        return { action, kind, sent }
      end
      assert.same({ "unknown", "unauthorized", true }, fate(screen("clean-eth", { key = "wrong-key" })))
      served.service:fault { kind = "hang", count = 1 }
      assert.same({ "unknown", "timeout", true }, fate(screen("clean-eth", { timeout = 0.2 })))
      served.service:fault { kind = "drip", bytes = 8, every = 0.03, count = 1 }
      assert.same({ "unknown", "timeout", true }, fate(screen("clean-eth", { timeout = 0.3 })))
      served.service:fault { kind = "invalid-json", count = 1 }
      assert.same({ "unknown", "protocol", true }, fate(screen "clean-eth"))
      served.service:fault { kind = "truncate", count = 1 }
      assert.same({ "unknown", "network", true }, fate(screen "clean-eth"))
      served.service:fault { kind = "reset", count = 1 }
      assert.same({ "unknown", "network", true }, fate(screen "clean-eth"))
      assert.same({ "unknown", "network", false }, fate(screen("clean-eth", { port = 1 })))
    end
  )
end)
