-- Places in a request where an address or a network can stand. A source is compiled to a reader, which returns the text
-- or a problem. A request that two programs could read in two ways is a problem. The URL is read by url.lua, the body
-- by body.lua. A value in a text is found by json_field.lua and parameters.lua.
local bodies = require "riskscreen.nginx.input.body"
local json_field = require "riskscreen.nginx.input.json_field"
local parameters = require "riskscreen.nginx.input.parameters"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"
local url = require "riskscreen.nginx.input.url"

local ngx = _G.ngx

local KIB = 1024
local DEFAULT_BODY = 64 * KIB -- bytes; the longest body that is read takes a worker about 10 ms at most
local LONGEST_BODY = 16 * KIB * KIB -- bytes: the largest max_body
local MAX_READERS = 1000 -- kept for tables that stand in a call

---@alias riskscreen.nginx.Reader fun(): string|string[]|nil, string|nil the text or several texts; or nil, a problem
-- Address, network and problem.
---@alias riskscreen.nginx.SubjectReader fun(asked?: riskscreen.nginx.Asked): any, any, string|nil

---@class riskscreen.nginx.SourceTable one of these
---@field argument? string a parameter of the query
---@field header? string
---@field variable? string of nginx, without "$"
---@field path? integer a segment of the path, by its position
---@field json? string the path to a field of a JSON body: "withdrawal.to", "outputs.*.to"
---@field form? string a parameter of a form in the body
---@field max_body? integer bytes of the body, beside `json` or `form` (default 65536)

---@alias riskscreen.nginx.Source string|riskscreen.nginx.SourceTable|riskscreen.nginx.Reader

local function missing(place)
  return nil, place .. " is missing"
end

local M = {}

---The name of a header, in lower case, without marks. An application that reads headers as environment variables (CGI)
---cannot tell "x-to" from "x_to". PHP does not tell it from "x.to", and others may not tell it from "xto".
---@param name string
---@return string
function M.folded_header(name)
  return (name:gsub("%W", ""))
end

