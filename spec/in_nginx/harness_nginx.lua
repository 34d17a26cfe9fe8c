-- The nginx of the specs in this folder.
local nginx = require "spec.support.nginx"

describe("nginx for the specs", function()
  local server

  before_each(function()
    server = nginx.start {}
  end)

  it("evaluates Lua", function()
    assert.same({ 42, "text", false, { 1, 2 } }, { server:eval("return 42, 'text', false, ...", { 1, 2 }) })
    server:stop()
  end)

  it("has the compiled core if it was started with it", function()
    assert.equal(nginx.with_core, (server:eval "return (pcall(require, 'riskscreen.core'))"))
    server:stop()
  end)

  it("fails to stop if its error log has an error", function()
    server:eval "ngx.log(ngx.ERR, 'something bad')"
    assert.error_matches(function()
      server:stop()
    end, "something bad")
  end)
end)
