-- The verbs of the command. Each file of this folder declares one or several; a new file gets a line here.

local operation_verbs = require "riskscreen.cli.commands.operations"

local files = {
  require "riskscreen.cli.commands.screen",
  require "riskscreen.cli.commands.address",
  require "riskscreen.cli.commands.account_lists",
  require "riskscreen.cli.commands.list",
  require "riskscreen.cli.commands.kyt",
  require "riskscreen.cli.commands.journal",
  require "riskscreen.cli.commands.report",
  require "riskscreen.cli.commands.watch",
  require "riskscreen.cli.commands.queue",
  require "riskscreen.cli.commands.webhook",
  require "riskscreen.cli.commands.sandbox",
  require "riskscreen.cli.commands.call",
  require "riskscreen.cli.commands.repl",
  require "riskscreen.cli.commands.doctor",
  require "riskscreen.cli.commands.config",
  require "riskscreen.cli.commands.completion",
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
  queue = "Addresses for workers on several machines, in Redis.",
  list = "Local deny and allow lists, without the service.",
  webhook = "Webhooks of the service.",
  whitelist = "The account's whitelist.",
}

---Every verb: those of the files, and one for each operation that no file has a verb for.
---@return riskscreen.cli.Command[]
function M.list()
  local list, known = {}, {}
  for _, file in ipairs(files) do
    for _, command in ipairs(file.name and { file } or file) do
      list[#list + 1] = command
      known[command.name] = true
    end
  end
  for _, command in ipairs(operation_verbs.list()) do
    if not known[command.name] then
      list[#list + 1] = command
    end
  end
  return list
end

return M
