-- The formats of each network's addresses. A form is one kind of text, such as "0x…" or "bc1…". Its `read` returns
-- the canonical address, or nil and the reason why the text is not of this form.
local base58 = require "riskscreen.address.base58"
local bech32 = require "riskscreen.address.bech32"
local digest = require "riskscreen.address.digest"
local text = require "riskscreen.util.text"

local byte, char = string.byte, string.char

local CHECKSUM_FAILS = "the checksum fails: is a letter wrong?"
local HASH = 21 -- bytes of a version and a hash
local BASE58CHECK = 25 -- bytes: a hash and four bytes of checksum

local is_hexadecimal = text.made_of "0-9a-fA-F"

---@class riskscreen.AddressForm
---@field name string for messages: "a btc"
---@field beginning string the pattern of what its texts begin with
---@field read fun(address: string, checked: boolean): string|nil, string|nil without `checked`, a wrong checksum passes

---@class riskscreen.AddressFormat
---@field forms riskscreen.AddressForm[]
---@field beginning string the first characters of its addresses, for messages

-- EIP-55: of each letter the digest of the lower-case address says whether it is large.
local function has_eip55_case(digits)
  local hash = digest.keccak256(digits:lower())
  for index = 1, #digits do
    local code = byte(digits, index)
    if code >= 65 then
      local pair = byte(hash, (index + index % 2) / 2)
      local half = index % 2 == 1 and pair >= 128 or index % 2 == 0 and pair % 16 >= 8
      if half ~= (code < 97) then
        return false
      end
    end
  end
  return true
end

local function wrong_length(address, whose, wanted)
  return nil, ("it is %s long, and %s has %s"):format(text.count(#address, "character"), whose, wanted)
end

---@type riskscreen.AddressForm
local evm = {
  name = "an EVM (0x…)",
  beginning = "^0[xX]",
  read = function(address, checked)
    if #address ~= 42 then
      return wrong_length(address, "a 0x address", 42)
    end
    local at = address:find("[^0-9a-fA-F]", 3)
    if at then
      return nil, ("it has the character '%s' at position %d, which is not hexadecimal"):format(address:sub(at, at), at)
    end
    local digits = address:sub(3)
    local is_mixed = digits:find "[a-f]" and digits:find "[A-F]"
    if checked and is_mixed and not has_eip55_case(digits) then
      return nil, CHECKSUM_FAILS
    end
    return address:lower()
  end,
}

-- Base58Check. `versions` has the canonical version for each version byte of the network.
local function base58check(name, beginning, shortest, longest, versions)
  return {
    name = name,
    beginning = beginning,
    read = function(address, checked)
      local message = base58.explain(address)
      if message then
        return nil, message
      elseif #address < shortest or #address > longest then
        local wanted = shortest == longest and shortest or ("%d to %d"):format(shortest, longest)
        return wrong_length(address, name .. " address", wanted)
      end
      local bytes = base58.decode(address)
      local version = bytes and #bytes == BASE58CHECK and versions[byte(bytes)]
      if not version or (checked and not base58.has_checksum(bytes)) then
        return nil, CHECKSUM_FAILS
      elseif version ~= byte(bytes) and base58.has_checksum(bytes) then
        return base58.encode_check(char(version) .. bytes:sub(2, HASH))
      end
      return address
    end,
  }
end

-- The message about wrong symbols of a segwit address, or nil: BIP-173 and BIP-350.
local function segwit_message(decoded)
  local version = decoded.symbols[1]
  local size = version and bech32.bytes_in(decoded.symbols, 2)
  if not version or version > 16 then
    return "its witness version is none that exists"
  elseif not size or size < 2 or size > 40 or (version == 0 and size ~= 20 and size ~= 32) then
    return "its witness program has a wrong length: is a letter missing?"
  end
end

local function segwit(name, prefix, beginning)
  return {
    name = name,
    beginning = beginning,
    read = function(address, checked)
      local decoded, message = bech32.decode(address, prefix)
      if not decoded then
        return nil, message
      end
      message = segwit_message(decoded)
      -- A wrong letter is likelier where the checksum fails, too.
      if checked and decoded.variant ~= (decoded.symbols[1] == 0 and "bech32" or "bech32m") then
        return nil, CHECKSUM_FAILS
      end
      return not message and address:lower() or nil, message
    end,
  }
end

-- 20 bytes are 32 symbols without padding; four symbols are five hexadecimal digits.
---@type riskscreen.AddressForm
local io1 = {
  name = "an iotex (io1…)",
  beginning = "^[iI][oO]1",
  read = function(address, checked)
    local decoded, message = bech32.decode(address, "io")
    if not decoded then
      return nil, message
    elseif checked and decoded.variant ~= "bech32" then
      return nil, CHECKSUM_FAILS
    elseif #decoded.symbols ~= 32 then
      return nil, "it has a wrong length: is a letter missing?"
    end
    local digits = {}
    for index = 1, 32, 4 do
      local number = 0
      for place = index, index + 3 do
        number = number * 32 + decoded.symbols[place]
      end
      digits[#digits + 1] = ("%05x"):format(number)
    end
    return "0x" .. table.concat(digits)
  end,
}

---@type riskscreen.AddressForm
local tron_hexadecimal = {
  name = "a tron (41…)",
  beginning = "^41",
  read = function(address)
    if #address ~= HASH * 2 then
      return wrong_length(address, "a tron address that begins with 41", HASH * 2)
    elseif not is_hexadecimal(address) then
      return nil, "it begins with 41 and is not hexadecimal"
    end
    return base58.encode_check((address:gsub("..", function(pair)
      return char(tonumber(pair, 16))
    end)))
  end,
}

---@type riskscreen.AddressForm
local solana = {
  name = "a solana",
  beginning = "",
  read = function(address)
    local message = base58.explain(address)
    if message then
      return nil, message
    elseif #address < 32 or #address > 44 then
      return wrong_length(address, "a solana address", "32 to 44")
    elseif #base58.decode(address) ~= 32 then
      return nil, "it is not the Base58 of 32 bytes: is a letter missing?"
    end
    return address
  end,
}

local evm_format = { beginning = "0x", forms = { evm } }

---@type table<string, riskscreen.AddressFormat> by network
local M = {
  iotex = { beginning = "0x or io1", forms = { evm, io1 } },
  tron = {
    beginning = "T",
    forms = { base58check("a tron", "^T", 34, 34, { [0x41] = 0x41 }), tron_hexadecimal },
  },
  btc = {
    beginning = "1, 3 or bc1",
    forms = {
      base58check("a btc", "^[13]", 26, 35, { [0x00] = 0x00, [0x05] = 0x05 }),
      segwit("a btc", "bc", "^[bB][cC]1"),
    },
  },
  ltc = {
    beginning = "L, M, 3 or ltc1",
    forms = {
      -- 0x05 is the old version of 0x32.
      base58check("an ltc", "^[LM3]", 26, 35, { [0x30] = 0x30, [0x32] = 0x32, [0x05] = 0x32 }),
      segwit("an ltc", "ltc", "^[lL][tT][cC]1"),
    },
  },
  doge = {
    beginning = "D, A or 9",
    forms = { base58check("a doge", "^[DA9]", 26, 35, { [0x1e] = 0x1e, [0x16] = 0x16 }) },
  },
  solana = { beginning = "letters and digits of Base58", forms = { solana } },
}

local evm_networks = "ethereum eth bsc polygon arbitrum optimism avalanche base zksync merlin kaia ftm theta etc lumia"
for network in evm_networks:gmatch "%a+" do
  M[network] = evm_format
end

return M
