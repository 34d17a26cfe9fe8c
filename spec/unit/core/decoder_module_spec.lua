-- riskscreen.decoder: the decoder without the rest of the core.
local alone = require "riskscreen.decoder"
local core = require "riskscreen.core"
local parity = require "spec.support.json_parity"
local texts = require "spec.support.json_texts"

local function output_of(command)
  local pipe = assert(io.popen(command))
  local output = pipe:read "*a"
  pipe:close()
  return output
end

local path = assert(package.cpath:match "([^;]*/build[%w./]*)/%?%.so") -- of the compiled modules

describe("riskscreen.decoder", function()
  it("has the functions for JSON, the version, and nothing else", function()
    local names = {}
    for name in pairs(alone) do
      names[#names + 1] = name
    end
    table.sort(names)
    assert.same({ "decode", "decoder", "empty_array_mt", "encode", "null", "version" }, names)
    assert.equal(core.version, alone.version)
  end)

  it("needs no library but those of the system", function()
    assert.equal("", output_of(("ldd %s/riskscreen/decoder.so | grep -v -E 'linux|libm[.]|libc[.]'"):format(path)))
  end)

  it("decodes and refuses what the core does", function()
    for _, list in ipairs { texts.valid, texts.invalid } do
      for _, case in ipairs(list) do
        local difference = parity.difference(alone, case.text)
        assert.is_nil(difference, difference)
      end
    end
  end)

  it("encodes what the core does", function()
    for _, case in ipairs(texts.valid) do
      assert.equal(core.encode(core.decode(case.text)), (alone.encode(alone.decode(case.text))))
    end
  end)

  it("shares null and empty arrays with the core in one program", function()
    assert.equal(core.null, alone.null)
    assert.equal(core.empty_array_mt, getmetatable(alone.decode "[]"))
  end)

  it("has decoders with limits", function()
    local decoder = alone.decoder { max_depth = 1, null = "keep", duplicates = "refuse" }
    assert.equal(alone.null, decoder:decode('{"a":null}').a)
    assert.is_nil((decoder:decode "[[]]"))
    assert.is_nil((decoder:decode '{"a":1,"a":2}'))
  end)

  it("works where no core is, in a program of its own", function()
    local lua = os.getenv "RISKSCREEN_LUA" or "lua5.4"
    local directory = output_of("mktemp -d"):match "%S+"
    output_of(("mkdir %s/riskscreen && cp %s/riskscreen/decoder.so %s/riskscreen"):format(directory, path, directory))
    local code = 'print(require("riskscreen.decoder").decode("{\\"a\\":[1,2.5]}").a[2])'
    local command = "LUA_PATH='' LUA_CPATH='%s/?.so' %s -e '%s' 2>&1"
    assert.equal("2.5\n", output_of(command:format(directory, lua, code)))
    output_of("rm -r " .. directory)
  end)
end)
