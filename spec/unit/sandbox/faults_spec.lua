local sandbox = require "riskscreen.sandbox"
local faults = require "riskscreen.sandbox.faults"
local support = require "spec.support.sandbox"

local ADDRESS = "0x00000000000000000000000000000000000000AA"
local lookup = { address = ADDRESS, network = "eth" }

describe("the fault header", function()
  it("can name a fault alone", function()
    assert.equal("reset", faults.parse("reset").kind)
  end)

  it("can give a fault a value", function()
    local fault = faults.parse "truncate=7"
    assert.same({ "truncate", 7 }, { fault.kind, fault.bytes })
  end)

  for _, header in ipairs { "delay=2; status=503", "status=503;delay=2" } do
    it("can combine a delay with a status in any order: " .. header, function()
      local fault = faults.parse(header)
      assert.same({ "status", 503, 2 }, { fault.kind, fault.status, fault.delay })
    end)
  end

  for _, header in ipairs { "html; status=502", "status=502; html" } do
    it("can combine a page with a status in any order: " .. header, function()
      local fault = faults.parse(header)
      assert.same({ "html", 502 }, { fault.kind, fault.status })
    end)
  end

  for header, message in pairs {
    ["explode"] = "X%-Sandbox%-Fault knows delay, status, .* %(got 'explode'%)",
    ["status"] = "status is required",
    ["status=99"] = "status must be between 200 and 599",
    ["delay=soon"] = "delay must be a number",
    ["every=1"] = "kind is required",
  } do
    it("is refused with the remedy: " .. header, function()
      local service = support.service()
      local status, body = support.get(service, support.path.risk, lookup, { ["x-sandbox-fault"] = header })
      assert.equal(400, status)
      assert.matches(message, body.msg)
    end)
  end
end)

describe("a fault added to the service", function()
  local service

  before_each(function()
    service = support.service()
  end)

  local function status(parameters, name)
    return (support.get(service, support.path[name or "risk"], parameters or lookup))
  end

  it("hits every request by default", function()
    service:fault { kind = "status", status = 500 }
    assert.same({ 500, 500 }, { status(), status(nil, "basic") })
  end)

  it("hits one operation", function()
    service:fault { kind = "status", status = 500, match = { operation = "getAddressBasic" } }
    assert.same({ 200, 500 }, { status(), status(nil, "basic") })
  end)

  it("hits one address, in any case", function()
    service:fault { kind = "status", status = 500, match = { address = ADDRESS:lower() } }
    assert.same({ 500, 200 }, { status(), status { address = "0x01", network = "eth" } })
  end)

  it("hits a bulk request with the address", function()
    service:fault { kind = "status", status = 500, match = { address = ADDRESS } }
    local bulk = { addresses = { "0x01", ADDRESS }, network = "eth" }
    assert.equal(500, (support.post(service, support.path.entities, bulk)))
  end)

  it("hits `count` requests from the nth matching one on", function()
    service:fault { kind = "status", status = 500, nth = 2, count = 2 }
    assert.same({ 200, 500, 500, 200 }, { status(), status(), status(), status() })
  end)

  it("is removed when faults are cleared", function()
    service:fault { kind = "status", status = 500 }
    service:clear_faults()
    assert.equal(200, status())
  end)

  it("can be a setting", function()
    service = support.service { faults = { { kind = "status", status = 500 } } }
    assert.equal(500, status())
  end)

  it("that answers with an error keeps the request from taking effect", function()
    service:fault { kind = "status", status = 500, count = 1 }
    support.post(service, support.path.blacklist, { list = { { address = ADDRESS } } })
    local _, body = support.get(service, support.path.blacklist)
    assert.equal(0, body.pagination.total_items)
  end)

  for _, kind in ipairs { "hang", "reset", "truncate", "drip", "invalid-json", "html", "empty" } do
    it("that only loses the answer lets the request take effect: " .. kind, function()
      service:fault { kind = kind, count = 1 }
      support.post(service, support.path.blacklist, { list = { { address = ADDRESS } } })
      local _, body = support.get(service, support.path.blacklist)
      assert.equal(1, body.pagination.total_items)
    end)
  end

  it("is named in the log", function()
    service:fault { kind = "reset" }
    status()
    assert.equal("reset", service:requests()[1].fault)
  end)

  it("raises at the caller's line when it is invalid", function()
    local ok, message = pcall(function()
      service:fault { kind = "explode" }
    end)
    assert.is_false(ok)
    assert.matches("faults_spec.lua:%d+: fault.kind must be one of delay, status", message)
  end)
end)

for _, way in ipairs(support.ways) do
  describe("a fault, " .. way.name .. ",", function()
    local connection, client

    before_each(function()
      connection = way.connect()
      client = connection.client
    end)

    after_each(function()
      connection.close()
    end)

    local function risk(address, options)
      return client.kya:risk({ address = address, network = "eth" }, options)
    end

    local function with_header(header, timeout)
      return risk(ADDRESS, { timeout = timeout, headers = { ["X-Sandbox-Fault"] = header } })
    end

    for name, kind in pairs {
      ["fault-500"] = "server",
      ["fault-503"] = "server",
      ["fault-429"] = "rate_limited",
      ["fault-403"] = "http",
      ["fault-reset"] = "network",
      ["fault-truncate"] = "network",
      ["fault-invalid-json"] = "protocol",
      ["fault-html"] = "protocol",
      ["fault-empty"] = "protocol",
    } do
      it("of the address " .. name .. " is an error of kind " .. kind, function()
        local record, err = risk(sandbox.scenario(name).address)
        assert.is_nil(record)
        assert.same({ kind, true }, { err.kind, err.sent })
      end)
    end

    for _, name in ipairs { "fault-hang", "fault-delay", "fault-drip" } do
      it("of the address " .. name .. " is a timeout for a client that does not wait", function()
        local record, err = risk(sandbox.scenario(name).address, { timeout = 0.1 })
        assert.is_nil(record)
        assert.same({ "timeout", true }, { err.kind, err.sent })
      end)
    end

    it("of the address that fails once does not hit the second request", function()
      local address = sandbox.scenario("fault-503-once").address
      local _, err = risk(address)
      assert.equal("server", err.kind)
      assert.is_table(risk(address))
    end)

    it("with a Retry-After gives the client that time", function()
      local _, err = risk(sandbox.scenario("fault-429").address)
      assert.equal(1, err.retry_after)
    end)

    it("that delays is no error for a client that waits", function()
      assert.is_table((with_header "delay=0.02"))
    end)

    it("that sends slowly is no error for a client that waits", function()
      assert.is_table((with_header "drip=64; every=0.01"))
    end)

    it("with a gateway's page keeps its status", function()
      local _, err = with_header "html; status=502"
      assert.same({ "server", 502 }, { err.kind, err.status })
    end)
  end)
end
