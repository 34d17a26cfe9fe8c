-- One parameter of a query: what it is, and when two programs could take it for two things. Plain texts are read in a
-- quicker way than others; both must come to the same.

local parameters = require "riskscreen.nginx.parameters"

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

-- The same query with something in it that the quick way does not know.
local function awkward(query)
  return "%61=%20&" .. query
end

describe("a parameter", function()
  for _, case in ipairs(cases) do
    local query, value, problem = case[1], case[2], case[3]

    it(("of '%s' %s"):format(query, problem or "is '" .. value .. "'"), function()
      assert.same({ value, problem }, { parameters.value(query, "to") })
      assert.same({ value, problem }, { parameters.value(awkward(query), "to") })
    end)

    it(("of '%s' is the same when it is read again"):format(query), function()
      local read = parameters.reader "to"
      for _ = 1, 3 do
        assert.same({ value, problem }, { read(query) })
      end
    end)
  end

  it("of one query is not taken for that of another, of however many", function()
    local read = parameters.reader "to"
    for _ = 1, 2 do
      for number = 1, 1500 do
        assert.equal(tostring(number), (read(("x=%d&to=%d"):format(number % 7, number))))
      end
    end
  end)

  it("of no query is missing", function()
    assert.same({ nil, "is missing" }, { parameters.reader "to"(nil) })
  end)
end)
