-- The interface as data: every operation once. Client methods, checks, the sandbox's routes and the reference come
-- from here: adding an operation is adding an entry. Enumerations are in enums.lua, shapes of answers in records.lua.

local records = require "riskscreen.interface.records"

---@class riskscreen.Parameter
---@field name string as the interface spells it
---@field place "query"|"body"
---@field type "string"|"integer"|"date"|"array"|"object"|"any"
---@field enum? string a key of enums.values
---@field items? riskscreen.Parameter what an array holds
---@field fields? riskscreen.Parameter[] what an object holds
---@field open? boolean an object that may hold fields of other names
---@field required? boolean
---@field minimum? integer
---@field maximum? integer
---@field word? boolean a text without spaces: an address, a hash
---@field not_before? string the date parameter that this one must not precede
---@field max_items? integer of an array
---@field separator? string an array travels as one text, joined by this
---@field setting? string the key of the client option `usage_parameters` that renames it on the wire
---@field renamed_by? string the client option in which `setting` is a key, where that is not `usage_parameters`
---@field doc string

---@class riskscreen.Operation
---@field name string the interface's name, or ours where it gives none
---@field namespace "kya"|"kyt"|"account"|"blacklist"|"whitelist"
---@field method string the method of that namespace
---@field http? "GET"|"POST" absent where the interface publishes no path
---@field path? string
---@field section string of the interface
---@field parameters? riskscreen.Parameter[] absent: whatever the caller gives is sent
---@field lookup? string of a lookup of one address on one network: the enumeration of its networks
---@field envelope "standard"|"usage"
---@field data? riskscreen.Shape of the answer's payload; absent where the interface shows none
---@field returns? string the class that the method gives, where it makes something of the answer
---@field paginated? boolean the answer carries `pagination`
---@field repeats? string[] the parameters that the answer must repeat
---@field aligned? string the array parameter with which the answer's records are aligned
---@field reported? string the array parameter each item of which is reported on, when there are many
---@field idempotent boolean repeating it changes nothing
---@field credits? integer what one call costs, where the interface says so
---@field doc string

-- Whether a query parameter is required is not shown; without these two a lookup means nothing, so here they are.
local function address()
  return {
    name = "address",
    place = "query",
    type = "string",
    word = true,
    required = true,
    doc = "The address to look up.",
  }
end

local function network(enum, place)
  return {
    name = "network",
    place = place or "query",
    type = "string",
    enum = enum,
    required = true,
    doc = "The chain's short name.",
  }
end

local function page_parameters()
  return {
    { name = "page", place = "query", type = "integer", minimum = 1, doc = "Page number; the service starts at 1." },
    { name = "pageSize", place = "query", type = "integer", minimum = 1, doc = "Items on a page; by default 10." },
  }
end

local function lookup(entry)
  entry.namespace, entry.http, entry.envelope, entry.idempotent = "kya", "GET", "standard", true
  entry.lookup = entry.lookup or "network"
  entry.parameters = { address(), network(entry.lookup) }
  return entry
end

local function unpublished(name, namespace, method, section, idempotent, doc)
  return {
    name = name,
    namespace = namespace,
    method = method,
    section = section,
    envelope = "standard",
    idempotent = idempotent,
    doc = doc,
  }
end

