-- A table may show fields that it inherits by its metatable. Options and parameters are copied, so these would be lost.
local riskscreen = require "riskscreen"

local client = riskscreen.sandbox.client {}
local clean = riskscreen.sandbox.scenario "clean-eth"
local BASE, KEY = "https://service.example", "the-access-key"

local function inheriting(base, own)
  return setmetatable(own or {}, { __index = base })
end

describe("a table that inherits fields is refused", function()
  local strict = riskscreen.policy { rules = { { any = true, action = "block" } } }
  local rules = { { level = "high", action = "block" } }
  local cases = {
    ["as the options of a client"] = function()
      riskscreen.new(inheriting({ timeout = 1 }, { base_url = BASE, access_key = KEY }))
    end,
    ["as a group of options"] = function()
      riskscreen.new { base_url = BASE, access_key = KEY, retry = inheriting { attempts = 1 } }
    end,
    ["as headers"] = function()
      riskscreen.new { base_url = BASE, access_key = KEY, headers = inheriting { ["X-Team"] = "a" } }
    end,
    ["as an extension"] = function()
      riskscreen.new { base_url = BASE, access_key = KEY, extend = { network = inheriting { sonic = "eth" } } }
    end,
    ["as costs"] = function()
      local limit = { rate = 1, cost = inheriting { getAddressRisk = 2 } }
      riskscreen.new { base_url = BASE, access_key = KEY, rate_limit = limit }
    end,
    ["as the options of the sandbox"] = function()
      riskscreen.sandbox.client(inheriting { timeout = 1 })
    end,
    ["as the parameters of a screening"] = function()
      client:screen(inheriting({ policy = strict }, { address = clean.address, network = "eth" }))
    end,
    ["as the parameters of a call"] = function()
      return client.kya:risk(inheriting({ network = "eth" }, { address = clean.address }))
    end,
    ["as the options of a call"] = function()
      return client.kya:risk({ address = clean.address, network = "eth" }, inheriting { timeout = 1 })
    end,
    ["as a list in a call"] = function()
      return client.kya:entities { addresses = inheriting { clean.address }, network = "eth" }
    end,
    ["as the options of a policy"] = function()
      riskscreen.policy(inheriting { rules = rules })
    end,
    ["as a rule"] = function()
      riskscreen.policy { rules = { inheriting({ level = "high" }, { action = "allow", no_risk = true }) } }
    end,
    ["as a list of rules"] = function()
      riskscreen.policy { rules = inheriting(rules) }
    end,
    ["as a list of levels"] = function()
      riskscreen.policy { rules = { { level = inheriting { "high" }, action = "block" } } }
    end,
    ["as a condition on counterparties"] = function()
      local wanted = inheriting({ level = "high" }, { type = "hack" })
      riskscreen.policy { not_offered = "skip", rules = { { counterparty = wanted, action = "block" } } }
    end,
    ["as the handlers of an inbox"] = function()
      riskscreen.webhook.inbox { accept_unauthenticated = true, handlers = inheriting { a = print } }
    end,
  }
  for what, try in pairs(cases) do
    it(what, function()
      local ok, result = pcall(function()
        local _, err = try()
        return err
      end)
      local message = tostring(result)
      assert.is_true(not ok or result ~= nil, "it was taken")
      assert.truthy(message:find("plain table", 1, true) or message:find("list", 1, true), message)
    end)
  end

  it("but a table with a metatable that adds no fields is taken", function()
    local marked = setmetatable({ address = clean.address, network = "eth" }, { __name = "mine" })
    assert.equal("allow", client:screen(marked).action)
  end)
end)
