-- The verbs of the command. Each file of this folder declares or makes some; a new file gets a line here.

local files = {
  require "riskscreen.cli.commands.screen",
  require "riskscreen.cli.commands.address",
  require "riskscreen.cli.commands.account_lists",
  require "riskscreen.cli.commands.list",
  require "riskscreen.cli.commands.kyt",
  require "riskscreen.cli.commands.journal",
  require "riskscreen.cli.commands.policy",
  require "riskscreen.cli.commands.report",
  require "riskscreen.cli.commands.watch",
  require "riskscreen.cli.commands.queue",
  require "riskscreen.cli.commands.webhook",
  require "riskscreen.cli.commands.explore",
  require "riskscreen.cli.commands.sandbox",
  require "riskscreen.cli.commands.mcp",
  require "riskscreen.cli.commands.repl",
  require "riskscreen.cli.commands.doctor",
  require "riskscreen.cli.commands.config",
  require "riskscreen.cli.commands.completion",
  require "riskscreen.cli.commands.operations",
}

local M = {}

---The summary of each group of verbs.
---@type table<string, string>
M.groups = {
  address = "Addresses, without the service.",
  blacklist = "The account's blacklist.",
  config = "The configuration of this command.",
  journal = "The record of decisions.",
  kyt = "Transactions.",
  policy = "Policies for addresses, without the service.",
  queue = "Addresses for workers on several machines, in Redis.",
  list = "Local deny and allow lists, without the service.",
  webhook = "Webhooks of the service.",
  whitelist = "The account's whitelist.",
}

---Every verb. An operation has one of its own, unless a file before has it.
---@return riskscreen.cli.Command[]
function M.list()
  local list, known = {}, {}
  for _, file in ipairs(files) do
    local commands = type(file) == "function" and file() or file
    for _, command in ipairs(commands.name and { commands } or commands) do
      list[#list + 1] = not known[command.name] and command or nil
      known[command.name] = true
    end
  end
  return list
end

return M
