-- The `riskscreen` command: parses the arguments, runs the verb, and turns every outcome into a message and an exit
-- status. The verbs are in commands/; parser.lua says how one declares itself.

-- First: where the core cannot be loaded, its failure is the one to report, not that lua-cjson is missing as well.
require "riskscreen.core"

local calls = require "riskscreen.call"
local clients = require "riskscreen.cli.client"
local commands = require "riskscreen.cli.commands"
local configuration = require "riskscreen.cli.configuration"
local inputs = require "riskscreen.cli.input"
local option_of = require "riskscreen.cli.option"
local outputs = require "riskscreen.cli.output"
local parsers = require "riskscreen.cli.parser"
local riskscreen = require "riskscreen"
local runtime = require "riskscreen.runtime"
local status = require "riskscreen.cli.status"
local system = require "riskscreen.system"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local version = require "riskscreen.version"

local LOOK_EVERY = 0.1 -- seconds between two looks for a signal

---@class riskscreen.cli.World what the command has of the process; tests replace parts
---@field out table stdout
---@field err table stderr
---@field input table stdin
---@field getenv fun(name: string): string|nil
---@field variables fun(): string[] the names of the environment's variables
---@field columns fun(stream: table): integer|nil the width of the terminal behind a stream
---@field line? riskscreen.cli.ProgressLine that is drawn, and makes room for a line on stderr
---@field warn fun(message: string) a line on stderr
---@field notice fun(message: string) a line on stderr about the whole run, once

---@class riskscreen.cli.Context what a verb gets
---@field arguments table<string, any> by the declared name; a list where several may be given
---@field options table<string, any> checked, with defaults
---@field configuration riskscreen.cli.Configuration
---@field format "table"|"json"|"jsonl"|"csv"
---@field quiet boolean
---@field world riskscreen.cli.World
---@field command riskscreen.cli.Command
---@field parser table of argparse, for completion
---@field choice riskscreen.cli.Choice
---@field private ends_at? number monotonic seconds
---@field private is_over? boolean the verb has ended
local Context = {}
Context.__index = Context

---The client of the configured service or of the sandbox. One that changes the account sends nothing after a signal:
---the call under way is finished, so that its result is told.
---@param changes? table options of the client that the configuration does not set
---@param has_effect? boolean it changes the account: the sandbox must be asked for
---@return riskscreen.Client
---@return "sandbox"|nil source nil if a service answers
function Context:client(changes, has_effect)
  inputs.refuse_loss(self, true)
  local must_choose = has_effect or self.command.verdict == "output"
  local client, source = clients.open(self.configuration, self.world, changes, must_choose)
  if has_effect then
    self:catch_signals(function()
      calls.state_of(client).transport = nil
    end)
  end
  return client, source
end

---A value of the configuration.
---@param name string
---@return any
function Context:setting(name)
  return configuration.get(self.configuration, name)
end

---The network: of the option, or of the configuration.
---@param is_required? boolean
---@return string|nil
function Context:network(is_required)
  local network = self:setting "network"
  return network or is_required and status.misuse "-n NETWORK is required; riskscreen networks lists them" or nil
end

---The policy of the configuration, or nil.
---@return riskscreen.Policy|nil
function Context:policy()
  return clients.policy(self.configuration)
end

local function taken()
  return true
end

---The stream of the results. With --quiet nothing is written.
---@return { write: function, flush: function }
function Context:stream()
  return self.quiet and { write = taken, flush = taken } or self.world.out
end

---An output for records.
---@param columns (string|riskscreen.cli.Column)[]
---@param single? boolean one record, not a list
---@return riskscreen.cli.Output
function Context:output(columns, single)
  local world = self.world
  local settings = { format = self.format, out = self:stream(), width = world.columns(world.out) }
  local may_colour = (world.getenv "NO_COLOR" or "") == "" and world.getenv "TERM" ~= "dumb"
  settings.coloured = settings.width ~= nil and may_colour
  return outputs.new(settings, columns, single)
end

