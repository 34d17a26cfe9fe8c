-- One parameter of a query. Simple texts are read on a fast path, which must give the same results.
local parameters = require "riskscreen.nginx.input.parameters"
local random = require "spec.support.random"
local tables = require "riskscreen.util.tables"

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

  it("is repeated where a program drops another character from a name", function()
    local read = parameters.reader "to"
    for _, name in ipairs { "T/o", "t~o", "t:o", "T,o", "/to", "to:" } do
      assert.same({ nil, "is repeated" }, { read("to=a&" .. name .. "=b") })
      assert.same({ nil, "is repeated" }, { read(name .. "=b&to=a") })
    end
    assert.equal("a", (read "to=a&url=https://x,y~z/t:o"))
  end)

  it("is the same on the fast path and the thorough one", function()
    local draw = random.new(random.SEED)
    local pieces = { "to", "to=1", "&to=", "t", "o", "T", "O", "_", "-", "&", "=", "&", "=", "x", "/", ":", ",", "~" }
    for _, name in ipairs { "to", "toAddress", "to_address", "t-o" } do
      local read = parameters.reader(name)
      for _ = 1, random.rounds(4000) do
        local parts = {}
        for index = 1, draw.integer(9) do
          parts[index] = draw.integer(4) == 1 and name or draw.pick(pieces)
        end
        local query = table.concat(parts)
        assert.same({ read(awkward(query)) }, { read(query) }, query)
      end
    end
  end)

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

  it("is refused beside a name that some program takes for its own", function()
    local read = parameters.reader "to"
    for _, name in ipairs {
      "to]",
      "]to",
      "[to",
      "[to]",
      "to[0]",
      "to[x][y]",
      "a[to]",
      "to%5D",
      "%5Dto",
      "%5bto",
      "%5bTO%5d",
      "a.to",
      "to.",
      ".to",
      "to.a",
      "to%2E",
      "a%2eto",
      "+to",
      "to+",
      "to%20",
      "%20to",
      "to%00",
      "to%00x",
      "%00to",
      "to%09",
      "%0ato",
      "%C2%A0to",
      "to%E2%80%8B",
      "?to",
      "a?to",
      "%3Fto",
      "a;to",
      "To",
      "tO",
      "T%4F",
      "to%5B",
    } do
      for _, query in ipairs { "to=a&" .. name .. "=b", name .. "=b&to=a", "to=a&" .. name } do
        assert.same({ nil, "is repeated" }, { read(query) }, query)
      end
    end
    assert.same({ nil, "is repeated" }, { parameters.reader "risk" "risk=a&ri%C5%BFk=b" })
    for _, query in ipairs { "to=a&x=?to=b", "x=1?to=b&to=a", "?to=b&to=a" } do
      assert.same({ nil, "is repeated" }, { read(query) }, query)
    end
    assert.same({ nil, "is missing" }, { read "?to=a" })
    for _, name in ipairs { "to_chain", "send_to", "to-2", "auto", "[from]", "from.x", "tos[]", "t.ox" } do
      assert.equal("a", (read("to=a&" .. name .. "=b")), name)
    end
  end)

  it("is refused beside its name with other capitals and separators", function()
    -- grpc-gateway takes "to_address" and "toAddress" for one field, and so do programs that turn names into camelCase.
    local names = { "toAddress", "to_address", "to-address", "ToAddress", "toaddress", "TO_ADDRESS", "to__address" }
    local others =
      { "_toAddress", "to_Address_", "to.address", "to[address]", "to address", "x.to_address", "t_o_a_ddress" }
    for _, name in ipairs(names) do
      local read = parameters.reader(name)
      for _, other in ipairs(tables.concat(names, others)) do
        for _, format in ipairs { "%s=a&%s=b", "x=1&%s=a&%s=b&y=%%20", "%s=a&%s" } do
          assert.same({ nil, "is repeated" }, { read(format:format(name, other)) }, name .. " " .. other)
          assert.same({ nil, "is repeated" }, { read(format:format(other, name)) }, name .. " " .. other)
        end
      end
      for _, other in ipairs { "to", "address", "to_address_2", "into_address", "to.x.address" } do
        assert.equal("a", (read(("%s=a&%s=b&id=1_2-3"):format(name, other))), name .. " " .. other)
        assert.equal("a", (read(("id=1_2-3&%s=b&%s=a"):format(other, name))), name .. " " .. other)
      end
    end
    for _, other in ipairs { "t_o", "t-o", "_to", "to_", "t.o", "T[O]" } do
      assert.same({ nil, "is repeated" }, { parameters.reader "to"("to=a&" .. other .. "=b") }, other)
    end
  end)

  it("has no value where a fuzzer has found another one for another parser", function()
    local read = parameters.reader "to"
    for line in io.lines "spec/fuzz/binders/found.txt" do
      local query = line:match "^query (.*)$"
      assert.is_nil(query and read(query), line)
    end
  end)

  it("whose name has other characters is found, and not twice", function()
    for _, name in ipairs { "a[to]", "a.to", "_to", "to_", "x-to", "a to" } do
      local read = parameters.reader(name)
      assert.equal("a", (read("x=%20&" .. name .. "=a")), name)
      assert.same({ nil, "is repeated" }, { read(name .. "=a&" .. name .. "[]=b") }, name)
    end
  end)

  it("is refused beside a name that changes when it is decoded twice, or has overlong UTF-8", function()
    local read = parameters.reader "to"
    for _, query in ipairs {
      "to=a&%2574o=b",
      "%u0074o=b&to=a",
      "to=a&t%=b",
      "to=a&%C1%B4o=b",
      "to=a&t%E0%81%AF=b",
      "t%F0%80%81%AF=b&to=a",
    } do
      assert.same({ nil, "is beside a name that can be read in two ways" }, { read(query) })
    end
    assert.equal("a%", (read "to=a%25&x=%25"))
    assert.equal("a", (read "to=a&%C3%A4%E0%A4%85%E2%82%AC%F0%9F%98%80=b"))
  end)

  it("is read in linear time, also beside a very long name", function()
    local read = parameters.reader "to"
    for _, name in ipairs {
      ("a%sb"):format(("+"):rep(1000000)),
      ("+"):rep(1000000),
      ("["):rep(1000000),
      ("t_"):rep(500000),
      ("t["):rep(500000),
    } do
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

describe("a cookie", function()
  local read = parameters.cookie_reader "to"

  it("is found by its exact name", function()
    for _, text in ipairs { "to=a", "x=1; to=a", "to=a; x=to", "to=a;x=1", "x; to=a" } do
      assert.equal("a", (read(text)), text)
    end
    for _, text in ipairs { "", "x=to", "TO=a", "to", "to%20=a" } do
      assert.same({ nil, "is missing" }, { read(text) }, text)
    end
    assert.same({ nil, "is missing" }, { read(nil) })
  end)

  it("is refused if it is there twice", function()
    for _, text in ipairs {
      "to=a; to=b",
      "TO=b; to=a",
      "to=a;to=b",
      "to=a,to=b",
      "to=a; x=1 to=b", -- Python's http.cookies
      "to=a; x=1\tto=b",
      'x="; to=b"; to=a',
      "to=a; to[]=b",
      "to=a; %74o=b",
      "to=a; $to",
    } do
      assert.same({ nil, "is repeated" }, { read(text) }, text)
    end
  end)
end)
