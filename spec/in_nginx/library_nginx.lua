-- Programs that use more than single calls, inside nginx, over HTTP to a sandbox in this process.
local json = require "riskscreen.json"
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

describe("inside nginx", function()
  local service, its_server, server, options

  setup(function()
    server = nginx.start { http = "init_by_lua_block { library = require 'spec.support.nginx_library' }" }
  end)

  teardown(function()
    server:stop()
  end)

  before_each(function()
    service = sandbox.new { kyt_delay = 0.05 }
    its_server = assert(sandbox.serve { service = service })
    options = {
      base_url = its_server.url,
      access_key = sandbox.default_key,
      endpoints = its_server.endpoints,
      polling = { first = 0.01, growth = 1, jitter = 0, ceiling = 0.01 },
    }
  end)

  after_each(function()
    its_server:close()
  end)

  -- In the request itself, and in a task of it.
  local function in_both(name, what, expected)
    local code = "local client = require('riskscreen').new(...) return " .. "%s"
    it(name, function()
      assert.same(expected, server:eval(code:format(("library.%s(client)"):format(what)), options))
    end)
    it(name .. ", in a task", function()
      local call = ("require('riskscreen').run(library.%s, client)"):format(what)
      assert.same(expected, server:eval(code:format(call), options))
    end)
  end

  in_both("a list is walked over all its pages", "walk_a_list", { 3, 120, 120 })
  in_both("many addresses are screened side by side, in their order", "screen_many", { 100, true, 0 })
  in_both("calls are mapped over a list", "map_calls", 30)
  in_both("a long list is looked up in parts", "look_up_many", { 250, 3, true })
  in_both("a transaction is submitted and its result polled", "screen_transaction", { true, "poll", "nil" })

  in_both("calls are made in light threads and coroutines of the program's own", "call_from_elsewhere", { 3, 3, 0 })

  it("a caller may change the headers of an answer, which are its own", function()
    local told = server:eval(
      [[
        local client = require("riskscreen").new(...)
        local parameters = { address = "0x" .. ("1"):rep(40), network = "eth" }
        local types = {}
        for call = 1, 3 do
          local _, response = assert(client.kya:risk(parameters))
          types[call] = response.headers["content-type"]
          response.headers["content-type"] = "changed"
        end
        return types
      ]],
      options
    )
    assert.same({ told[1], told[1], told[1] }, told)
    assert.not_equal("changed", told[1])
  end)

  it("a request gets the event that another request received", function()
    local data = { requestId = "r-17", status = 1003, maxScore = "80", risks = json.empty_array() }
    local event = { webhookId = "w-1", eventType = "getTxHashCustomRiskScore", timestamp = "2026-01-01 00:00:00" }
    event.data = data
    local body = json.encode(event)
    local results = riskscreen.gather {
      function()
        return { server:eval("local given = ... return library.await_event(given, 'r-17')", options) }
      end,
      function()
        return server:eval("return library.take_event(...)", body)
      end,
    }
    assert.same({ "80", "webhook" }, results[1])
    assert.equal(200, results[2])
  end)
end)