---Writes the records of a verb.
---@param columns (string|riskscreen.cli.Column)[]
---@param records table[]
---@param single? boolean one record, not a list
function Context:write_records(columns, records, single)
  local output = self:output(columns, single)
  for _, record in ipairs(records) do
    output:add(record)
  end
  output:finish()
end

---Writes the one record of a verb.
---@param columns (string|riskscreen.cli.Column)[]
---@param record table
function Context:write_record(columns, record)
  self:write_records(columns, { record }, true)
end

---A line on stderr.
---@param message string
function Context:warn(message)
  self.world.warn(message)
end

---A line on stderr about what was done. With --quiet it is left out.
---@param message string
function Context:tell(message)
  if not self.quiet then
    self.world.warn(message)
  end
end

---Lets the verb end in good order: the first SIGINT or SIGTERM is only noted, and a second one ends the program at
---once. A verb that an assistant runs ends with its server.
---@param stop? fun() called once after the signal
function Context:catch_signals(stop)
  if self.ends_at then
    return
  end
  assert(system.catch_end())
  riskscreen.defer(function()
    while not (self.is_over or system.ending()) do
      riskscreen.sleep(LOOK_EVERY)
    end
    if not self.is_over then
      self:tell "stopping: calls under way are finished; a second signal ends at once"
      local _ = stop and stop()
    end
  end)
end

---Serves until a signal.
---@return integer status
function Context:serve() -- luacheck: ignore 212
  assert(system.catch_end())
  while not system.ending() do
    riskscreen.loop:step(LOOK_EVERY)
  end
  return status.interrupted
end

---The status of a verb that catches signals and has ended in good order.
---@param code? integer without a signal
---@return integer
function Context:ended(code)
  return system.ending() and status.interrupted or code or status.done
end

-- Runs a verb, and closes the journal that it has opened.
local function execute(context)
  inputs.refuse_loss(context)
  local out = context.world.out -- a verb may write to a file instead
  local ok, outcome = pcall(context.command.run, context)
  context.is_over = true
  local journal = context.configuration.opened_journal
  local closed, err = true, nil
  if journal then
    closed, err = journal:close()
  end
  if not ok then
    error(outcome, 0)
  end
  status.ensure_written(out:flush())
  if not closed then
    status.fail(status.unrecorded, (tostring(err):gsub("^riskscreen: ", "")))
  elseif journal and journal:stats().lost > 0 then
    status.fail(status.unrecorded, "decisions that were not recorded: %d", journal:stats().lost)
  end
  outcome = status.failing(outcome or status.done, context.options.fail_on)
  if outcome == status.allow and context.command.verdict and context.configuration.is_simulated then
    context:warn(status.SIMULATED)
    return status.usage
  end
  return outcome
end

---@class riskscreen.cli.Request of a verb
---@field arguments table<string, any>
---@field options table<string, any>
---@field settings table<string, riskscreen.cli.Value> in the place of those of the configuration
---@field world riskscreen.cli.World
---@field seconds number after which the verb begins nothing more

---Runs another verb with the same configuration. Its results are JSON lines.
---@param command riskscreen.cli.Command
---@param request riskscreen.cli.Request
---@return integer status
function Context:run(command, request)
  local values = tables.merge(self.configuration.values, request.settings)
  local context = setmetatable({
    arguments = request.arguments,
    options = request.options,
    configuration = tables.merge(self.configuration, { values = values }),
    format = "jsonl",
    quiet = false,
    world = request.world,
    command = command,
    ends_at = runtime.now() + request.seconds,
  }, Context)
  local ok, outcome = pcall(execute, context)
  if ok then
    return outcome
  end
  local code, message = status.of_failure(outcome)
  if code == status.interrupted then
    error(outcome, 0)
  end
  request.world.warn(message)
  return code
end

---Ends a verb whose time is up.
function Context:check_time()
  if self.ends_at and runtime.now() > self.ends_at then
    status.fail(status.service_failed, "the time is up, and the results are not complete")
  end
end

local M = {}

