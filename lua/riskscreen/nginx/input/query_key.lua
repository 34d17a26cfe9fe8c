-- The key in the cache of the subject that a query names, in one pass of the C core over the query. It knows the usual
-- query alone: two plain parameters, an EVM address in lower case. Any other query is refused, and parameters.lua and
-- address/ read it, with the same result where both know it (spec/fuzz/targets/query_key.lua).
local addresses = require "riskscreen.address"
local core = require "riskscreen.util.core"
local optional = require "riskscreen.util.optional"
local tables = require "riskscreen.util.tables"

local KEY_SIZE = 256 -- bytes, more than RSC_QUERY_KEY_MAX in csrc/base/query.h
local ADDRESS_SIZE = 42 -- bytes of an EVM address

local ffi = optional "ffi"

-- The method of the core, and the same by LuaJIT's FFI, which does not leave compiled code (`./dev bench nginx`).
local function by_method(reader)
  return function(query)
    return reader:read(query)
  end
end

local by_ffi
if ffi and core then
  local buffer = ffi.new("char[?]", KEY_SIZE)
  local read = ffi.cast("int (*)(const void *, const char *, size_t, char *)", core.query_read)
  local ffi_string = ffi.string
  function by_ffi(reader, lengths)
    return function(query)
      local number = read(reader, query, #query, buffer)
      if number == 0 then
        return 0
      end
      return number, ffi_string(buffer, lengths[number])
    end
  end
end

local M = {}

---A function that returns the key and the network of a query's subject. It returns nil for a query that it does not
---know. There is no function without the core, nor for names that lenient programs mix up.
---@param address string name of the parameter
---@param network string name of the parameter
---@param prefix string of keys
---@return (fun(query: string): string|nil, string|nil)|nil
function M.reader(address, network, prefix)
  local reader = core and core.query_reader(address, network, prefix)
  if not reader then
    return nil
  end
  local canonical, lengths = {}, {}
  for _, name in ipairs(tables.sorted_keys(addresses.network_names)) do
    local its_name = addresses.network_names[name]
    if addresses.is_evm(name) and reader:add_network(name, its_name) then
      canonical[#canonical + 1] = its_name
      lengths[#canonical] = #(prefix .. its_name .. ":") + ADDRESS_SIZE
    end
  end
  local read = (by_ffi or by_method)(reader, lengths)
  return function(query)
    local number, key = read(query)
    if number > 0 then
      return key, canonical[number]
    end
  end
end

return M
