-- riskscreen completion and help: a script with which a shell completes verbs, options and their values; and --help.

local parsers = require "riskscreen.cli.parser"
local status = require "riskscreen.cli.status"
local text = require "riskscreen.util.text"

local shells = { "bash", "zsh", "fish" }

-- Commands of the shells that list the profiles.
local LIST = "(ls %s/riskscreen 2>/dev/null | sed s/\\\\.conf\\$//)"
local profiles = {
  bash = "$" .. LIST:format "${XDG_CONFIG_HOME:-~/.config}",
  zsh = "$" .. LIST:format "${XDG_CONFIG_HOME:-~/.config}",
  fish = LIST:format "{$XDG_CONFIG_HOME,~/.config}",
}

local function run(context)
  local shell = context.arguments.shell
  local make = context.parser["get_" .. shell .. "_complete"]
  if not make then
    local hint = text.did_you_mean(shell, shells)
    status.misuse("the shell must be one of %s (got %s%s)", table.concat(shells, ", "), text.show(shell), hint)
  end
  parsers.complete(context.choice)
  local script = make(context.parser):gsub("PROFILES", profiles[shell])
  status.ensure_written(context.world.out:write(script))
end

return {
  {
    name = "help",
    summary = "Explain a verb, as its --help does.",
    arguments = { { name = "verb", count = "*", doc = "The verb; none: all of them.", completes = "verbs" } },
    examples = { { line = "help", what = "All verbs" }, { line = "help blacklist add", what = "One verb" } },
    is_help = true,
  },
  {
    name = "completion",
    summary = "Write a completion script for bash, zsh or fish.",
    arguments = { { name = "shell", doc = "One of bash, zsh, fish.", completes = shells } },
    examples = {
      { line = "completion bash > ~/.local/share/bash-completion/completions/riskscreen", what = "For bash" },
      { line = "completion zsh > ~/.zfunc/_riskscreen", what = "For zsh, with ~/.zfunc in fpath" },
      { line = "completion fish > ~/.config/fish/completions/riskscreen.fish", what = "For fish" },
    },
    run = run,
  },
}
