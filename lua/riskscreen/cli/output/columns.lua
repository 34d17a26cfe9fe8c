-- The columns of a record, from its shape in interface/records.lua: one for each field. An object in it has one for
-- each of its own fields, such as "entity.entityName". A list is one cell.

local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

---@class riskscreen.cli.Column
---@field name string
---@field path? string[] of the value in the record; by default the name
---@field whole? boolean a table never cuts it
---@field colour? boolean it is an action

-- Columns that people copy from a table, so that it never cuts them.
local WHOLE =
  "address hash contractAddress contractAddr requestId customId canonical check file input output ticket time"
local is_whole = tables.set(text.words(WHOLE))
local is_action = tables.set { "action", "after", "before" }

local M = {}

---The text of a cell, with all digits of a number. A null in a list has no text.
---@param value any
---@return string
function M.text(value)
  return type(value) == "number" and json.number(value) or value ~= nil and tostring(value) or ""
end

-- A value as one text: "high / scam / Provider; low / porn".
local function flat(value, shape)
  if value == nil or value == json.null then
    return nil
  elseif type(value) ~= "table" then
    return value
  end
  local parts = {}
  if json.is_array(value) then
    for index, item in ipairs(value) do
      parts[index] = M.text(flat(item, shape and shape.items))
    end
    return table.concat(parts, "; ")
  end
  local listed = {}
  for _, field in ipairs(shape and shape.fields or {}) do
    listed[field.name] = true
    local part = flat(value[field.name], field)
    parts[#parts + 1] = part ~= nil and part ~= "" and M.text(part) or nil
  end
  for _, name in ipairs(tables.sorted_keys(value)) do
    if not listed[name] then
      parts[#parts + 1] = tostring(name) .. " " .. M.text(flat(value[name]))
    end
  end
  return table.concat(parts, " / ")
end

---The columns of a verb's own records, by the names of their fields.
---@param list (string|riskscreen.cli.Column)[]
---@return riskscreen.cli.Column[]
function M.named(list)
  local columns = {}
  for index, name in ipairs(list) do
    columns[index] = type(name) == "table" and name or { name = name, whole = is_whole[name], colour = is_action[name] }
  end
  return columns
end

---The columns of a shape: those of an object's fields.
---@param shape riskscreen.Shape
---@param path? string[] of the object in the record
---@return riskscreen.cli.Column[]
function M.of_shape(shape, path)
  local columns = {}
  for _, field in ipairs(shape.fields or {}) do
    local own = tables.concat(path or {}, { field.name })
    local column = { name = table.concat(own, "."), path = own, shape = field, whole = is_whole[field.name] }
    local has_own = field.type == "object" and field.fields
    columns = tables.concat(columns, has_own and M.of_shape(field, own) or { column })
  end
  return columns
end

---The columns of records that have no shape: the names of the first one's members.
---@param record table
---@return riskscreen.cli.Column[]
function M.of_record(record)
  local columns = {}
  for index, name in ipairs(tables.sorted_keys(record)) do
    columns[index] = { name = tostring(name), path = { name } }
  end
  return columns
end

---The cells of a record.
---@param columns riskscreen.cli.Column[]
---@param record table
---@return any[] cells with holes
function M.cells(columns, record)
  local cells = {}
  for index, column in ipairs(columns) do
    local value = record
    for _, name in ipairs(column.path or { column.name }) do
      if type(value) ~= "table" or value == json.null then
        value = nil
        break
      end
      value = value[name]
    end
    cells[index] = flat(value, column.shape)
  end
  return cells
end

return M
