local riskscreen = require "riskscreen"
local sandbox = require "riskscreen.sandbox"
local support = require "spec.support.sandbox"

local ADDRESS = "0x52908400098527886e0f7030069857d2e4169ee7"
local lookup = { address = "0x00000000000000000000000000000000000000AA", network = "eth" }

describe("a sandbox client", function()
  it("needs no option", function()
    assert.is_table((riskscreen.sandbox.client():call("getAddressRisk", lookup)))
  end)

  it("is returned with its service", function()
    local client, service = sandbox.client {}
    client.kya:risk(lookup)
    assert.equal("getAddressRisk", service:requests()[1].operation)
  end)

  it("may share a service with another", function()
    local service = support.service()
    local one, other = sandbox.client { service = service }, sandbox.client { service = service }
    one.blacklist:add { list = { { address = ADDRESS } } }
    assert.equal(ADDRESS, other.blacklist:list()[1].address)
  end)

  it("accepts the settings of its service", function()
    local client = sandbox.client { faults = { { kind = "status", status = 500 } } }
    local _, err = client.kya:risk(lookup)
    assert.equal("server", err.kind)
  end)

  describe("with answers for addresses of the caller's own", function()
    local BTC = "bc1qypqaqrcm8yxq3jx6gvpalkk7uhfdhty59h4gup"
    local answers = {
      [BTC] = { level = "high", type = "mixer" },
      [ADDRESS] = { level = "low", type = "scam", source = "Community", category = "Exchange" },
      [lookup.address] = {},
    }

    it("gives these answers in every spelling of the addresses", function()
      local client = sandbox.client { answers = answers }
      local decision = client:screen { address = BTC:upper(), network = "btc" }
      assert.equal("block", decision.action)
      local risk = { riskLevel = "high", riskType = "mixer", riskSource = "Provider" }
      assert.same({ risk }, decision.record.risks)
      local other = ADDRESS:upper():gsub("^0X", "0x")
      local record = client.kya:risk { address = other, network = "ethereum" }
      assert.same({ { riskLevel = "low", riskType = "scam", riskSource = "Community" } }, record.risks)
      assert.equal("Exchange", client.kya:entity({ address = other, network = "eth" }).entity.entityCategory)
      assert.same({}, client.kya:risk(lookup).risks)
    end)

    it("gives them for transactions, too", function()
      local client = sandbox.client { answers = answers, kyt_results = "at_once" }
      local transaction = { hash = "a", network = "btc", direction = "received", outputAddress = BTC }
      local result = client.kyt:screen(transaction)
      assert.equal("mixer", result.risks[1].riskType)
    end)

    it("reads them from a file", function()
      local path = os.tmpname()
      local file = assert(io.open(path, "w"))
      file:write('{ "', BTC, '": { "level": "high", "type": "hack" } }')
      file:close()
      local decision = sandbox.client({ answers = path }):screen { address = BTC, network = "btc" }
      os.remove(path)
      assert.equal("hack", decision.record.risks[1].riskType)
    end)

    it("refuses answers that it cannot give", function()
      local function refused(pattern, wrong)
        assert.error_matches(function()
          sandbox.client { answers = wrong }
        end, pattern)
      end
      refused("level must be one of high, .*, whitelist", { [BTC] = { level = "hihg", type = "hack" } })
      refused("did you mean 'high'", { [BTC] = { level = "hihg", type = "hack" } })
      refused("unknown option 'kind'", { [BTC] = { kind = "hack" } })
      refused("level and type", { [BTC] = { level = "high" } })
      refused("must map names to values", { BTC })
      refused("%['" .. BTC .. "'%] must be a table", { [BTC] = "high" })
      refused("an address of no network is 'bc1qxx'", { bc1qxx = {} })
      refused("two answers", { [BTC] = {}, [BTC:upper()] = {} })
      refused("No such file", "/nowhere/answers.json")
    end)
  end)

  it("accepts a client's options", function()
    local client = sandbox.client { access_key = "wrong-key" }
    local _, err = client.kya:risk(lookup)
    assert.equal("unauthorized", err.kind)
  end)

  it("can call every operation whose path is not published", function()
    local client = sandbox.client {}
    local list = { { address = ADDRESS, network = "eth" } }
    local transaction = { network = "eth", hash = "0x02" }
    client.blacklist:add { list = list }
    for _, call in ipairs {
      { "blacklist", "remove", list[1] },
      { "whitelist", "add", { list = list } },
      { "whitelist", "remove", list[1] },
      { "kyt", "risks", transaction },
      { "kyt", "custom_score", transaction },
      { "kya", "score", lookup },
      { "kyt", "result", { requestId = "sandbox-request-000001" } },
    } do
      local namespace, method, parameters = call[1], call[2], call[3]
      local _, result = client[namespace][method](client[namespace], parameters)
      assert.equal(200, result.status, namespace .. ":" .. method)
    end
  end)

  it("accepts other endpoints", function()
    local client = sandbox.client { endpoints = { kyt_result = { method = "GET", path = "/elsewhere" } } }
    local _, err = client.kyt:result { requestId = "1" }
    assert.equal(404, err.status)
  end)

  it("waits for a delayed answer with the given `sleep`", function()
    local waited = 0
    local client = sandbox.client {
      timeout = 3,
      sleep = function(seconds)
        waited = waited + seconds
      end,
    }
    assert.is_table((client.kya:risk(lookup, { headers = { ["X-Sandbox-Fault"] = "delay=2" } })))
    assert.equal(2, waited)
  end)

  it("waits no longer than its timeout", function()
    local waited = 0
    local client = sandbox.client {
      timeout = 3,
      sleep = function(seconds)
        waited = waited + seconds
      end,
    }
    client.kya:risk(lookup, { headers = { ["X-Sandbox-Fault"] = "hang" } })
    assert.equal(3, waited)
  end)

  it("pauses between attempts with the given `sleep`, and takes no other time", function()
    local waited = 0
    local client = sandbox.client {
      retry = { attempts = 4, base_delay = 2 },
      timeout = 100,
      faults = { { kind = "status", status = 503, retry_after = 5 } },
      sleep = function(seconds)
        waited = waited + seconds
      end,
    }
    local _, err = client.kya:risk(lookup)
    assert.equal(4, err.attempts)
    assert.is_true(waited >= 15 and waited <= 15 + 2 + 4 + 5)
    assert.near(waited, err.elapsed, 1e-9)
  end)

  it("waits under a rate limit with the given `sleep`", function()
    local client = sandbox.client { rate_limit = { rate = 0.1, burst = 1 }, timeout = 60, sleep = function() end }
    client.kya:risk(lookup)
    local _, response = client.kya:risk(lookup)
    assert.near(10, response.elapsed, 1e-6)
  end)

  it("lets other tasks continue while a fault delays one", function()
    local client = sandbox.client {}
    local order = {}
    local function call(delay)
      return function()
        client.kya:risk(lookup, { headers = { ["X-Sandbox-Fault"] = "delay=" .. delay } })
        table.insert(order, delay)
      end
    end
    riskscreen.run(function()
      riskscreen.gather { call(0.1), call(0.02) }
    end)
    assert.same({ 0.02, 0.1 }, order)
  end)

  describe("raises at the caller's line", function()
    local function message_of(create, options)
      local ok, message = pcall(function()
        create(options)
      end)
      assert.is_false(ok)
      assert.matches("client_spec.lua:%d+: ", message)
      return message
    end

    it("for an unknown option", function()
      assert.matches("unknown option 'timeuot'", message_of(sandbox.client, { timeuot = 1 }))
    end)

    it("for a bad setting of the service", function()
      assert.matches("kyt_delay must be", message_of(sandbox.client, { kyt_delay = -1 }))
    end)

    it("for settings beside an existing service", function()
      local options = { service = support.service(), kyt_delay = 1 }
      assert.matches("has its own settings %(got 'kyt_delay'%)", message_of(sandbox.client, options))
    end)

    it("for a service that is not one", function()
      assert.matches("service must be made by sandbox.new", message_of(sandbox.client, { service = {} }))
    end)

    it("for a transport", function()
      assert.matches("its own transport", message_of(sandbox.client, { transport = print }))
    end)

    it("for a bad setting of an account, without its key", function()
      local options = { accounts = { ["test-key"] = { rate = 0 } } }
      local message = message_of(sandbox.new, options)
      assert.matches("accounts[...].rate must be", message, 1, true)
      assert.is_nil(message:find("test-key", 1, true))
    end)

    it("for an account without a key", function()
      assert.matches("accounts must have access keys", message_of(sandbox.new, { accounts = { [""] = {} } }))
    end)

    it("for accounts that a table would inherit", function()
      local options = { accounts = setmetatable({}, { __index = { ["test-key"] = {} } }) }
      assert.matches("accounts must be a plain table", message_of(sandbox.new, options))
    end)

    it("for credits of an unknown operation", function()
      assert.matches("unknown option", message_of(sandbox.new, { credits = { getNothing = 1 } }))
    end)

    it("for a bad fault among the settings", function()
      assert.matches("faults%[1%]%.kind must be", message_of(sandbox.new, { faults = { { kind = "no" } } }))
    end)

    it("for an unknown option of the server", function()
      assert.matches("unknown option 'prot'.*did you mean 'port'", message_of(sandbox.serve, { prot = 1 }))
    end)
  end)
end)
