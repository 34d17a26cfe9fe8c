-- Whether a text can be an address of a network at all. Pure. The service answers about the text that it is sent: one
-- spelled so that it knows nothing of it, while whoever pays out understands it, would seem to be without risk.
-- The spellings are those of the networks themselves; the interface publishes none.
local enums = require "riskscreen.interface.enums"
local text = require "riskscreen.util.text"

local byte = string.byte

local LONGEST = 128 -- bytes

local ZERO, SMALL_X, LARGE_X = byte "0", byte "x", byte "X"

local is_hexadecimal = text.made_of "0-9a-fA-F"
local is_base58 = text.made_of "1-9A-HJ-NP-Za-km-z"

local function hexadecimal(address)
  local first, second = byte(address, 1, 2)
  return #address == 42 and first == ZERO and (second == SMALL_X or second == LARGE_X) and is_hexadecimal(address, 3)
end

local function base58(shortest, longest, first)
  return function(address)
    return #address >= shortest and #address <= longest and address:find(first) ~= nil and is_base58(address)
  end
end

-- In one case, the lower: the other means the same address, of which a service need not know that.
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

local forms = {
  tron = base58(34, 34, "^T"),
  btc = any(base58(25, 35, "^[13]"), bech32 "bc"),
  ltc = any(base58(25, 35, "^[LM3]"), bech32 "ltc"),
  doge = base58(25, 35, "^[DA9]"),
  solana = base58(32, 44, ""),
  iotex = any(hexadecimal, bech32 "io"),
}

local M = { LONGEST = LONGEST }

---What is wrong with an address and a network, if anything.
---@param address any
---@param network any
---@return string|nil problem
---@return "address"|"network"|nil field
function M.problem(address, network)
  if type(network) ~= "string" or not enums.has("network", network) then
    return ("the network must be one that the service knows (got %s)"):format(text.show(network)), "network"
  elseif type(address) ~= "string" then
    return ("the address must be a text (got %s)"):format(text.kind(address)), "address"
  elseif #address > LONGEST then
    return ("the address must be at most %d bytes long (got %d)"):format(LONGEST, #address), "address"
  elseif not (forms[network] or hexadecimal)(address) then
    return ("the address is none of the network %s (got %s)"):format(network, text.show(address)), "address"
  end
end

return M
