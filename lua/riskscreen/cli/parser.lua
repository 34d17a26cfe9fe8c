-- The parser of the command line, made of the commands' declarations by lua-argparse. Help and completion come from it.

local configuration = require "riskscreen.cli.configuration"
local option_of = require "riskscreen.cli.option"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local WIDTH = 96 -- columns of the help
local SET = "Set any option of the client, such as rate_limit.rate=20. riskscreen config show --all lists them."

local M = {}

---@class riskscreen.cli.Argument
---@field name string
---@field count? string "1" by default, "?", "*" or "+"
---@field doc string
---@field completes? string[]|"verbs" what a shell completes

---@class riskscreen.cli.Example
---@field line string after "riskscreen "
---@field what string

---A verb. Its file in commands/ declares it; help, completion and the manual page come from the declaration.
---@class riskscreen.cli.Command
---@field name string "screen", or "blacklist add" in a group
---@field summary string one sentence
---@field description? string
---@field arguments? riskscreen.cli.Argument[]
---@field options? riskscreen.cli.Option[]
---@field examples riskscreen.cli.Example[]
---@field statuses? table<string, string> the meanings of its exit statuses, instead of status.of_others
---@field verdict? "status"|"output" its decisions are in the exit status, or go to other programs
---@field calls? boolean it has no decisions, and its status may tell a failure of the service
---@field written? fun(context: riskscreen.cli.Context): string[] the files that it writes, where -o is not the only one
---@field is_help? boolean it shows the help of the verb in its arguments
---@field run fun(context: riskscreen.cli.Context): integer|nil the exit status, 0 by default

---The text of an option for help and manual: its meaning, values and default.
---@param option riskscreen.cli.Option
---@return string
function M.meaning(option)
  local doc = option.doc:gsub("`", "")
  if option.values then
    doc = ("%s One of %s."):format(doc, table.concat(option.values, ", "))
  end
  if option.default ~= nil and type(option.default) ~= "table" and type(option.default) ~= "boolean" then
    doc = ("%s Default: %s."):format(doc, tostring(option.default))
  end
  return doc
end

---The flags of an option as they are typed, such as { "-n", "--network" }.
---@param option riskscreen.cli.Option
---@return string[] names
---@return string|nil value the placeholder of its value
function M.names(option)
  local is_number = option.type == "integer" or option.type == "number"
  local value = option.argument or option.unit == "seconds" and "SECONDS" or is_number and "N" or "VALUE"
  local flag, short = option_of.flag(option.name), option.short
  if option.type == "boolean" then
    -- A switch that is on by default is turned off.
    flag, value = option.default and flag:gsub("^%-%-", "--no-") or flag, nil
  end
  return short and { "-" .. short, flag } or { flag }, value
end

-- Puts what was written into `values`: of an option its value, and of a setting the text, because its source counts.
local function add_option(place, option, values, choice, setting)
  local names, value = M.names(option)
  local flags, name = table.concat(names, " "), setting or option.name
  if not value then
    return place:flag(flags):description(M.meaning(option)):action(function()
      values[name] = not option.default
    end)
  end
  local element = place:option(flags):argname(value):description(M.meaning(option))
  table.insert(choice.completions, { option = element, values = option.completes or option.values })
  local has_several = option.is_repeated or option.list
  return element:count(has_several and "*" or "0-1"):overwrite(false):action(function(_, _, written)
    local own = (setting or option.is_repeated) and written or option_of.value(option, written)
    values[name] = has_several and tables.concat(values[name] or {}, option.list and own or { own }) or own
  end)
end

-- A flag that is answered before the parse. One that the parse finds stands among other arguments.
local function add_question(parser, flags, doc, choice)
  parser:flag(flags):description(doc):action(function()
    choice.is_misplaced = true
  end)
end

-- argparse wraps the lines of a help. Those of `tail` are for copying, and stay as they are.
local function add_help(parser, choice, words, tail)
  add_question(parser, "-h --help", "Show this help.", choice)
  choice.helps[M.key(words)] = function()
    return parser:get_help() .. (tail and "\n\n" .. tail or "")
  end
end

---The exit statuses of a verb.
---@param command riskscreen.cli.Command
---@return { status: integer, what: string }[]
function M.statuses(command)
  local own = command.statuses or status.of_others
  local meanings = tables.merge(status.of_all, own)
  if not command.verdict then
    meanings.unrecorded = own.unrecorded
    meanings.service_failed = command.calls and meanings.service_failed or nil
  end
  return status.list(meanings)
end

---The key of words in `helps`: one word with a space is another key than two words.
---@param words string[]
---@return string
function M.key(words)
  return table.concat(words, "\0") .. (words[1] and "\0" or "")
end

