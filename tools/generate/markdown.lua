-- Tables of the documentation's pages, made from the library's option tables.
local M = {}

local function cell(value)
  return (tostring(value):gsub("|", "\\|"))
end

---@param head string[]
---@param rows any[][]
---@return string
function M.table(head, rows)
  local lines = { "| " .. table.concat(head, " | ") .. " |", "|" .. (" --- |"):rep(#head) }
  for _, row in ipairs(rows) do
    local cells = {}
    for index, value in ipairs(row) do
      cells[index] = cell(value)
    end
    lines[#lines + 1] = "| " .. table.concat(cells, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end

local function show_default(option)
  local default = option.default
  if option.required then
    return "required"
  elseif default == nil or default == "" or type(default) == "table" or type(default) == "function" then
    return ""
  end
  return "`" .. tostring(default) .. "`"
end

local function show_type(option)
  if option.values then
    return table.concat(option.values, ", ")
  elseif option.unit and option.unit ~= "" then
    return option.unit
  end
  return (option.type:gsub("|", " or "))
end

---A row for each option, and for each field of its table; fields that several options share are shown once.
---@param options riskscreen.Option[]
---@param is_deep? boolean
---@return any[][]
function M.option_rows(options, is_deep)
  local rows, seen = {}, {}
  local function add(list, prefix, owner)
    for _, option in ipairs(list) do
      rows[#rows + 1] =
        { "`" .. prefix .. option.name .. "`", show_type(option), show_default(option), option.doc or "" }
      rows[#rows].owner = owner or option.name
      local fields = is_deep and option.fields
      if fields and not seen[fields] then
        seen[fields] = true
        add(fields, prefix .. option.name .. ".", owner or option.name)
      end
    end
  end
  add(options, "")
  return rows
end

---@param options riskscreen.Option[]
---@param is_deep? boolean
---@return string
function M.options(options, is_deep)
  return M.table({ "option", "type", "default", "meaning" }, M.option_rows(options, is_deep))
end

---A table of names and meanings.
---@param head string[]
---@param entries { name: string, doc: string }[]
---@return string
function M.meanings(head, entries)
  local rows = {}
  for _, entry in ipairs(entries) do
    rows[#rows + 1] = { "`" .. entry.name .. "`", entry.doc }
  end
  return M.table(head, rows)
end

return M
