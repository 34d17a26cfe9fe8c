-- riskscreen config show: the configuration, with the source of each value.

local configuration = require "riskscreen.cli.configuration"

local columns = { { name = "name", whole = true }, "value", "source" }

-- A password in a URL is not shown, not even in one that is refused.
local function shown(value)
  local host = type(value) == "string" and value:match "@[^@]*$"
  return host and (value:match "^%a[%w+.-]*://" or "") .. "***" .. host or value
end

local function default_of(option)
  if option.default ~= nil and type(option.default) ~= "table" and type(option.default) ~= "function" then
    return option.default
  end
end

local function run(context)
  local output = context:output(columns)
  local place = configuration.key_place(context.configuration, context.world.getenv)
  output:add { name = "access_key", value = place and "(set; never shown)" or nil, source = place or "not set" }
  for _, setting in ipairs(configuration.settings) do
    local found = context.configuration.values[setting.name]
    local value, source = default_of(setting.option), "default"
    if found then
      value, source = shown(found.text), found.source
    elseif setting.name == "profile" and context.configuration.profile then
      value, source = context.configuration.profile, "found"
    end
    if found or value ~= nil or context.options.all then
      output:add { name = setting.name, value = value, source = value == nil and "not set" or source }
    end
  end
  output:finish()
end

return {
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
  run = run,
}
