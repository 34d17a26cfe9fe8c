-- The field of a JSON text.
local json_field = require "riskscreen.nginx.input.json_field"

describe("a field of a JSON text", function()
  it("is found among other members", function()
    for _, before in ipairs {
      "",
      '"x": 1,',
      '"x": "}\\"to\\":",',
      '"x": {"to": "no", "y": [{"to": "no"}, "]"]},',
      '"x": [[], {}, [1, -2.5e3, true, null, "\\\\"]],',
      '"to ": "no", "t": "no", "\\u0000to": "no", "to2": null,',
    } do
      local values = assert(json_field.values(('{ %s "to" :\t"yes"\n}'):format(before), { "to" }))
      assert.same({ "yes" }, values, before)
    end
  end)

  it("is found in nested objects and in every element of an array", function()
    local text = '{"a": {"list": [{"to": "1"}, {"to": "2", "x": null}]}, "b": [], "1": "x"}'
    assert.same({ "1", "2" }, json_field.values(text, { "a", "list", "*", "to" }))
    assert.same({ "x" }, json_field.values(text, { "1" }))
    for _, path in ipairs {
      { "b", "*" },
      { "b", "to" },
      { "a", "*" },
      { "a", "list", "to" },
      { "a", "list", "1" },
      { "*" },
    } do
      assert.same({ nil, "is missing" }, { json_field.values(text, path) })
    end
    for _, other in ipairs { "null", "5", "true", "{}", '["1"]' } do
      assert.same({ nil, "is not a text" }, { json_field.values(('{"to": %s}'):format(other), { "to" }) })
    end
  end)

  it("is refused if the text repeats any name", function()
    for _, text in ipairs {
      '{"to": "a", "to": "b"}',
      '{"to": "a", "t\\u006f": "b"}',
      '{"to": null, "to": "b"}',
      '{"to": "a", "x": {"y": 1, "y": 1}}',
      "{'to': 'a'}",
      '{"to": "a"} x',
    } do
      assert.same({ nil, "is in a body that is not JSON, or repeats a name" }, { json_field.values(text, { "to" }) })
    end
  end)

  it("is repeated if a program that ignores case or underscores sees it twice", function()
    for _, pair in ipairs {
      { "to", "To" },
      { "to", "T\\u006F" },
      { "address", "addre\197\191s" },
      { "key", "\226\132\170ey" },
      { "key", "\\u212aey" },
      { "id", "\196\177d" },
      { "id", "\\u0130d" },
      { "toAddress", "to_address" }, -- fastjson, protobuf
      { "to_address", "toAddress" },
      { "to-address", "TO_ADDRESS" },
      { "to", "_to" },
      { "to_address", "to.address" },
      { "toAddress", "To.Address" },
      { "to", "to[]" }, -- programs that read "to[]", "to[0]" and "to.x" as paths
      { "to", "to[0]" },
      { "to", "TO.x" },
    } do
      for _, value in ipairs { '"b"', "null" } do
        local text = ('{"%s": %s, "x": [], "%s": "a"}'):format(pair[2], value, pair[1])
        assert.same({ nil, "is repeated" }, { json_field.values(text, { pair[1] }) })
      end
    end
    assert.same({ nil, "is missing" }, { json_field.values('{"To": "a"}', { "to" }) })
  end)

  it("is repeated beside a name that has its whole path", function()
    for _, other in ipairs { "list.0.to", "list[0].to", "list", "List.0.to" } do
      local text = ('{"list": [{"to": "a"}], "%s": "b"}'):format(other == "list" and "LIST" or other)
      assert.same({ nil, "is repeated" }, { json_field.values(text, { "list", "*", "to" }) }, other)
    end
  end)

  it("is repeated if a program whose texts end at a NUL sees it twice", function()
    for _, other in ipairs { "to\\u0000", "to\\u0000x", "TO\\u0000" } do
      for _, text in ipairs { '{"to": "a", "%s": "b"}', '{"%s": "b", "to": "a"}' } do
        assert.same({ nil, "is repeated" }, { json_field.values(text:format(other), { "to" }) })
      end
    end
  end)

  it("are none where a fuzzer has found others for another parser", function()
    for line in io.lines "spec/fuzz/binders/found.txt" do
      local text = line:match "^json (.*)$"
      assert.is_nil(text and json_field.values(text, { "to" }), line)
    end
  end)
end)
