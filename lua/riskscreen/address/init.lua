-- Spellings and formats of addresses. No other module decides whether a text is an address, or whether two texts are
-- the same address. The service may find no risk for a misspelt address, so such a text is refused. The formats are
-- those of the networks; the interface publishes none.
local text = require "riskscreen.util.text"

local byte, lower = string.byte, string.lower

local LONGEST = 128 -- bytes

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"

local is_hexadecimal = text.made_of "0-9a-fA-F"
local is_base58 = text.made_of "1-9A-HJ-NP-Za-km-z"

local function has_hexadecimal_prefix(address)
  local first, second = byte(address, 1, 2)
  return first == ZERO and (second == SMALL_X or second == LARGE_X)
end

local function evm(address)
  return #address == 42 and has_hexadecimal_prefix(address) and is_hexadecimal(address, 3)
end

local function base58(shortest, longest, first)
  return function(address)
    return #address >= shortest and #address <= longest and address:find(first) ~= nil and is_base58(address)
  end
end

-- Upper case would be the same address, but the service may not know that.
local function bech32(prefix)
  return function(address)
    return address:find("^" .. prefix .. "1[02-9ac-hj-np-z]+$") ~= nil and #address >= 14 and #address <= 90
  end
end

local function any(...)
  local forms = { ... }
  return function(address)
    for _, is_form in ipairs(forms) do
      if is_form(address) then
        return true
      end
    end
    return false
  end
end

-- The format of every network of the interface.
local formats = {
  tron = base58(34, 34, "^T"),
  btc = any(base58(25, 35, "^[13]"), bech32 "bc"),
  ltc = any(base58(25, 35, "^[LM3]"), bech32 "ltc"),
  doge = base58(25, 35, "^[DA9]"),
  solana = base58(32, 44, ""),
  iotex = any(evm, bech32 "io"),
}

for _, network in ipairs {
  "ethereum",
  "eth",
  "bsc",
  "polygon",
  "arbitrum",
  "optimism",
  "avalanche",
  "base",
  "zksync",
  "merlin",
  "kaia",
  "ftm",
  "theta",
  "etc",
  "lumia",
} do
  formats[network] = evm
end

local M = { LONGEST = LONGEST }

---The canonical spelling of an address. Only 0x addresses are case-insensitive.
---@param address string
---@return string canonical
---@return boolean is_hexadecimal
function M.canonical(address)
  if has_hexadecimal_prefix(address) and is_hexadecimal(address, 3) then
    return lower(address), true
  end
  return address, false
end

---The reason why a text is no address of a network, or nil.
---@param address any
---@param network any
---@return string|nil problem
---@return "address"|"network"|nil field
function M.problem(address, network)
  local is_address = formats[network or false]
  if not is_address then
    return ("the network must be one that the service knows (got %s)"):format(text.show(network)), "network"
  elseif type(address) ~= "string" then
    return ("the address must be a text (got %s)"):format(text.kind(address)), "address"
  elseif #address > LONGEST then
    return ("the address must be at most %d bytes long (got %d)"):format(LONGEST, #address), "address"
  elseif not is_address(address) then
    return ("the address is none of the network %s (got %s)"):format(network, text.show(address)), "address"
  end
end

return M
