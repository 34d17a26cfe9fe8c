-- Decoding inside nginx: without the core, lua-cjson and a regular expression of nginx share the work with the reader.
local nginx = require "spec.support.nginx"

local SEED = tonumber(os.getenv "RISKSCREEN_SEED") or os.time() % 1000000000

-- Bodies as the service sends them: what the quick way is for.
local BODIES = {
  '{"success":true,"code":1,"msg":"SUCCESS","data":{"time":1700000000000,"address":"0xab","risks":[]}}',
  '{"success":true,"code":1,"data":{"risks":null,"amount":-12.5,"list":[null,0,-0.0]}}',
  '{\n  "success" : false ,\n  "msg" : "caf\195\169 \\ud83d\\ude00 \\"[]\\" {}",\n  "data" : [ [ ] , [ 1 ] ]\n}',
  '{"entity":{},"risks":[{"riskLevel":"high","riskType":"sanction"}],"whitelist":false}',
  '{"entity":{},"risks":[]}',
  '{"a":null,"b":{"c":null},"d":[{"e":null}],"f":"null"}',
}

local COMPARE = 'return require("spec.support.json_in_nginx")(...)'

describe("JSON inside nginx", function()
  local server

  before_each(function()
    server = nginx.start {
      http = 'init_by_lua_block { local json = require "riskscreen.json"; first = json.decode "[1,[],{}]" }',
    }
  end)

  after_each(function()
    server:stop()
  end)

  it("is decoded as the core decodes it, faults and all", function()
    local seeds = {}
    for _, body in ipairs(BODIES) do
      seeds[#seeds + 1] = body
    end
    local differences, compared, quick = server:eval(COMPARE, { seeds = seeds, rounds = 20000, seed = SEED })
    assert.same({}, differences, "seed " .. SEED)
    assert.is_true(compared > 20000)
    assert.is_true(quick > 200, quick .. " of " .. compared .. " were lua-cjson's to read")
  end)

  it("is lua-cjson's to read when it is what the service sends", function()
    local code = [[
      local decoder = require("riskscreen.json.cjson_decoder").decoder()
      local list = {}
      for index, text in ipairs(...) do list[index] = (decoder.read_quickly(text)) end
      return list
    ]]
    assert.same({ true, true, false, true, false, true }, (server:eval(code, BODIES)))
  end)

  it("can be decoded while nginx reads its configuration", function()
    assert.same({ 1, {}, {} }, (server:eval "return first"))
  end)

  it("is decoded within a decoder's limits", function()
    local code = [[
      local json = require "riskscreen.json"
      local answers = {}
      for _, case in ipairs(...) do
        local _, message, position = json.decoder(case.options):decode(case.text)
        answers[#answers + 1] = { message, position }
      end
      return answers
    ]]
    local answers = server:eval(code, {
      { options = { max_size = 4 }, text = "[1,2]" },
      { options = { max_values = 2 }, text = "[1,2]" },
      { options = { max_depth = 2 }, text = "[[[1]]]" },
      { options = { max_depth = 3 }, text = "[[[1]]]" },
    })
    assert.same({
      { "the text is longer than 4 bytes", 5 },
      { "too many values at byte 4", 4 },
      { "nested too deeply at byte 3", 3 },
      {},
    }, answers)
  end)

  it("of megabytes is decoded, or refused, without an error in the log", function()
    local code = [==[
      local json = require "riskscreen.json"
      local decoder = json.decoder { max_depth = 2048 }
      local record = '{"a":"b\\n","c":[1,2.5,[]]},'
      local value = assert(decoder:decode("[" .. record:rep(100000) .. "1]"))
      local function position(text) return (select(3, decoder:decode(text))) end
      return #value, position(("["):rep(1000000)), position("[" .. record:rep(100000)), position(("1 "):rep(1000000))
    ]==]
    assert.same({ 100001, 2049, 2700002, 3 }, { server:eval(code) })
  end)
end)
