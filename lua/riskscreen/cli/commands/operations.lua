-- A verb for each operation of the service, made of its entry in interface/operations.lua; and `riskscreen call`, for
-- any operation by the interface's own name.

local addresses = require "riskscreen.address"
local columns_of = require("riskscreen.cli.output").columns
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local operations = require "riskscreen.interface.operations"
local option_of = require "riskscreen.cli.option"
local options = require "riskscreen.options"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

-- Namespaces whose operations are verbs without a group: `riskscreen risk`.
local is_top = { kya = true, account = true }

local call_options = option_of.pick(options.call, { "timeout", "attempt_timeout", "address_check", "priority" })

-- Addresses of the sandbox for the examples.
local EXAMPLE = "0x16e998a4a64a384aa74dd757e5a6858ab909262e"

-- The name of the verb of an operation.
local function name_of(operation)
  local method = operation.method:gsub("_", "-")
  return is_top[operation.namespace] and method or operation.namespace .. " " .. method
end

-- The parameter whose values are the arguments of the verb: the address of a lookup, or the list of a bulk lookup.
local function subject_of(operation)
  for _, parameter in ipairs(operation.parameters or {}) do
    if parameter.is_address == true and operation.lookup or parameter.name == operation.aligned then
      return parameter
    end
  end
end

-- The option of a parameter; the network comes from the configuration.
local function option_for(parameter)
  local enum = parameter.enum or parameter.items and parameter.items.enum
  local doc = enum and ("%s One of %s."):format(parameter.doc, table.concat(enums.values[enum], ", ")) or parameter.doc
  return {
    name = parameter.name,
    type = parameter.type == "integer" and "integer" or parameter.type == "array" and "table" or "string",
    doc = parameter.required and doc .. " Required." or doc,
    list = parameter.type == "array" or nil,
    argument = parameter.type == "date" and "DATE" or nil,
    completes = enums.values[enum or false],
  }
end

