-- riskscreen completion: a script with which a shell completes verbs and options.

local status = require "riskscreen.cli.status"
local text = require "riskscreen.util.text"

local shells = { "bash", "zsh", "fish" }

local function run(context)
  local shell = context.arguments.shell
  local make = context.parser["get_" .. shell .. "_complete"]
  if not make then
    local hint = text.did_you_mean(shell, shells)
    status.misuse(("the shell must be one of %s (got %s%s)"):format(table.concat(shells, ", "), text.show(shell), hint))
  end
  status.ensure_written(context.world.out:write(make(context.parser)))
end

return {
  name = "completion",
  summary = "Write a completion script for bash, zsh or fish.",
  arguments = { { name = "shell", doc = "One of bash, zsh, fish." } },
  examples = {
    { line = "completion bash > ~/.local/share/bash-completion/completions/riskscreen", what = "For bash" },
    { line = "completion zsh > ~/.zfunc/_riskscreen", what = "For zsh, with ~/.zfunc in fpath" },
    { line = "completion fish > ~/.config/fish/completions/riskscreen.fish", what = "For fish" },
  },
  run = run,
}
