-- The configuration of the command: flags over environment over a profile file. Its settings are the client's options
-- that can be written as text. Those of a group have a dot: "rate_limit.rate". Each value keeps its source.

local files = require "riskscreen.util.files"
local options = require "riskscreen.options"
local option_of = require "riskscreen.cli.option"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local PREFIX = "RISKSCREEN_"
local LONGEST_PROFILE = 1024 * 1024 -- bytes

---@class riskscreen.cli.Setting
---@field name string
---@field option riskscreen.cli.Option
---@field path? string[] of a client's option; the command's own settings have none
---@field has_flag? boolean

---@class riskscreen.cli.Value
---@field value any
---@field text string as it was written
---@field source string

-- The settings that are the command's own.
local own = {
  { name = "profile", type = "string", argument = "NAME", doc = "Profile: a name, or the path of a file." },
  option_of.text(
    "access_key_file",
    "FILE",
    "File that holds the access key. Only its owner should be able to read it."
  ),
  option_of.text(
    "access_key_command",
    "COMMAND",
    "Command that prints the access key, such as 'pass show riskscreen'."
  ),
  option_of.text("network", "NETWORK", "Network of addresses that name none.", "n"),
  option_of.text(
    "policy",
    "FILE",
    "Lua file that returns the policy: riskscreen.policy { … }, or the table of its options."
  ),
  { name = "journal", type = "string", argument = "FILE", doc = "File in which every decision is recorded." },
  { name = "journal_record", type = "boolean", doc = "Keep the whole answers in the journal, for journal replay." },
  option_of.text("journal_key_file", "FILE", "File that holds the key of the journal's chain: 16 bytes or more."),
  { name = "sandbox", type = "boolean", doc = "Ask the built-in sandbox, not a service." },
}

-- Options that the command's own settings replace, and those for nginx.
local not_written = tables.set { "access_key", "policy", "shared_dict", "shared_as" }

-- The client's options that have a flag of their own; --set sets the others.
local has_flag = tables.set { "base_url", "timeout", "connect_timeout", "proxy", "ca_file" }
-- Settings whose values add up: the lists of a profile and those of a flag all count.
local flag_of = { ["lists.deny"] = "deny", ["lists.allow"] = "allow" }
local placeholders = { base_url = "URL", proxy = "URL", ca_file = "FILE" }

