-- types/: LuaCATS annotations of everything public, for editors. Made from the same tables as the reference.
local annotations = require "generate.annotations"
local enums = require "riskscreen.interface.enums"
local operations = require "riskscreen.interface.operations"
local tables = require "riskscreen.util.tables"

local M = {}

local function literal_union(values)
  local quoted = {}
  for index, value in ipairs(values) do
    quoted[index] = '"' .. value .. '"'
  end
  return table.concat(quoted, "|")
end

local lua_types = { map = "table<string, any>", object = "table", date = "string", any = "any" }

local function lua_type(spec)
  if spec.enum then
    return "riskscreen." .. spec.enum
  elseif spec.type == "array" then
    return lua_type(spec.items) .. "[]"
  elseif spec.fields then
    local parts = {}
    for _, field in ipairs(spec.fields) do
      parts[#parts + 1] = field.name .. (field.required and "" or "?") .. ": " .. lua_type(field)
    end
    return "{ " .. table.concat(parts, ", ") .. " }"
  end
  return lua_types[spec.type] or spec.type
end

local option_types = { any = "any", integer = "integer", number = "number", ["function"] = "function" }

local function option_class(class, specs)
  local lines = { "---@class " .. class }
  for _, option in ipairs(specs) do
    local kind = option.values and literal_union(option.values) or option_types[option.type] or option.type
    local mark = option.required and "" or "?"
    lines[#lines + 1] = ("---@field %s%s %s %s"):format(option.name, mark, kind, option.doc or "")
  end
  return table.concat(lines, "\n")
end

local function add_doc(lines, text)
  if text ~= "" then
    lines[#lines + 1] = "---" .. text
  end
end

local function parameters_type(operation)
  return operation.parameters and lua_type { fields = operation.parameters } or "table"
end

local function function_stub(index, entry)
  local item = annotations.find(index, entry.source, entry.file)
  local lines = {}
  add_doc(lines, item.doc)
  if entry.operation then
    lines[#lines + 1] = "---@param parameters " .. parameters_type(operations.by_name[entry.operation])
    lines[#lines + 1] = "---@param options? riskscreen.CallOptions"
  end
  for _, param in ipairs(entry.operation and {} or item.params) do
    lines[#lines + 1] = ("---@param %s%s %s %s"):format(param.name, param.optional and "?" or "", param.type, param.doc)
  end
  for _, result in ipairs(item.returns) do
    lines[#lines + 1] = ("---@return %s %s"):format(result.type, result.doc)
  end
  local name = entry.receiver and entry.receiver .. entry.name:match "[.:][%w_]+$" or entry.name
  lines[#lines + 1] = ("function %s(%s) end"):format(name, annotations.arguments(entry, item))
  return table.concat(lines, "\n")
end

local function class_of(index, object)
  local class, fields = annotations.class(index, object.class, object.fields)
  local lines = { "---@class " .. class.name .. (class.doc ~= "" and " " .. class.doc or "") }
  for _, field in ipairs(fields) do
    local mark = field.optional and "?" or ""
    lines[#lines + 1] = ("---@field %s%s %s %s"):format(field.name, mark, field.type, field.doc)
  end
  lines[#lines + 1] = ("local %s = {}"):format((class.name:gsub("%.", "_")))
  return table.concat(lines, "\n")
end

local function value_type(operation)
  if operation.reported then
    return "riskscreen.Additions"
  elseif operation.aligned then
    return "(" .. lua_type(operation.data.items) .. "|false)[]"
  end
  return operation.returns or operation.data and lua_type(operation.data) or "any"
end

local function operation_stub(operation)
  return table.concat({
    "---" .. operation.doc,
    "---@param parameters " .. parameters_type(operation),
    "---@param options? riskscreen.CallOptions",
    "---@return " .. value_type(operation) .. "|nil value",
    "---@return riskscreen.Response|riskscreen.Error",
    ("function riskscreen_%s:%s(parameters, options) end"):format(operation.namespace, operation.method),
  }, "\n")
end

local function walk_stubs(operation)
  local item = lua_type(operation.data.items)
  local results = {
    pages = "fun(): " .. item .. "[]|nil, riskscreen.Response|nil",
    each = "fun(): " .. item .. "|nil",
    all = item .. "[]|nil items\n---@return riskscreen.Error|nil err",
  }
  local parts = {}
  for position, name in ipairs { "pages", "each", "all" } do
    parts[position] = table.concat({
      "---@param parameters? riskscreen.Walk",
      "---@param options? riskscreen.CallOptions of each page's call",
      "---@return " .. results[name],
      ("function riskscreen_%s:%s(parameters, options) end"):format(operation.namespace, name),
    }, "\n")
  end
  return table.concat(parts, "\n\n")
end

local function operation_parts(add)
  local seen = {}
  for _, operation in ipairs(operations.list) do
    if not seen[operation.namespace] then
      seen[operation.namespace] = true
      add(("---@class riskscreen.%s\nlocal riskscreen_%s = {}"):format(operation.namespace, operation.namespace))
    end
    add(operation_stub(operation))
    if operation.paginated then
      add(walk_stubs(operation))
    end
  end
  local fields = { "---@class riskscreen.Client" }
  for _, name in ipairs(tables.sorted_keys(seen)) do
    fields[#fields + 1] = ("---@field %s riskscreen.%s"):format(name, name)
  end
  fields[#fields + 1] = "local riskscreen_Client = {}"
  add(table.concat(fields, "\n"))
end

-- A type that no file here describes is a table to the reader.
local function without_internal_types(text)
  local known = {}
  for name in text:gmatch "%-%-%-@class ([%w_.]+)" do
    known[name] = true
  end
  for name in text:gmatch "%-%-%-@alias ([%w_.]+)" do
    known[name] = true
  end
  local function replaced(name)
    return known[name] and name or "table"
  end
  return (
    text:gsub("(%-%-%-@%w+)([^\n]*)", function(tag, rest)
      if tag == "---@class" or tag == "---@alias" then
        return nil
      end
      return tag .. rest:gsub("%f[%w]riskscreen%.[%w_.]+", replaced)
    end)
  )
end

---@class generate.OptionClass
---@field class string
---@field options riskscreen.Option[]

---@param index annotations.Index
---@param surface surface.Section[]
---@param option_classes generate.OptionClass[]
---@return table<string, string> texts by path
function M.files(index, surface, option_classes)
  local parts = { "---@meta\n-- Written by tools/generate.lua, for editors." }
  local function add(text)
    parts[#parts + 1] = text
  end
  add(table.concat({
    "---@class riskscreen",
    "---@field loop riskscreen.Loop",
    "local riskscreen = { address = {}, decimal = {}, errors = {}, webhook = {}, sandbox = {} }",
    "riskscreen.store, riskscreen.journal, riskscreen.report, riskscreen.redis, riskscreen.queue = {}, {}, {}, {}, {}",
    "riskscreen.explore = {}",
  }, "\n"))
  for _, name in ipairs(tables.sorted_keys(enums.values)) do
    add("---@alias riskscreen." .. name .. " " .. literal_union(enums.values[name]))
  end
  for _, name in ipairs(tables.sorted_keys(index.aliases)) do
    if name:find "^riskscreen%.%w+$" and index.aliases[name] ~= "" then
      add("---@alias " .. name .. " " .. index.aliases[name])
    end
  end
  for _, entry in ipairs(option_classes) do
    add(option_class(entry.class, entry.options))
  end
  operation_parts(add)
  local modules = { gates = {}, inboxes = {} }
  for _, section in ipairs(surface) do
    for _, value in ipairs(section.values or {}) do
      add(("---@type %s %s\n%s = nil"):format(value.type, value.doc, value.name))
    end
    for _, object in ipairs(section.objects or {}) do
      add(class_of(index, object))
    end
    for _, entry in ipairs(section.functions or {}) do
      local of_module = modules[entry.name:match "^%w+"]
      if of_module then
        of_module[#of_module + 1] = function_stub(index, entry)
      else
        add(function_stub(index, entry))
      end
    end
  end
  add "return riskscreen"
  local function module_file(name)
    local head = "---@meta\n-- Written by tools/generate.lua, for editors.\n\nlocal " .. name .. " = {}"
    return head .. "\n\n" .. table.concat(modules[name], "\n\n") .. "\n\nreturn " .. name .. "\n"
  end
  return {
    ["types/riskscreen.lua"] = without_internal_types((table.concat(parts, "\n\n") .. "\n"):gsub(" +\n", "\n")),
    ["types/riskscreen/nginx/gate.lua"] = module_file("gates"):gsub(" +\n", "\n"),
    ["types/riskscreen/nginx/inbox.lua"] = module_file("inboxes"):gsub(" +\n", "\n"),
  }
end

return M