-- The world of the process, with parts that are given.
local function world_of(given)
  local noticed = {}
  local world = tables.merge({
    out = io.stdout,
    err = io.stderr,
    input = io.stdin,
    getenv = os.getenv,
    variables = system.variables,
    columns = function(stream)
      return io.type(stream) == "file" and system.columns(stream) or nil
    end,
  }, given)
  function world.warn(message)
    local _ = world.line and world.line.clear()
    world.err:write("riskscreen: ", text.printable(message, 2000), "\n")
  end
  function world.notice(message)
    if not noticed[message] then
      noticed[message] = true
      world.warn(message)
    end
  end
  return world
end

-- The help or the version that arguments ask for, alone or behind the words of a verb or a group; or nil.
local function answer_to(arguments, choice)
  local last = arguments[#arguments]
  local help = choice.helps[parsers.key { tables.unpack(arguments, 1, #arguments - 1) }]
  if help and last == "--version" then
    return "riskscreen " .. version
  end
  return help and (last == "-h" or last == "--help") and help() or nil
end

local function run_command(choice, world, parser)
  local command, flags, settings = choice.command, choice.output, choice.settings
  return execute(setmetatable({
    arguments = choice.arguments,
    options = option_of.check(command.options or {}, choice.options),
    configuration = configuration.read(settings, settings.set or {}, world, command.name == "config set"),
    format = flags.json and "json" or flags.jsonl and "jsonl" or flags.csv and "csv" or "table",
    quiet = flags.quiet == true,
    world = world,
    command = command,
    parser = parser,
    choice = choice,
  }, Context))
end

-- The status of a help. Where the network is configured, a whole command may end with an address that is "-h".
local function status_of_help(command, world)
  local ok, found = pcall(configuration.read, {}, {}, world)
  if command and command.verdict == "status" and ok and configuration.get(found, "network") then
    world.warn "the status is 4, not 0: a network is configured, so '-h' may have been meant as an address"
    return status.usage
  end
  return status.done
end

-- The verb whose name the arguments begin with, or nil.
local function named(list, arguments)
  local words = {}
  for _, argument in ipairs(arguments) do
    words[#words + 1] = not argument:find "^%-" and argument or nil
  end
  for _, command in ipairs(list) do
    if command.name == words[1] or command.name == table.concat(words, " ", 1, math.min(2, #words)) then
      return command
    end
  end
end

---Runs the command.
---@param arguments string[]
---@param given? table parts of riskscreen.cli.World
---@param is_help? boolean the verb `help` asks for one
---@return integer status
function M.main(arguments, given, is_help)
  assert(system.hold_streams())
  local world = world_of(given)
  local list = commands.list()
  local parser, choice = parsers.new(list, commands.groups)
  local ok, outcome = pcall(function()
    -- Options and arguments are kept as JSON, and compared with texts that are UTF-8.
    for _, argument in ipairs(arguments) do
      if not text.is_utf8(argument) then
        status.misuse("an argument is not UTF-8: %s", text.show(argument))
      end
    end
    local answer = answer_to(arguments, choice)
    if answer then
      status.ensure_written(world.out:write(answer, "\n"))
      status.ensure_written(world.out:flush())
      return is_help and status.done or status_of_help(named(list, arguments), world)
    end
    local parsed, fault = parser:pparse(arguments)
    if choice.is_misplaced then
      -- The status of help is that of `allow`, and an address from elsewhere may be "-h".
      status.misuse "-h, --help and --version stand alone, or behind a verb"
    elseif not parsed then
      status.misuse(parsers.message(fault))
    elseif choice.command and choice.command.is_help then
      return M.main(tables.concat(choice.arguments.verb, { "--help" }), given, true)
    elseif not choice.command then
      -- A script whose verb is empty must not get the status of `allow`.
      world.err:write((choice.group or parser):get_help(), "\n")
      return status.usage
    end
    return run_command(choice, world, parser)
  end)
  if ok then
    return outcome
  end
  local code, message, is_missing = status.of_failure(outcome)
  world.warn(message)
  if code == status.usage and not is_missing then
    local command = named(list, arguments)
    local line = command and ("Run 'riskscreen %s --help' for examples.\n"):format(command.name)
    world.err:write(line or "Run 'riskscreen --help' for the verbs and options.\n")
  end
  return code
end

return M
