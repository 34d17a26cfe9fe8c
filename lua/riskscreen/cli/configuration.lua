-- The configuration of the command: flags over environment over a profile file. Its settings are the client's options
-- that can be written as text. Those of a group have a dot: "rate_limit.rate". Each value keeps its source.

local build = require "riskscreen.options.build"
local check = require "riskscreen.options.check"
local enums = require "riskscreen.interface.enums"
local files = require "riskscreen.util.files"
local http = require "riskscreen.options.http"
local options = require "riskscreen.options"
local option_of = require "riskscreen.cli.option"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local PREFIX = "RISKSCREEN_"
local LONGEST_PROFILE = 1024 * 1024 -- bytes
local PROFILE, VARIABLE, ARGUMENT = 1, 2, 3 -- ranks of sources
local LINE = "^%s*([%w_.]+)%s*=%s*(.-)%s*$"

-- Variables that are no settings: of the command and of examples.
local variables = { "ACCESS_KEY", "REDIS_URL", "WATCH_SECRET", "WEBHOOK_SECRET", "FLEET_KEY" }

---@class riskscreen.cli.Setting
---@field name string
---@field option riskscreen.cli.Option
---@field has_flag boolean
---@field is_own? boolean it is the command's own, and no option of a client

---@class riskscreen.cli.Value
---@field value any
---@field text string as it was written
---@field source string
---@field rank integer the greater, the stronger is the source

-- The settings that are the command's own.
local own = {
  tables.merge(option_of.text("profile", "NAME", "Profile: a name, or the path of a file."), {
    completes = { "PROFILES" }, -- completion.lua replaces it
  }),
  option_of.text("access_key_file", "FILE", "File that holds the access key, which only its owner should read."),
  option_of.text("access_key_command", "COMMAND", "Command that prints the access key: 'pass show riskscreen'."),
  tables.merge(build.choice("network", enums.values.network, nil, "Network of addresses that name none."), {
    argument = "NETWORK",
    short = "n",
  }),
  option_of.text("policy", "FILE", "Lua file that returns riskscreen.policy { … }, or the table of its options."),
  option_of.text("journal", "FILE", "File in which every decision is recorded."),
  build.flag("journal_record", nil, "Keep the whole answers in the journal, for journal replay."),
  option_of.text("journal_key_file", "FILE", "File that holds the key of the journal's chain: 16 bytes or more."),
  build.flag("sandbox", nil, "Ask the built-in sandbox, not a service."),
}

-- Options that the command's own settings replace, and those for nginx.
local not_written = tables.set { "access_key", "policy", "shared_dict", "shared_as" }

-- The client's options that have a flag of their own; --set sets the others. Lists of a profile and of flags add up.
local with_flag = {
  base_url = { argument = "URL" },
  timeout = {},
  connect_timeout = {},
  proxy = { argument = "URL" },
  ca_file = { argument = "FILE" },
  ["lists.deny"] = { name = "deny", argument = "FILE", is_repeated = true },
  ["lists.allow"] = { name = "allow", argument = "FILE", is_repeated = true },
}

local M = {
  ---@type riskscreen.cli.Setting[] every setting, the command's own first
  settings = {},
}

for index, option in ipairs(own) do
  M.settings[index] = { name = option.name, option = option, has_flag = true, is_own = true }
end

local function add_options(list, prefix)
  for _, option in ipairs(list) do
    local name = prefix .. option.name
    if option_of.is_writable(option) and not not_written[name] then
      local setting = { name = name, option = tables.merge(option, with_flag[name]), has_flag = with_flag[name] ~= nil }
      table.insert(M.settings, setting)
    end
    add_options(option.fields or {}, name .. ".")
  end
end

add_options(options.client, "")

---The variable of a setting: "rate_limit.rate" is RISKSCREEN_RATE_LIMIT_RATE.
---@param name string
---@return string
function M.variable(name)
  return PREFIX .. name:upper():gsub("%.", "_")
end

