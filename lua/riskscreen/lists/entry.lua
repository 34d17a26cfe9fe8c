-- A row of a list file becomes an entry: address, network, note and time of expiry are checked. Pure.
local date = require "riskscreen.util.date"
local index = require "riskscreen.lists.index"
local rows = require "riskscreen.rows"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_NOTE = 990 -- bytes
local UNKNOWN = "%s is not a field of a list%s rename or remove it, or build the list with --ignore-columns"
local EARLIEST, LATEST = 1e9, 1e11 -- Unix seconds; other numbers are dates without hyphens, or milliseconds

---@class riskscreen.ListRow
---@field address any
---@field network? any empty or absent: every network whose format fits
---@field note? any
---@field expires? any
---@field line? integer
---@field as? string the network by which the address is checked, for an entry that holds on every network

---@class riskscreen.ListEntry
---@field places riskscreen.ListPlace[]
---@field note string
---@field expires number Unix seconds, or 0 for never

local M = {
  ---The columns of CSV and the fields of JSON.
  FIELDS = { "address", "network", "note", "expires" },
}

-- Fields that other programs, or the results of the command, have beside those. They are not read, and none can mean
-- that an entry does not hold.
local harmless = text.words(
  "action added added_at added_by added_on analyst asset author case case_id category comment comments country "
    .. "created created_at created_by currency date_added date_created date_listed degraded description entity "
    .. "entity_name error fields id label labels line link list_name listed_at listed_on name notes owner program "
    .. "queue reason reasons reference remarks risk risk_level risk_levels risk_source risk_sources risk_type "
    .. "risk_types risks row score severity source symbol tag tags time title token type types updated updated_at "
    .. "updated_on url uuid"
)

-- Where two columns have names of addresses or of networks, an option says which one counts.
local is_accepted = tables.set(tables.concat(M.FIELDS, harmless, rows.names_of.address, rows.names_of.network))

local function trimmed(value)
  return type(value) == "string" and text.trim(value) or value
end

-- Unix seconds of a whole number, of a date (its first second in UTC), or of a time in UTC.
local function seconds_of(value)
  local number = tostring(value):find "^%d+%.?0*$" and tonumber(value)
  if number then
    return number >= EARLIEST and number < LATEST and math.floor(number) or nil
  elseif type(value) ~= "string" then
    return nil
  end
  local is_known = #value == 10 or value:find "[T ][01]%d:%d%d:%d%dZ$" or value:find "[T ]2[0-3]:%d%d:%d%dZ$"
  local seconds = is_known and date.parse_time(value)
  return seconds and seconds > 0 and seconds or nil
end

local function expiry_of(value)
  if value == nil or value == "" then
    return 0
  end
  local seconds = seconds_of(value)
  if not seconds then
    local wanted =
      "expires must be a date such as 2026-12-31, a time such as 2026-12-31T12:00:00Z or Unix seconds (got %s)"
    return nil, wanted:format(text.show(value))
  end
  return seconds
end

---@param row riskscreen.ListRow
---@param level? "checksum"|"format"|false how addresses are checked
---@return riskscreen.ListEntry|nil entry
---@return string|nil problem
---@return boolean|nil is_fatal the whole file is refused: the entry could hold too long, or not at all
function M.read(row, level)
  local address, network, note = trimmed(row.address), trimmed(row.network), trimmed(row.note)
  if type(address) ~= "string" or address == "" then
    return nil, ("the address must be a text (got %s)"):format(text.show(address))
  elseif network ~= nil and type(network) ~= "string" then
    return nil, ("the network must be a text (got %s)"):format(text.show(network))
  elseif note ~= nil and type(note) ~= "string" then
    return nil, ("the note must be a text (got %s)"):format(text.show(note))
  end
  local named = network and network ~= "" and text.lower(network) or nil
  local places, problem = index.places(address, row.as or named, level)
  if places and row.as then
    places = index.places(address, nil, level) -- its key is good on every network whose format fits
  end
  local expires, fault = expiry_of(trimmed(row.expires))
  if not expires then
    return nil, fault, true
  elseif not places then
    return nil, problem
  end
  return { places = places, note = text.printable(note or "", LONGEST_NOTE), expires = expires }
end

---The reason why a file with a field is refused; or nil. Under another name the time of expiry would not be read.
---@param names table<string, any> the names as keys
---@return string|nil
function M.unknown_field(names)
  for name in pairs(names) do
    local plain = type(name) == "string" and rows.plain_name(name, is_accepted) or ""
    if plain ~= "" and not is_accepted[plain] then
      local hint = text.did_you_mean(plain, M.FIELDS)
      return UNKNOWN:format(text.show(name), hint ~= "" and hint or ";")
    end
  end
end

return M
