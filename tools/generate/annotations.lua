-- Reads the LuaCATS annotations of Lua files: functions, classes and aliases, for tools/generate.lua.
local tables = require "riskscreen.util.tables"

local M = {}

-- The end of one type without alternatives, which begins at a position.
local function unit_end(text, position)
  local after
  if text:find("^fun%(", position) then
    after = select(2, text:find("%b()", position)) + 1
    local result = text:match("^%s*:%s*()", after)
    while result do
      after = M.type_end(text, result)
      result = text:match("^,%s*()", after)
    end
    return after
  elseif text:find("^[{(]", position) then
    after = select(2, text:find(text:sub(position, position) == "{" and "%b{}" or "%b()", position)) + 1
  else
    after = text:match('^"[^"]*"()', position) or text:match("^[%w_.*-]+()", position) or position
    after = text:match("^%b<>()", after) or after
  end
  return text:match("^[%[%]?]+()", after) or after
end

---The position after the type that begins at a position of a text.
---@param text string
---@param position integer
---@return integer
function M.type_end(text, position)
  local after = unit_end(text, position)
  while text:find("^|", after) do
    after = unit_end(text, after + 1)
  end
  return after
end

-- A type, and the text after it.
local function split_type(text)
  local after = M.type_end(text, 1)
  return text:sub(1, after - 1), (text:sub(after):gsub("^%s+", ""))
end

local function named(text)
  local name, optional, rest = text:match "^([%w_.]+)(%??)%s+(.*)$"
  local kind, doc = split_type(rest or "any")
  return { name = name or text, optional = optional == "?", type = kind, doc = doc }
end

local tags = {}

function tags.param(item, text)
  table.insert(item.params, named(text))
end

tags["return"] = function(item, text)
  local kind, doc = split_type(text)
  table.insert(item.returns, { type = kind, doc = doc })
end

function tags.class(item, text)
  local name, rest = text:match "^([%w_.]+)%s*(.*)$"
  local parent, doc = rest:match "^:%s*([%w_.]+)%s*(.*)$"
  item.class = { name = name, parent = parent, doc = doc or rest, fields = {}, methods = {} }
  table.insert(item.classes, item.class)
end

function tags.field(item, text)
  if not text:find "^private " then
    table.insert(item.class.fields, named(text))
  end
end

function tags.alias(item, text)
  local name, rest = text:match "^([%w_.]+)%s*(.*)$"
  table.insert(item.aliases, { name = name, type = rest })
end

-- A block of comment lines as an item: its text, and what its tags say.
local function item_of(lines)
  local item = { doc = {}, params = {}, returns = {}, classes = {}, aliases = {} }
  local list = {}
  for _, line in ipairs(lines) do
    local tag, text = line:match "^@(%w+)%s*(.*)$"
    if tag then
      list[#list + 1] = { tag = tag, text = text }
    elseif list[1] then
      list[#list].text = list[#list].text .. " " .. line
    else
      table.insert(item.doc, line)
    end
  end
  item.doc = table.concat(item.doc, " ")
  for _, entry in ipairs(list) do
    if tags[entry.tag] then
      tags[entry.tag](item, (entry.text:gsub("%s*|%s+", "|")))
    end
  end
  return item
end

---@class annotations.Index
---@field functions table<string, table[]> by the name in the source, such as "Client:screen"; each with its `file`
---@field classes table<string, table>
---@field aliases table<string, string>

-- The subject of an item: the function or the variable on the line after it.
local function enter(index, item, file, line)
  for _, class in ipairs(item.classes) do
    index.classes[class.name] = class
  end
  for _, alias in ipairs(item.aliases) do
    index.aliases[alias.name] = alias.type
  end
  local name, arguments = line:match "^%s*function ([%w_.:]+)%((.-)%)"
  if name then
    item.name, item.file, item.arguments = name, file, arguments
    index.functions[name] = index.functions[name] or {}
    table.insert(index.functions[name], item)
  end
end

---Adds what a file says to an index.
---@param index annotations.Index
---@param file string
function M.read(index, file)
  local lines = {}
  for line in io.lines(file) do
    local comment = line:match "^%s*%-%-%-(.*)$"
    if comment then
      lines[#lines + 1] = comment:gsub("^ ", "")
    elseif lines[1] then
      enter(index, item_of(lines), file, line)
      lines = {}
    end
  end
end

---A class, and its public fields: those of the names, or all.
---@param index annotations.Index
---@param name string
---@param public? string[]
---@return table class
---@return table[] fields
function M.class(index, name, public)
  local class = index.classes[name] or error("there is no class " .. name)
  local is_public, fields = public and tables.set(public), {}
  for _, field in ipairs(class.fields) do
    fields[#fields + 1] = (not is_public or is_public[field.name]) and field or nil
  end
  return class, fields
end

---The arguments of a function, as its declaration has them.
---@param entry surface.Function
---@param item table
---@return string
function M.arguments(entry, item)
  local names = entry.operation and { "parameters", "options" } or tables.pluck(item.params, "name")
  if item.arguments:find "%.%.%." and names[#names] ~= "..." then
    names[#names + 1] = "..."
  end
  return table.concat(names, ", ")
end

---@return annotations.Index
function M.new()
  return { functions = {}, classes = {}, aliases = {} }
end

---The function of a name; where several have it, the one in a file whose path holds `where`.
---@param index annotations.Index
---@param name string
---@param where? string
---@return table
function M.find(index, name, where)
  local found
  for _, item in ipairs(index.functions[name] or {}) do
    if not where or item.file:find(where, 1, true) then
      assert(not found, ("there are two functions %s in %s"):format(name, where or "lua"))
      found = item
    end
  end
  return found or error("there is no function " .. name .. (where and " in " .. where or ""))
end

return M
