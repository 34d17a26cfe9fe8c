-- Sources in the URL: a parameter of the query, a segment of the path. A URL that two programs could read in two ways
-- is a problem. A value in the query is found by parameters.lua. The usual query is read in one pass, by query_key.lua.
local parameters = require "riskscreen.nginx.input.parameters"
local query_key = require "riskscreen.nginx.input.query_key"
local unescape = require("riskscreen.util.text").unescape

local ngx = _G.ngx
local find = string.find

-- The parameter that a reader of the query reads, and the same reader with the query's text as its argument.
---@type table<riskscreen.nginx.Reader, { name: string, read: fun(query: string|nil): string|nil, string|nil }>
local arguments = setmetatable({}, { __mode = "k" })

-- For each reader of a subject in the query: the names of its two parameters.
---@type table<riskscreen.nginx.SubjectReader, { address: string, network: string }>
local query_names = setmetatable({}, { __mode = "k" })

-- Whether nginx has cut the URL at a "#". The application behind it may take the rest for a part of the URL.
local function is_cut()
  return find(ngx.var.request_uri, "#", 1, true) ~= nil
end

local CUT = "a URL with '#' can be read in two ways"

local M = {}

---A reader of a parameter of the query.
---@param name string
---@return riskscreen.nginx.Reader
function M.argument(name)
  local place = "the argument " .. name
  local read = parameters.reader(name)
  local function read_query(query)
    local value, problem = read(query)
    return value, problem and (place .. " " .. problem)
  end
  local function reader()
    if is_cut() then
      return nil, CUT
    end
    return read_query(ngx.var.args)
  end
  arguments[reader] = { name = name, read = read_query }
  return reader
end

-- Whether the path means the same before and after nginx has normalised it, and after another program has done so once
-- more. Some programs decode it again, cut a segment at ";", or accept overlong UTF-8 for ".".
local function is_plain(path)
  local lower = path:lower()
  return not (lower:find "%%2[5ef]" or lower:find "%%3b" or lower:find "%%5c")
    and not parameters.is_overlong(unescape(path))
    and not (lower:find "[;\\]" or lower:find("//", 1, true))
    and not (lower:find "/%.%.?[^%w]" or lower:find "/%.%.?$")
end

---Whether the path can be read in two ways.
---@return boolean
function M.is_doubtful()
  return is_cut() or not is_plain(ngx.var.request_uri:match "^[^?]*")
end

---A reader of a segment of the path.
---@param position integer
---@return riskscreen.nginx.Reader
function M.path_segment(position)
  local place = ("segment %d of the path"):format(position)
  return function()
    if M.is_doubtful() then
      return nil, place .. " is in a path that can be read in two ways"
    end
    local count = 0
    for segment in ngx.var.uri:gmatch "[^/]+" do
      count = count + 1
      if count == position then
        return segment
      end
    end
    return nil, place .. " is missing"
  end
end

---A reader of an address and a network that both stand in the query; nil where one of them does not. It gets the query
---from nginx once: that is most of the work.
---@param address riskscreen.nginx.Reader
---@param network riskscreen.nginx.Reader
---@return riskscreen.nginx.SubjectReader|nil
function M.query_reader(address, network)
  local of_address, of_network = arguments[address], arguments[network]
  if not of_address or not of_network then
    return nil
  end
  local read_address, read_network = of_address.read, of_network.read
  local function reader()
    if is_cut() then
      return nil, nil, CUT
    end
    local query = ngx.var.args
    local address_found, problem = read_address(query)
    local network_found, network_problem = read_network(query)
    return address_found, network_found, problem or network_problem
  end
  query_names[reader] = { address = of_address.name, network = of_network.name }
  return reader
end

---A reader of the key of a subject in the cache, where both stand in the query. It returns nil for any query but the
---usual one.
---@param reader riskscreen.nginx.SubjectReader
---@param prefix string of keys
---@return (fun(): string|nil, string|nil)|nil reader of the key and the network
function M.key_reader(reader, prefix)
  local names = query_names[reader]
  local read = names and query_key.reader(names.address, names.network, prefix)
  return read
    and function()
      local query = ngx.var.args
      if query and not is_cut() then
        return read(query)
      end
    end
end

return M
