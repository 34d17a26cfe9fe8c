-- A location's choice among the decisions about several subjects.
local ngx = _G.ngx
_G.ngx = { WARN = 5 }
local locations = require "riskscreen.nginx.location"
_G.ngx = ngx

describe("the worst of several decisions", function()
  local location = locations.new {
    proxy = {},
    variables = {},
    log = "warn",
    on_review = "block",
    on_unknown = "block",
    on_invalid = "block",
  }

  local function worst(...)
    local found, sources = {}, {}
    for index = 1, select("#", ...) do
      local action = select(index, ...)
      found[index], sources[index] = action and { action = action }, action and "lru"
    end
    return location:worst(found, sources, select("#", ...))
  end

  it("is the one that leads to the worst action", function()
    assert.equal(1, worst("allow", "allow"))
    assert.equal(2, worst("allow", "block", "allow"))
    assert.equal(3, worst("allow", "review", "block"))
  end)

  it("is none where one is missing", function()
    assert.has_error(function()
      worst("allow", nil, "block")
    end)
    assert.has_error(function()
      worst("allow", nil)
    end)
  end)
end)
