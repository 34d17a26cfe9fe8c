-- The facts that must be the same when a run over a file is resumed: input, network, policy, service and others.
local core = require "riskscreen.core"
local text = require "riskscreen.util.text"

local NAMES =
  { "input", "format", "network", "policy", "lists", "include", "address_check", "service", "columns", "content" }
local PIECE = 65536 -- bytes

-- The paths of the local lists. Their content may change during a run.
local function lists_of(context)
  local parts = {}
  for _, name in ipairs { "deny", "allow", "allow_without_call" } do
    local value = context:setting("lists." .. name)
    if value ~= nil then
      parts[#parts + 1] = name .. " " .. (type(value) == "table" and table.concat(value, ",") or tostring(value))
    end
  end
  return parts[1] and table.concat(parts, "; ") or nil
end

-- The digest of a whole file, in constant memory.
local function digest_of(path)
  local file = assert(io.open(path, "rb"))
  local digest, piece = "", file:read(PIECE)
  while piece do
    digest, piece = core.sha256(digest .. piece), file:read(PIECE)
  end
  file:close()
  return text.hex(digest):sub(1, 16)
end

local M = {}

---@param context riskscreen.cli.Context
---@param input riskscreen.Rows
---@param format "csv"|"jsonl"
---@param source? "sandbox"
---@return table<string, string>
function M.of(context, input, format, source)
  local options = context.options
  local policy = context:setting "policy"
  local file = policy and io.open(policy, "rb")
  local policy_text = file and file:read "*a"
  if file then
    file:close()
  end
  local size = input.size and ("%d bytes, "):format(input.size) or ""
  return {
    input = size .. "beginning with the digest " .. text.hex(core.sha256(input.beginning)):sub(1, 16),
    format = format,
    network = context:network(),
    policy = policy_text and policy .. " " .. text.hex(core.sha256(policy_text)):sub(1, 16) or nil,
    include = options.include and table.concat(options.include, ",") or nil,
    address_check = options.address_check ~= nil and tostring(options.address_check) or nil,
    service = source and "the sandbox" or context:setting "base_url",
    source = source, -- not compared: 0.1.0 has no such column
    lists = lists_of(context),
    content = input.size and digest_of(options.file) or nil, -- not of a pipe
    columns = table.concat({
      options.address_column or "",
      options.network_column or "",
      table.concat(options.keep or {}, ","),
      options.delimiter, -- a run without these is one of an earlier version
      options.encoding ~= "utf-8" and options.encoding or nil,
    }, ";"),
  }
end

---The first difference between two runs, as a sentence; or nil.
---@param before table<string, string>
---@param now table<string, string>
---@return string|nil
function M.difference(before, now)
  for _, name in ipairs(NAMES) do
    -- The first version kept no digest of the whole file.
    local is_known = name ~= "content" or before.content ~= nil
    if is_known and before[name] ~= now[name] then
      local was, is = text.show(before[name] or "none"), text.show(now[name] or "none")
      return ("%s was %s and is %s"):format(name, was, is)
    end
  end
end

return M
