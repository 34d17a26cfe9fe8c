local calls = require "riskscreen.call"
local identity = require "riskscreen.call.identity"
local policies = require "riskscreen.policy"
local riskscreen = require "riskscreen"

local function owner(settings, is_sandbox)
  settings.access_key = settings.access_key or "a-key-of-the-service"
  return { settings = settings, is_sandbox = is_sandbox }
end

local LIVE = { origin = "https://service.example", prefix = "/live" }
local TEST = { origin = "https://service.example", prefix = "/test" }

describe("identity", function()
  it("tells the paths of one host apart", function()
    assert.not_equal(
      identity.account(owner { base_url = LIVE, account = "a" }),
      identity.account(owner { base_url = TEST, account = "a" })
    )
  end)

  it("is the same in every spelling of the service's URL", function()
    local function of(base_url)
      local client = riskscreen.new { base_url = base_url, access_key = "a-key-of-the-service", account = "a" }
      local state = calls.state_of(client)
      client:close()
      return identity.account(state)
    end
    local same = {
      ["https://service.example"] = { "HTTPS://Service.Example/", ":443", ":0443", ".", ".:443/" },
      ["https://service.example:8443"] = { "https://service.example.:8443" },
      ["http://127.0.0.1"] = { ":80", ":080" },
      ["http://[::1]"] = { ":80" },
    }
    for base_url, spelled in pairs(same) do
      for _, spelling in ipairs(spelled) do
        local url = spelling:find "//" and spelling or base_url .. spelling
        assert.equal(of(base_url), of(url), url)
        assert.equal(of(base_url .. "/live"), of(url:gsub("/$", "") .. "/live"), url)
      end
    end
    for _, other in ipairs { "https://service.example:80", "https://service.example:8443", "http://127.0.0.1:443" } do
      assert.not_equal(of(other:match "^(%a+://[^:]+)"), of(other), other)
    end
  end)

  it("stays the same when the key is replaced", function()
    local before = owner { base_url = LIVE, account = "a", access_key = "first-key-0001" }
    local after = owner { base_url = LIVE, account = "a", access_key = "second-key-002" }
    assert.equal(identity.service(before), identity.service(after))
  end)

  it("stays the same for keys of a service that begin like those of the sandbox", function()
    for _, key in ipairs { "sandbox-partner-key-1", "sandbox-key-2", "sandbox-" } do
      local one = owner { base_url = LIVE, account = "a", access_key = key }
      assert.equal(identity.account(owner { base_url = LIVE, account = "a" }), identity.account(one))
    end
  end)

  it("knows the sandbox by the keys of its own accounts", function()
    for _, key in ipairs { riskscreen.sandbox.default_key, riskscreen.sandbox.lists_key } do
      local one = owner { base_url = LIVE, access_key = key }
      assert.not_equal(identity.account(owner { base_url = LIVE }), identity.account(one))
    end
  end)

  it("tells a served sandbox from the service behind the same URL", function()
    assert.not_equal(
      identity.account(owner { base_url = LIVE, access_key = "sandbox-key" }),
      identity.account(owner { base_url = LIVE })
    )
    local function key()
      return "sandbox-key"
    end
    assert.equal(
      identity.account(owner { base_url = LIVE, access_key = "sandbox-key" }),
      identity.account(owner { base_url = LIVE, access_key = key })
    )
  end)

  it("finds the account again after an extension, which changes the service's identity", function()
    local before = owner { base_url = LIVE, account = "a" }
    local after = owner { base_url = LIVE, account = "a", extend = { risk_type = { new = true } } }
    assert.equal(identity.account(before), identity.account(after))
    assert.not_equal(identity.service(before), identity.service(after))
  end)

  it("tells decisions by policy, lookups and the check of addresses apart", function()
    local client = owner { base_url = LIVE, account = "a" }
    local policy = policies.new()
    local other = policies.new { rules = { { name = "all", level = "high", action = "block" } } }
    local texts = {
      identity.decision(client, policy),
      identity.decision(client, other),
      identity.decision(client, policy, { include = { "entity" } }),
      identity.decision(client, policy, { address_check = "format" }),
    }
    for index = 1, #texts do
      for later = index + 1, #texts do
        assert.not_equal(texts[index], texts[later])
      end
    end
  end)

  it("is that of the policy's own rules, whatever becomes of the tables that it was made of", function()
    local rules = { { no_risk = true, action = "allow" }, { counterparty = { type = { "scam" } }, action = "block" } }
    local extend = { level = { "severe" } }
    local options = { rules = rules, extend = extend, not_offered = "unknown" }
    local client = owner { base_url = LIVE, account = "a" }
    local first, same, seen = policies.new(options), policies.new(options), {}
    for _, change in ipairs {
      function() end,
      function()
        rules[1].action = "review"
      end,
      function()
        rules[2].counterparty.type[1] = "hack"
      end,
      function()
        table.remove(rules)
      end,
      function()
        extend.level[1] = "odd"
      end,
    } do
      change()
      seen[#seen + 1] = identity.decision(client, policies.new(options))
    end
    assert.same({ seen[1], seen[1] }, { identity.decision(client, first), identity.decision(client, same) })
    for index = 1, #seen do
      for later = index + 1, #seen do
        assert.not_equal(seen[index], seen[later])
      end
    end
  end)

  it("keeps nothing of a transport without a name, and in a store nothing without an account", function()
    local unnamed = owner { transport = function() end, account = "a" }
    local named = owner { transport = function() end, identity = "live" }
    assert.matches("identity", identity.misuse(unnamed, false))
    assert.is_nil(identity.misuse(named, false))
    assert.matches("account", identity.misuse(named, true))
    assert.is_nil(identity.misuse(owner { base_url = LIVE, account = "a" }, true))
    assert.matches("identity", identity.misuse({}, false))
  end)
end)
