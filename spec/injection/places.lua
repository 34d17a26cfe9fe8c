-- Every place of a request that a caller's text can reach: parameters of operations, raw requests, headers of a call,
-- and a client's options with the key. Parameters are read from operations.lua, so a new operation is covered without a
-- change here.

local client = require "riskscreen.client"
local enums = require "riskscreen.interface.enums"
local operations = require "riskscreen.interface.operations"

local M = {}

---The text of a harmless caller.
M.HARMLESS = "harmless"

---The beginning of the keys with which keys are tried; it must be seen nowhere.
M.KEY = "k3y-7c41e9"

---@class riskscreen.spec.Place
---@field name string
---@field is_encoded? boolean the text is put into a path as it is: encoding is its author's affair
---@field attempt fun(text: string, headers: table<string, string>): any, any the call's results; it may raise

local PATH = "/api/v1/test"

-- One value that the entry of a parameter allows.
local function sample(spec)
  if spec.type == "array" then
    return { sample(spec.items) }
  elseif spec.type == "object" then
    local object = {}
    for _, field in ipairs(spec.fields) do
      object[field.name] = sample(field)
    end
    return object
  elseif spec.enum then
    return enums.values[spec.enum][1]
  elseif spec.type == "integer" then
    return 1
  end
  return spec.type == "date" and "2026-01-01" or M.HARMLESS
end

local function samples(specs)
  return sample { type = "object", fields = specs }
end

local function copy(value)
  if type(value) ~= "table" then
    return value
  end
  local result = {}
  for key, member in pairs(value) do
    result[key] = copy(member)
  end
  return result
end

