-- Where the sandbox answers the operations for which the interface publishes no path. These paths, parameters and
-- answers are the sandbox's own; its clients are preset to them. The real service's have to be configured.
local operations = require "riskscreen.interface.operations"

local PREFIX = "/sandbox/v1/"

local function text(name, place, required, doc)
  return { name = name, place = place, type = "string", required = required, doc = doc }
end

local function network(place, required)
  local parameter = text("network", place, required, "The chain's short name.")
  parameter.enum = "network"
  return parameter
end

local function transaction(place)
  return { network(place, true), text("hash", place, true, "The transaction's hash.") }
end

local function removal()
  return { text("address", "body", true, "The address."), network("body", false) }
end

-- By operation: the HTTP method, the path and the parameters.
local published_here = {
  removeBlacklistAddresses = { "POST", PREFIX .. "blacklist/remove", removal() },
  addWhitelistAddresses = {
    "POST",
    PREFIX .. "whitelist",
    {
      {
        name = "list",
        place = "body",
        type = "array",
        required = true,
        max_items = 100,
        doc = "What to add.",
        items = {
          type = "object",
          fields = { text("address", "body", true, "The address."), network("body", false) },
        },
      },
    },
  },
  removeWhitelistAddresses = { "POST", PREFIX .. "whitelist/remove", removal() },
  getTransactionRisks = { "GET", PREFIX .. "kyt/risks", transaction "query" },
  getCustomRiskScore = {
    "POST",
    PREFIX .. "kyt/custom-score",
    {
      network("body", true),
      text("hash", "body", true, "The transaction's hash."),
      text("outputAddress", "body", false, "Where the transfer goes."),
      text("direction", "body", false, "in, out, or anything else for both."),
      text("customId", "body", false, "Repeated in the result."),
    },
  },
  getAddressRiskScore = {
    "GET",
    PREFIX .. "kya/score",
    { text("address", "query", true, "The address."), network("query", true) },
  },
  getAsynchronousResult = {
    "GET",
    PREFIX .. "kyt/result",
    { text("requestId", "query", true, "What the submission answered.") },
  },
}

local M = { operations = {}, client = {} }

for _, operation in ipairs(operations.list) do
  local own = published_here[operation.name]
  if own then
    M.operations[#M.operations + 1] = {
      name = operation.name,
      namespace = operation.namespace,
      method = operation.method,
      http = own[1],
      path = own[2],
      parameters = own[3],
      envelope = operation.envelope,
    }
    M.client[operations.endpoint_key(operation)] = { method = own[1], path = own[2] }
  end
end

---@class riskscreen.sandbox.Endpoints
---@field operations riskscreen.Operation[] what the service routes besides the published operations
---@field client table<string, { method: string, path: string }> for the client option `endpoints`
return M
