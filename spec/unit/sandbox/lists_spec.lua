local json = require "riskscreen.json"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local path = support.path
local LISTS = { ["x-access-key"] = sandbox.lists_key }
local ADDRESS = "0x00000000000000000000000000000000000000AA"

describe("the sandbox's blacklist", function()
  local service, clock

  before_each(function()
    service, clock = support.service()
  end)

  local function add(item, headers)
    return support.post(service, path.blacklist, { list = { item } }, headers)
  end

  it("is an empty array at first", function()
    local _, _, response = support.get(service, path.blacklist)
    assert.matches('"data":%[%]', response.body)
  end)

  it("lists an added address with its time and chain", function()
    add { address = ADDRESS, network = "eth", risks = { { riskType = "scam", riskLevel = "high" } } }
    local _, body = support.get(service, path.blacklist)
    assert.same({
      {
        address = ADDRESS,
        network = "eth",
        createdAt = support.START,
        risks = {
          {
            riskType = "scam",
            riskLevel = "high",
            riskSource = "User-Defined",
            chains = { { chain = "eth", chainName = "Ethereum" } },
          },
        },
      },
    }, body.data)
  end)

  it("lists an entry without risks that it can read again", function()
    local client = sandbox.client {}
    for index, risks in ipairs { {}, json.empty_array(), false } do
      local item = { address = "0x00000000000000000000000000000000000b1ac" .. index, risks = risks or nil }
      assert(client.blacklist:add { network = "eth", list = { item } })
    end
    local items = assert(client.blacklist:list())
    assert.equal(3, #items)
    assert.is_true(json.is_array(items[1].risks))
    assert.is_true(json.is_array(items[2].risks))
  end)

  it("gives an item without a network that of the whole list", function()
    support.post(service, path.blacklist, { network = "tron", list = { { address = "T1" } } })
    local _, body = support.get(service, path.blacklist)
    assert.equal("tron", body.data[1].network)
  end)

  it("has one entry for an address and network, in any spelling of both", function()
    add { address = "0xab", network = "eth" }
    add { address = "0xAB", network = "ethereum" }
    local _, body = support.get(service, path.blacklist)
    assert.equal(1, body.pagination.total_items)
  end)

  it("is the account's own", function()
    add { address = ADDRESS }
    local _, body = support.get(service, path.blacklist, {}, LISTS)
    for _, item in ipairs(body.data) do
      assert.are_not.equal(ADDRESS, item.address)
    end
  end)

  it("refuses a risk without a type with code 3016", function()
    local status, body = add { address = ADDRESS, risks = { {} } }
    assert.same({ 400, false, 3016, "RiskType is empty", "FAIL", support.START * 1000 }, {
      status,
      body.success,
      body.code,
      body.msg,
      body.status,
      body.timestamp,
    })
  end)

  it("adds nothing from a list with such a risk", function()
    support.post(service, path.blacklist, { list = { { address = "0x1" }, { address = "0x2", risks = { {} } } } })
    local _, body = support.get(service, path.blacklist)
    assert.equal(0, body.pagination.total_items)
  end)

  it("accepts 100 items at once and refuses 101", function()
    local list = {}
    for index = 1, 100 do
      list[index] = { address = "0x" .. index }
    end
    assert.equal(200, (support.post(service, path.blacklist, { list = list })))
    list[101] = { address = "0x101" }
    assert.equal(400, (support.post(service, path.blacklist, { list = list })))
  end)

  it("makes an address risky for its account, with the source User-Defined", function()
    add { address = ADDRESS, network = "eth", risks = { { riskType = "gun", riskLevel = "low" } } }
    local risks = support.risks(service, ADDRESS, "ethereum")
    assert.same({ riskLevel = "low", riskType = "gun", riskSource = "User-Defined" }, risks[#risks])
  end)

  it("counts an entry without risks as a high risk", function()
    local clean = sandbox.scenario("clean-eth").address
    add { address = clean }
    assert.equal("high", support.risks(service, clean, "eth")[1].riskLevel)
  end)

  it("does not apply to other networks and other accounts", function()
    local clean = sandbox.scenario("clean-eth").address
    add { address = clean, network = "eth" }
    assert.same({}, support.risks(service, clean, "bsc"))
    assert.same({}, support.risks(service, clean, "eth", LISTS))
  end)

  it("no longer has a removed address", function()
    add { address = ADDRESS, network = "eth" }
    local endpoint = sandbox.endpoints.blacklist_remove
    assert.equal(200, (support.post(service, endpoint.path, { address = ADDRESS, network = "eth" })))
    local _, body = support.get(service, path.blacklist)
    assert.equal(0, body.pagination.total_items)
  end)

  it("refuses to remove an address that it does not have", function()
    local status, body = support.post(service, sandbox.endpoints.blacklist_remove.path, { address = ADDRESS })
    assert.equal(400, status)
    assert.matches("address is not on the list", body.msg)
  end)

  describe("pages", function()
    before_each(function()
      local list = {}
      for index = 1, 25 do
        list[index] = { address = "0x" .. index }
      end
      support.post(service, path.blacklist, { list = list })
    end)

    it("have ten items and begin with the first by default", function()
      local _, body = support.get(service, path.blacklist)
      assert.same({ current_page = 1, per_page = 10, total_pages = 3, total_items = 25 }, body.pagination)
      assert.same({ 10, "0x1" }, { #body.data, body.data[1].address })
    end)

    it("have the requested number and size", function()
      local _, body = support.get(service, path.blacklist, { page = 2, pageSize = 7 })
      assert.same({ current_page = 2, per_page = 7, total_pages = 4, total_items = 25 }, body.pagination)
      assert.same({ 7, "0x8" }, { #body.data, body.data[1].address })
    end)

    it("end with the remaining items", function()
      local _, body = support.get(service, path.blacklist, { page = 3 })
      assert.same({ 5, "0x25" }, { #body.data, body.data[5].address })
    end)

    it("beyond the end are empty", function()
      local _, body = support.get(service, path.blacklist, { page = 4 })
      assert.same({}, body.data)
    end)

    it("are numbered from one", function()
      local status, body = support.get(service, path.blacklist, { page = 0 })
      assert.equal(400, status)
      assert.matches("page must be at least 1", body.msg)
    end)
  end)

  describe("of the account with filled lists", function()
    local items

    before_each(function()
      local _, body = support.get(service, path.blacklist, { pageSize = 100 }, LISTS)
      items = {}
      for _, item in ipairs(body.data) do
        items[item.address] = item
      end
    end)

    local function item(name)
      return items[require("riskscreen.sandbox.scenario_addresses")[name]]
    end

    it("has an item without a network", function()
      assert.is_nil(item("blacklist-1").network)
    end)

    it("has an item whose risks are null", function()
      local _, _, response = support.get(service, path.blacklist, { pageSize = 100 }, LISTS)
      assert.matches('"risks":null', response.body)
    end)

    it("has an item without risks", function()
      assert.is_nil(item("blacklist-3").risks)
    end)

    it("has an item with two risks", function()
      assert.equal(2, #item("blacklist-4").risks)
    end)

    it("has more than one page", function()
      local _, body = support.get(service, path.blacklist, {}, LISTS)
      assert.is_true(body.pagination.total_pages > 1)
    end)
  end)

  it("has the time of the service's clock", function()
    clock.now = support.START + 60.75
    add { address = ADDRESS }
    local _, body = support.get(service, path.blacklist)
    assert.equal(support.START + 60, body.data[1].createdAt)
  end)
end)

describe("the sandbox's whitelist", function()
  local service

  before_each(function()
    service = support.service()
    support.post(service, sandbox.endpoints.whitelist_add.path, { list = { { address = "0xAB", network = "eth" } } })
  end)

  it("lists an added address", function()
    local _, body = support.get(service, path.whitelist)
    assert.same({ { address = "0xAB", chain = "eth", createdAt = support.START } }, body.data)
  end)

  it("marks the records of its addresses", function()
    local _, risk = support.get(service, path.risk, { address = "0xab", network = "ethereum" })
    local _, entity = support.get(service, path.entities, { address = "0xab", network = "eth" })
    assert.is_true(risk.data.whitelist)
    assert.is_true(entity.data.whitelist)
  end)

  it("does not mark other records", function()
    local _, body = support.get(service, path.risk, { address = "0xac", network = "eth" })
    assert.is_false(body.data.whitelist)
  end)

  it("no longer has a removed address", function()
    support.post(service, sandbox.endpoints.whitelist_remove.path, { address = "0xab", network = "eth" })
    local _, body = support.get(service, path.whitelist)
    assert.same({}, body.data)
  end)
end)
