-- One fetch for all requests that want the same address at the same time, in one worker and in several of a real nginx.
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"

local REQUESTS = 200

local SETUP = [[
lua_shared_dict riskscreen 1m;
init_by_lua_block {
  local dict = ngx.shared.riskscreen
  cache = require("riskscreen.nginx.cache").new {
    dict = dict,
    lru = 100,
    timeout = 10,
    ttl = { unknown = 10 },
    -- During each fetch, a minute passes for the entries.
    now = function()
      return 1000000 + (dict:get "minutes" or 0) * 60
    end,
    fetch = function(address)
      dict:incr("fetches", 1, 0)
      ngx.sleep(0.3)
      dict:incr("minutes", 1, 0)
      local action = address == "0xbad" and "unknown" or "block"
      return { action = action, reasons = { { action = action, message = "as the test has it" } }, degraded = false }
    end,
  }
}
]]

local SERVER = [[
location = /decide {
  content_by_lua_block {
    ngx.ctx.decision = cache:get(ngx.var.arg_address, "eth")
    ngx.print(ngx.ctx.decision.action)
  }
}
location = /fetches { content_by_lua_block { ngx.print(ngx.shared.riskscreen:get "fetches" or 0) } }
]]

for _, workers in ipairs { 1, 3 } do
  describe("two hundred requests at once to " .. workers .. " workers", function()
    local server

    before_each(function()
      server = nginx.start { workers = workers, http = SETUP, server = SERVER }
    end)

    local function answers(address)
      local calls, counts = {}, {}
      for index = 1, REQUESTS do
        calls[index] = function()
          local answer = assert(server.get("/decide?address=" .. address))
          counts[answer.body] = (counts[answer.body] or 0) + 1
          return true
        end
      end
      riskscreen.gather(calls)
      return counts
    end

    it("cause one fetch", function()
      assert.same({ block = REQUESTS }, answers "0xab")
      assert.equal("1", server.get("/fetches").body)
      server:stop()
    end)

    it("cause one fetch even if it takes longer to fail than failures are kept", function()
      assert.same({ unknown = REQUESTS }, answers "0xbad")
      assert.same({ unknown = REQUESTS }, answers "0xbad")
      assert.equal("1", server.get("/fetches").body)
      server:stop()
    end)
  end)
end