-- The parameters that "name=value" arguments give. A value that begins with [ or { is JSON. An address to remove may
-- stand alone.
local function named_values(list, removes)
  local values = {}
  for _, pair in ipairs(list) do
    local name, written = pair:match "^([%w_.-]+)=(.*)$"
    if not name and removes and addresses.networks_of(pair, "format")[1] then
      name, written = "address", pair
    elseif not name then
      status.misuse("an argument must be %sname=value, such as network=eth", removes and "an address, or " or "")
    end
    if values[name] ~= nil then
      status.misuse("%s is given twice", name)
    elseif written:find "^[%[{]" then
      local value, message = json.decode(written)
      if value == nil then
        status.misuse("%s is not JSON: %s", name, message)
      end
      values[name] = value
    else
      values[name] = written
    end
  end
  return values
end

-- The columns of an operation's records: those of its payload, or of the elements of its one list; and its records in a
-- value. `first` is the first value, for payloads without a shape.
local function columns_for(operation, first)
  local shape = operation.data
  if not shape then
    local columns = type(first) == "table" and columns_of.of_record(first) or { { name = "value" } }
    return columns,
      function(value)
        return type(value) == "table" and json.is_array(value) and value or { value }
      end
  end
  local only = shape.type ~= "array" and #shape.fields == 1 and shape.fields[1]
  local is_list = only and only.type == "array" and only.items.fields ~= nil
  return columns_of.of_shape(is_list and only.items or shape.items or shape),
    function(value)
      return shape.type == "array" and value or is_list and (value[only.name] or {}) or { value }
    end
end

-- Writes the records of an answer.
local function write(context, operation, values)
  local columns, records_of = columns_for(operation, values[1])
  local is_list, records = records_of(values[1])[1] ~= values[1], {}
  for _, value in ipairs(values) do
    for _, record in ipairs(records_of(value)) do
      records[#records + 1] = type(record) == "table" and record or record and { value = record } or nil
    end
  end
  context:write_records(columns, records, not is_list and #values == 1)
  if not records[1] and context.format == "table" and not context.quiet then
    context:warn "the answer has no records"
  end
end

-- The network of the configuration, where an operation takes one and none is given.
local function add_network(context, operation, parameters)
  for _, parameter in ipairs(operation.parameters or {}) do
    if parameter.name == "network" then
      parameters.network = parameters.network or context:network(parameter.required)
    end
  end
  return parameters
end

-- The parameters besides the subject, from options, configuration and name=value arguments.
local function parameters_of(context, operation)
  if operation.parameters then
    return add_network(context, operation, option_of.values(operation.parameters, context.options))
  end
  local parameters = named_values(context.arguments.parameters, operation.method == "remove")
  parameters.network = parameters.network or context:network()
  return parameters
end

-- Calls an operation, for each value of its subject if it has one, and returns the status.
local function run_calls(context, operation, parameters, subject)
  local client, code, values = context:client(nil, not operation.idempotent), status.done, {}
  local namespace, of_call = client[operation.namespace], option_of.values(call_options, context.options)
  for _, item in ipairs(subject and context.arguments[subject.name] or { false }) do
    context:check_time()
    local given = tables.merge(parameters, subject and { [subject.name] = item })
    for _, parameter in ipairs(operation.parameters or {}) do
      local written = given[parameter.name] -- a text becomes an integer or a list where the operation wants one
      given[parameter.name] = written and option_of.value(option_for(parameter), written)
    end
    local value, err
    if operation.aligned then -- the methods of the namespaces also split long lists
      value, err = namespace[operation.method](namespace, given, of_call)
    else
      value, err = client:call(operation.name, given, of_call)
    end
    if value ~= nil then
      values[#values + 1] = value
    else
      local own, message = status.of_failure(err)
      context:warn((item and item .. ": " or "") .. message)
      code = math.max(code, own)
    end
  end
  if values[1] ~= nil then
    write(context, operation, values)
  end
  return context:ended(code)
end

-- Every item of a list, page by page, as it comes.
local function run_walk(context, operation, parameters)
  local namespace = context:client()[operation.namespace]
  local output = context:output((columns_for(operation)))
  for item in namespace:each(parameters, option_of.values(call_options, context.options)) do
    output:add(item)
  end
  output:finish()
end

-- Parameters for the examples of operations that list none, by method or namespace: those of the sandbox.
local ADDRESS, TRANSACTION = "address=" .. EXAMPLE .. " network=eth", "hash=0x" .. ("5f"):rep(32) .. " network=eth"
local likely = {
  kyt = "requestId=REQUEST_ID",
  risks = TRANSACTION,
  custom_score = TRANSACTION,
  remove = EXAMPLE .. " -n eth",
  add = ([['list=[{"address":"%s","network":"eth"}]']]):format(EXAMPLE),
}

-- "riskscreen risk 0x… -n eth"
local function example_of(operation, subject)
  local line = name_of(operation)
  if subject then
    line = line .. " " .. EXAMPLE .. " -n eth"
  elseif not operation.parameters then
    line = line .. " " .. (likely[operation.method] or likely[operation.namespace] or ADDRESS)
  end
  return { line = line, what = operation.doc:gsub("%.$", "") }
end

local function verb_of(operation)
  local subject = subject_of(operation)
  local arguments, own = {}, {}
  if subject then
    arguments[1] = { name = subject.name, count = "+", doc = subject.doc }
  elseif not operation.parameters then
    local doc = (operation.method == "remove" and "The address, and p" or "P")
      .. "arameters as name=value; the interface publishes none, and no path: set endpoints.%s."
    arguments[1] = { name = "parameters", count = "*", doc = doc:format(operations.endpoint_key(operation)) }
  end
  for _, parameter in ipairs(operation.parameters or {}) do
    if parameter ~= subject and parameter.name ~= "network" then
      own[#own + 1] = option_for(parameter)
    end
  end
  return {
    name = name_of(operation),
    summary = operation.doc,
    description = operation.paginated and "Without --page the whole list is written, page by page." or nil,
    arguments = arguments,
    options = tables.concat(own, call_options),
    examples = { example_of(operation, subject) },
    calls = true,
    run = function(context)
      local parameters = parameters_of(context, operation)
      if operation.paginated and not parameters.page then
        return run_walk(context, operation, parameters)
      elseif subject and not operation.lookup then
        parameters[subject.name] = context.arguments[subject.name]
      end
      return run_calls(context, operation, parameters, operation.lookup and subject)
    end,
  }
end

local function run_named(context)
  local name = context.arguments.operation
  local operation = operations.by_name[name]
  if not operation then
    local hint = text.did_you_mean(name, tables.sorted_keys(operations.by_name))
    status.misuse("unknown operation %s%s", text.show(name), hint)
  end
  return run_calls(context, operation, add_network(context, operation, named_values(context.arguments.parameters)))
end

local names = tables.pluck(operations.list, "name")

local call = {
  name = "call",
  summary = "Call any operation by its name in the interface.",
  description = "Operations: " .. table.concat(names, ", ") .. ".",
  arguments = {
    { name = "operation", doc = "Name of the operation.", completes = names },
    { name = "parameters", count = "*", doc = "Its parameters as name=value; a value in [ ] or { } is JSON." },
  },
  options = call_options,
  examples = {
    { line = "call getAddressRisk " .. ADDRESS .. " --json", what = "One operation with its own parameter names" },
  },
  calls = true,
  run = run_named,
}

---@return riskscreen.cli.Command[]
return function()
  local verbs = { call }
  for index, operation in ipairs(operations.list) do
    verbs[index + 1] = verb_of(operation)
  end
  return verbs
end
