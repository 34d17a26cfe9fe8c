-- Calls in every phase of nginx. In phases that cannot wait they fail, and name a phase that can.
local nginx = require "spec.support.nginx"
local sandbox = require "riskscreen.sandbox"

local HTTP = [[
  lua_shared_dict seen 1m;
  init_by_lua_block {
    phases = require "spec.support.nginx_phases"
    phases.begin({ base_url = "%s", access_key = "%s", timeout = 10 }, "%s")
  }
  init_worker_by_lua_block {
    phases.look "init_worker"
    ngx.timer.at(0, function() phases.look "timer" end)
    require("riskscreen").defer(phases.look, "deferred")
  }
]]

local SERVER = [[
  location = /rewrite { rewrite_by_lua_block { phases.look "rewrite" } content_by_lua_block { } }
  location = /access { access_by_lua_block { phases.look "access" } content_by_lua_block { } }
  location = /content { content_by_lua_block { phases.look "content" } }
  location = /set { set_by_lua_block $nothing { phases.look "set" return "" } return 204; }
  location = /header_filter { return 200 "x"; header_filter_by_lua_block { phases.look "header_filter" } }
  location = /body_filter { return 200 "x"; body_filter_by_lua_block { phases.look "body_filter" } }
  location = /log { return 200 "x"; log_by_lua_block { phases.look "log" } }
  location = /deferred {
    return 200 "x";
    log_by_lua_block { require("riskscreen").defer(phases.look, "after " .. ngx.var.uri) }
  }
]]

local CAN_WAIT = { "rewrite", "access", "content" }
local CANNOT_WAIT = { "set", "header_filter", "body_filter", "log" }

describe("calls in nginx's phases", function()
  local service, its_server, server

  setup(function()
    service = sandbox.new {}
    its_server = assert(sandbox.serve { service = service })
    local http = HTTP:format(its_server.url, sandbox.default_key, sandbox.scenario("high-eth").address)
    server = nginx.start { http = http, server = SERVER }
  end)

  teardown(function()
    server:stop()
    its_server:close()
  end)

  local function found(name)
    return server:eval("return require('spec.support.nginx_phases').wait_for(...)", name)
  end

  local function assert_answered(seen)
    assert.same({ "high", 250, "block" }, { seen.level, seen.entities, seen.action })
    assert.same({ nil, nil }, { seen.sleep, seen.gather })
  end

  local function assert_refused(phase, seen)
    assert.equal(phase, seen.phase)
    assert.same({ "unsupported", "unsupported", "unsupported" }, { seen.kind, seen.raw, seen.problem })
    assert.is_false(seen.sent)
    assert.equal("unknown", seen.action)
    for _, message in ipairs { seen.message, seen.sleep, seen.gather } do
      assert.matches("nginx cannot wait in the phase '" .. phase .. "'", message, 1, true)
      assert.matches("riskscreen.defer", message, 1, true)
    end
    -- The message names the caller's line.
    assert.matches("nginx_phases.lua:%d+: sleep: ", seen.sleep)
    assert.matches("nginx_phases.lua:%d+: gather: ", seen.gather)
  end

  for _, phase in ipairs(CAN_WAIT) do
    it("work in " .. phase, function()
      assert(server.get("/" .. phase))
      local seen = found(phase)
      assert.equal(phase, seen.phase)
      assert_answered(seen)
    end)
  end

  for _, phase in ipairs(CANNOT_WAIT) do
    it("fail in " .. phase .. ", and never decide", function()
      assert(server.get("/" .. phase))
      assert_refused(phase, found(phase))
    end)
  end

  for _, phase in ipairs { "init", "init_worker" } do
    it("fail in " .. phase .. ", and never decide", function()
      assert_refused(phase, found(phase))
    end)
  end

  it("work in a timer", function()
    assert_answered(found "timer")
  end)

  it("work later if init_worker defers them", function()
    assert_answered(found "deferred")
  end)

  it("work later if the log phase defers them", function()
    assert(server.get "/deferred")
    assert_answered(found "after /deferred")
  end)
end)
