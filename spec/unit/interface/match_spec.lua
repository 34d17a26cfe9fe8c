-- Whether answers are about what was asked: no record about another address or network is ever used.
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local context = {
  clock = function()
    return 0
  end,
  redact = function(text)
    return text
  end,
}

local risk = operations.by_name.getAddressRisk
local entities = operations.by_name.listAddressEntities

-- What an answer means after `change` has had its way with a good one.
local function changed(operation, change, parameters)
  local given, body = samples.of(operation)
  change(body)
  return response.interpret(operation, parameters or given, recorder.reply(200, body), context)
end

local function refused(kind, value, err)
  assert.is_nil(value)
  assert.equal(kind, err.kind)
  return err
end

describe("an answer about something else", function()
  it("than the address asked is never used", function()
    local err = refused(
      "protocol",
      changed(risk, function(body)
        body.data.address = samples.other_address
      end)
    )
    assert.matches(samples.other_address, err.message, 1, true)
    assert.matches(samples.address, err.message, 1, true)
  end)

  it("than the network asked is never used", function()
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.network = "bsc"
      end)
    )
  end)

  it("is not one where a hexadecimal address differs in case", function()
    local value = changed(risk, function(body)
      body.data.address = body.data.address:lower()
    end)
    assert.is_table(value)
  end)

  it("is one where another kind of address differs in case", function()
    local parameters = { address = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", network = "tron" }
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.address, body.data.network = parameters.address:lower(), "tron"
      end, parameters)
    )
  end)

  for _, pair in ipairs { { "eth", "ethereum" }, { "ethereum", "eth" } } do
    it(("is not one where %s stands for %s"):format(pair[1], pair[2]), function()
      assert.is_table((changed(risk, function(body)
        body.data.network = pair[1]
      end, { address = samples.address, network = pair[2] })))
    end)
  end
end)

describe("a bulk answer", function()
  local A, B = samples.address, samples.other_address

  local function asked(addresses, change)
    return changed(entities, change or function() end, { addresses = addresses, network = "eth" })
  end

  it("is aligned with the addresses, whatever its own order", function()
    local value = asked({ B, A })
    assert.same({ B, A }, { value[1].address, value[2].address })
  end)

  it("answers a repeated address at each of its places", function()
    local value = asked({ A, B, A:lower() })
    assert.equal(value[1], value[3])
    assert.equal(B, value[2].address)
  end)

  it("has false where the service left one out", function()
    local value = asked({ A, B }, function(body)
      table.remove(body.data, 1)
    end)
    assert.is_false(value[1])
    assert.equal(B, value[2].address)
  end)

  it("is all false where the service left all out", function()
    assert.same({ false, false }, (asked({ A, B }, function(body)
      body.data = json.empty_array()
    end)))
  end)

  it("about an address that was not asked is never used", function()
    local err = refused("protocol", asked { A })
    assert.matches("data[2].address", err.message, 1, true)
  end)

  it("on another network is never used", function()
    local err = refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[2].network = "bsc"
      end)
    )
    assert.matches("data[2].network", err.message, 1, true)
  end)

  it("with two different records of one address is never used", function()
    refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[3] = select(2, samples.of(entities)).data[1]
        body.data[3].entity.entityName = "Another"
      end)
    )
  end)

  it("with one record twice is used", function()
    local value = asked({ A, B }, function(body)
      body.data[3] = select(2, samples.of(entities)).data[1]
    end)
    assert.equal(2, #value)
  end)
end)
