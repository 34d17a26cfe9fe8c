-- docs/reference.md: the operations from the interface's tables, everything else from the annotations in the source.
local annotations = require "generate.annotations"
local enums = require "riskscreen.interface.enums"
local markdown = require "generate.markdown"
local operations = require "riskscreen.interface.operations"
local tables = require "riskscreen.util.tables"

local INTRODUCTION = [[
After reading this page you know every method, its parameters and its results. `tools/generate.lua` writes it from the
tables of the interface and from the annotations in the source. Names, paths, fields and enumerations are those of the
published interface, version %s, unless the text says that they are ours or *assumed*. [Assumptions](assumptions.md)
lists what is not published. KYA is *Know Your Address*, and KYT is *Know Your Transaction*. The interface does not show
which parameters are required: what the tables call required is assumed.

A method that takes a list of any length splits it into requests. `client:call` sends one request and refuses a longer
list.

```lua
local riskscreen = require "riskscreen"
local client = riskscreen.sandbox.client {}
local scenario = riskscreen.sandbox.scenario "type-hack"
local value, response = client.kya:risk { address = scenario.address, network = scenario.network }
print(value.risks[1].riskType, response.status)
```

```text
hack	200
```]]

local M = {}

local function accepted(parameter)
  local kind = parameter.type
  if parameter.type == "array" then
    kind = "array of " .. parameter.items.type
  end
  if parameter.max_items then
    kind = ("%s, of any length; %d at most in each request"):format(kind, parameter.max_items)
  end
  local enum = parameter.enum or (parameter.items and parameter.items.enum)
  return enum and ("%s, of [%s](#%s)"):format(kind, enum, enum) or kind
end

