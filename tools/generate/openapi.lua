-- docs/openapi.json: the interface of gate:decisions(), from the tables that the gate checks requests by.
local decisions = require "riskscreen.nginx.decisions"
local json = require "riskscreen.json"
local tables = require "riskscreen.util.tables"
local version = require "riskscreen.version"

local M = {}

-- The members of objects in the order that people read them; others follow by name.
local order = { "openapi", "info", "title", "version", "description", "type", "required", "paths", "components" }

local function pretty(value, indent)
  if type(value) ~= "table" then
    return assert(json.encode(value)):gsub("\\/", "/")
  end
  local lines, inner, is_array, is_written = {}, indent .. "  ", json.is_array(value), {}
  for index, item in ipairs(is_array and value or {}) do
    lines[index] = inner .. pretty(item, inner)
  end
  for _, name in ipairs(is_array and {} or tables.concat(order, tables.sorted_keys(value))) do
    if value[name] ~= nil and not is_written[name] then
      is_written[name] = true
      lines[#lines + 1] = ('%s"%s": %s'):format(inner, name, pretty(value[name], inner))
    end
  end
  local signs = is_array and "[]" or "{}"
  return #lines == 0 and signs
    or ("%s\n%s\n%s%s"):format(signs:sub(1, 1), table.concat(lines, ",\n"), indent, signs:sub(2))
end

local function schema_of(fields)
  local properties, required = {}, {}
  for _, field in ipairs(fields) do
    local item = field.type:match "^(.*)%[%]$"
    properties[field.name] = {
      type = item and "array" or field.type,
      items = item and { type = item } or nil,
      enum = field.values,
      description = field.doc,
    }
    required[#required + 1] = field.required and field.name or nil
  end
  return { type = "object", properties = properties, required = required, additionalProperties = false }
end

local function content(name)
  return { ["application/json"] = { schema = { ["$ref"] = "#/components/schemas/" .. name } } }
end

---The text of the file.
---@return string
function M.page()
  local responses = {}
  for _, entry in ipairs(decisions.statuses) do
    responses[tostring(entry.status)] = { description = entry.doc, content = content(entry.schema) }
  end
  local post = {
    operationId = "decide",
    summary = "Decide whether an address may pass.",
    requestBody = { required = true, content = content "request" },
    responses = responses,
  }
  return pretty({
    openapi = "3.1.0",
    info = {
      title = "riskscreen decisions",
      version = version,
      description = ("What gate:decisions() serves. A request has %d bytes at most."):format(decisions.LONGEST_BODY),
    },
    security = { { bearer = json.empty_array() } },
    paths = { ["/decisions"] = { post = post } },
    components = {
      securitySchemes = { bearer = { type = "http", scheme = "bearer" } },
      schemas = {
        request = schema_of(decisions.request),
        decision = schema_of(decisions.decision),
        refusal = schema_of(decisions.refusal),
      },
    },
  }, "") .. "\n"
end

return M
