-- The library inside nginx besides calls: reports of failures, deferred work, and independence of the way nginx loads
-- Lua.
local nginx = require "spec.support.nginx"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"

local HTTP = "init_by_lua_block { riskscreen = require 'riskscreen' seen = {} }"

describe("inside nginx", function()
  local service, its_server, options

  setup(function()
    service = sandbox.new {}
    its_server = assert(sandbox.serve { service = service })
    options = { base_url = its_server.url, access_key = sandbox.default_key }
  end)

  teardown(function()
    its_server:close()
  end)

  it("a failure that nobody awaits is in the error log once", function()
    local server = nginx.start { http = HTTP }
    server:eval [[
      riskscreen.spawn(function() error "lost" end)
      riskscreen.sleep(0)
    ]]
    server:eval "collectgarbage() collectgarbage()"
    assert.equal(1, select(2, server:log():gsub("a task failed and nobody awaited it: [^\n]*lost", "")))
    assert.error_matches(function()
      server:stop()
    end, "nobody awaited it")
  end)

  it("a sleep of no time lets other threads run, without a warning of nginx", function()
    local server = nginx.start { http = HTTP }
    local others = server:eval [[
      local others = 0
      local thread = ngx.thread.spawn(function() for _ = 1, 3 do ngx.sleep(0.001) others = others + 1 end end)
      repeat riskscreen.sleep(0) until others == 3
      return others
    ]]
    assert.equal(3, others)
    server:stop()
  end)

  it("a deferred function gets its arguments, and its failure is in the error log", function()
    local server = nginx.start { http = HTTP }
    local seen = server:eval [[
      local seen
      assert(riskscreen.defer(function(...) seen = { ... } error "deferred and failed" end, 1, "two"))
      repeat riskscreen.sleep(0.001) until seen
      return seen
    ]]
    assert.same({ 1, "two" }, seen)
    server:stop { "deferred and failed" }
  end)

  it("a deferred function runs although its worker is told to end", function()
    local server = nginx.start {
      http = HTTP,
      server = [[
      location = /late {
        content_by_lua_block {
          seen.waits = true
          repeat ngx.sleep(0.005) until ngx.worker.exiting()
          local client = riskscreen.new { base_url = ngx.var.arg_url, access_key = ngx.var.arg_key }
          assert(riskscreen.defer(client.kya.risk, client.kya, { address = "0x" .. ("1"):rep(40), network = "eth" }))
        }
      }
    ]],
    }
    local target = ("/late?url=%s&key=%s"):format(its_server.url, sandbox.default_key)
    local results = riskscreen.gather {
      function()
        return (assert(server.get(target))).status
      end,
      function()
        server:eval "repeat ngx.sleep(0.001) until seen.waits"
        server:reload()
        return true
      end,
    }
    assert.same({ 200, true }, results)
    while #server:workers() > 1 do
      riskscreen.sleep(0.005)
    end
    assert.equal(1, #service:requests())
    -- The message of nginx when a timer ends last in a worker.
    server:stop { "open socket #%-2 left in connection", "aborting" }
  end)

  for moment, directives in pairs {
    ["a worker ends at once"] = { "", "off" },
    ["Lua ends with the request"] = { "lua_code_cache off;", "on" },
  } do
    it("no timer is set for a call under way when " .. moment, function()
      service:fault { kind = "hang", count = 1 }
      local server = nginx.start {
        http = directives[1],
        server = "lua_check_client_abort "
          .. directives[2]
          .. [[;
          location = /hang {
            content_by_lua_block {
              local client = require("riskscreen").new { base_url = ngx.var.arg_url, access_key = ngx.var.arg_key }
              -- The request is gone by then, and nginx crashes sometimes.
              ngx.timer.at = function()
                io.stderr:write "[alert] a timer was set at the end\n"
              end
              client.kya:risk { address = "0x" .. ("1"):rep(40), network = "eth" }
            }
          }
        ]],
      }
      local target = ("/hang?url=%s&key=%s"):format(its_server.url, sandbox.default_key)
      local answer = server.get(target, { timeout = 0.3 })
      assert.is_nil(answer)
      server:stop { "lua_code_cache is off" }
    end)
  end

  it("defer refuses a value other than a function at the caller's line", function()
    local server = nginx.start { http = HTTP }
    local message = server:eval "local _, message = pcall(function() riskscreen.defer 'x' end) return message"
    assert.matches("eval:1: defer: expected a function (got a string)", message, 1, true)
    server:stop()
  end)

  it("calls work where Lua is loaded again for every request", function()
    local server = nginx.start { http = "lua_code_cache off;" }
    for _ = 1, 3 do
      local count, failure = server:eval(
        [[
        local riskscreen = require "riskscreen"
        local client = riskscreen.new(...)
        local function call()
          return client.kya:risk { address = "0x" .. ("1"):rep(40), network = "eth" }
        end
        local records, others = riskscreen.gather { call, call }
        return #records, tostring(others[1].kind)
      ]],
        options
      )
      assert.same({ 2, "nil" }, { count, failure })
    end
    server:stop { "lua_code_cache is off" }
  end)

  it("the runtime uses the monotonic clock", function()
    local server = nginx.start { http = HTTP }
    local runtime, advanced, sleeps = server:eval [[
      local runtime = require "riskscreen.runtime"
      local before, last, advanced = runtime.now(), runtime.now(), true
      for _ = 1, 1000 do
        advanced, last = advanced and runtime.now() >= last, runtime.now()
      end
      riskscreen.sleep(0.02)
      return runtime.name, advanced, runtime.now() - before >= 0.02
    ]]
    assert.same({ "nginx", true, true }, { runtime, advanced, sleeps })
    server:stop()
  end)
end)
