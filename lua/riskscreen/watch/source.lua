-- The addresses of a watch: read anew in each cycle, one row in memory at a time.
local csv = require "riskscreen.util.csv"
local errors = require "riskscreen.errors"

local PIECE = 65536 -- bytes

local function failure(message, ...)
  return errors.new("invalid_argument", message:format(...), { field = "source", sent = false })
end

-- The rows of a CSV file by the names of its columns. A row that cannot be read ends the cycle: an address must not
-- drop out of the watch silently.
local function rows_of(path)
  local file, problem = io.open(path, "rb")
  if not file then
    error(failure("the addresses cannot be read: %s", problem), 0)
  end
  local next_row = csv.reader(function()
    return file:read(PIECE)
  end)
  local names
  return function()
    while true do
      local fields, line, fault = next_row()
      if fields == nil then
        file:close()
        if line then
          error(failure("%s cannot be read: %s", path, line), 0)
        end
        return nil
      elseif not fields or (names and #fields ~= #names) then
        error(failure("%s, line %d: %s", path, line, fault or "it has not as many fields as the header"), 0)
      elseif names then
        local item = { fields = {} }
        for index, name in ipairs(names) do
          if name == "address" or name == "network" then
            item[name] = fields[index] ~= "" and fields[index] or nil
          else
            item.fields[name] = fields[index]
          end
        end
        return item
      else
        names = {}
        local has_address = false
        for index, name in ipairs(fields) do
          name = name:match "^%s*(.-)%s*$"
          local lower = name:lower()
          names[index] = (lower == "address" or lower == "network") and lower or name
          has_address = has_address or lower == "address"
        end
        if not has_address then
          error(failure("%s: the header has no column `address`", path), 0)
        end
      end
    end
  end
end

local M = {}

---An iterator over the items of a source: tables of `address`, `network` and `fields`.
---@param source string|any[]|fun(): (fun(): any) a path of CSV, a list, or a function that returns an iterator
---@return fun(): { address: any, network: any, fields?: table }|nil
function M.open(source)
  if type(source) == "string" then
    return rows_of(source)
  end
  local next_item
  if type(source) == "function" then
    next_item = source()
  else
    local index = 0
    next_item = function()
      index = index + 1
      return source[index]
    end
  end
  return function()
    local item = next_item()
    if item == nil then
      return nil
    end
    return type(item) == "table" and item or { address = item }
  end
end

return M
