local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local path = support.path
local DAY = 86400
local lookup = { address = "0xab", network = "eth" }

describe("the cost of a batch", function()
  it("may be by item", function()
    local costs = { listAddressEntities = { request = 1, item = 2 }, getAddressRisk = 3 }
    local client, service = sandbox.client { credits = costs }
    local addresses = {}
    for index = 1, 10 do
      addresses[index] = ("0x%040x"):format(index)
    end
    assert(client.kya:entities { addresses = addresses, network = "eth" })
    assert.equal(21, service:account(sandbox.default_key).usage.credits)
  end)
end)

describe("the sandbox's usage", function()
  local service, clock

  before_each(function()
    service, clock = support.service { credits = { getAddressRisk = 3, getAddressEntity = 2 } }
  end)

  local function usage(query)
    local _, body = support.get(service, path.usage, query)
    return body.data
  end

  it("is an empty array at first", function()
    local _, _, response = support.get(service, path.usage)
    assert.matches('"data":%[%]', response.body)
  end)

  it("counts the calls and credits of each operation of a day", function()
    support.get(service, path.risk, lookup)
    support.get(service, path.risk, lookup)
    support.get(service, path.entities, lookup)
    assert.same({
      {
        time = "2026-01-01",
        methodName = "getAddressEntity",
        methodUrl = path.entities,
        totalCalls = 1,
        useCredits = 2,
      },
      { time = "2026-01-01", methodName = "getAddressRisk", methodUrl = path.risk, totalCalls = 2, useCredits = 6 },
    }, usage())
  end)

  it("costs one credit a call by default", function()
    support.get(service, path.basic, lookup)
    assert.equal(1, usage()[1].useCredits)
  end)

  it("does not count refused requests", function()
    support.get(service, path.risk, {})
    support.get(service, path.risk, lookup, { ["x-access-key"] = "wrong" })
    assert.same({}, usage())
  end)

  it("is the account's own", function()
    support.get(service, path.risk, lookup, { ["x-access-key"] = sandbox.lists_key })
    assert.same({}, usage())
  end)

  describe("over several days", function()
    before_each(function()
      for _, day in ipairs { 0, 1, 31 } do
        clock.now = support.START + day * DAY
        support.get(service, path.risk, lookup)
      end
    end)

    local function times(query)
      local found = {}
      for index, record in ipairs(usage(query)) do
        found[index] = record.time .. " " .. record.totalCalls
      end
      return found
    end

    it("has a record for each day, oldest first", function()
      assert.same({ "2026-01-01 1", "2026-01-02 1", "2026-02-01 1" }, times())
    end)

    it("has a record for each month by request", function()
      assert.same({ "2026-01-01 2", "2026-02-01 1" }, times { granularity = "month" })
    end)

    it("has the requested days only, with the first and the last", function()
      assert.same({ "2026-01-02 1", "2026-02-01 1" }, times { startDate = "2026-01-02", endDate = "2026-02-01" })
    end)

    it("is one record a day if it is not grouped by endpoint", function()
      support.get(service, path.entities, lookup)
      local records = usage { groupBy = "user,org", startDate = "2026-02-01" }
      local last = records[#records]
      assert.same({ 1, nil }, { #records, last.methodName })
      assert.equal(2, last.totalCalls)
    end)
  end)

  it("refuses a date that does not exist", function()
    local status, body = support.get(service, path.usage, { startDate = "2026-02-30" })
    assert.equal(400, status)
    assert.matches("start_date", body.msg)
  end)
end)
