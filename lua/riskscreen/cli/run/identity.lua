-- The facts that must be the same when a run over a file is resumed: what the file and the output are, and the identity
-- of the decisions. Of local lists only the names count: they are asked for every row, and may change during a run.
local calls = require "riskscreen.call"
local core = require "riskscreen.core"
local encode = require("riskscreen.cli.output").json
local files = require "riskscreen.util.files"
local text = require "riskscreen.util.text"

-- The identity covers policy, include, address_check and service; they stand here for a message that names the cause.
local names =
  text.words "input format network policy include address_check service columns meta content identity lists journal"
local LATER = { content = true, identity = true, lists = true, journal = true } -- one that had none may go on with one

local function lists_of(context)
  local given = {}
  for _, name in ipairs { "deny", "allow", "allow_without_call" } do
    local value = context:setting("lists." .. name)
    given[#given + 1] = value and name .. " " .. encode(value) or nil
  end
  return given[1] and table.concat(given, ", ")
end

local M = {}

---@param context riskscreen.cli.Context
---@param input riskscreen.Rows
---@param format "csv"|"jsonl"
---@param client riskscreen.Client
---@param source? "sandbox"
---@return table<string, string>
function M.of(context, input, format, client, source)
  local options = context.options
  local policy = context:setting "policy"
  local policy_text = policy and not files.is_special(policy) and files.read(policy) or nil
  local encoding = options.encoding ~= "utf-8" and options.encoding or nil
  local file = input.file
  local size = file.size and ("%d bytes, "):format(file.size) or ""
  -- More of a pipe may come at once or not. Its rows are compared one by one.
  local beginning = file.is_whole and file.beginning or file.beginning:sub(1, 4)
  return {
    input = size .. "beginning with the digest " .. text.hex(core.sha256(beginning)):sub(1, 16),
    format = format,
    network = context:network(),
    policy = policy_text and policy .. " " .. text.hex(core.sha256(policy_text)):sub(1, 16) or nil,
    include = options.include and table.concat(options.include, ",") or nil,
    address_check = options.address_check ~= nil and tostring(options.address_check) or nil,
    service = source and "the sandbox" or context:setting "base_url",
    source = source, -- not compared: 0.1.0 has no such column
    identity = calls.identity.decision(calls.state_of(client), client.policy, options),
    content = file.is_whole and file.digest() or nil, -- the rows of a pipe are compared as they come
    meta = options.meta and encode(options.meta) or nil,
    lists = lists_of(context),
    journal = context:setting "journal",
    columns = table.concat({
      options.address_column or "",
      options.network_column or "",
      table.concat(options.keep or {}, ","),
      options.delimiter or encoding and "", -- a run without these is one of an earlier version
      encoding,
    }, ";"),
  }
end

---The first difference between two runs, as a sentence; or nil.
---@param before table<string, string>
---@param now table<string, string>
---@return string|nil
---@return boolean|nil is_account it may be the account, as after a refused key
function M.difference(before, now)
  for _, name in ipairs(names) do
    if before[name] ~= now[name] and not (LATER[name] and before[name] == nil) then
      if name == "identity" then
        return "the account, or another setting that decisions depend on, is another one", true
      end
      local was, is = text.show(before[name] or "none"), text.show(now[name] or "none")
      return ("%s was %s and is %s"):format(name, was, is)
    end
  end
end

return M