-- A copy with the text at the end of the path of keys, as the value or as another name.
local function with(parameters, way, text, as_name)
  local result = copy(parameters)
  local target = result
  for index = 1, #way - (as_name and 0 or 1) do
    target = target[way[index]]
  end
  if as_name then
    target[text] = "x"
  else
    target[way[#way]] = text
  end
  return result
end

local function extended(way, key)
  local longer = copy(way)
  longer[#longer + 1] = key
  return longer
end

-- Calls `add(way, as_name)` for every text that a value described by `spec` can hold.
local function walk(spec, way, add)
  if spec.type == "array" then
    walk(spec.items, extended(way, 1), add)
  elseif spec.type == "object" then
    for _, field in ipairs(spec.fields) do
      walk(field, extended(way, field.name), add)
    end
    add(way, true)
    if spec.open then
      add(extended(way, "another"), false)
    end
  else
    add(way, false)
  end
end

local function place_name(operation, way, as_name)
  return operation.name .. "'s " .. (as_name and "field name in " or "") .. table.concat(way, ".")
end

---The places of a client at this URL.
---@param base_url string
---@return riskscreen.spec.Place[]
function M.list(base_url)
  local places = {}

  local function new(options)
    local all = { base_url = base_url, access_key = M.KEY, retry = false, timeout = 20, address_check = false }
    for name, value in pairs(options or {}) do
      all[name] = value
    end
    return client.new(all)
  end
  local plain = new()

  local function place(name, attempt, is_encoded)
    places[#places + 1] = { name = name, attempt = attempt, is_encoded = is_encoded }
  end

  local function described(operation)
    local parameters = samples(operation.parameters)
    walk({ type = "object", fields = operation.parameters }, {}, function(way, as_name)
      place(place_name(operation, way, as_name), function(text, headers)
        return plain:call(operation.name, with(parameters, way, text, as_name), { headers = headers })
      end)
    end)
  end

  local function undescribed(operation)
    local key = operations.endpoint_key(operation)
    for method, path in pairs { GET = PATH .. "/{id}", POST = PATH .. "/{id}", DELETE = PATH } do
      local mine = new { endpoints = { [key] = { method = method, path = path } } }
      local parameters = { id = "1", other = "2" }
      for _, way in ipairs { { "id" }, { "other" } } do
        place(place_name(operation, way) .. " by " .. method, function(text, headers)
          return mine:call(operation.name, with(parameters, way, text), { headers = headers })
        end)
      end
      place(place_name(operation, { "parameters" }, true) .. " by " .. method, function(text, headers)
        return mine:call(operation.name, with(parameters, {}, text, true), { headers = headers })
      end)
    end
    local mine = new { endpoints = { [key] = { method = "POST", path = PATH } } }
    for _, as_name in ipairs { true, false } do
      local way = as_name and { "list", 1 } or { "list", 1, "value" }
      place(place_name(operation, way, as_name), function(text, headers)
        return mine:call(operation.name, with({ list = { {} } }, way, text, as_name), { headers = headers })
      end)
    end
  end

  for _, operation in ipairs(operations.list) do
    if operation.parameters then
      described(operation)
    else
      undescribed(operation)
    end
  end

  place("the method of a request", function(text, headers)
    return plain:request(text, PATH, { headers = headers })
  end)
  place("the path of a request", function(text, headers)
    return plain:request("GET", PATH .. "/" .. text, { headers = headers })
  end, true)
  place("a query value of a request", function(text, headers)
    return plain:request("GET", PATH, { headers = headers, query = { given = text } })
  end)
  place("a query name of a request", function(text, headers)
    return plain:request("GET", PATH, { headers = headers, query = { [text] = "x" } })
  end)
  place("the body of a request", function(text, headers)
    return plain:request("POST", PATH, { headers = headers, body = text })
  end)
  place("a body's field of a request", function(text, headers)
    return plain:request("PUT", PATH, { headers = headers, body = { list = { { given = text } } } })
  end)
  place("a body's field name of a request", function(text, headers)
    return plain:request("PATCH", PATH, { headers = headers, body = { [text] = "x" } })
  end)

  local lookup = { address = "0xab", network = "eth" }
  local function look_up(mine, headers, more)
    local call = { headers = copy(headers) }
    for name, value in pairs(more or {}) do
      call[name] = value
    end
    return mine:call("getAddressRisk", lookup, call)
  end

  place("a header of a call", function(text, headers)
    local all = copy(headers)
    all["X-Given"] = text
    return look_up(plain, all)
  end)
  place("a header's name of a call", function(text, headers)
    local all = copy(headers)
    all[text] = "x"
    return look_up(plain, all)
  end)
  place("traceparent of a call", function(text, headers)
    return look_up(plain, headers, { traceparent = text })
  end)
  place("the end of traceparent of a call", function(text, headers)
    local trace = "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-"
    return look_up(plain, headers, { traceparent = trace .. text })
  end)

  -- Options of the client.
  local function option(name, make, is_encoded)
    place("the option " .. name, function(text, headers)
      return look_up(new(make(text)), headers)
    end, is_encoded)
  end

  option("access_key", function(text)
    return { access_key = M.KEY .. text }
  end)
  option("access_key, a function", function(text)
    return {
      access_key = function()
        return M.KEY .. text
      end,
    }
  end)
  option("user_agent", function(text)
    return { user_agent = text }
  end)
  option("headers", function(text)
    return { headers = { ["X-Given"] = text } }
  end)
  option("headers, a name", function(text)
    return { headers = { [text] = "x" } }
  end)
  option("base_url after the port", function(text)
    return { base_url = base_url .. text }
  end)
  option("base_url in the host", function(text)
    return { base_url = (base_url:gsub("//", "//" .. text:gsub("%%", "%%%%"))) }
  end)
  option("base_url in the path", function(text)
    return { base_url = base_url .. "/" .. text }
  end, true)
  option("endpoints, a method", function(text)
    return { endpoints = { kya_risk = { method = text, path = PATH } } }
  end)
  option("endpoints, a path", function(text)
    return { endpoints = { kya_risk = { method = "GET", path = PATH .. "/" .. text } } }
  end, true)

  for _, name in ipairs { "granularity", "start_date", "end_date", "group_by" } do
    place("the option usage_parameters." .. name, function(text, headers)
      local usage = samples(operations.by_name.getAccountUsage.parameters)
      return new({ usage_parameters = { [name] = text } }):call("getAccountUsage", usage, { headers = headers })
    end)
  end
  place("the option transaction_parameters.custom_id", function(text, headers)
    local transaction = samples(operations.by_name.screenTransaction.parameters)
    local mine = new { transaction_parameters = { custom_id = text } }
    return mine:call("screenTransaction", transaction, { headers = headers })
  end)

  return places
end

return M
