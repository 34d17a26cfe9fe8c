local core = require "riskscreen.core"
local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local TARGET = support.path.risk .. "?address=0xaa&network=eth"

describe("a sandbox served over HTTP", function()
  local server

  before_each(function()
    server = assert(sandbox.serve())
  end)

  after_each(function()
    server:close()
  end)

  it("has a URL, a key and a service", function()
    assert.matches("^http://127%.0%.0%.1:%d+$", server.url)
    assert.equal(sandbox.default_key, server.access_key)
    assert.is_function(server.service.handle)
  end)

  it("can serve an existing service", function()
    local service = support.service()
    local other = assert(sandbox.serve { service = service })
    assert.equal(service, other.service)
    other:close()
  end)

  it("returns an error object when it cannot listen", function()
    local port = tonumber(server.url:match ":(%d+)$")
    local second, err = sandbox.serve { port = port }
    assert.is_nil(second)
    assert.same({ "network", false }, { err.kind, err.sent })
    assert.matches("sandbox.serve: .*:" .. port, tostring(err))
  end)

  it("can be closed twice", function()
    server:close()
    assert.has_no.errors(function()
      server:close()
    end)
  end)

  it("refuses connections once closed", function()
    local client = riskscreen.new { base_url = server.url, access_key = server.access_key }
    server:close()
    local _, err = client.kya:risk { address = "0x52908400098527886e0f7030069857d2e4169ee7", network = "eth" }
    assert.equal("network", err.kind)
  end)

  describe("with several requests at once", function()
    local loop, origin

    before_each(function()
      loop = core.loop {}
      origin = loop:origin { base_url = server.url }
    end)

    after_each(function()
      loop:close()
    end)

    local function send(fault)
      local headers = { "X-Access-Key: " .. server.access_key, fault and "X-Sandbox-Fault: " .. fault or nil }
      return origin:send("GET", TARGET, headers, 5)
    end

    -- Drives both sides until a transfer is over.
    local function next_finished()
      local finished = loop:next()
      while not finished do
        server:step(0.01)
        loop:step(0)
        finished = loop:next()
      end
      return finished
    end

    it("does not hold up the others for a delayed one", function()
      local delayed, prompt = send "delay=0.1", send()
      assert.equal(prompt, next_finished())
      assert.equal(delayed, next_finished())
    end)

    it("answers delayed ones in the order of their due times", function()
      local late, early = send "delay=0.2", send "delay=0.05"
      assert.equal(early, next_finished())
      assert.is_false(loop:done(late))
      assert.equal(late, next_finished())
    end)

    it("does not hold up the others for one without an answer", function()
      local hanging, prompt = send "hang", send()
      assert.equal(prompt, next_finished())
      assert.is_false(loop:done(hanging))
    end)
  end)
end)