-- The rows of parameters, and of the fields of their items.
local function parameter_rows(parameters, prefix, rows)
  for _, parameter in ipairs(parameters) do
    local path, doc = prefix .. parameter.name, parameter.doc
    if parameter.setting and not parameter.renamed_by then
      doc = doc .. " The name is ours, and the one on the wire is assumed: see the option `usage_parameters`."
    end
    rows[#rows + 1] = { "`" .. path .. "`", accepted(parameter), parameter.required and "required" or "", doc }
    if parameter.items and parameter.items.fields then
      parameter_rows(parameter.items.fields, path .. "[].", rows)
    end
  end
  return rows
end

local function parameter_table(parameters)
  return markdown.table({ "parameter", "type", "", "meaning" }, parameter_rows(parameters, "", {}))
end

local function record_rows(shape, prefix, rows)
  if shape.type == "array" then
    return record_rows(shape.items, prefix .. "[]", rows)
  end
  for _, field in ipairs(shape.fields or {}) do
    local path = prefix .. "." .. field.name
    local kind = field.enum and ("%s, of [%s](#%s)"):format(field.type, field.enum, field.enum) or field.type
    rows[#rows + 1] = { "`" .. path .. "`", kind, field.doc or "" }
    if field.fields or (field.items and field.items.fields) then
      record_rows(field, path, rows)
    end
  end
  return rows
end

local function operation_entry(operation)
  local parts = { ("### `client.%s:%s`"):format(operation.namespace, operation.method), operation.doc }
  local named = ("operation `%s`%s, %s."):format(
    operation.name,
    operation.is_named_here and " (our name: the interface gives none)" or "",
    operation.section and ("section %s of the interface"):format(operation.section)
      or "which the interface does not list"
  )
  if operation.path then
    parts[#parts + 1] = ("%s `%s`, %s"):format(operation.http, operation.path, named)
  else
    local key = operations.endpoint_key(operation)
    parts[#parts + 1] = ("O%s Its path is not published: set `endpoints.%s`."):format(named:sub(2), key)
  end
  local note = operation.idempotent and "Repeating it changes nothing." or "Repeating it may take effect twice."
  if operation.paginated then
    note = note .. " `pages`, `each` and `all` read the whole list, see [Lists](lists.md#read-a-list)."
  end
  parts[#parts + 1] = note
  if operation.parameters then
    parts[#parts + 1] = parameter_table(operation.parameters)
  end
  if operation.data then
    local rows = record_rows(operation.data, "value", {})
    parts[#parts + 1] = markdown.table({ "result", "type", "meaning" }, rows)
  end
  return table.concat(parts, "\n\n")
end

local function enumerations()
  local parts = { "## Enumerations" }
  for _, name in ipairs(tables.sorted_keys(enums.values)) do
    parts[#parts + 1] = ("### %s"):format(name)
    parts[#parts + 1] = "`" .. table.concat(enums.values[name], "`, `") .. "`"
  end
  return table.concat(parts, "\n\n")
end

-- Where other pages describe the fields of a table.
local pages = {
  ["riskscreen.ClientOptions"] = "options.md#client",
  ["riskscreen.ScreenRequest"] = "options.md#screening",
  ["riskscreen.ScreenAllRequest"] = "options.md#screening",
  ["riskscreen.WatchRequest"] = "options.md#watch",
  ["riskscreen.ReportRequest"] = "options.md#report",
  ["riskscreen.Error"] = "errors.md#fields",
  ["riskscreen.PolicyOptions"] = "screening-and-policy.md#options-of-a-policy",
  ["riskscreen.ScorePolicyOptions"] = "transactions.md#decide-by-scores",
  ["riskscreen.InboxOptions"] = "options.md#inbox",
  ["riskscreen.nginx.GateOptions"] = "nginx.md#options-of-a-gate",
  ["riskscreen.nginx.InboxOptions"] = "nginx-library.md#options-of-the-inbox",
  ["riskscreen.sandbox.Fault"] = "sandbox.md#faults",
  ["riskscreen.sandbox.Delivery"] = "sandbox.md#webhooks",
}

-- A type as code, with a link to the description of the one object that it names.
local function linked(kind, described)
  local name = kind:match "^(riskscreen%.[%w_.]+)[?%[%]]*$" or kind:match "^(riskscreen%.[%w_.]+)|nil$"
  local target = name and (pages[name] or described[name])
  return target and ("[`%s`](%s)"):format(kind, target) or "`" .. kind .. "`"
end

local function argument_rows(item, described)
  local rows = {}
  for _, param in ipairs(item.params) do
    local required = param.optional and "" or "required"
    rows[#rows + 1] = { "`" .. param.name .. "`", linked(param.type, described), required, param.doc }
  end
  return rows
end

-- "Returns `type` (name): text" of each result.
local function results(item, described)
  local lines = {}
  for index, result in ipairs(item.returns) do
    local name, doc = result.doc:match "^([%l_]+)%s*(.*)$"
    local text = name and " " .. name .. (doc ~= "" and ": " .. doc or "") or " " .. result.doc
    lines[index] = ("- Returns %s%s")
      :format(linked(result.type, described), text == " " and "" or text)
      :gsub("%.?$", ".", 1)
  end
  return lines[1] and table.concat(lines, "\n")
end

local function function_entry(index, entry, described)
  local item = annotations.find(index, entry.source, entry.file)
  local arguments = annotations.arguments(entry, item):gsub("%.%.%.", "…")
  local parts = { ("### `%s(%s)`"):format(entry.name, arguments), item.doc ~= "" and item.doc or nil }
  if entry.operation then
    parts[#parts + 1] =
      "The parameters are those of `client.kyt:submit`, the options those of a [call](options.md#call)."
  end
  local rows = entry.operation and {} or argument_rows(item, described)
  if rows[1] then
    parts[#parts + 1] = markdown.table({ "argument", "type", "", "meaning" }, rows)
  end
  parts[#parts + 1] = results(item, described)
  return table.concat(parts, "\n\n")
end

local function object_entry(index, object, described)
  local class, fields = annotations.class(index, object.class, object.fields)
  local rows = {}
  for position, field in ipairs(fields) do
    local optional = field.optional and "optional" or ""
    rows[position] = { "`" .. field.name .. "`", linked(field.type, described), optional, field.doc }
  end
  if not rows[1] then
    return nil
  end
  local parts = {
    ("### `%s`"):format(object.class),
    class.doc ~= "" and class.doc:sub(1, 1):upper() .. class.doc:sub(2) .. "." or nil,
  }
  parts[#parts + 1] = markdown.table({ "field", "type", "", "meaning" }, rows)
  return table.concat(parts, "\n\n")
end

local function value_table(values)
  local rows = {}
  for index, value in ipairs(values) do
    rows[index] = { "`" .. value.name .. "`", "`" .. value.type .. "`", value.doc }
  end
  return markdown.table({ "value", "type", "meaning" }, rows)
end

---@param index annotations.Index
---@param surface surface.Section[]
---@return string
function M.page(index, surface)
  local parts = {
    "# Reference",
    INTRODUCTION:format(operations.version),
    "A call of an operation returns `value, response`, or `nil, err`.",
  }
  local described = {}
  for _, section in ipairs(surface) do
    for _, object in ipairs(section.objects or {}) do
      if not object.is_type_only and object_entry(index, object, {}) then
        described[object.class] = "#" .. object.class:lower():gsub("%.", "")
      end
    end
  end
  for _, section in ipairs(surface) do
    parts[#parts + 1] = "## " .. section.title
    parts[#parts + 1] = section.intro
    parts[#parts + 1] = section.values and value_table(section.values)
    if section.operations then
      for _, operation in ipairs(operations.list) do
        parts[#parts + 1] = operation_entry(operation)
      end
    end
    for _, entry in ipairs(section.functions or {}) do
      parts[#parts + 1] = function_entry(index, entry, described)
    end
    for _, object in ipairs(section.objects or {}) do
      parts[#parts + 1] = not object.is_type_only and object_entry(index, object, described) or nil
    end
  end
  parts[#parts + 1] = enumerations()
  return table.concat(parts, "\n\n") .. "\n"
end

return M
