-- riskscreen config show: the configuration, with the source of each value.

local configuration = require "riskscreen.cli.configuration"
local tables = require "riskscreen.util.tables"

local columns = { { name = "name", whole = true }, "value", "source" }

local function run_show(context)
  local is_whole = context.command.name == "config list"
  local output = context:output(is_whole and tables.concat(columns, { "meaning" }) or columns)
  local place = configuration.key_place(context.configuration)
  output:add { name = "access_key", value = place and "(set; never shown)" or nil, source = place or "not set" }
  for _, setting in ipairs(configuration.settings) do
    local found = context.configuration.values[setting.name]
    local value, source = setting.option.default, "default"
    if type(value) == "table" or type(value) == "function" then
      value = nil
    end
    if found then
      value, source = configuration.shown(context.configuration, setting.name), found.source
    elseif setting.name == "profile" and context.configuration.profile then
      value, source = context.configuration.profile, "found"
    end
    if found or value ~= nil or is_whole or context.options.all then
      output:add {
        name = setting.name,
        value = value,
        source = value == nil and "not set" or source,
        meaning = is_whole and setting.option.doc:gsub("`", "") or nil,
      }
    end
  end
  output:finish()
end

local function run_set(context)
  local name, values = context.arguments.name, context.arguments.value
  local path = configuration.write(context.configuration, name, values)
  context:tell(("%s %s %s"):format(path, values[1] and "has" or "no longer has", name))
end

return {
  {
    name = "config show",
    summary = "Show every setting, its value, and where the value comes from.",
    description = "Settings come from flags, then --set, then the environment (timeout is RISKSCREEN_TIMEOUT, "
      .. "rate_limit.rate is RISKSCREEN_RATE_LIMIT_RATE), then a profile: a file of 'name = value' lines, "
      .. "$XDG_CONFIG_HOME/riskscreen/default.conf or the one that --profile names. The access key comes from "
      .. "RISKSCREEN_ACCESS_KEY, access_key_file or access_key_command. There is no flag for the key itself, because "
      .. "every user of the machine could read it in the list of processes.",
    options = { { name = "all", type = "boolean", doc = "Also show settings that are not set." } },
    examples = {
      { line = "config show", what = "What is in force" },
      { line = "config show --profile staging --json", what = "A profile, for a program" },
    },
    run = run_show,
  },
  {
    name = "config list",
    summary = "List all settings that there are, with their values and meanings.",
    examples = { { line = "config list --csv", what = "As CSV" } },
    run = run_show,
  },
  {
    name = "config set",
    summary = "Write a setting to the profile, which is made if it is not there.",
    description = "The profile is the default one, or the one that --profile names. Without a value the setting is "
      .. "removed. Settings such as lists.deny have several values.",
    arguments = {
      { name = "name", doc = "Name of the setting.", completes = tables.pluck(configuration.settings, "name") },
      { name = "value", count = "*", doc = "Its value." },
    },
    examples = {
      { line = "config set network eth", what = "The network of addresses that name none" },
      { line = "config set base_url https://risk.example.com --profile staging", what = "In another profile" },
      { line = "config set network", what = "Remove a setting" },
    },
    run = run_set,
  },
}
