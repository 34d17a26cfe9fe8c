-- That the nginx which the specs beside this one use is the one they take it for.
local nginx = require "spec.support.nginx"

describe("nginx for the specs", function()
  local server

  before_each(function()
    server = nginx.start {}
  end)

  it("runs Lua that it is given", function()
    assert.same({ 42, "text", false, { 1, 2 } }, { server:eval("return 42, 'text', false, ...", { 1, 2 }) })
    server:stop()
  end)

  it("has the compiled core where it shall have it, and nowhere else", function()
    assert.equal(nginx.with_core, (server:eval "return (pcall(require, 'riskscreen.core'))"))
    server:stop()
  end)

  it("is not stopped in peace when its error log holds an error", function()
    server:eval "ngx.log(ngx.ERR, 'something bad')"
    assert.error_matches(function()
      server:stop()
    end, "something bad")
  end)
end)