-- A repeated header is a list in nginx's table.
local function header(name)
  local place = "the header " .. name
  local key = name:lower()
  local folded_key = M.folded_header(key)
  return function()
    local value, count = nil, 0
    for given, content in pairs(ngx.req.get_headers(0)) do
      if M.folded_header(given) == folded_key then
        count = count + (type(content) == "table" and #content or 1)
        value = given == key and content or value
      end
    end
    if count > 1 then
      return nil, place .. " is repeated"
    elseif type(value) ~= "string" then
      return missing(place)
    end
    return value
  end
end

-- Variables that silently hold the first of two parameters or headers, and the source to use instead.
local first_only = { arg = "argument", http = "header" }

-- nginx's variable holds the first of two cookies, and does not tell "To" from "to".
local function cookie(name, place)
  local read = parameters.cookie_reader(name)
  return function()
    local value, problem = read(ngx.var.http_cookie)
    return value, problem and (place .. " " .. problem)
  end
end

local function variable(name)
  local prefix, rest = name:lower():match "^(%a+)_(.+)$"
  local better = first_only[prefix]
  if better then
    local source = ("{ %s = '%s' }"):format(better, better == "header" and rest:gsub("_", "-") or rest)
    return nil, ("must not be the variable %s, which silently holds the first of two: take %s"):format(name, source)
  end
  local place = "the variable " .. name
  if name:find "^%d+$" then
    return nil, ("must not be the capture $%s, which any later match replaces: take { path = N }"):format(name)
  elseif prefix == "cookie" then
    return cookie(name:sub(#"cookie_" + 1), place)
  end
  return function(_, asked)
    local value = ngx.var[name]
    if value == nil then
      -- nginx tells no difference, and tells nothing before a request comes.
      return nil, place .. " is missing, or nginx.conf does not define it"
    elseif value == "" then
      return missing(place)
    elseif url.is_doubtful(value, asked) then
      -- A location or a map may have captured it from the path.
      return nil, place .. " is in a path that can be read in two ways"
    end
    return value
  end
end

-- A reader of a place in a body. `find` returns a value, or nil and a problem.
local function in_body(place, is_type, longest, find)
  return function()
    local body, problem = bodies.text(is_type, longest)
    local value
    if body then
      value, problem = find(body)
    end
    return value, problem and (place .. " " .. problem)
  end
end

local function is_json(media_type)
  return media_type == "application/json" or media_type:find "^application/[^/]*%+json$" ~= nil
end

local function json(path, longest)
  local keys, several = {}, false
  for key in path:gmatch "[^.]+" do
    keys[#keys + 1] = key
    several = several or key == "*"
  end
  return in_body("the field " .. path, is_json, longest, function(body)
    local values, problem = json_field.values(body, keys)
    return values and not several and values[1] or values, problem
  end)
end

local function is_form(media_type)
  return media_type == "application/x-www-form-urlencoded"
end

local function form(name, longest)
  return in_body("the form's " .. name, is_form, longest, parameters.reader(name))
end

local kinds = {
  argument = { type = "string", make = url.argument },
  header = { type = "string", make = header },
  variable = { type = "string", make = variable },
  path = { type = "number", make = url.path_segment },
  json = { type = "string", make = json, reads_body = true },
  form = { type = "string", make = form, reads_body = true },
}

local kind_names = tables.sorted_keys(kinds)

local WANTED = "must be a text, a function, or a table with one of " .. table.concat(kind_names, ", ")

local function is_name(kind, name)
  if type(name) ~= kind.type then
    return false
  elseif kind.type == "number" then
    return name >= 1 and name == math.floor(name)
  end
  return name ~= "" and (kind ~= kinds.json or not (("." .. name .. "."):find("..", 1, true)))
end

local function is_size(value)
  return type(value) == "number" and value >= 1 and value <= LONGEST_BODY and value == math.floor(value)
end

local function compile_table(source)
  if tables.inherits(source) then
    return nil, tables.INHERITS
  end
  local longest, place = source.max_body, tables.without(source, "max_body")
  local key, name = next(place)
  local kind = kinds[key]
  if not kind or next(place, key) ~= nil then
    local hint = key ~= nil and not kind and text.did_you_mean(key, kind_names) or ""
    return nil, WANTED .. hint
  elseif not is_name(kind, name) then
    local wanted = kind.type == "number" and "1 or more" or "a name"
    return nil, ("must have %s as %s (got %s)"):format(wanted, key, text.show(name))
  elseif longest ~= nil and not kind.reads_body then
    return nil, "must have max_body beside json or form only"
  elseif longest ~= nil and not is_size(longest) then
    return nil, ("must have max_body between 1 and %d bytes (got %s)"):format(LONGEST_BODY, text.show(longest))
  end
  return kind.make(name, longest or DEFAULT_BODY)
end

---@param source any
---@return riskscreen.nginx.Reader|nil
---@return string|nil message the reason why the source is refused
function M.compile(source)
  if type(source) == "function" then
    return function()
      local value, problem = source()
      return value, problem
    end
  elseif type(source) == "string" and source ~= "" then
    return function()
      return source
    end
  elseif type(source) == "table" then
    return compile_table(source)
  end
  return nil, ("%s (got %s)"):format(WANTED, text.kind(source))
end

---A reader of an address and a network.
---@param address riskscreen.nginx.Reader
---@param network? riskscreen.nginx.Reader
---@return riskscreen.nginx.SubjectReader
function M.subject_reader(address, network)
  return function(asked)
    local address_found, problem, query = address(nil, asked)
    local network_found, network_problem
    if network then
      network_found, network_problem = network(query, asked)
    end
    return address_found, network_found, problem or network_problem
  end
end

-- Readers of tables that stand in a call, and so are new tables in every request.
local readers, count = {}, 0

local function reader_of(source)
  local key, name = next(source)
  local known = readers[key]
  if known and known[name] and next(source, key) == nil then
    return known[name]
  end
  local reader, message = compile_table(source)
  if reader and next(source, key) == nil then
    if count >= MAX_READERS then
      readers, count = {}, 0
    end
    readers[key] = readers[key] or {}
    readers[key][name] = reader
    count = count + 1
  end
  return reader, message
end

---Reads a source that stands in a call; raises if there can be no such source. nil means that the caller did not find
---the value in the request.
---@param source riskscreen.nginx.Source|nil
---@param name string "address" or "network"
---@return string|string[]|nil value
---@return string|nil problem with the request
function M.read(source, name)
  if type(source) == "string" then
    return source
  elseif source == nil then
    return missing("the " .. name)
  end
  local reader, message = source, nil
  if type(source) == "table" then
    reader, message = reader_of(source)
  elseif type(source) ~= "function" then
    reader, message = M.compile(source)
  end
  if not reader then
    error(name .. " " .. message, 0)
  end
  local value, problem = reader()
  return value, problem
end

return M
