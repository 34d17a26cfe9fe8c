-- One parameter of a query. Simple texts are read on a fast path, which must give the same results.
local parameters = require "riskscreen.nginx.input.parameters"

-- Query, value of "to" or nil, problem.
local cases = {
  { "to=a", "a" },
  { "to=a&network=eth", "a" },
  { "network=eth&to=a", "a" },
  { "to=a=b&x", "a=b" },
  { "to", "" },
  { "to=", "" },
  { "to=&x=1", "" },
  { "&&to=a&", "a" },
  { "x&to=a", "a" },
  { "x=to&to=a", "a" },
  { "", nil, "is missing" },
  { "x=to", nil, "is missing" },
  { "too=a&xto=b", nil, "is missing" },
  { "TO=a", nil, "is missing" },
  { "=to", nil, "is missing" },
  { "to=a&to=a", nil, "is repeated" },
  { "to=a&to", nil, "is repeated" },
  { "to=a&TO=b", nil, "is repeated" },
  { "TO=a&to=b", nil, "is repeated" },
}

-- The same query with something that the fast path does not handle.
local function awkward(query)
  return "%61=%20&" .. query
end

describe("a parameter", function()
  for _, case in ipairs(cases) do
    local query, value, problem = case[1], case[2], case[3]

    it(("of '%s' %s"):format(query, problem or "is '" .. value .. "'"), function()
      local read = parameters.reader "to"
      assert.same({ value, problem }, { read(query) })
      assert.same({ value, problem }, { read(awkward(query)) })
    end)
  end

  it("with '_' in its name is the same as one with '.' or a space", function()
    local read = parameters.reader "pay_to"
    assert.equal("a", (read "pay_to=a&x=1"))
    for _, query in ipairs { "pay_to=a&pay.to=b", "pay+to=a&pay_to=b", "pay_to=a&pay%20to=b", "pay_to=a&pay to=b" } do
      assert.same({ nil, "is repeated" }, { read(query) })
    end
  end)

  it("with '_' in its name is the same as one with an unclosed '['", function()
    local read = parameters.reader "pay_to"
    for _, query in ipairs { "pay_to=a&pay[to=b", "pay[to=b&pay_to=a", "pay_to=a&pay%5Bto=b", "pay_to=a&PAY[TO=b" } do
      assert.same({ nil, "is repeated" }, { read(query) })
    end
    assert.equal("a", (read "pay_to=a&pay[x]=b"))
  end)

  it("is refused beside a name that changes when it is decoded twice", function()
    local read = parameters.reader "to"
    for _, query in ipairs { "to=a&%2574o=b", "%u0074o=b&to=a", "to=a&t%=b" } do
      assert.same({ nil, "is beside a name that can be read in two ways" }, { read(query) })
    end
    assert.equal("a%", (read "to=a%25&x=%25"))
  end)

  it("is read in linear time, also beside a very long name", function()
    local read = parameters.reader "to"
    for _, name in ipairs { ("a%sb"):format(("+"):rep(1000000)), ("+"):rep(1000000), ("["):rep(1000000) } do
      assert.equal("a", (read(name .. "=1&to=a")))
    end
  end)

  it("is refused among more than a thousand that are not simple", function()
    local read = parameters.reader "to"
    assert.equal("a", (read(("%61&"):rep(999) .. "to=a")))
    for _, query in ipairs { ("%61&"):rep(1000) .. "to=a", "to=a&" .. ("%61;"):rep(1000) } do
      assert.same({ nil, "is one of too many" }, { read(query) })
    end
  end)

  it("is the same as a list of that name", function()
    assert.same({ nil, "is repeated" }, { parameters.reader "to" "to=a&to[]=b" })
  end)

  it("is repeated for a program that splits at semicolons", function()
    assert.same({ nil, "is repeated" }, { parameters.reader "to" "to=a;to=b" })
  end)

  it("is missing if there is no query", function()
    assert.same({ nil, "is missing" }, { parameters.reader "to"(nil) })
  end)
end)