-- The end of the help of a verb.
local function tail_of(command)
  local lines = { "Examples:" }
  for _, example in ipairs(command.examples) do
    lines[#lines + 1] = ("  # %s\n  riskscreen %s"):format(example.what, example.line)
  end
  lines[#lines + 1] = "\nExit status:"
  for _, entry in ipairs(M.statuses(command)) do
    lines[#lines + 1] = ("  %-4d %s"):format(entry.status, entry.what)
  end
  return table.concat(lines, "\n")
end

local GLOBAL =
  "Output: --json, --jsonl, --csv, --quiet. Service: --profile, --base-url and others; see riskscreen --help."

local function add_command(place, command, choice)
  local own_name = command.name:match "%S+$"
  local parser = place:command(own_name):summary(command.summary)
  parser:description(command.summary .. (command.description and "\n\n" .. command.description or ""))
  parser:add_help(false)
  parser:epilog(GLOBAL)
  parser:action(function()
    choice.command = command
  end)
  for _, argument in ipairs(command.arguments or {}) do
    local element = parser:argument(argument.name):args(argument.count or "1"):description(argument.doc)
    element:action(function(_, _, written)
      choice.arguments[argument.name] = written
    end)
    table.insert(choice.completions, { place = parser, values = argument.completes })
  end
  for _, option in ipairs(command.options or {}) do
    add_option(parser, option, choice.options, choice)
  end
  add_help(parser, choice, text.words(command.name), tail_of(command))
end

---@type riskscreen.cli.Option[]
M.output_options = {
  { name = "json", type = "boolean", doc = "Write one JSON text: a list, or one record." },
  { name = "jsonl", type = "boolean", doc = "Write JSON lines: one record a line." },
  { name = "csv", type = "boolean", doc = "Write CSV with a header." },
  { name = "quiet", type = "boolean", short = "q", doc = "Write no results and no progress: the exit status tells." },
}

---@type riskscreen.cli.Option
M.set_option = { name = "set", type = "table", is_repeated = true, argument = "NAME=VALUE", doc = SET }

---@class riskscreen.cli.Choice
---@field commands riskscreen.cli.Command[] every verb
---@field command? riskscreen.cli.Command
---@field arguments table<string, any> of the verb, by their names
---@field options table<string, any> of the verb, by their names
---@field output table<string, true> the output options
---@field settings table<string, string|string[]|boolean> as they were written; `set` has the pairs of --set
---@field group? table of argparse
---@field helps table<string, fun(): string> the help of all, of each group and of each verb, by `key`
---@field is_misplaced? boolean a wish for help or the version stands among other arguments
---@field completions { option?: table, place?: table, values?: table|string }[] what a shell completes, and where

---The parser.
---@param commands riskscreen.cli.Command[]
---@param groups table<string, string> the summary of each group
---@return table parser of argparse
---@return riskscreen.cli.Choice choice set by the parse
function M.new(commands, groups)
  local argparse = require "argparse"
  local choice = { commands = commands, arguments = {}, options = {}, output = {}, settings = {} }
  choice.completions, choice.helps = {}, {}
  local parser = argparse("riskscreen", "Screens blockchain addresses and transactions against a risk service.")
  parser:help_max_width(WIDTH):add_help(false):require_command(false)
  parser:usage "Usage: riskscreen [OPTIONS] VERB …"
  parser:epilog "riskscreen VERB --help explains a verb and shows examples. The manual, riskscreen(1), has everything."
  local output, service, places = {}, {}, {}
  for _, option in ipairs(M.output_options) do
    output[#output + 1] = add_option(parser, option, choice.output, choice)
  end
  for _, setting in ipairs(configuration.settings) do
    if setting.has_flag then
      service[#service + 1] = add_option(parser, setting.option, choice.settings, choice, setting.name)
    end
  end
  service[#service + 1] = add_option(parser, M.set_option, choice.settings, choice)
  parser:mutex(output[1], output[2], output[3]) -- the formats
  parser:group("Output", tables.unpack(output))
  parser:group("Service", tables.unpack(service))
  add_help(parser, choice, {})
  add_question(parser, "--version", "Show the version.", choice)
  for _, command in ipairs(commands) do
    local group = command.name:match "^(%S+) "
    if group and not places[group] then
      local place = parser:command(group):summary(groups[group]):description(groups[group])
      place:add_help(false):require_command(false)
      add_help(place, choice, { group })
      place:action(function()
        choice.group = place
      end)
      places[group] = place
    end
    add_command(group and places[group] or parser, command, choice)
  end
  return parser, choice
end

---Puts the values that a shell completes into the parser. It must not parse any more.
---@param choice riskscreen.cli.Choice
function M.complete(choice)
  for _, entry in ipairs(choice.completions) do
    local values = entry.values
    if values == "verbs" then
      entry.place._is_help_command = true
    elseif values and entry.place then
      -- argparse completes no arguments in bash, but it completes verbs.
      for _, value in ipairs(values) do
        entry.place:command(value)
      end
    elseif values then
      entry.option:choices(values)
    end
  end
end

---A message of argparse in our words: no line ends, printable.
---@param message string
---@return string
function M.message(message)
  return (text.printable(message:gsub("\nDid you mean (.-)%?$", "; did you mean %1?"):gsub("\n", " "), 500))
end

return M
