-- The interface as data: every operation once. Client methods, checks, the sandbox's routes and the reference come from
-- these entries. Enumerations are in enums.lua, shapes of answers in records.lua.
local records = require "riskscreen.interface.records"
local tables = require "riskscreen.util.tables"

---@class riskscreen.Parameter
---@field name string as the interface spells it
---@field type "string"|"integer"|"date"|"array"|"object"|"any"
---@field enum? string a key of enums.values
---@field items? riskscreen.Parameter the elements of an array
---@field fields? riskscreen.Parameter[] the fields of an object
---@field open? boolean an object that may hold fields of other names
---@field required? boolean
---@field minimum? integer
---@field maximum? integer
---@field word? boolean a text without spaces: an address, a hash
---@field is_address? boolean|"contract" an address of the request's network; a contract has one where that is 0x
---@field not_before? string the date parameter that this one must not precede
---@field max_items? integer of an array
---@field may_be_empty? boolean of an array
---@field separator? string an array travels as one text, joined by this
---@field setting? string the key of the client option `usage_parameters` that renames it on the wire
---@field renamed_by? string the client option in which `setting` is a key, where that is not `usage_parameters`
---@field doc string

---@class riskscreen.Operation
---@field name string the interface's name, or ours where it gives none
---@field is_named_here? boolean the name is ours
---@field namespace "kya"|"kyt"|"account"|"blacklist"|"whitelist"
---@field method string the method of that namespace
---@field http? "GET"|"POST" absent where the interface publishes no path
---@field path? string
---@field section? string of the interface; absent where it does not name the operation
---@field parameters? riskscreen.Parameter[] absent where the interface lists none: any parameter is sent
---@field lookup? string of a lookup of one address on one network: the enumeration of its networks
---@field envelope "standard"|"usage"
---@field data? riskscreen.Shape of the answer's payload; absent where the interface shows none
---@field returns? string the class of the method's result, where that is not the payload
---@field paginated? boolean the answer carries `pagination`
---@field repeats? string[] the parameters that the answer must repeat
---@field aligned? string the array parameter with which the answer's records are aligned
---@field reported? string the array parameter whose items are reported on one by one, when there are many
---@field keeps_null? boolean null members of maps in the payload are kept, because a policy must see them
---@field may_lack? string "data" or a member of it: a list that the answer may leave out, if the policy says so
---@field idempotent boolean repeating it changes nothing
---@field doc string

local function parameter(name, type, doc, more)
  return tables.merge({ name = name, type = type, doc = doc }, more)
end

-- The interface does not show which parameters are required. A lookup means nothing without these two.
local function address()
  return parameter("address", "string", "The address to look up.", { word = true, required = true, is_address = true })
end

local function network(enum)
  return parameter("network", "string", "The chain's short name.", { enum = enum, required = true })
end

local function page(entry)
  -- The interface shows no parameters of the whitelist.
  local assumption = entry.namespace == "whitelist" and "; assumed to be as for the blacklist." or "."
  entry.method, entry.http, entry.envelope, entry.idempotent = "list", "GET", "standard", true
  entry.paginated = true
  entry.parameters = {
    parameter("page", "integer", "Page number, by default 1" .. assumption, { minimum = 1 }),
    parameter("pageSize", "integer", "Items on a page, by default 10" .. assumption, { minimum = 1 }),
  }
  return entry
end

local function lookup(entry)
  entry.namespace, entry.http, entry.envelope, entry.idempotent = "kya", "GET", "standard", true
  entry.lookup = entry.lookup or "network"
  entry.parameters = { address(), network(entry.lookup) }
  return entry
end

local function unpublished(name, namespace, method, section, idempotent, doc)
  local operation = { name = name, namespace = namespace, method = method, section = section, doc = doc }
  operation.envelope, operation.idempotent, operation.is_named_here = "standard", idempotent, true
  return operation
end

local listed_risk = {
  type = "object",
  open = true,
  fields = {
    parameter("riskLevel", "string", "The risk's level (an assumed field).", { enum = "risk_level" }),
    parameter("riskType", "string", "The risk's type (an assumed field).", { enum = "risk_type" }),
  },
}

local blacklist_item = {
  type = "object",
  fields = {
    parameter("address", "string", "The address.", { word = true, required = true, is_address = true }),
    parameter("risks", "array", "Its risks. Fields of other names are sent as given.", {
      items = listed_risk,
      may_be_empty = true,
    }),
    parameter("network", "string", "The item's own chain (an assumed field).", { enum = "network" }),
  },
}

