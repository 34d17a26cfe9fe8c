-- A row of a list file becomes an entry: address, network, note and time of expiry are checked. Pure.
local date = require "riskscreen.util.date"
local index = require "riskscreen.lists.index"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local LONGEST_NOTE = 990 -- bytes
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

local is_field = tables.set(M.FIELDS)

-- Parts of other names for the time of expiry, in small letters with "_" around each word. It is not read under them.
local LIKE_EXPIRES = "expir until [_d]till_ [_d]thru_ [_d]through_ ttl_ lifetime deadline _lapse validity _not.*after_ "
  .. "_before_$ ^_to_?date_ date_?to_$ valid_?to_ valid_?for_ stop_?date _end[sdeing]*_$ _end[sdeing]*_?date "
  .. "_end[sdeing]*_?time _end[sdeing]*_?[ao][tn]_"

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

---The reason why a name is taken for a misspelt field, without which entries could hold too long; or nil.
---@param names table<string, any> the names as keys
---@return string|nil
function M.misspelt(names)
  for name in pairs(names) do
    if type(name) == "string" and not is_field[text.lower(name)] then
      local nearest = text.nearest(name, M.FIELDS)
      local words = text.lower("_" .. name:gsub("(%l)(%u)", "%1_%2") .. "_"):gsub("[%s%p]+", "_")
      for part in LIKE_EXPIRES:gmatch "%S+" do
        nearest = nearest or words:find(part) and "expires"
      end
      if nearest then
        return ("%s is not a field of a list; did you mean '%s'?"):format(text.show(name), nearest)
      end
    end
  end
end

return M
