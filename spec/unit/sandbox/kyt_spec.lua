local sandbox = require "riskscreen.sandbox"
local json = require "riskscreen.json"
local support = require "spec.support.sandbox"

local result_path = sandbox.endpoints.kyt_result.path

describe("the sandbox's transaction screening", function()
  local service, clock

  before_each(function()
    service, clock = support.service { kyt_delay = 5 }
  end)

  local function submit(parameters)
    parameters.network, parameters.hash = "eth", parameters.hash or "0x01"
    local _, body = support.post(service, support.path.submit, parameters)
    return body.data.requestId
  end

  local function poll(id, headers)
    local status, body = support.get(service, result_path, { requestId = id }, headers)
    return body.data, status, body.msg
  end

  it("answers every submission with a new request id", function()
    assert.are_not.equal(submit {}, submit {})
  end)

  it("is pending until the delay has passed", function()
    local id = submit {}
    clock.now = clock.now + 4.9
    assert.same({ requestId = id, status = 1001 }, poll(id))
  end)

  it("is done when the delay has passed", function()
    local id = submit {}
    clock.now = clock.now + 5
    assert.same({ id, 1003 }, { poll(id).requestId, poll(id).status })
  end)

  it("scores a transaction by its output address", function()
    local id = submit { outputAddress = sandbox.scenario("high-eth").address }
    clock.now = clock.now + 5
    assert.equal("95.00", poll(id).maxScore)
  end)

  it("scores a harmless address 0", function()
    local id = submit { outputAddress = sandbox.scenario("clean-eth").address }
    clock.now = clock.now + 5
    assert.equal("0.00", poll(id).maxScore)
  end)

  it("finds no risks of a harmless address in an answer with the result", function()
    local client = sandbox.client { kyt_results = "at_once" }
    for _, address in ipairs { sandbox.scenario("clean-eth").address, "0x00000000000000000000000000000000000b1ac5" } do
      local result = assert(client.kyt:screen { network = "eth", hash = "0x01", outputAddress = address })
      assert.is_true(json.is_array(result.risks))
    end
  end)

  it("leaves the other direction empty", function()
    local id = submit { direction = "in" }
    clock.now = clock.now + 5
    local data = poll(id)
    assert.same({}, data.dirData.out)
    assert.equal("1", data.dirData["in"]["1"].strategyNo)
  end)

  it("hides a task from other accounts", function()
    local id = submit {}
    local _, status, message = poll(id, { ["x-access-key"] = sandbox.lists_key })
    assert.equal(400, status)
    assert.matches("requestId is unknown", message)
  end)

  describe("webhooks", function()
    it("are due when their task is done", function()
      submit {}
      assert.same({}, service:due_webhooks())
      clock.now = clock.now + 5
      assert.equal(1, #service:due_webhooks())
    end)

    it("are taken once", function()
      submit {}
      clock.now = clock.now + 5
      service:due_webhooks()
      assert.same({}, service:due_webhooks())
    end)

    it("have the same result as polling", function()
      local id = submit { outputAddress = sandbox.scenario("high-eth").address }
      clock.now = clock.now + 5
      assert.same(poll(id), json.decode(service:due_webhooks()[1].body).data)
    end)

    it("have an id, a type and the time at which the task was done", function()
      submit {}
      clock.now = clock.now + 60
      local event = json.decode(service:due_webhooks()[1].body)
      assert.same({ "getTxHashCustomRiskScore", "2026-01-01 00:00:05" }, { event.eventType, event.timestamp })
      assert.equal("string", type(event.webhookId))
    end)

    it("repeat the caller's own identifier", function()
      support.post(
        service,
        sandbox.endpoints.kyt_custom_score.path,
        { network = "eth", hash = "0x1", customId = "mine" }
      )
      clock.now = clock.now + 5
      assert.equal("mine", service:due_webhooks()[1].event.data.customId)
    end)
  end)
end)
