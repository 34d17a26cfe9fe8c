local json = require "riskscreen.json"
local random = require "spec.support.random"

describe("json.encode", function()
  it("writes an empty array as one", function()
    assert.equal("[]", json.encode(json.empty_array()))
    assert.equal('{"risks":[]}', json.encode { risks = json.empty_array() })
  end)

  it("writes an empty table as an object", function()
    assert.equal("{}", json.encode {})
  end)

  it("writes an array that began empty with its elements", function()
    local list = json.empty_array()
    list[1] = "a"
    assert.equal('["a"]', json.encode(list))
  end)

  it("keeps every digit of a number", function()
    assert.equal("[123456789012345]", json.encode { 123456789012345 })
    assert.equal("[-9007199254740991]", json.encode { -9007199254740991 })
    assert.equal(0.1 + 0.2, json.decode(json.encode { 0.1 + 0.2 })[1])
    assert.equal(1 / 3, json.decode(json.encode { 1 / 3 })[1])
  end)

  it("writes short decimals as they were written", function()
    assert.equal("[0.1,12.5,100,-3]", json.encode { 0.1, 12.5, 100, -3 })
  end)

  it("does not take a text for one of its marks", function()
    local texts = { "\0010:[]\1", '"\0011:[]\1"', "\0012:1\1", ",\0010:[]\1" }
    local list = { json.empty_array(), texts, 123456789012345, texts[1] }
    local read = assert(json.decode(assert(json.encode(list))))
    assert.same({ {}, texts, 123456789012345, texts[1] }, read)
    assert.is_true(json.is_array(read[1]))
  end)

  it("writes any mix of marks, quotes and escapes so that it decodes to the same", function()
    local generator = random.new(1)
    local pieces = { "\1", "0", "1", ":", "[]", '"', "\\", "\\u0001", ",", "x" }
    for _ = 1, 300 do
      local list = { json.empty_array() }
      for i = 2, 5 do
        local text = {}
        for j = 1, generator.integer(8) do
          text[j] = generator.pick(pieces)
        end
        list[i] = table.concat(text)
      end
      assert.same(list, json.decode(assert(json.encode(list))))
    end
  end)

  it("writes numbers with a point in every locale", function()
    local before = os.setlocale(nil, "numeric")
    os.setlocale("de_DE.UTF-8", "numeric")
    local text = json.encode { 12.5, 0.1 + 0.2 }
    os.setlocale(before, "numeric")
    assert.equal("[12.5,0.30000000000000004]", text)
  end)

  for case, value in pairs {
    NaN = { 0 / 0 },
    infinity = { math.huge },
    ["a function"] = { print },
    ["a list with a great gap"] = { [1] = 1, [1000] = 2 },
  } do
    it("refuses " .. case, function()
      local text, message = json.encode(value)
      assert.is_nil(text)
      assert.is_string(message)
    end)
  end

  it("refuses a table that contains itself", function()
    local loop = {}
    loop.loop = loop
    local text, message = json.encode(loop)
    assert.is_nil(text)
    assert.matches("contains itself", message)
  end)

  it("does not change the table it is given", function()
    local given = { empty = json.empty_array(), number = 123456789012345 }
    json.encode(given)
    assert.same({ empty = {}, number = 123456789012345 }, given)
  end)
end)

describe("json.decode", function()
  it("tells an empty array from an empty object", function()
    assert.is_true(json.is_array(json.decode "[]"))
    assert.is_false(json.is_array(json.decode "{}"))
  end)

  it("gives the position of a fault", function()
    local value, message, position = json.decode '{"a":tru}'
    assert.is_nil(value)
    assert.is_string(message)
    assert.equal(9, position)
  end)
end)