---@type riskscreen.Operation[]
local operations = {
  page {
    name = "listBlacklistAddresses",
    namespace = "blacklist",
    path = "/api/v1/tracker/address/blacklist",
    section = "1",
    data = records.list_of(records.blacklist_item),
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
      parameter("list", "array", "The items to add.", { required = true, max_items = 100, items = blacklist_item }),
      parameter("network", "string", "The chain of all the items (an assumed place).", { enum = "network" }),
    },
    envelope = "standard",
    reported = "list",
    idempotent = false,
    doc = "Adds addresses to the account's blacklist.",
  },
  page {
    name = "listWhitelistAddresses",
    namespace = "whitelist",
    path = "/api/v1/tracker/address/whitelist",
    section = "3",
    data = records.list_of(records.whitelist_item),
    doc = "One page of the account's whitelist.",
  },
  lookup {
    name = "getAddressEntity",
    method = "entity",
    path = "/api/v1/tracker/kya/entities",
    section = "5",
    data = records.entity,
    repeats = { "address", "network" },
    doc = "The entity that owns an address.",
  },
  {
    name = "listAddressEntities",
    namespace = "kya",
    method = "entities",
    http = "POST",
    path = "/api/v1/tracker/kya/entities",
    section = "6",
    parameters = {
      parameter("addresses", "array", "The addresses to look up.", {
        required = true,
        max_items = 100,
        items = { type = "string", word = true, is_address = true },
      }),
      network "network",
    },
    envelope = "standard",
    data = records.list_of(records.entity),
    repeats = { "network" },
    aligned = "addresses",
    idempotent = true,
    doc = "The entities that own many addresses.",
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
    may_lack = "opponents",
    doc = "The top counterparties of an address.",
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
    may_lack = "data",
    doc = "The freeze events of an address.",
  },
  {
    name = "getAccountUsage",
    namespace = "account",
    method = "usage",
    http = "GET",
    path = "/api/v1/tracker/account/usage",
    section = "11",
    -- The interface does not publish their names on the wire; the client option `usage_parameters` gives them.
    parameters = {
      parameter("granularity", "string", "The period of one record.", {
        enum = "granularity",
        setting = "granularity",
      }),
      parameter("start_date", "date", "First day, yyyy-MM-dd.", { setting = "start_date" }),
      parameter("end_date", "date", "Last day, yyyy-MM-dd.", { not_before = "start_date", setting = "end_date" }),
      parameter("group_by", "array", "The grouping of the records.", {
        items = { type = "string", enum = "usage_group" },
        separator = ",",
        setting = "group_by",
      }),
    },
    envelope = "usage",
    data = records.list_of(records.usage),
    idempotent = true,
    doc = "Calls and credits used.",
  },
  {
    name = "screenTransaction",
    is_named_here = true,
    namespace = "kyt",
    method = "submit",
    http = "POST",
    path = "/api/v1/tracker/kyt/transfers/risk-screening",
    section = "12",
    parameters = {
      network "network",
      parameter("hash", "string", "The transaction's hash.", { word = true, required = true }),
      parameter("tokenContractAddress", "string", "The token's contract.", { word = true, is_address = "contract" }),
      parameter("outputAddress", "string", "The receiver (assumed); a deny list searches it in all directions.", {
        word = true,
        is_address = true,
      }),
      parameter(
        "direction",
        "string",
        "The interface shows `received`; `sent` is assumed. Any other text is sent as given, but no misspelt one.",
        { known = { "received", "sent" } }
      ),
      -- The interface shows it in results alone, as an identifier that the client supplied.
      parameter(
        "customId",
        "string",
        "The caller's own identifier, which the result repeats; that a submission has it is assumed.",
        {
          renamed_by = "transaction_parameters",
          setting = "custom_id",
        }
      ),
    },
    envelope = "standard",
    data = records.submission,
    returns = "riskscreen.Transaction",
    keeps_null = true,
    idempotent = false,
    doc = "Submits a transaction for screening; the result comes at once, or later by its requestId.",
  },
  unpublished("removeBlacklistAddresses", "blacklist", "remove", "4", false, "Removes addresses from the blacklist."),
  unpublished("addWhitelistAddresses", "whitelist", "add", "4", false, "Adds addresses to the whitelist."),
  unpublished("removeWhitelistAddresses", "whitelist", "remove", "4", false, "Removes addresses from the whitelist."),
  unpublished("getTransactionRisks", "kyt", "risks", "13", true, "The risks of a transaction."),
  unpublished("getCustomRiskScore", "kyt", "custom_score", "13", false, "Requests a transaction's custom risk score."),
  unpublished("getCustomRiskScoreResult", "kyt", "custom_score_result", nil, true, "The result of a custom score."),
  unpublished("getAddressRiskScore", "kya", "score", "13", true, "The risk score of an address."),
  unpublished("getAsynchronousResult", "kyt", "result", "13", true, "The result of an asynchronous request."),
}

---`version` is that of the interface's description.
local M = { list = operations, by_name = {}, version = "1.0.0" }
for _, operation in ipairs(operations) do
  M.by_name[operation.name] = operation
end
for _, name in ipairs { "getCustomRiskScore", "getCustomRiskScoreResult", "getAsynchronousResult" } do
  M.by_name[name].keeps_null = true
end

---The key under which the client option `endpoints` gives an operation its method and path, such as "kyt_result".
---@param operation riskscreen.Operation
---@return string
function M.endpoint_key(operation)
  return operation.namespace .. "_" .. operation.method
end

return M