-- Words of settings: of those with a flag all of them, without "s" at the end, and of others the name of the group.
local by_name, words = {}, {}
for _, setting in ipairs(M.settings) do
  by_name[setting.name] = setting
  table.insert(variables, (M.variable(setting.name):sub(#PREFIX + 1)))
  local name = setting.has_flag and setting.name or setting.name:match "^[^.]+"
  for word in name:upper():gmatch(setting.has_flag and "%u%u%u+" or ".+") do
    words[(word:gsub("S$", ""))] = true
  end
end

local is_variable = tables.set(variables)

-- Kubernetes makes such variables for a service whose name begins with ours.
local function is_of_kubernetes(rest)
  return rest:find "SERVICE_HOST$" or rest:find "SERVICE_PORT" or rest:find "PORT$" or rest:find "PORT_%d+_%u+"
end

-- A variable that may be meant as a setting must be one: a deny list that does not count would let addresses pass.
local function check_variables(world)
  local getenv = world.getenv
  for _, name in ipairs(world.variables()) do
    local rest = name:match("^" .. PREFIX .. "(.*)$")
    if is_variable[rest] and getenv(name) == "" then
      -- A script that has lost the value must not lose a deny list, or get another account, without a word.
      status.misuse("the variable %s is empty: give it a value, or unset it", name)
    elseif rest and not is_variable[rest] and not is_of_kubernetes(rest) then
      local hint, is_ours = text.did_you_mean(rest, variables), false
      for word in pairs(words) do
        is_ours = is_ours or rest:upper():find(word, 1, true)
      end
      if hint ~= "" or is_ours then
        hint = hint ~= "" and hint:gsub("'", "%0" .. PREFIX, 1) or "; riskscreen config list shows all settings"
        status.misuse("the variable %s is unknown%s", text.printable(name), hint)
      end
    end
  end
end

-- The setting of a name. One that is near no setting is not shown: it may be a part of a secret.
local function setting_of(name, place)
  if name == "access_key" then
    local remedy = "set access_key_file or access_key_command, or the variable RISKSCREEN_ACCESS_KEY"
    status.misuse("%s: the access key is not written here, where others may see it: %s", place, remedy)
  elseif name == "profile" then
    status.misuse(place .. ": only --profile and RISKSCREEN_PROFILE name a profile")
  elseif not by_name[name] then
    local hint = text.did_you_mean(name, tables.sorted_keys(by_name))
    local shown = hint ~= "" and " " .. text.show(name) .. hint or "; riskscreen config list shows all"
    status.misuse("%s: unknown setting%s", place, shown)
  end
  return by_name[name]
end

---A message with the source of the setting that it begins with: "timeout (from RISKSCREEN_TIMEOUT) must be …".
---@param values table<string, riskscreen.cli.Value>
---@param message string
---@return string
function M.with_source(values, message)
  local name = message:match "^([%w_.]+) "
  local value = values[name or ""]
  return value and ("%s (from %s)%s"):format(name, value.source, message:sub(#name + 1)) or message
end

local function check_value(values, setting)
  local option = setting.option
  local checked, problem = check.options({ option }, { [option.name] = values[setting.name].value })
  if not checked then
    status.misuse(M.with_source(values, setting.name .. problem.message:sub(#option.name + 1)))
  end
end

-- Values are set from the weakest source to the strongest. Those of the client's options are checked by the client.
local function set(values, setting, written, source, rank)
  local before, is_repeated = values[setting.name], setting.option.is_repeated
  if before and not is_repeated and before.rank == rank and (rank == PROFILE or before.source == source) then
    status.misuse("%s is given twice (%s, %s)", setting.name, before.source, source)
  elseif not text.is_utf8(written) then
    status.misuse("%s (from %s) is not UTF-8", setting.name, source)
  end
  local value = is_repeated and { written } or option_of.value(setting.option, written)
  if is_repeated and before then -- all values count
    value = tables.concat(before.value, value)
    written, source = before.text .. ", " .. written, before.source .. ", " .. source
  end
  values[setting.name] = { value = value, text = written, source = source, rank = rank }
  if setting.is_own then
    check_value(values, setting)
  end
end

-- The path of a profile, and whether it must be there.
local function profile_path(name, getenv)
  if name and name:find("/", 1, true) then
    return name, true
  elseif name and not name:find "^[%w_.-]+$" then
    local wanted = "--profile must be a name of letters, digits, '.', '_' and '-', or a path (got %s)"
    status.misuse(wanted, text.show(name))
  end
  local home = getenv "XDG_CONFIG_HOME"
  if not home or not home:find "^/" then
    home = getenv "HOME" and getenv "HOME" .. "/.config"
  end
  return home and ("%s/riskscreen/%s.conf"):format(home, name or "default"), name ~= nil
end

-- The lines of a profile, with any line ends.
local function lines_of(content)
  return (content:gsub("\r\n?", "\n"):gsub("\n+$", "") .. "\n"):gmatch "([^\n]*)\n"
end

-- The content of a profile or of a key file. A part of one would be another one.
local function read_whole(path)
  local content, problem = files.read(path, LONGEST_PROFILE + 1)
  if content and #content > LONGEST_PROFILE then
    return nil, ("%s: longer than %d bytes"):format(path, LONGEST_PROFILE)
  end
  return content, problem
end

-- Lines of "name = value"; a line that begins with "#" is a comment. A line may be a key that is out of place.
local function read_profile(values, path)
  local content, problem = read_whole(path)
  local number = 0
  for line in lines_of(content or status.misuse("the profile cannot be read: " .. problem)) do
    number = number + 1
    local place = ("%s:%d"):format(path, number)
    if line:find "%S" and not line:find "^%s*#" then
      local name, written = line:match(LINE)
      if not name then
        status.misuse(place .. ": a line must be 'name = value'")
      end
      set(values, setting_of(name, place), written, place, PROFILE)
    end
  end
end

---@class riskscreen.cli.Configuration
---@field values table<string, riskscreen.cli.Value> by the setting's name; also the access key, if a variable has it
---@field path? string of the profile, also of one that is not there
---@field profile? string the path of the profile that was read
---@field account string the name of the account, where no setting names it: that of the profile
---@field is_simulated? boolean the sandbox answers, although nothing asks for it

---Reads the configuration.
---@param flags table<string, string|boolean> by the setting's name
---@param pairs_given string[] "name=value", of --set
---@param world riskscreen.cli.World
---@param may_lack boolean the profile that is named need not be there
---@return riskscreen.cli.Configuration
function M.read(flags, pairs_given, world, may_lack)
  local values, profile, getenv = {}, nil, world.getenv
  check_variables(world)
  local name = flags.profile or getenv(M.variable "profile")
  local path, is_required = profile_path(name, getenv)
  if path and (is_required and not may_lack or files.exists(path)) then
    read_profile(values, path)
    profile = path
  end
  for _, setting in ipairs(M.settings) do
    local variable = M.variable(setting.name)
    local written = getenv(variable)
    local _ = written and set(values, setting, written, variable, VARIABLE)
  end
  local variable = M.variable "access_key"
  local key = getenv(variable)
  values.access_key = key and { text = key, source = variable, rank = VARIABLE }
  for _, pair in ipairs(pairs_given) do
    local key_given, written = pair:match "^([^=]+)=(.*)$"
    if not key_given then
      status.misuse "--set must be NAME=VALUE"
    end
    set(values, setting_of(key_given, "--set"), written, "--set", ARGUMENT)
  end
  for _, setting in ipairs(M.settings) do
    local given, flag = flags[setting.name], option_of.flag(setting.option.name)
    for _, written in ipairs(type(given) == "table" and given or { given }) do
      set(values, setting, tostring(written), flag, ARGUMENT)
    end
  end
  -- The account has the profile's name, so that workers of several users and machines share what is kept.
  local account = profile and profile:match("[^/]*$"):gsub("%.conf$", "") or "default"
  return { values = values, path = path, profile = profile, account = account }
end

---Puts the lines of a setting into the profile, in the place of those that it has.
---@param configuration riskscreen.cli.Configuration
---@param name string
---@param list string[] values: none remove the setting
---@return string path
function M.write(configuration, name, list)
  local setting, path = setting_of(name, "config set"), configuration.path
  if not path or #list > 1 and not setting.option.is_repeated then
    status.misuse(path and "a setting has one value" or "no place for a profile is known: name one with --profile PATH")
  end
  local values, added = {}, ""
  for _, written in ipairs(list) do
    if written:find "[\r\n]" or text.trim(written) ~= written then
      status.misuse "a value must be one line, without spaces around it"
    end
    set(values, setting, written, "config set", ARGUMENT)
    added = added .. name .. " = " .. written .. "\n"
  end
  if list[1] then
    check_value(values, setting)
  end
  -- The first profile is for its owner alone; later ones have the permissions of the one before.
  local prepare = 'umask 077; p=\'%s\'; mkdir -p -- "${p%%/*}"; test -e "$p" || : >"$p"'
  os.execute((prepare:format((path:gsub("'", "'\\''")))))
  status.ensure_written(files.write(path, function(content)
    local kept = ""
    for line in lines_of(content) do
      kept = kept .. (line:match(LINE) ~= name and line .. "\n" or "")
    end
    return ((kept .. added):gsub("^\n", ""))
  end))
  return path
end

-- The strongest source of the access key: its setting, and the value.
local function key_source(values)
  local kind, found
  for _, name in ipairs { "access_key", "access_key_file", "access_key_command" } do
    local value = values[name]
    if value and found and value.rank == found.rank then
      status.misuse("the access key has two sources: %s and %s; leave one out", found.source, value.source)
    elseif value and (not found or value.rank > found.rank) then
      kind, found = name, value
    end
  end
  return kind, found
end

---The content of a file that holds a key, without the line end. The path is not shown: it may be the key itself.
---@param path string
---@return string
function M.read_secret(path)
  local key, problem = read_whole(path)
  key = key or status.misuse("the key file cannot be read: " .. problem:gsub("^.*: ", ""))
  return (key:gsub("\r?\n$", ""))
end

local function key_of_command(command, source)
  local pipe = assert(io.popen(command, "r"))
  local key = pipe:read "*a"
  local ok, how, code = pipe:close()
  -- Lua 5.1 has no exit status.
  if not ok then
    status.misuse("access_key_command (from %s) failed (%s %s)", source, tostring(how), tostring(code))
  end
  return (key:gsub("\r?\n$", ""))
end

---Where the access key comes from, without reading it; or nil.
---@param configuration riskscreen.cli.Configuration
---@return string|nil
function M.key_place(configuration)
  local kind, value = key_source(configuration.values)
  return kind and (kind == "access_key" and value.source or kind .. ", " .. value.source)
end

---The access key; or nil.
---@param configuration riskscreen.cli.Configuration
---@param warn fun(message: string)
---@return string|nil
function M.access_key(configuration, warn)
  local kind, value = key_source(configuration.values)
  if not kind or kind == "access_key" then
    return value and value.text
  end
  local found, permissions = system.stat(value.text)
  if kind == "access_key_file" and found and permissions % 64 ~= 0 then
    warn(("others may read the key file %s (its mode is %03o); chmod 600 it"):format(value.text, permissions))
  end
  local key = (kind == "access_key_file" and M.read_secret or key_of_command)(value.text, value.source)
  return key ~= "" and key or status.misuse("the access key is empty (from %s, %s)", kind, value.source)
end

---The options of a client, without key and policy.
---@param configuration riskscreen.cli.Configuration
---@return table
function M.client_options(configuration)
  local given = {}
  for _, setting in ipairs(M.settings) do
    local value = configuration.values[setting.name]
    if value and not setting.is_own then
      local place = given
      for group in setting.name:gmatch "([^.]+)%." do
        place[group] = type(place[group]) == "table" and place[group] or {}
        place = place[group]
      end
      place[setting.name:match "[^.]+$"] = value.value
    end
  end
  return given
end

---The files that the configuration names, besides the journal.
---@param configuration riskscreen.cli.Configuration
---@param with_lists? any also the local lists
---@return string[]
function M.files(configuration, with_lists)
  local paths = { configuration.profile }
  for _, setting in ipairs(M.settings) do
    local value, is_list = M.get(configuration, setting.name), setting.option.is_repeated
    local is_file = setting.option.argument == "FILE" and setting.name ~= "journal" and (with_lists or not is_list)
    paths = is_file and tables.concat(paths, is_list and value or { value }) or paths
  end
  return paths
end

---The value of a setting, or nil.
---@param configuration riskscreen.cli.Configuration
---@param name string
---@return any
function M.get(configuration, name)
  local value = configuration.values[name]
  return value and value.value
end

---The text of a setting's value for people, without keys and passwords: of a URL the host alone if it holds one or is
---refused, of a command its plain first word, and of a key file its path if that is a file and so not the key.
---@param configuration riskscreen.cli.Configuration
---@param name string
---@return string|nil
function M.shown(configuration, name)
  local written = configuration.values[name] and configuration.values[name].text
  if not written or name == "access_key_command" then
    return written and (written:match "^[%w_./-]+ " or "") .. "…"
  elseif name:find "key_file$" and not files.exists(written) then
    return "… (no such file)"
  elseif by_name[name].option.argument ~= "URL" and not written:find("://", 1, true) then
    return written
  end
  local host = written:match "@[^@]*$"
  if not host and (http.base_url(written) or http.proxy(written)) then
    return written
  end
  return (written:match "^%a[%w+.-]*://" or "") .. "***" .. (host or ""):gsub("[?#].*", "")
end

return M
