-- A field of a JSON text: the same that the decoder finds, or none.
local json = require "riskscreen.json"
local json_field = require "riskscreen.nginx.input.json_field"
local random = require "spec.support.random"

describe("a field of a JSON text", function()
  it("is found behind whatever else is there", function()
    for _, before in ipairs {
      "",
      '"x": 1,',
      '"x": "}\\"to\\":",',
      '"x": {"to": "no", "y": [{"to": "no"}, "]"]},',
      '"x": [[], {}, [1, -2.5e3, true, null, "\\\\"]],',
      '"to ": "no", "t": "no", "\\u0000to": "no",',
    } do
      local values = assert(json_field.values(('{ %s "to" :\t"yes"\n}'):format(before), { "to" }))
      assert.same({ "yes" }, values, before)
    end
  end)

  it("is repeated where a reader that knows no case sees it twice", function()
    for _, other in ipairs { "to", "To", "tO", "t\\u006f", "T\\u006F" } do
      local text = ('{"to": "a", "x": [], "%s": "b"}'):format(other)
      assert.same({ nil, "is repeated" }, { json_field.values(text, { "to" }) })
    end
    for _, pair in ipairs {
      { "address", "addre\197\191s" },
      { "key", "\226\132\170ey" },
      { "key", "\\u212aey" },
      { "id", "\196\177d" },
      { "id", "\\u0130d" },
    } do
      local text = ('{"%s": "b", "%s": "a"}'):format(pair[2], pair[1])
      assert.same({ nil, "is repeated" }, { json_field.values(text, { pair[1] }) })
    end
  end)

  it("is repeated where a reader whose texts end at a NUL sees it twice", function()
    for _, other in ipairs { "to\\u0000", "to\\u0000x", "TO\\u0000" } do
      for _, text in ipairs { '{"to": "a", "%s": "b"}', '{"%s": "b", "to": "a"}' } do
        assert.same({ nil, "is repeated" }, { json_field.values(text:format(other), { "to" }) })
      end
    end
  end)

  it("is where the decoder finds it, in any text", function()
    local generator = random.new(20261121)
    local pick = generator.pick
    local function value(depth)
      local kind = generator.integer(depth > 3 and 2 or 4)
      if kind == 1 then
        return pick { "1", "-0.5", "true", "null", '""', '"\\""', '"{"', '"\\\\"', '"]"' }
      elseif kind == 2 then
        return '"' .. pick { "a", "b", "\\u0061", "a b", "\\n" } .. '"'
      end
      local parts, used = {}, {}
      for _ = 2, generator.integer(5) do
        local key = pick { "a", "b", "c", "\\u0061", "A" }
        if kind == 3 then
          parts[#parts + 1] = value(depth + 1)
        elseif not used[key] then
          used[key] = true
          parts[#parts + 1] = ('"%s"%s:%s'):format(key, pick { "", " " }, value(depth + 1))
        end
      end
      local space = pick { "", " ", "\n" }
      local list = table.concat(parts, space .. "," .. space)
      return kind == 3 and "[" .. space .. list .. "]" or "{" .. list .. space .. "}"
    end
    local found = 0
    for _ = 1, 3000 do
      local text = value(1)
      if generator.integer(2) == 1 then
        text = ('{"x": %s, "a": {"c": %s, "b": %s, "d": %s}}'):format(value(1), value(1), value(1), value(1))
      end
      local values, problem = json_field.values(text, { "a", "b" })
      local decoded = json.decode("[" .. text .. "]")[1]
      local inner = type(decoded) == "table" and decoded.a
      local expected = type(inner) == "table" and type(inner.b) == "string" and inner.b or nil
      if values then
        found = found + 1
        assert.equal(expected, values[1], text)
      elseif problem ~= "is repeated" then
        assert.is_nil(expected, text)
      end
    end
    assert.is_true(found > 100)
  end)
end)
