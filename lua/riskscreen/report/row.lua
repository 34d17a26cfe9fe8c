-- A decision as the report shows it, from a row of CSV or a line of JSON. Pure.
local date = require "riskscreen.util.date"
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"

local LATEST_SECONDS = 1e11 -- a larger time is in milliseconds
local TWO = "two verdicts" -- of a row: it has none
local MAX_COUNTERPARTIES = 40 -- of a row, those with the most transactions

-- The names of each field in files of the command, of the journal, and of other programs, in any case. The first one is
-- the command's own.
local fields = {
  time = { "time", "timestamp", "decided_at", "date" },
  address = rows.names_of.address,
  network = rows.names_of.network,
  action = { "action", "verdict" },
  reasons = { "reasons", "reason" },
  level = { "risk_levels", "risk_level", "riskLevel", "level", "levels" },
  types = { "risk_types", "risk_type", "riskType", "type", "types" },
  entity = { "entity", "entity_name", "entityName" },
  category = { "category", "entity_category", "entityCategory" },
  source = { "source" },
  error = { "error", "error_kind" },
  case = { "case", "case_id" },
  analyst = { "analyst" },
}
-- Of these the command writes columns of its own, and no kept column or fact takes their place.
local is_decided = tables.set { "time", "reasons", "level", "types", "entity", "category", "source", "error" }
local is_fact = tables.set { "case", "analyst" }
-- Tables of a decision that the fields above are read from.
local read_elsewhere = tables.set { "record", "risks", "counterparties", "opponents" }
-- The journal's chain, which `riskscreen journal verify` checks, says nothing to a reader.
local is_left_out = tables.set { "part", "seq", "prev", "hash", "answer" }

local is_action = tables.set { "allow", "review", "block", "unknown" }
local level_rank = {}
for rank, level in ipairs(enums.values.risk_level) do
  level_rank[level] = rank
end

-- Whether a value is none. A column without a name has nil.
local function is_none(value)
  return value == nil or value == "" or value == json.null
end

local function text_of(value)
  if value == nil or value == json.null then
    return nil
  elseif type(value) == "number" then
    return json.number(value) or tostring(value)
  end
  return tostring(value)
end

local function time_of(value)
  local number = tonumber(value)
  if not number then
    return type(value) == "string" and date.parse_time(value) or nil
  elseif number ~= number or math.abs(number) == math.huge then
    return nil
  end
  return number >= LATEST_SECONDS and number / 1000 or number
end

local function list_of(value)
  return type(value) == "table" and value or {}
end