---@type riskscreen.Operation[]
local operations = {
  {
    name = "listBlacklistAddresses",
    namespace = "blacklist",
    method = "list",
    http = "GET",
    path = "/api/v1/tracker/address/blacklist",
    section = "1",
    parameters = page_parameters(),
    envelope = "standard",
    data = records.list_of(records.blacklist_item),
    paginated = true,
    idempotent = true,
    doc = "One page of the account's blacklist.",
  },
  {
    name = "addBlacklistAddresses",
    namespace = "blacklist",
    method = "add",
    http = "POST",
    path = "/api/v1/tracker/address/blacklist",
    section = "2",
    parameters = {
      {
        name = "list",
        place = "body",
        type = "array",
        required = true,
        max_items = 100,
        doc = "What to add.",
        items = {
          type = "object",
          fields = {
            { name = "address", type = "string", word = true, required = true, doc = "The address." },
            {
              name = "risks",
              type = "array",
              doc = "Why; the fields are those of a listed item.",
              items = {
                type = "object",
                open = true,
                fields = {
                  { name = "riskLevel", type = "string", enum = "risk_level", doc = "How bad it is." },
                  { name = "riskType", type = "string", enum = "risk_type", doc = "What it is." },
                },
              },
            },
            { name = "network", type = "string", enum = "network", doc = "The item's own chain." },
          },
        },
      },
      { name = "network", place = "body", type = "string", enum = "network", doc = "The chain of all the items." },
    },
    envelope = "standard",
    reported = "list",
    idempotent = false,
    doc = "Adds addresses to the account's blacklist.",
  },
  {
    name = "listWhitelistAddresses",
    namespace = "whitelist",
    method = "list",
    http = "GET",
    path = "/api/v1/tracker/address/whitelist",
    section = "3",
    parameters = page_parameters(),
    envelope = "standard",
    data = records.list_of(records.whitelist_item),
    paginated = true,
    idempotent = true,
    doc = "One page of the account's whitelist.",
  },
  lookup {
    name = "getAddressEntity",
    method = "entity",
    path = "/api/v1/tracker/kya/entities",
    section = "5",
    data = records.entity,
    repeats = { "address", "network" },
    doc = "Who an address belongs to.",
  },
  {
    name = "listAddressEntities",
    namespace = "kya",
    method = "entities",
    http = "POST",
    path = "/api/v1/tracker/kya/entities",
    section = "6",
    parameters = {
      {
        name = "addresses",
        place = "body",
        type = "array",
        items = { type = "string", word = true },
        required = true,
        max_items = 100,
        doc = "The addresses to look up.",
      },
      network("network", "body"),
    },
    envelope = "standard",
    data = records.list_of(records.entity),
    repeats = { "network" },
    aligned = "addresses",
    idempotent = true,
    doc = "Who each of many addresses belongs to.",
  },
  lookup {
    name = "getAddressRisk",
    method = "risk",
    path = "/api/v1/tracker/kya/risks",
    section = "7",
    data = records.risk_assessment,
    repeats = { "address", "network" },
    doc = "The risks of an address.",
  },
  lookup {
    name = "getAddressCounterparties",
    method = "counterparties",
    path = "/api/v1/tracker/kya/address/counterparties",
    section = "8",
    lookup = "activity_network",
    data = records.counterparties,
    doc = "The addresses an address deals with most.",
  },
  lookup {
    name = "getAddressBasic",
    method = "basic",
    path = "/api/v1/tracker/kya/address/basic",
    section = "9",
    lookup = "activity_network",
    data = records.basic,
    doc = "Balance and activity of an address.",
  },
  lookup {
    name = "getAddressFreezeEvents",
    method = "freeze_events",
    path = "/api/v1/tracker/kya/address/freeze-events",
    section = "10",
    lookup = "freeze_network",
    data = records.list_of(records.freeze_event),
    doc = "When an address's tokens were frozen.",
  },
  {
    name = "getAccountUsage",
    namespace = "account",
    method = "usage",
    http = "GET",
    path = "/api/v1/tracker/account/usage",
    section = "11",
    -- The interface does not name these on the wire: the client option `usage_parameters` does.
    parameters = {
      {
        name = "granularity",
        place = "query",
        type = "string",
        enum = "granularity",
        setting = "granularity",
        doc = "The period of one record.",
      },
      { name = "start_date", place = "query", type = "date", setting = "start_date", doc = "First day, yyyy-MM-dd." },
      {
        name = "end_date",
        place = "query",
        type = "date",
        not_before = "start_date",
        setting = "end_date",
        doc = "Last day, yyyy-MM-dd.",
      },
      {
        name = "group_by",
        place = "query",
        type = "array",
        items = { type = "string", enum = "usage_group" },
        separator = ",",
        setting = "group_by",
        doc = "What to count by.",
      },
    },
    envelope = "usage",
    data = records.list_of(records.usage),
    idempotent = true,
    doc = "Calls and credits used.",
  },
  {
    name = "screenTransaction",
    namespace = "kyt",
    method = "submit",
    http = "POST",
    path = "/api/v1/tracker/kyt/transfers/risk-screening",
    section = "12",
    parameters = {
      network("network", "body"),
      { name = "hash", place = "body", type = "string", word = true, required = true, doc = "The transaction's hash." },
      { name = "tokenContractAddress", place = "body", type = "string", word = true, doc = "The token's contract." },
      { name = "outputAddress", place = "body", type = "string", word = true, doc = "Where the transfer goes." },
      { name = "direction", place = "body", type = "string", doc = "Its values are not published: sent as given." },
      -- The interface shows it in results alone, as an identifier that the client supplied.
      {
        name = "customId",
        place = "body",
        type = "string",
        renamed_by = "transaction_parameters",
        setting = "custom_id",
        doc = "The caller's own identifier, which the result repeats.",
      },
    },
    envelope = "standard",
    data = records.submission,
    returns = "riskscreen.Transaction",
    idempotent = false,
    doc = "Asks for the risk of a transaction; the result comes later, by its requestId.",
  },
  unpublished("removeBlacklistAddresses", "blacklist", "remove", "4", false, "Removes addresses from the blacklist."),
  unpublished("addWhitelistAddresses", "whitelist", "add", "4", false, "Adds addresses to the whitelist."),
  unpublished("removeWhitelistAddresses", "whitelist", "remove", "4", false, "Removes addresses from the whitelist."),
  unpublished("getTransactionRisks", "kyt", "risks", "13", true, "The risks of a transaction."),
  unpublished("getCustomRiskScore", "kyt", "custom_score", "13", false, "Asks for a transaction's custom risk score."),
  unpublished("getAddressRiskScore", "kya", "score", "13", true, "The risk score of an address."),
  unpublished("getAsynchronousResult", "kyt", "result", "13", true, "The result of an asynchronous request."),
}

local M = { list = operations, by_name = {} }
for _, operation in ipairs(operations) do
  M.by_name[operation.name] = operation
end

---The key under which the client option `endpoints` gives an operation its method and path, such as "kyt_result".
---@param operation riskscreen.Operation
---@return string
function M.endpoint_key(operation)
  return operation.namespace .. "_" .. operation.method
end

return M
