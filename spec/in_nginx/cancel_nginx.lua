-- Cancelled tasks inside nginx abort their waits: requests over cosockets, and waits of an operator's transport.
local nginx = require "spec.support.nginx"
local redis_server = require "spec.support.redis"
local sandbox = require "riskscreen.sandbox"

local HTTP = [[
  init_by_lua_block {
    riskscreen = require "riskscreen"
    subject = { address = "%s", network = "eth" }
    count_descriptors = require("spec.support.nginx_faults").count_descriptors
  }
]]

describe("inside nginx", function()
  local service, its_server, server, options

  setup(function()
    server = nginx.start { http = HTTP:format(sandbox.scenario("clean-eth").address) }
  end)

  teardown(function()
    server:stop()
  end)

  before_each(function()
    service = sandbox.new {}
    its_server = assert(sandbox.serve { service = service })
    options = { base_url = its_server.url, access_key = sandbox.default_key, timeout = 3600 }
  end)

  after_each(function()
    its_server:close()
  end)

  it("a task that is cancelled while the password of Redis is awaited ends, and blames no function", function()
    local redis = redis_server.start { "requirepass secret" }
    local kind, went_on, reply = server:eval(
      [[
      local went_on, url = false, ...
      local client = riskscreen.redis.new {
        url = url,
        password = function()
          riskscreen.sleep(0.05)
          return "secret"
        end,
      }
      local task = riskscreen.spawn(function()
        client:call "PING"
        went_on = true
      end)
      riskscreen.sleep(0.01)
      task:cancel()
      local _, err = task:await()
      return err.kind, went_on, client:call "PING"]],
      redis.url
    )
    redis_server.stop_all()
    assert.same({ "cancelled", false, "PONG" }, { kind, went_on, reply })
  end)

  it("a cancelled task ends its request and closes the connection", function()
    service:fault { kind = "hang" }
    local kind, calls = server:eval(
      [[
      local client = riskscreen.new(...)
      local before = count_descriptors()
      local task = riskscreen.spawn(function() return client.kya:risk(subject) end)
      repeat riskscreen.sleep(0.005) until count_descriptors() > before
      riskscreen.sleep(0.005)
      task:cancel()
      local _, err = task:await()
      local stats = client:stats()
      repeat riskscreen.sleep(0.005) until count_descriptors() <= before
      return err.kind, { stats.in_flight, stats.cancelled }
    ]],
      options
    )
    assert.equal("cancelled", kind)
    assert.same({ 0, 1 }, calls)
  end)

  it("the first answer of a hedged request wins, and the other request ends", function()
    service:fault { kind = "hang", count = 1 }
    options.hedge = { delay = 0.05 }
    local risks, stats = server:eval(
      [[
      local client = riskscreen.new(...)
      local before = count_descriptors()
      local record, response = client.kya:risk(subject)
      -- The connection of the winner is kept.
      repeat riskscreen.sleep(0.005) until count_descriptors() <= before + 1
      local stats = client:stats()
      return #record.risks, { stats.hedges, stats.hedges_won, response.attempts }
    ]],
      options
    )
    assert.equal(0, risks)
    assert.same({ 1, 1, 2 }, stats)
  end)

  it("requests of tasks are under way together", function()
    service:fault { kind = "delay", delay = 0.2, count = 20 }
    local answered, most = server:eval(
      [[
      local client = riskscreen.new(...)
      local calls, most = {}, 0
      for index = 1, 20 do
        calls[index] = function() return client.kya:risk(subject) end
      end
      local watch = riskscreen.spawn(function()
        while true do
          most = math.max(most, client:stats().in_flight)
          riskscreen.sleep(0.005)
        end
      end)
      local records = riskscreen.gather(calls)
      watch:cancel()
      return #records, most
    ]],
      options
    )
    assert.equal(20, answered)
    assert.equal(20, most)
  end)

  describe("an operator's transport", function()
    it("replaces the library's own", function()
      local asked, risks = server:eval(
        [[
        local key = ...
        local asked = {}
        local answer = require("riskscreen.sandbox.transport").new(riskscreen.sandbox.new {}, ngx.sleep)
        local client = riskscreen.new {
          access_key = key,
          transport = function(request)
            local own_key = request.headers["X-Access-Key"] == key
            asked[#asked + 1] = { request.method, own_key, request.target:match "^[^?]*" }
            ngx.sleep(0.001)
            return answer(request)
          end,
        }
        local record, err = client.kya:risk(subject)
        local other = riskscreen.run(function() return client.kya:risk(subject) end)
        return asked, record and other and { #record.risks, #other.risks } or tostring(err)
      ]],
        sandbox.default_key
      )
      assert.equal(2, #asked)
      assert.same(asked[1], asked[2])
      assert.is_true(asked[1][2])
      assert.same({ 0, 0 }, risks)
    end)

    it("is aborted with the task that waits for it", function()
      local kind, went_on = server:eval [[
        local went_on = false
        local began = false
        local client = riskscreen.new {
          access_key = "test-key",
          transport = function() began = true ngx.sleep(0.05) went_on = true end,
        }
        local task = riskscreen.spawn(function() return client.kya:risk(subject) end)
        repeat ngx.sleep(0.001) until began
        task:cancel()
        local _, err = task:await()
        ngx.sleep(0.1)
        return err.kind, went_on
      ]]
      assert.equal("cancelled", kind)
      assert.is_false(went_on)
    end)

    it("that raises fails the call, in a task as well", function()
      local messages = server:eval [[
        local client = riskscreen.new {
          access_key = "test-key", transport = function() ngx.sleep(0.001) error "broken" end,
        }
        local function call() return client.kya:risk(subject) end
        local _, outside = call()
        local _, inside = riskscreen.run(call)
        return { tostring(outside), tostring(inside) }
      ]]
      assert.matches("the transport raised an error: .*broken", messages[1])
      assert.equal(messages[1], messages[2])
    end)
  end)

  it("options that nginx cannot follow are refused when the client is made", function()
    for option, value in pairs { proxy = "http://127.0.0.1:1", ca_file = "/tmp/ca.pem", http_version = "2" } do
      options[option] = value
      local ok, message = server:eval("return pcall(function(o) return riskscreen.new(o) and 1 end, ...)", options)
      options[option] = nil
      assert.is_false(ok)
      assert.matches(option, message, 1, true)
    end
  end)
end)