local function add_options(settings, list, prefix, path)
  for _, option in ipairs(list) do
    local name, own_path = prefix .. option.name, tables.concat(path, { option.name })
    if option.fields then
      if option_of.is_writable(option) then
        settings[#settings + 1] = { name = name, option = option, path = own_path }
      end
      add_options(settings, option.fields, name .. ".", own_path)
    elseif option_of.is_writable(option) and not not_written[name] then
      if flag_of[name] then
        option = tables.merge(option, { name = flag_of[name], argument = "FILE", is_repeated = true })
      end
      local is_flag = has_flag[name] or option.is_repeated
      settings[#settings + 1] = { name = name, option = option, path = own_path, has_flag = is_flag }
    end
  end
end

local M = {}

---Every setting, the command's own first.
---@return riskscreen.cli.Setting[]
local function all_settings()
  local settings = {}
  for index, option in ipairs(own) do
    settings[index] = { name = option.name, option = option, has_flag = true }
  end
  add_options(settings, options.client, "", {})
  for _, setting in ipairs(settings) do
    if placeholders[setting.name] then
      setting.option = tables.merge(setting.option, { argument = placeholders[setting.name] })
    end
  end
  return settings
end

M.settings = all_settings()

local by_name = {}
for _, setting in ipairs(M.settings) do
  by_name[setting.name] = setting
end

---The variable of a setting: "rate_limit.rate" is RISKSCREEN_RATE_LIMIT_RATE.
---@param name string
---@return string
function M.variable(name)
  return PREFIX .. name:upper():gsub("%.", "_")
end

local function setting_of(name, place)
  if name == "access_key" then
    status.misuse(
      (
        "%s: the access key is not written here, where others may see it: set access_key_file or access_key_command, "
        .. "or the variable RISKSCREEN_ACCESS_KEY"
      ):format(place)
    )
  end
  local setting = by_name[name]
  if not setting then
    local hint = text.did_you_mean(name, tables.sorted_keys(by_name))
    status.misuse(("%s: unknown setting %s%s"):format(place, text.show(name), hint))
  end
  return setting
end

-- Values are set from the weakest source to the strongest.
local function set(values, setting, written, source)
  local before = values[setting.name]
  if setting.option.is_repeated and before then
    table.insert(before.value, written)
    before.text, before.source = before.text .. ", " .. written, before.source .. ", " .. source
    return
  elseif setting.option.is_repeated then
    values[setting.name] = { value = { written }, text = written, source = source }
    return
  end
  values[setting.name] = { value = option_of.value(setting.option, written), text = written, source = source }
end

local function read_file(path, what)
  local content, problem = files.read(path, LONGEST_PROFILE)
  return content or status.misuse(("the %s cannot be read: %s"):format(what, tostring(problem)))
end

-- The path of a profile, and whether it must be there.
local function profile_path(name, getenv)
  if name and name:find("/", 1, true) then
    return name, true
  elseif name and not name:find "^[%w_.-]+$" then
    status.misuse(
      ("--profile must be a name of letters, digits, '.', '_' and '-', or a path (got %s)"):format(text.show(name))
    )
  end
  local home = getenv "XDG_CONFIG_HOME"
  if not home or not home:find "^/" then
    home = getenv "HOME" and getenv "HOME" .. "/.config"
  end
  return home and ("%s/riskscreen/%s.conf"):format(home, name or "default"), name ~= nil
end

-- Lines of "name = value"; a line that begins with "#" is a comment.
local function read_profile(values, path)
  local number = 0
  for line in (read_file(path, "profile") .. "\n"):gmatch "([^\n]*)\n" do
    number = number + 1
    local place = ("%s:%d"):format(path, number)
    if line:find "%S" and not line:find "^%s*#" then
      local name, written = line:match "^%s*([%w_.]+)%s*=%s*(.-)%s*$"
      if not name then
        status.misuse(("%s: a line must be 'name = value' (got %s)"):format(place, text.show(line)))
      elseif name == "profile" then
        status.misuse(place .. ": a profile cannot name another one")
      end
      set(values, setting_of(name, place), written, place)
    end
  end
end

---@class riskscreen.cli.Configuration
---@field values table<string, riskscreen.cli.Value> by the setting's name
---@field profile? string the path of the profile that was read
---@field account string the name of the account, where no setting names it: that of the profile
---@field is_simulated? boolean the sandbox answers, although nothing asks for it

---Reads the configuration.
---@param flags table<string, string|boolean> by the setting's name
---@param pairs_given string[] "name=value", of --set
---@param getenv fun(name: string): string|nil
---@return riskscreen.cli.Configuration
function M.read(flags, pairs_given, getenv)
  local values, profile = {}, nil
  local name = flags.profile or getenv(M.variable "profile")
  local path, is_required = profile_path(name, getenv)
  if path and (is_required or files.exists(path)) then
    read_profile(values, path)
    profile = path
  end
  for _, setting in ipairs(M.settings) do
    local variable = M.variable(setting.name)
    local written = getenv(variable)
    if written and written ~= "" then
      set(values, setting, written, variable)
    end
  end
  for _, setting in ipairs(M.settings) do
    local given, flag = flags[setting.name], option_of.flag(setting.option.name)
    for _, written in ipairs(type(given) == "table" and given or { given }) do
      set(values, setting, tostring(written), flag)
    end
  end
  for _, pair in ipairs(pairs_given) do
    local key, written = pair:match "^([^=]+)=(.*)$"
    if not key then
      status.misuse(("--set must be NAME=VALUE (got %s)"):format(text.show(pair)))
    end
    set(values, setting_of(key, "--set"), written, "--set")
  end
  -- Every profile is an account of its own, unless it names one.
  local account = ((name or "default"):match("[^/]*$"):gsub("%.conf$", ""):gsub("[^%w_.-]", "_"))
  return { values = values, profile = profile, account = account ~= "" and account or "default" }
end

local function strength(source)
  return source:find "^%-%-" and 3 or source:find("^" .. PREFIX) and 2 or 1
end

-- The strongest source of the key: "variable", "file" or "command", and its value.
local function key_source(values, getenv)
  local found, kind
  local variable = getenv(M.variable "access_key")
  if variable and variable ~= "" then
    found, kind = { text = variable, source = M.variable "access_key" }, "variable"
  end
  for _, name in ipairs { "file", "command" } do
    local value = values["access_key_" .. name]
    if value and found and strength(value.source) == strength(found.source) then
      status.misuse(("the access key has two sources: %s and %s; leave one out"):format(found.source, value.source))
    elseif value and (not found or strength(value.source) > strength(found.source)) then
      found, kind = value, name
    end
  end
  return kind, found
end

local function without_line_end(key)
  return (key:gsub("\r?\n$", ""))
end

---The content of a file that holds a key, without the line end.
---@param path string
---@return string
function M.read_secret(path)
  return without_line_end(read_file(path, "key file"))
end

local function key_of_file(value, warn)
  local permissions = system.permissions(value.text)
  if permissions and permissions % 64 ~= 0 then
    warn(("others may read the key file %s (its mode is %03o); chmod 600 it"):format(value.text, permissions))
  end
  return M.read_secret(value.text)
end

local function key_of_command(value)
  local pipe = assert(io.popen(value.text, "r"))
  local key = pipe:read "*a"
  local ok, how, code = pipe:close()
  -- Lua 5.1 has no exit status.
  if ok == nil or ok == false then
    status.misuse(("access_key_command (from %s) failed (%s %s)"):format(value.source, tostring(how), tostring(code)))
  end
  return without_line_end(key)
end

---The access key and its source; or nil.
---@param configuration riskscreen.cli.Configuration
---@param getenv fun(name: string): string|nil
---@param warn fun(message: string)
---@return string|nil key
---@return string|nil source
function M.access_key(configuration, getenv, warn)
  local kind, value = key_source(configuration.values, getenv)
  if not kind then
    return nil
  elseif kind == "variable" then
    return value.text, value.source
  end
  local key = kind == "file" and key_of_file(value, warn) or key_of_command(value)
  if key == "" then
    status.misuse(("the access key is empty (from access_key_%s, %s)"):format(kind, value.source))
  end
  return key, ("access_key_%s, %s"):format(kind, value.source)
end

---Where the key would come from, without reading it; or nil.
---@param configuration riskscreen.cli.Configuration
---@param getenv fun(name: string): string|nil
---@return string|nil
function M.key_place(configuration, getenv)
  local kind, value = key_source(configuration.values, getenv)
  if kind == "variable" then
    return value.source
  end
  return kind and ("access_key_%s, %s"):format(kind, value.source)
end

---The options of a client, without key and policy.
---@param configuration riskscreen.cli.Configuration
---@return table
function M.client_options(configuration)
  local given = {}
  for _, setting in ipairs(M.settings) do
    local value = configuration.values[setting.name]
    if value and setting.path then
      local place = given
      for index = 1, #setting.path - 1 do
        local name = setting.path[index]
        if type(place[name]) ~= "table" then
          place[name] = {}
        end
        place = place[name]
      end
      place[setting.path[#setting.path]] = value.value
    end
  end
  return given
end

---The value of a setting, or nil.
---@param configuration riskscreen.cli.Configuration
---@param name string
---@return any
function M.get(configuration, name)
  local value = configuration.values[name]
  return value and value.value
end

return M
