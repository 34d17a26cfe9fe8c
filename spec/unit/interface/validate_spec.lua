local validate = require "riskscreen.interface.validate"
local errors = require "riskscreen.errors"
local operations = require "riskscreen.interface.operations"
local samples = require "spec.support.samples"

local risk = operations.by_name.getAddressRisk
local entities = operations.by_name.listAddressEntities
local add = operations.by_name.addBlacklistAddresses
local usage = operations.by_name.getAccountUsage
local list = operations.by_name.listBlacklistAddresses

local function refused(operation, parameters)
  local checked, err = validate.parameters(operation, parameters)
  assert.is_nil(checked)
  assert.is_true(errors.is(err))
  assert.equal("invalid_argument", err.kind)
  assert.equal(operation.name, err.operation)
  return err
end

describe("validate.parameters", function()
  for _, operation in ipairs(operations.list) do
    if operation.path then
      it("accepts what " .. operation.name .. "'s parameters, as a copy", function()
        local parameters = samples.of(operation)
        local checked = assert(validate.parameters(operation, parameters))
        assert.same(parameters, checked)
        assert.are_not.equal(parameters, checked)
        for name, value in pairs(parameters) do
          if type(value) == "table" then
            assert.are_not.equal(value, checked[name])
          end
        end
      end)
    end
  end

  it("accepts any parameter where the interface lists none", function()
    local checked = validate.parameters(operations.by_name.getAsynchronousResult, { requestId = "r", more = { 1 } })
    assert.same({ requestId = "r", more = { 1 } }, checked)
  end)

  it("names a missing parameter", function()
    local err = refused(risk, { network = "eth" })
    assert.equal("address", err.field)
    assert.equal("address is required", err.message)
  end)

  it("suggests the nearest parameter", function()
    local err = refused(risk, { adress = "x", network = "eth" })
    assert.equal("adress", err.field)
    assert.matches("did you mean 'address'?", err.message, 1, true)
  end)

  it("lists the parameters when none is near", function()
    assert.matches("known: address, network", refused(risk, { whatever = 1 }).message, 1, true)
  end)

  it("suggests the nearest value and lists all", function()
    local err = refused(risk, { address = "x", network = "etherum" })
    assert.equal("network", err.field)
    assert.matches("^network must be one of ethereum, eth, tron, ", err.message)
    assert.matches("(got 'etherum'; did you mean 'ethereum'?)", err.message, 1, true)
    assert.equal("ethereum", err.allowed[1])
    assert.equal(21, #err.allowed)
  end)

  it("gives out its list of values as a copy", function()
    local allowed = refused(risk, { address = "x", network = "no" }).allowed
    allowed[1] = "changed"
    assert.equal("ethereum", refused(risk, { address = "x", network = "no" }).allowed[1])
  end)

  it("knows the networks of each operation", function()
    refused(operations.by_name.getAddressFreezeEvents, { address = "x", network = "btc" })
    refused(operations.by_name.getAddressBasic, { address = "x", network = "solana" })
  end)

  for case, value in pairs {
    ["a number"] = 5,
    ["an empty text"] = "",
    ["a text with a line end"] = "a\r\nX-Access-Key: other",
    ["a text with a zero byte"] = "a\0b",
    ["a text with a space"] = "a b",
    ["a text of 1025 bytes"] = ("a"):rep(1025),
    ["a table"] = {},
    ["false"] = false,
  } do
    it("refuses " .. case .. " for an address", function()
      assert.equal("address", refused(risk, { address = value, network = "eth" }).field)
    end)
  end

  it("accepts an address of 1024 bytes", function()
    assert.is_table(validate.parameters(risk, { address = ("a"):rep(1024), network = "eth" }))
  end)

  it("shows no control character of a bad value", function()
    assert.is_nil(refused(risk, { address = "a\r\nb", network = "eth" }).message:find "%c")
  end)

  for case, value in pairs {
    ["no list"] = "a",
    ["an empty list"] = {},
    ["a list with a gap"] = { "a", nil, "c" },
    ["a list with named keys"] = { "a", name = "b" },
    ["a list from position 0"] = { [0] = "a", "b" },
    ["a list with a fraction for a position"] = { "a", [1.5] = "b" },
  } do
    it("refuses " .. case .. " of addresses", function()
      assert.equal("addresses", refused(entities, { addresses = value, network = "eth" }).field)
    end)
  end

  it("allows a hundred addresses and no more", function()
    local addresses = {}
    for i = 1, 100 do
      addresses[i] = "a" .. i
    end
    assert.is_table(validate.parameters(entities, { addresses = addresses, network = "eth" }))
    addresses[101] = "a101"
    local err = refused(entities, { addresses = addresses, network = "eth" })
    assert.matches("at most 100 items %(got 101%)", err.message)
  end)

  it("names the item at fault, however deep", function()
    local parameters = { list = { { address = "a" }, { address = "b", risks = { { riskLevel = "hihg" } } } } }
    local err = refused(add, parameters)
    assert.equal("list[2].risks[1].riskLevel", err.field)
    assert.matches("did you mean 'high'?", err.message, 1, true)
  end)

  it("refuses a misspelt value of a parameter whose values are not all published, and takes others", function()
    local submit = operations.by_name.screenTransaction
    for _, direction in ipairs { "received", "sent", "in", "both", "internal" } do
      assert(validate.parameters(submit, { network = "eth", hash = "0x5f", direction = direction }))
    end
    for direction, meant in pairs { recieved = "received", Received = "received", snt = "sent" } do
      local err = refused(submit, { network = "eth", hash = "0x5f", direction = direction })
      assert.matches(("did you mean '%s'?"):format(meant), err.message, 1, true)
    end
  end)

  it("refuses unknown fields of an item but not of an open object", function()
    assert.equal("list[1].adress", refused(add, { list = { { adress = "a" } } }).field)
    local parameters = { list = { { address = "a", risks = { { riskType = "scam", note = "seen" } } } } }
    assert.same(parameters, validate.parameters(add, parameters))
  end)

  it("refuses a page below 1, a fraction, a text and infinity", function()
    for _, value in ipairs { 0, -1, 1.5, "1", math.huge, 0 / 0 } do
      assert.equal("page", refused(list, { page = value }).field)
    end
  end)

  it("makes an integer of 2.0", function()
    local checked = validate.parameters(list, { page = 2.0 })
    assert.equal("2", tostring(checked.page))
  end)

  it("refuses a date that does not exist", function()
    for _, value in ipairs { "2026-02-29", "2026-2-1", "yesterday", 20260101 } do
      assert.equal("start_date", refused(usage, { start_date = value }).field)
    end
  end)

  it("refuses an end before the start, and takes the same day for both", function()
    local err = refused(usage, { start_date = "2026-01-02", end_date = "2026-01-01" })
    assert.equal("end_date", err.field)
    assert.is_table(validate.parameters(usage, { start_date = "2026-01-02", end_date = "2026-01-02" }))
  end)

  it("does not change the caller's table", function()
    local parameters = { addresses = { "a" }, network = "eth" }
    local checked = validate.parameters(entities, parameters)
    checked.addresses[1] = "changed"
    assert.same({ addresses = { "a" }, network = "eth" }, parameters)
  end)
end)
