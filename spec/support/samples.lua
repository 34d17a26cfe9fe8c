-- For every operation with a published path: parameters it takes, and an answer of the shape the interface describes.
-- Each call builds new tables, so that a test may change them.
local json = require "riskscreen.json"

local ADDRESS = "0x52908400098527886E0F7030069857D2E4169EE7"
local OTHER = "0x8617E340B3D01FA5F11F306F4090FD50E238070D"

local function risk()
  return { riskLevel = "high", riskType = "sanction", riskSource = "Provider" }
end

local function entity(address)
  return {
    time = 1767225600000,
    address = address,
    network = "eth",
    whitelist = false,
    contract = true,
    entity = {
      entityName = "Some Name",
      entityCode = "some",
      entityCategory = "Exchange",
      entityCategoryCode = "exchange",
    },
  }
end

local function pagination()
  return { current_page = 1, per_page = 10, total_pages = 1, total_items = 2 }
end

local function statistic()
  return { symbol = "USDT", contractAddr = "", txCount = 3, txValue = 12.5 }
end

local function transfer()
  return { time = 1700000000000, hash = "0xabc", symbol = "ETH" }
end

local makers = {
  listBlacklistAddresses = function()
    return { page = 1, pageSize = 10 }, {
      data = {
        { network = "eth", address = ADDRESS, risks = { risk() }, createdAt = 1767225600 },
        { address = OTHER, createdAt = 1767225601 },
      },
      pagination = pagination(),
    }
  end,
  addBlacklistAddresses = function()
    local item = { address = ADDRESS, risks = { { riskLevel = "high", riskType = "scam" } } }
    return { list = { item }, network = "eth" }, {}
  end,
  listWhitelistAddresses = function()
    return {}, { data = { { chain = "eth", address = ADDRESS, createdAt = 1767225600 } }, pagination = pagination() }
  end,
  getAddressEntity = function()
    return { address = ADDRESS, network = "eth" }, { data = entity(ADDRESS) }
  end,
  listAddressEntities = function()
    return { addresses = { ADDRESS, OTHER }, network = "eth" }, { data = { entity(ADDRESS), entity(OTHER) } }
  end,
  getAddressRisk = function()
    return { address = ADDRESS, network = "eth" }, {
      data = { time = 1767225600000, address = ADDRESS, network = "eth", whitelist = false, risks = { risk() } },
    }
  end,
  getAddressCounterparties = function()
    return { address = ADDRESS, network = "eth" }, {
      data = {
        opponents = {
          {
            entities = { entity(OTHER).entity },
            risks = { { riskLevel = "low", riskType = "scam" } },
            dir = "in",
            chain = "eth",
            address = OTHER,
            amount = 0.5,
            symbol = "ETH",
            transactionNumbers = 2,
          },
        },
      },
    }
  end,
  getAddressBasic = function()
    return { address = ADDRESS, network = "eth" }, {
      data = {
        activeType = 1,
        balance = { ETH = 1.25, USDT = 0 },
        firstInTx = transfer(),
        firstOutTx = transfer(),
        mainInStatistic = statistic(),
        mainOutStatistic = statistic(),
        stableInStatistic = statistic(),
        stableOutStatistic = statistic(),
      },
    }
  end,
  getAddressFreezeEvents = function()
    return { address = ADDRESS, network = "eth" }, {
      data = {
        {
          hash = "0xabc",
          chain = "eth",
          txTime = 1700000000000,
          contractAddress = OTHER,
          token = "USDT",
          type = "some",
          event = "some",
          frozenBalance = "10.5",
          destroyedBalance = "10.5",
        },
      },
    }
  end,
  getAccountUsage = function()
    return {
      granularity = "day",
      start_date = "2026-01-01",
      end_date = "2026-01-31",
      group_by = { "endpoint", "user" },
    }, {
      data = {
        { time = "2026-01-01", methodName = "some", methodUrl = "/some", totalCalls = 3, useCredits = 3 },
      },
    }
  end,
  screenTransaction = function()
    return {
      network = "eth",
      hash = "0xabc",
      tokenContractAddress = OTHER,
      outputAddress = ADDRESS,
      direction = "received",
    }, { data = { requestId = "request-1" } }
  end,
}

local M = { address = ADDRESS, other_address = OTHER }

---@param operation riskscreen.Operation
---@return table parameters
---@return table body of a successful answer
function M.of(operation)
  local parameters, body = makers[operation.name]()
  if operation.envelope == "usage" then
    body.code, body.message = 200, "SUCCESS"
  else
    body.success, body.code, body.msg, body.status = true, 1, "SUCCESS", "SUCCESS"
  end
  return parameters, body
end

---A body of the error envelope.
function M.failure(code, message)
  return { success = false, code = code, msg = message, status = "FAIL" }
end

M.null = json.null

return M
