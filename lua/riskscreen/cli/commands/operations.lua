-- A verb for each operation of the service, made of its entry in interface/operations.lua.

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

local M = { call_options = call_options }

---The name of the verb of an operation.
---@param operation riskscreen.Operation
---@return string
function M.name(operation)
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
  local option = {
    name = parameter.name,
    type = parameter.type == "integer" and "integer" or "string",
    doc = parameter.doc,
    list = parameter.type == "array" or nil,
    argument = parameter.type == "date" and "DATE" or nil,
  }
  if parameter.type == "array" then
    option.type = "table"
  end
  local enum = parameter.enum or parameter.items and parameter.items.enum
  if enum then
    option.doc = option.doc .. " One of " .. table.concat(enums.values[enum], ", ") .. "."
  end
  if parameter.required then
    option.doc = option.doc .. " Required."
  end
  return option
end

---The parameters that "name=value" arguments give. A value that begins with [ or { is JSON.
---@param list string[]
---@return table<string, any>
function M.named_values(list)
  local values = {}
  for _, pair in ipairs(list) do
    local name, written = pair:match "^([%w_.-]+)=(.*)$"
    if not name then
      status.misuse(("an argument must be name=value (got %s)"):format(text.show(pair)))
    elseif written:find "^[%[{]" then
      local value, message = json.decode(written)
      if value == nil then
        status.misuse(("%s is not JSON: %s"):format(name, message))
      end
      values[name] = value
    else
      values[name] = written
    end
  end
  return values
end

-- Texts become integers where the operation wants them.
local function typed(operation, values)
  local typed_values = tables.copy(values)
  for _, parameter in ipairs(operation.parameters or {}) do
    local value = typed_values[parameter.name]
    if parameter.type == "integer" and type(value) == "string" then
      typed_values[parameter.name] = tonumber(value) or value
    elseif parameter.type == "array" and type(value) == "string" then
      typed_values[parameter.name] = option_of.value({ list = true }, value)
    end
  end
  return typed_values
end

---Calls an operation and returns its value, or ends the command.
---@param client riskscreen.Client
---@param operation riskscreen.Operation
---@param parameters table
---@param call_options_given? table
---@return any value
---@return riskscreen.Response|riskscreen.Error
function M.call(client, operation, parameters, call_options_given)
  local namespace = client[operation.namespace]
  -- The methods of the namespaces also split long lists.
  if operation.aligned then
    return namespace[operation.method](namespace, parameters, call_options_given)
  end
  return client:call(operation.name, parameters, call_options_given)
end

---The columns of an operation's records: those of its payload, or of the elements of its one list.
---@param operation riskscreen.Operation
---@param first? table the first record, for payloads without a shape
---@return riskscreen.cli.Column[]
---@return fun(value: any): any[] records_of
function M.columns(operation, first)
  local shape = operation.data
  if not shape then
    return first and columns_of.of_record(first) or { { name = "value" } },
      function(value)
        return type(value) == "table" and json.is_array(value) and value or { value }
      end
  elseif shape.type == "array" then
    return columns_of.of_shape(shape.items), function(value)
      return value
    end
  elseif #shape.fields == 1 and shape.fields[1].type == "array" and shape.fields[1].items.fields then
    return columns_of.of_shape(shape.fields[1].items),
      function(value)
        return value[shape.fields[1].name] or {}
      end
  end
  return columns_of.of_shape(shape), function(value)
    return { value }
  end
end

-- Writes the records of an answer.
local function write(context, operation, values)
  local first = values[1]
  local columns, records_of = M.columns(operation, type(first) == "table" and first or nil)
  local is_list = first ~= nil and records_of(first)[1] ~= first
  local output = context:output(columns, not is_list and #values == 1)
  local count = 0
  for _, value in ipairs(values) do
    for _, record in ipairs(records_of(value)) do
      if record then
        output:add(type(record) == "table" and record or { value = record })
        count = count + 1
      end
    end
  end
  output:finish()
  if count == 0 and context.format == "table" and not context.quiet then
    context:warn "the answer has no records"
  end
end

-- The parameters besides the subject, from options, configuration and name=value arguments.
local function parameters_of(context, operation, given)
  local parameters = {}
  for _, parameter in ipairs(operation.parameters or {}) do
    if parameter.name == "network" then
      parameters.network = context:network()
    else
      parameters[parameter.name] = given[parameter.name]
    end
  end
  if not operation.parameters then
    parameters = M.named_values(context.arguments.parameters or {})
    parameters.network = parameters.network or context:network()
  end
  return parameters
end

local function own_call_options(context)
  return option_of.values(call_options, context.options)
end

---Prints each failure and returns the status.
---@param context riskscreen.cli.Context
---@param failures { subject?: string, err: riskscreen.Error }[]
---@return integer
function M.report(context, failures)
  local code = status.done
  for _, failure in ipairs(failures) do
    local own, message = status.of_failure(failure.err)
    context:warn((failure.subject and failure.subject .. ": " or "") .. message)
    code = math.max(code, own)
  end
  return code
end

local function run_lookup(context, operation, subject)
  local client = context:client()
  local values, failures = {}, {}
  local parameters, of_call = parameters_of(context, operation, context.options), own_call_options(context)
  for _, item in ipairs(context.arguments[subject.name]) do
    parameters[subject.name] = item
    local value, err = M.call(client, operation, parameters, of_call)
    if value ~= nil then
      values[#values + 1] = value
    else
      failures[#failures + 1] = { subject = item, err = err }
    end
  end
  if values[1] or not failures[1] then
    write(context, operation, values)
  end
  return M.report(context, failures)
end

local function run_once(context, operation, parameters)
  local value, err = M.call(context:client(), operation, typed(operation, parameters), own_call_options(context))
  if value == nil then
    return M.report(context, { { err = err } })
  end
  write(context, operation, { value })
end

-- Every item of a list, page by page, as it comes.
local function run_walk(context, operation, parameters)
  local columns = M.columns(operation)
  local namespace = context:client()[operation.namespace]
  local output = context:output(columns)
  for item in namespace:each(parameters, own_call_options(context)) do
    output:add(item)
  end
  output:finish()
end

---Calls an operation with "name=value" parameters.
---@param context riskscreen.cli.Context
---@param operation riskscreen.Operation
---@param given string[]
---@return integer|nil status
function M.run(context, operation, given)
  local parameters = M.named_values(given)
  if parameters.network == nil then
    for _, parameter in ipairs(operation.parameters or {}) do
      parameters.network = parameter.name == "network" and context:network() or parameters.network
    end
  end
  return run_once(context, operation, parameters)
end

-- Parameters for the examples of operations that list none.
local likely = { kya = "address=" .. EXAMPLE .. " network=eth", kyt = "requestId=REQUEST_ID" }

-- "riskscreen risk 0x… -n eth"
local function example_of(operation, subject)
  local line = M.name(operation)
  if subject then
    line = line .. " " .. EXAMPLE .. " -n eth"
  elseif not operation.parameters then
    line = line .. " " .. (likely[operation.namespace] or likely.kya)
  end
  return { line = line, what = operation.doc:gsub("%.$", "") }
end

local function verb_of(operation)
  local subject = subject_of(operation)
  local arguments, own = {}, {}
  if subject then
    arguments[1] = { name = subject.name, count = "+", doc = subject.doc }
  elseif not operation.parameters then
    local doc = "Parameters as name=value; the interface publishes none, and no path: set endpoints.%s."
    arguments[1] = { name = "parameters", count = "*", doc = doc:format(operations.endpoint_key(operation)) }
  end
  for _, parameter in ipairs(operation.parameters or {}) do
    if parameter ~= subject and parameter.name ~= "network" then
      own[#own + 1] = option_for(parameter)
    end
  end
  return {
    name = M.name(operation),
    summary = operation.doc,
    description = operation.paginated and "Without --page the whole list is written, page by page." or nil,
    arguments = arguments,
    options = tables.concat(own, call_options),
    examples = { example_of(operation, subject) },
    run = function(context)
      if subject and operation.lookup then
        return run_lookup(context, operation, subject)
      end
      local parameters = parameters_of(context, operation, context.options)
      if operation.paginated and not parameters.page then
        return run_walk(context, operation, parameters)
      elseif subject then
        parameters[subject.name] = context.arguments[subject.name]
      end
      return run_once(context, operation, parameters)
    end,
  }
end

---A verb for each operation.
---@return riskscreen.cli.Command[]
function M.list()
  local list = {}
  for index, operation in ipairs(operations.list) do
    list[index] = verb_of(operation)
  end
  return list
end

return M
