-- Writes what follows from the library's tables: the tables of README.md and docs/nginx.md, docs/reference.md and
-- types/riskscreen.lua.
-- With --check it changes nothing and fails when one of them is out of date.

local enums = require "riskscreen.interface.enums"
local errors = require "riskscreen.errors"
local gate = require "riskscreen.nginx.options"
local families = require "riskscreen.nginx.metrics.definitions"
local inbox_of_nginx = require "riskscreen.nginx.webhook.options"
local operations = require "riskscreen.interface.operations"
local options = require "riskscreen.options"
local reliability = require "riskscreen.options.reliability"
local records = require "riskscreen.interface.records"
local scenarios = require "riskscreen.sandbox.scenarios"
local stats = require "riskscreen.call.stats"

local function read(path)
  local file = io.open(path, "rb")
  local text = file and file:read "*a" or ""
  if file then
    file:close()
  end
  return text
end

local function cell(value)
  return (tostring(value):gsub("|", "\\|"))
end

local function markdown_table(head, rows)
  local lines = { "| " .. table.concat(head, " | ") .. " |", "|" .. (" --- |"):rep(#head) }
  for _, row in ipairs(rows) do
    for index, value in ipairs(row) do
      row[index] = cell(value)
    end
    lines[#lines + 1] = "| " .. table.concat(row, " | ") .. " |"
  end
  return table.concat(lines, "\n")
end

local function error_table()
  local rows = {}
  for _, entry in ipairs(errors.kinds) do
    rows[#rows + 1] = { "`" .. entry.kind .. "`", entry.retryable and "yes" or "no", entry.doc }
  end
  return markdown_table({ "kind", "may succeed later", "what happened" }, rows)
end

local function show_default(option)
  if option.required then
    return "required"
  elseif option.default == nil or option.default == "" or type(option.default) == "table" then
    return ""
  elseif type(option.default) == "function" then
    return ""
  end
  return "`" .. tostring(option.default) .. "`"
end

local function option_rows(specs, prefix, rows)
  for _, option in ipairs(specs) do
    local kind = option.type:gsub("|", " or ")
    if option.values then
      kind = table.concat(option.values, ", ")
    elseif option.unit then
      kind = option.unit
    end
    rows[#rows + 1] = { "`" .. prefix .. option.name .. "`", kind, show_default(option), option.doc }
  end
  return rows
end

local function option_table()
  return markdown_table({ "option", "type", "default", "meaning" }, option_rows(options.client, "", {}))
end

-- What the tables of the options about failures may hold.
local function reliability_table()
  local rows = {}
  for _, option in ipairs(reliability.client) do
    option_rows(option.fields or {}, option.name .. ".", rows)
  end
  return markdown_table({ "setting", "type", "default", "meaning" }, rows)
end

-- Options with those that their tables may hold, once where several hold the same.
local function deep_rows(specs, prefix, rows, seen)
  for _, option in ipairs(specs) do
    option_rows({ option }, prefix, rows)
    local fields = option.fields
    if fields and not seen[fields] then
      seen[fields] = true
      deep_rows(fields, prefix .. option.name .. ".", rows, seen)
    end
  end
  return rows
end

local function gate_table()
  local of_location = {}
  for _, option in ipairs(gate.location) do
    of_location[option.name] = true
  end
  local rows, seen = {}, {}
  for _, option in ipairs(gate.gate) do
    for _, row in ipairs(deep_rows({ option }, "", {}, seen)) do
      table.insert(row, 4, of_location[option.name] and "yes" or "")
      rows[#rows + 1] = row
    end
  end
  return markdown_table({ "option", "type", "default", "of a location too", "meaning" }, rows)
end

local function metrics_table()
  local rows = {}
  for _, metric in ipairs(families.list) do
    rows[#rows + 1] = { "`" .. metric.name .. "`", metric.type, table.concat(metric.labels, ", "), metric.doc }
  end
  return markdown_table({ "metric", "type", "labels beside `gate`", "meaning" }, rows)
end

local function nginx_inbox_table()
  return markdown_table({ "option", "type", "default", "meaning" }, deep_rows(inbox_of_nginx, "", {}, {}))
end

local function counter_table()
  local rows = {}
  for _, counter in ipairs(stats.counters) do
    rows[#rows + 1] = { "`" .. counter.name .. "`", counter.doc }
  end
  return markdown_table({ "counter", "what it counts" }, rows)
end

local function scenario_table()
  local rows = {}
  for _, scenario in ipairs(scenarios) do
    rows[#rows + 1] = { "`" .. scenario.name .. "`", scenario.network, "`" .. scenario.address .. "`", scenario.what }
  end
  return markdown_table({ "scenario", "network", "address", "what it answers" }, rows)
end

local function accepted(parameter)
  local kind = parameter.type
  if parameter.type == "array" then
    kind = "array of " .. parameter.items.type
  end
  if parameter.max_items then
    kind = kind .. ", at most " .. parameter.max_items
  end
  local enum = parameter.enum or (parameter.items and parameter.items.enum)
  if enum then
    kind = kind .. ": " .. table.concat(enums.values[enum], ", ")
  end
  return kind
end

local function parameter_rows(operation)
  local rows = {}
  for _, parameter in ipairs(operation.parameters) do
    rows[#rows + 1] = {
      "`" .. parameter.name .. "`",
      accepted(parameter),
      parameter.required and "required" or "",
      parameter.doc,
    }
  end
  return rows
end

local function shape_lines(shape, prefix, lines)
  if shape.type == "array" then
    return shape_lines(shape.items, prefix .. "[]", lines)
  end
  for _, field in ipairs(shape.fields or {}) do
    local path = prefix .. "." .. field.name
    local note = field.enum and (" (" .. table.concat(enums.values[field.enum], ", ") .. ")") or ""
    lines[#lines + 1] = ("- `%s`: %s%s%s"):format(path, field.type, field.doc and ", " .. field.doc or "", note)
    if field.fields or (field.items and field.items.fields) then
      shape_lines(field, path, lines)
    end
  end
  return lines
end

local function reference_entry(operation)
  local call = "client." .. operation.namespace .. ":" .. operation.method
  local lines = { "## `" .. call .. "`", "", operation.doc, "" }
  local function add(text)
    lines[#lines + 1] = text
  end
  if operation.path then
    add(("`%s`, %s `%s`, section %s."):format(operation.name, operation.http, operation.path, operation.section))
  else
    add(
      ("`%s`, section %s. Its path is not published: set `endpoints.%s`."):format(
        operation.name,
        operation.section,
        operations.endpoint_key(operation)
      )
    )
  end
  if operation.paginated then
    add(("`client.%s:pages`, `:each` and `:all` walk all its pages."):format(operation.namespace))
  end
  add(operation.idempotent and "Repeating it changes nothing." or "Repeating it may take effect twice.")
  if operation.parameters then
    add ""
    add(markdown_table({ "parameter", "type", "", "meaning" }, parameter_rows(operation)))
  end
  if operation.data then
    add "\nAnswer:\n"
    add(table.concat(shape_lines(operation.data, "record", {}), "\n"))
  end
  return table.concat(lines, "\n")
end

local function reference()
  local parts = {
    "# Reference",
    "Written by `tools/generate.lua` from `lua/riskscreen/interface/operations.lua`.",
    "Each call returns `value, response`, or `nil, err`.",
  }
  for _, operation in ipairs(operations.list) do
    parts[#parts + 1] = reference_entry(operation)
  end
  return table.concat(parts, "\n\n") .. "\n"
end

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

local function type_entry(operation)
  local parameters = operation.parameters and lua_type { fields = operation.parameters } or "table"
  local class = "riskscreen." .. operation.namespace
  return table.concat({
    "---" .. operation.doc,
    "---@param parameters " .. parameters,
    "---@param options? riskscreen.CallOptions",
    "---@return " .. (operation.returns or operation.data and lua_type(operation.data) or "any") .. "|nil value",
    "---@return riskscreen.Response|riskscreen.Error",
    ("function %s:%s(parameters, options) end"):format(class:gsub("%.", "_"), operation.method),
  }, "\n")
end

local function sorted_keys(map)
  local keys = {}
  for key in pairs(map) do
    keys[#keys + 1] = key
  end
  table.sort(keys)
  return keys
end

local function aliases()
  local lines = {}
  for _, name in ipairs(sorted_keys(enums.values)) do
    lines[#lines + 1] = "---@alias riskscreen." .. name .. " " .. literal_union(enums.values[name])
  end
  return table.concat(lines, "\n")
end

local option_types = { any = "any", integer = "integer", number = "number", ["function"] = "function" }

local function option_class(class, specs)
  local lines = { "---@class " .. class }
  for _, option in ipairs(specs) do
    local kind = option.values and literal_union(option.values) or option_types[option.type] or option.type
    local mark = option.required and "" or "?"
    lines[#lines + 1] = ("---@field %s%s %s %s"):format(option.name, mark, kind, option.doc)
  end
  return table.concat(lines, "\n")
end

-- The walks over a paginated operation's list.
local function walk_entries(operation)
  local class = ("riskscreen." .. operation.namespace):gsub("%.", "_")
  local item = lua_type(operation.data.items)
  local results = {
    pages = "fun(): " .. item .. "[]|nil, riskscreen.Response|nil",
    each = "fun(): " .. item .. "|nil",
    all = item .. "[]|nil items\n---@return riskscreen.Error|nil err",
  }
  local parts = {}
  for index, name in ipairs { "pages", "each", "all" } do
    parts[index] = table.concat({
      "---@param parameters? riskscreen.Walk",
      "---@param options? riskscreen.CallOptions of each page's call",
      "---@return " .. results[name],
      ("function %s:%s(parameters, options) end"):format(class, name),
    }, "\n")
  end
  return table.concat(parts, "\n\n")
end

-- What there is beside the operations to await a transaction's result.
local function transaction_entries()
  local submission = lua_type { fields = operations.by_name.screenTransaction.parameters }
  local result = lua_type(records.transaction_result)
  local awaited = "---@return " .. result .. "|nil result\n---@return table|riskscreen.Error"
  return table.concat({
    "---@param parameters " .. submission,
    "---@param options? riskscreen.CallOptions `timeout` is that of the whole",
    awaited,
    "function riskscreen_kyt:screen(parameters, options) end\n",
    "---@param request_id string",
    "---@param options? { timeout?: number }",
    awaited,
    "function riskscreen_kyt:await(request_id, options) end\n",
    "---@param ticket string",
    "---@return riskscreen.Transaction|nil",
    "---@return riskscreen.Error|nil",
    "function riskscreen_kyt:resume(ticket) end\n",
    "---@class riskscreen.Transaction",
    "---@field requestId? string",
    "---@field customId? string",
    "local riskscreen_transaction = {}\n",
    "---@param timeout? number seconds",
    awaited,
    "function riskscreen_transaction:await(timeout) end\n",
    "---@return string",
    "function riskscreen_transaction:ticket() end",
  }, "\n")
end

local function types()
  local parts = {
    "---@meta\n-- Written by tools/generate.lua from the library's tables, for editors.",
    aliases(),
    option_class("riskscreen.ClientOptions", options.client),
    option_class("riskscreen.CallOptions", options.call),
  }
  local seen = {}
  for _, operation in ipairs(operations.list) do
    local class = "riskscreen." .. operation.namespace
    if not seen[class] then
      seen[class] = true
      parts[#parts + 1] = ("---@class %s\nlocal %s = {}"):format(class, class:gsub("%.", "_"))
    end
    parts[#parts + 1] = type_entry(operation)
    if operation.paginated then
      parts[#parts + 1] = walk_entries(operation)
    end
  end
  parts[#parts + 1] = transaction_entries()
  return table.concat(parts, "\n\n") .. "\n"
end

-- A page with its tables in their places.
local function page(path, tables)
  local text = read(path)
  for name, make in pairs(tables) do
    local open, close = ("<!-- %s -->"):format(name), ("<!-- /%s -->"):format(name)
    local _, from = text:find(open, 1, true)
    local to = text:find(close, 1, true)
    assert(from and to, path .. " has no place for the table of " .. name)
    text = text:sub(1, from) .. "\n" .. make() .. "\n" .. text:sub(to)
  end
  return text
end

local function readme()
  return page("README.md", {
    errors = error_table,
    options = option_table,
    reliability = reliability_table,
    counters = counter_table,
    scenarios = scenario_table,
  })
end

local function nginx_guide()
  return page("docs/nginx.md", { gate = gate_table, inbox = nginx_inbox_table, metrics = metrics_table })
end

local check, stale = arg[1] == "--check", false
local generated = {
  ["README.md"] = readme(),
  ["docs/nginx.md"] = nginx_guide(),
  ["docs/reference.md"] = reference(),
  ["types/riskscreen.lua"] = types(),
}
for path, text in pairs(generated) do
  if text ~= read(path) then
    stale = true
    print((check and "out of date: " or "written: ") .. path)
    if not check then
      local file = assert(io.open(path, "wb"))
      file:write(text)
      file:close()
    end
  end
end
os.exit((check and stale) and 1 or 0)