-- The texts of a list: of one, of tables that have `field`, or of a text with separators.
local function texts_of(value, field, separators)
  local texts = {}
  if type(value) == "table" then
    for _, item in ipairs(value) do
      if type(item) == "table" then
        item = item[field]
      end
      texts[#texts + 1] = text_of(item)
    end
  elseif value ~= nil and value ~= json.null then
    for piece in tostring(value):gmatch("[^" .. separators .. "]+") do
      local part = piece:match "^%s*(.-)%s*$"
      if part ~= "" then
        texts[#texts + 1] = part
      end
    end
  end
  return texts
end

-- The worst of the levels. One that the interface does not know counts as worse than those that it knows.
local function worst_level(levels)
  local worst, worst_rank
  for _, level in ipairs(levels) do
    local rank = level_rank[level] or 0
    if not worst or rank < worst_rank then
      worst, worst_rank = level, rank
    end
  end
  return worst
end

local function distinct(list)
  local seen, kept = {}, {}
  for _, value in ipairs(list) do
    if not seen[value] then
      seen[value] = true
      kept[#kept + 1] = value
    end
  end
  return kept
end

local function first_entity(record)
  local holder = list_of(list_of(record).entity or record)
  return text_of(holder.entityName), text_of(holder.entityCategory)
end

local function counterparties_of(found)
  local list = {}
  for _, opponent in ipairs(list_of(list_of(found.counterparties).opponents or found.opponents)) do
    if type(opponent) == "table" then
      local risks = list_of(opponent.risks)
      list[#list + 1] = {
        address = text_of(opponent.address),
        direction = opponent.dir == "in" and "in" or opponent.dir == "out" and "out" or nil,
        amount = tonumber(opponent.amount),
        symbol = text_of(opponent.symbol),
        transactions = tonumber(opponent.transactionNumbers),
        entity = first_entity(list_of(opponent.entities)[1]),
        level = worst_level(texts_of(risks, "riskLevel", ",")),
        types = distinct(texts_of(risks, "riskType", ",")),
      }
    end
  end
  local total = #list
  table.sort(list, function(a, b)
    return (a.transactions or 0) > (b.transactions or 0)
  end)
  while #list > MAX_COUNTERPARTIES do
    list[#list] = nil
  end
  return list[1] and { list = list, total = total } or nil
end

local M = {
  ---The names of the column that every file has.
  ACTION = fields.action,
}

---The fields by the plain names of their columns.
---@param settings riskscreen.rows.Options
---@return table<string, string>
function M.fields(settings)
  local field_of = {}
  for field, names in pairs(fields) do
    for _, name in ipairs(settings[field .. "_column"] and {} or names) do
      field_of[rows.plain_name(name)] = field
    end
  end
  for field in pairs(rows.names_of) do
    local given = settings[field .. "_column"]
    if given then
      field_of[rows.plain_name(given)] = field
    end
  end
  return field_of
end

---@class riskscreen.report.Row
---@field action riskscreen.Action
---@field time? number Unix seconds
---@field address? string
---@field network? string
---@field level? string the worst level of its risks
---@field types string[] of its risks
---@field entity? string
---@field category? string
---@field reasons? string
---@field source? string
---@field error? string the kind of the failure
---@field case? string
---@field analyst? string
---@field counterparties? { list: table[], total: integer }
---@field others { [1]: string, [2]: string }[] the other columns, each a name and a text

---The row of a decision. An action that is none of the four is `unknown`.
---@param found table<string, any> columns of CSV, or a decoded line of JSON
---@param field_of table<string, string>
---@param names? string[] the columns in their order
---@return riskscreen.report.Row row
---@return boolean has_action whether the action was one of the four
---@return any wrong_time a time that is none, or nil
function M.of(found, field_of, names)
  local meta = type(found.meta) == "table" and not json.is_array(found.meta) and found.meta or {} -- in CSV columns
  local is_own = found.reasons ~= nil and (found.risk_levels or found.line or found.requestId) ~= nil
  local value_of, others = {}, {}
  for _, name in ipairs(names or tables.sorted_keys(tables.merge(meta, found))) do
    local value, field = found[name], field_of[name] or field_of[rows.plain_name(name)]
    local first = field and fields[field][1]
    if not is_fact[field] and (value == nil or is_own and is_decided[field] and name ~= first) then
      field = nil
    end
    if value == nil then
      value = meta[name]
    end
    local is_empty = is_none(value)
    local is_second = value_of[field] ~= nil or field_of[first] == field and name ~= first and not is_none(found[first])
    if field and not is_empty and (not is_second or field == "action" and value_of.action == nil) then
      value_of[field] = value
    elseif field == "action" and not is_empty and value ~= value_of.action then
      value_of.action = TWO
    elseif not (is_empty or read_elsewhere[name] or is_left_out[name] or type(value) == "table") then
      others[#others + 1] = { name, text_of(value) }
    end
  end
  -- A line of a journal holds every answer in `record`, a decision only the assessment.
  local record = list_of(found.record)
  local risks = list_of(list_of(record.risk).risks or record.risks or found.risks)
  local entity, category = value_of.entity or record.entity, nil
  if type(entity) == "table" then
    entity, category = first_entity(entity)
  end
  local levels = texts_of(value_of.level ~= nil and value_of.level or risks, "riskLevel", ",;|")
  local types = texts_of(value_of.types ~= nil and value_of.types or risks, "riskType", ",;|")
  local failure = value_of.error
  local action = value_of.action
  local time = time_of(value_of.time)
  local wrong_time = not time and value_of.time or nil
  if wrong_time and type(wrong_time) ~= "table" then
    others[#others + 1] = { "time", text_of(wrong_time) }
  end
  return {
    action = is_action[action] and action or "unknown",
    time = time,
    address = text_of(value_of.address) or text_of(found.input),
    network = text_of(value_of.network),
    level = worst_level(levels),
    types = distinct(types),
    entity = text_of(entity),
    category = text_of(value_of.category) or category,
    reasons = table.concat(texts_of(value_of.reasons, "message", "\n"), "\n"),
    source = text_of(value_of.source) or (found.cached == true and "cache" or nil),
    case = text_of(value_of.case),
    analyst = text_of(value_of.analyst),
    error = text_of(type(failure) == "table" and (failure.kind or failure.message) or failure),
    counterparties = counterparties_of(record.counterparties and record or found),
    others = others,
  },
    is_action[action] == true,
    wrong_time
end

return M
