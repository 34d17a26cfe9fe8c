-- The addresses of a watch: read anew in each cycle, one row in memory at a time. A source without addresses is an
-- error: no verdict is forgotten for it.
local addresses = require "riskscreen.address"
local errors = require "riskscreen.errors"
local rows = require "riskscreen.rows"
local text = require "riskscreen.util.text"

-- The rows of a file.
local function rows_of(settings)
  local input, err = rows.open(settings.source, rows.options_of(settings, { checked_first = true }))
  if not input then
    error(err, 0)
  end
  local next_row = input:each()
  return function()
    local row = next_row()
    if not row then
      input:close()
      return nil
    end
    if not addresses.spellings(row.address, "format")[1] then
      input:count_invalid(row.line, text.show(row.address) .. " is no address")
    end
    return row
  end
end

local M = {}

---An iterator over the items of a source: tables of `address`, `network` and `fields`. It raises errors.
---@param settings table the options of the watch: `source` is a path, a list, or a function that returns an iterator
---@return fun(): { address: any, network: any, fields?: table }|nil
function M.open(settings)
  local source = settings.source
  if type(source) == "string" then
    return rows_of(settings)
  end
  local count = 0
  local next_item = type(source) == "function" and source() or function()
    return source[count + 1]
  end
  return function()
    local item = next_item()
    if item == nil then
      if count == 0 and not settings.allow_empty then
        error(errors.new("invalid_argument", "the source has no addresses", { field = "source", sent = false }), 0)
      end
      return nil
    end
    count = count + 1
    return type(item) == "table" and item or { address = item }
  end
end

return M
