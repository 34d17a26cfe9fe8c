-- A record about another address or network than the ones asked is never used.
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local recorder = require "spec.support.recorder"
local response = require "riskscreen.interface.response"
local samples = require "spec.support.samples"

local decoders = response.decoders()

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

-- The interpretation of a good answer after `change`.
local function changed(operation, change, parameters)
  local given, body = samples.of(operation)
  change(body)
  return response.interpret(
    response.reader(operation, nil, nil, decoders),
    parameters or given,
    recorder.reply(200, body),
    context
  )
end

local function refused(kind, value, err)
  assert.is_nil(value)
  assert.equal(kind, err.kind)
  return err
end

describe("an answer", function()
  it("about another address is refused", function()
    local err = refused(
      "protocol",
      changed(risk, function(body)
        body.data.address = samples.other_address
      end)
    )
    assert.matches(samples.other_address, err.message, 1, true)
    assert.matches(samples.address, err.message, 1, true)
  end)

  it("about another network is refused", function()
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.network = "bsc"
      end)
    )
  end)

  it("may have a hexadecimal address in another case", function()
    local value = changed(risk, function(body)
      body.data.address = body.data.address:lower()
    end)
    assert.is_table(value)
  end)

  it("with any other address in another case is refused", function()
    local parameters = { address = "TJRabPrwbZy45sbavfcjinPJC18kjpRTv8", network = "tron" }
    refused(
      "protocol",
      changed(risk, function(body)
        body.data.address, body.data.network = parameters.address:lower(), "tron"
      end, parameters)
    )
  end)

  for _, pair in ipairs { { "eth", "ethereum" }, { "ethereum", "eth" } } do
    it(("may have %s for %s"):format(pair[1], pair[2]), function()
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

  it("is aligned with the addresses in any order", function()
    local value = asked({ B, A })
    assert.same({ B, A }, { value[1].address, value[2].address })
  end)

  it("has the record of a repeated address at each position", function()
    local value = asked({ A, B, A:lower() })
    assert.equal(value[1], value[3])
    assert.equal(B, value[2].address)
  end)

  it("has false for an address that the service left out", function()
    local value = asked({ A, B }, function(body)
      table.remove(body.data, 1)
    end)
    assert.is_false(value[1])
    assert.equal(B, value[2].address)
  end)

  it("has false for every address when the service left all out", function()
    assert.same({ false, false }, (asked({ A, B }, function(body)
      body.data = json.empty_array()
    end)))
  end)

  it("about an address that was not asked is refused", function()
    local err = refused("protocol", asked { A })
    assert.matches("data[2].address", err.message, 1, true)
  end)

  it("on another network is refused", function()
    local err = refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[2].network = "bsc"
      end)
    )
    assert.matches("data[2].network", err.message, 1, true)
  end)

  it("with two different records of one address is refused", function()
    refused(
      "protocol",
      asked({ A, B }, function(body)
        body.data[3] = select(2, samples.of(entities)).data[1]
        body.data[3].entity.entityName = "Another"
      end)
    )
  end)

  it("may have one record twice", function()
    local value = asked({ A, B }, function(body)
      body.data[3] = select(2, samples.of(entities)).data[1]
    end)
    assert.equal(2, #value)
  end)
end)
