-- What a verdict is remembered under: one address on one chain, whatever the spelling of either. Pure.
local enums = require "riskscreen.enums"

local byte, lower = string.byte, string.lower

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"
local LONGEST = 1024 -- bytes; no address is as long, and keys have room for more

---@class riskscreen.nginx.Subject
---@field key string the same for all spellings, and for nothing else
---@field address string canonical
---@field network string canonical
---@field is_hexadecimal boolean the address has no case

-- Whether nothing but hexadecimal digits follows the first two bytes.
local function has_digits_only(address)
  return address:find "^..%x+$" ~= nil
end

-- The same as machine code: a pattern keeps LuaJIT from compiling all that calls for it.
local has_ffi, ffi = pcall(require, "ffi")
if has_ffi then
  ffi.cdef "size_t strspn(const char *text, const char *accepted);"
  has_digits_only = function(address)
    local digits = #address - 2
    return digits > 0 and ffi.C.strspn(ffi.cast("const char *", address) + 2, "0123456789abcdefABCDEF") == digits
  end
end

-- As subject.canonical_address has it.
local function canonical(address)
  local first, second = byte(address, 1, 2)
  if first == ZERO and (second == SMALL_X or second == LARGE_X) and has_digits_only(address) then
    return lower(address), true
  end
  return address, false
end

local M = {}

---Every network, under its one name.
---@type string[]
M.networks = {}
for _, network in ipairs(enums.values.network) do
  if enums.canonical_network(network) == network then
    table.insert(M.networks, network)
  end
end

---What an address on a network is remembered under; nil for what no service could be asked.
---@param address any
---@param network any
---@return riskscreen.nginx.Subject|nil
function M.of(address, network)
  if type(address) ~= "string" or address == "" or #address > LONGEST or not enums.has("network", network) then
    return nil
  end
  local canonical_address, is_hexadecimal = canonical(address)
  local canonical_network = enums.canonical_network(network)
  return {
    key = canonical_network .. ":" .. canonical_address,
    address = canonical_address,
    network = canonical_network,
    is_hexadecimal = is_hexadecimal,
  }
end

return M