-- Runs the body with the module of JSON that is loaded where some compiled modules are missing.
local function without(missing, body)
  local loaded, preloaded = {}, {}
  for _, name in ipairs { "riskscreen.core", "riskscreen.decoder", "riskscreen.util.core", "riskscreen.json" } do
    loaded[name], package.loaded[name] = package.loaded[name], nil
  end
  for _, name in ipairs(missing) do
    preloaded[name] = package.preload[name]
    package.preload[name] = function()
      error "made for another Lua"
    end
  end
  local ok, problem = pcall(body, require "riskscreen.json")
  for _, name in ipairs(missing) do
    package.preload[name] = preloaded[name]
  end
  for _, name in ipairs { "riskscreen.core", "riskscreen.decoder", "riskscreen.util.core", "riskscreen.json" } do
    package.loaded[name] = loaded[name]
  end
  assert(ok, problem)
end

describe("json without the compiled core", function()
  local function without_core(body)
    without({ "riskscreen.core", "riskscreen.decoder" }, body)
  end

  it("encodes a decoded value as it was", function()
    without_core(function(portable)
      local value = assert(portable.decode '{"list":[],"map":{},"none":null,"kept":[null]}')
      assert.is_true(portable.is_array(value.list))
      assert.is_false(portable.is_array(value.map))
      assert.is_nil(value.none)
      assert.equal(portable.null, value.kept[1])
      assert.same(value, portable.decode(portable.encode(value)))
      assert.equal("[]", portable.encode(value.list))
      assert.equal("[]", portable.encode(portable.empty_array()))
    end)
  end)

  it("has decoders with limits", function()
    without_core(function(portable)
      assert.same({ nil, "the text is longer than 3 bytes" }, { portable.decoder({ max_size = 3 }):decode "[1,2]" })
    end)
  end)
end)

describe("json with the decoder alone", function()
  it("decodes as the core does", function()
    without({ "riskscreen.core" }, function(other)
      assert.equal(require("riskscreen.decoder").decode, other.decode)
      assert.not_equal(json.decode, other.decode)
      local value, message, position = other.decode '{"a":tru}'
      assert.same({ json.decode '{"a":tru}' }, { value, message, position })
      assert.is_true(other.is_array(other.decode "[]"))
      assert.equal("[]", other.encode(other.decode "[]"))
    end)
  end)
end)

describe("json without lua-cjson", function()
  -- Runs Lua code in a process where `require "cjson"` fails.
  local function run(code)
    local path = os.tmpname()
    local file = assert(io.open(path, "w"))
    file:write('package.preload.cjson = function() error "not installed" end\n' .. code)
    file:close()
    local process = assert(io.popen(os.getenv "RISKSCREEN_LUA" .. " " .. path .. " 2>&1"))
    local output = process:read "*a"
    process:close()
    os.remove(path)
    return output
  end

  it("calls and walks lists", function()
    local output = run [[
      local riskscreen = require "riskscreen"
      local json = require "riskscreen.json"
      local client = riskscreen.new {
        base_url = "https://localhost",
        access_key = "test-key",
        transport = function(request)
          local page = tonumber(request.target:match "page=(%d+)")
          local data = page == 2 and '[{"address":"0x1","createdAt":12,"risks":[]}]' or "[]"
          return { status = 200, headers = {}, body = '{"success":true,"code":1,"data":' .. data .. "}" }
        end,
      }
      local items = assert(client.blacklist:all { page = 2 })
      print(#items, items[1].address)
    ]]
    assert.equal("1\t0x1\n", output)
  end)

  it("encodes bodies of requests", function()
    local output = run [[
      local client = require("riskscreen").new {
        base_url = "https://localhost",
        access_key = "test-key",
        transport = function(request)
          print(request.body)
          return nil, { kind = "network", message = "none" }
        end,
        retry = { attempts = 1 },
      }
      client.kya:entities { addresses = { "0x52908400098527886e0f7030069857d2e4169ee7" }, network = "eth" }
    ]]
    assert.matches('["0x52908400098527886e0f7030069857d2e4169ee7"]', output, 1, true)
  end)
end)
