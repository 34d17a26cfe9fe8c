-- That one look-up serves everyone who wants the same verdict at the same time, in a real nginx: in a worker, over
-- several of them, and where the look-up takes its time and fails in the end.
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
    -- Entries get older by a minute in the time of each look-up.
    now = function()
      return 1000000 + (dict:get "minutes" or 0) * 60
    end,
    look_up = function(address)
      dict:incr("look-ups", 1, 0)
      ngx.sleep(0.3)
      dict:incr("minutes", 1, 0)
      local action = address:lower() == "0xbad" and "unknown" or "block"
      return { action = action, reasons = { { action = action, message = "as the test has it" } }, degraded = false }
    end,
  }
}
]]

local SERVER = [[
location = /decide {
  content_by_lua_block {
    ngx.ctx.decision = cache:decide(ngx.var.arg_address, "eth")
    ngx.print(ngx.ctx.decision.action)
  }
}
location = /look-ups { content_by_lua_block { ngx.print(ngx.shared.riskscreen:get "look-ups" or 0) } }
]]

for _, workers in ipairs { 1, 3 } do
  describe("with " .. workers .. " at work, a verdict that many want at once", function()
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

    it("is asked for once", function()
      assert.same({ block = REQUESTS }, answers "0xAb")
      assert.equal("1", server.get("/look-ups").body)
      server:stop()
    end)

    it("is asked for once even if it takes longer to fail than failures are remembered", function()
      assert.same({ unknown = REQUESTS }, answers "0xbad")
      assert.same({ unknown = REQUESTS }, answers "0xBAD")
      assert.equal("1", server.get("/look-ups").body)
      server:stop()
    end)
  end)
end
