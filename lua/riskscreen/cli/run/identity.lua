-- The facts that must be the same when a run over a file is resumed: its input, network, policy, service and so on.
local core = require "riskscreen.core"
local text = require "riskscreen.util.text"

local NAMES = { "input", "format", "network", "policy", "include", "address_check", "service", "columns" }

local M = {}

---@param context riskscreen.cli.Context
---@param input riskscreen.cli.Input
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
    columns = table.concat({
      options.address_column or "",
      options.network_column or "",
      table.concat(options.keep or {}, ","),
    }, ";"),
  }
end

---The first difference between two runs, as a sentence; or nil.
---@param before table<string, string>
---@param now table<string, string>
---@return string|nil
function M.difference(before, now)
  for _, name in ipairs(NAMES) do
    if before[name] ~= now[name] then
      local was, is = text.show(before[name] or "none"), text.show(now[name] or "none")
      return ("%s was %s and is %s"):format(name, was, is)
    end
  end
end

return M
