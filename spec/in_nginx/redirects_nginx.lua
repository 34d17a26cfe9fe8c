-- The gate when nginx redirects a request to another location, or mirrors it.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local gates = require "spec.support.gate"
local nginx = require "spec.support.nginx"

local CLEAN, HIGH = addresses["clean-eth"], addresses["high-eth"]

local INIT = [[gate = new_gate { network = "eth", address = { argument = "to" }, block = { body = false },
  variables = { action = "kept", source = "kept_source" } }]]

local HTTP = [[
  map "" $kept { default "-"; }
  map "" $kept_source { default "-"; }
  log_format kept '$uri $status $kept $kept_source';
]]

local SERVER = [[
  access_log DIR/kept.log kept;
  location = /denied { internal; return 403 "denied"; }
  location = /guarded { access_by_lua_block { gate:enforce() } content_by_lua_block { ngx.print "passed" } }
  location = /rewritten { rewrite ^ /guarded last; }
  location = /tried { try_files /nowhere @guarded; }
  location = /tried_elsewhere { try_files /nowhere /guarded$is_args$args; }
  location = /failing { error_page 418 = @guarded; return 418; }
  location @guarded { access_by_lua_block { gate:enforce() } content_by_lua_block { ngx.print "passed" } }
  location = /fine {
    error_page 403 /denied;
    access_by_lua_block { gate:enforce() }
    content_by_lua_block { ngx.print "passed" }
  }
  location = /copied {
    mirror /copy;
    access_by_lua_block { gate:enforce() }
    content_by_lua_block { ngx.print "passed" }
  }
  location = /copy { internal; content_by_lua_block { ngx.shared.riskscreen:incr("copies", 1, 0) } }
  location = /copies { content_by_lua_block { ngx.print(ngx.shared.riskscreen:get "copies" or 0) } }
]]

describe("the gate", function()
  local running

  before_each(function()
    running = gates.start { init = INIT, http = HTTP, server = SERVER }
  end)

  after_each(function()
    running.close()
  end)

  it("decides in the location that answers, after any redirect", function()
    for _, path in ipairs { "/guarded", "/rewritten", "/tried", "/tried_elsewhere", "/failing" } do
      assert.equal(200, running.status(path .. "?to=" .. CLEAN), path)
      assert.equal(403, running.status(path .. "?to=" .. HIGH), path)
      assert.equal(403, running.status(path), path)
    end
  end)

  it("lets error_page answer a denied request, and shows the decision in the access log", function()
    local answer = running.get("/fine?to=" .. HIGH)
    assert.same({ 403, "denied" }, { answer.status, answer.body })
    assert.equal(200, running.status("/fine?to=" .. CLEAN))
    for _, line in ipairs { "/denied 403 block upstream", "/fine 200 allow upstream" } do
      nginx.wait_for(line, function()
        return io.open(running.nginx.directory .. "/kept.log"):read("*a"):find(line, 1, true)
      end)
    end
  end)

  it("does not let nginx mirror a denied request", function()
    assert.equal(403, running.status("/copied?to=" .. HIGH))
    assert.equal("0", running.get("/copies").body)
    assert.equal(200, running.status("/copied?to=" .. CLEAN))
    nginx.wait_for("the copy", function()
      return running.get("/copies").body == "1"
    end)
  end)
end)
