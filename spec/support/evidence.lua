-- Random evidence about addresses: answers of every lookup whose fields are each right, absent, null, of another type,
-- unknown or in another form; and policies of each kind. A service answers with it, through a client's transport.
local json = require "riskscreen.json"
local policies = require "riskscreen.policy"

local ABSENT = {}
local HEADERS = { ["content-type"] = "application/json" }

-- Wrong values of a field.
local others = { ABSENT, json.null, "", "something new", 7, true, json.empty_array(), { nested = "object" } }

local M = {}

---@param draw { integer: (fun(limit: integer): integer), pick: (fun(list: any[]): any) }
---@param address string
---@param network string
---@return table<string, { status: integer, body: string }> answers by the end of their path
function M.answers(draw, address, network)
  local function field(...)
    return draw.integer(8) > 1 and draw.pick { ... } or draw.pick(others)
  end
  local function object(fields)
    for name, value in pairs(fields) do
      if value == ABSENT then
        fields[name] = nil
      end
    end
    return fields
  end
  local function list(make)
    local made = {}
    for index = 1, draw.integer(3) - 1 do
      made[index] = make()
    end
    return made[1] and made or json.empty_array()
  end
  local function risk()
    return object {
      riskLevel = field("high", "generally-high", "low", "whitelist", "High"),
      riskType = field("scam", "sanction", "hack", "frozen"),
      riskSource = field("Provider", "Community", "User-Defined"),
    }
  end
  local function entity()
    return object {
      entityName = field "Some Exchange",
      entityCode = field "some-exchange",
      entityCategory = field("Exchange", "DeFi", "Mixer"),
      entityCategoryCode = field("exchange", "defi", "MIXER"),
    }
  end
  local function reply(data)
    local kind = draw.integer(16)
    if kind == 1 then
      return { status = 500, body = json.encode { success = false, code = 500, msg = "failed", status = "FAIL" } }
    elseif kind == 2 then
      return { status = 200, body = json.encode { success = field(false), code = field(5), msg = "no" } }
    elseif kind == 3 then
      return { status = 200, body = '{"success":true,"code":1,"data":' }
    end
    return { status = 200, body = json.encode { success = true, code = 1, msg = "SUCCESS", data = data } }
  end
  local function about(fields)
    fields.time, fields.address, fields.network = 1767225600000, address, network
    return object(fields)
  end
  return {
    ["/kya/risks"] = reply(about { whitelist = field(false, false, true), risks = field(list(risk), list(risk)) }),
    ["/kya/entities"] = reply(about {
      whitelist = field(false),
      contract = field(true, false),
      entity = field(entity(), entity(), json.empty_array()),
    }),
    ["/kya/address/freeze-events"] = reply(list(function()
      return object {
        hash = field "0xabc",
        chain = field(network),
        txTime = field(1700000000000, 1700000001000),
        contractAddress = field("0x01", "0x02"),
        token = field "USDT",
        type = field("freeze", "unfreeze"),
        event = field("AddedBlackList", "RemovedBlackList"),
        frozenBalance = field("10.5", "0"),
        destroyedBalance = field(ABSENT, "10.5"),
      }
    end)),
    ["/kya/address/counterparties"] = reply {
      opponents = field(list(function()
        return object {
          entities = field(list(entity)),
          risks = field(list(function()
            return object { riskLevel = field("high", "low"), riskType = field("scam", "sanction") }
          end)),
          dir = field("in", "out"),
          chain = field(network),
          address = field "0x03",
          amount = field(0, 0.5, 12),
          symbol = field("ETH", "USDT"),
          transactionNumbers = field(1, 2),
        }
      end)),
    },
  }
end

---A transport that answers from a table of answers by address.
---@param by_address table<string, table>
---@return fun(request: table): table
function M.transport(by_address)
  return function(request)
    local path, query = request.target:match "^([^?]*)%?(.*)$"
    local address = query and query:match "address=([^&]*)"
    local answers = by_address[address and address:lower()]
    local answer = answers and answers[path:match "/tracker(/.*)$"] or { status = 500, body = "" }
    return { status = answer.status, headers = HEADERS, body = answer.body }
  end
end

---Policies of each kind; all can decide on eth.
---@return riskscreen.Policy[]
function M.policies()
  local allowing = { no_risk = true, action = "allow" }
  local low = { level = { "low", "whitelist" }, action = "allow" }
  local high = { level = "high", action = "block" }
  local function policy(...)
    return policies.new { rules = { ... }, not_offered = "unknown" }
  end
  return {
    policies.new(),
    policy(high, low, allowing),
    policy({ error = true, action = "review" }, { unrecognised = true, action = "review" }, high, low, allowing),
    policy({ error = { "server", "protocol" }, action = "allow" }, high, { any = true, action = "allow" }, allowing),
    policy(
      { whitelist = true, action = "allow" },
      { whitelist = false, level = "high", action = "block" },
      low,
      allowing
    ),
    policy({ source = "Community", action = "review" }, high, low, allowing),
    policy({ type = { "sanction", "frozen" }, action = "block" }, { any = true, action = "allow" }, allowing),
    policy({ category = "mixer", action = "block" }, high, low, allowing),
    policy({ category = "exchange", action = "allow" }, { contract = true, action = "review" }, low, allowing),
    policy({ frozen = true, action = "block" }, high, low, allowing),
    policy({ counterparty = { level = "high" }, action = "block" }, high, low, allowing),
  }
end

return M
