-- The addresses of the sandbox's scenarios, by name. Each is made of the hash of its name and belongs to nobody;
-- checksums are valid (EIP-55, Base58Check, Bech32). Their meaning is in scenarios.lua.
local base58 = require "riskscreen.address.base58"
local digest = require "riskscreen.address.digest"
local enums = require "riskscreen.interface.enums"
local text = require "riskscreen.util.text"

-- The names by the form of their addresses.
local names = {
  evm = "clean-eth low-eth generally-high-eth high-eth type-" .. table.concat(enums.values.risk_type, " type-") .. [[
    source-community source-user-defined whitelist-level whitelist-flag mixed-risks
    entity-exchange entity-mixer entity-defi entity-no-category contract frozen destroyed-eth
    risks-null risks-absent unseen-level unseen-type unseen-source malformed-level
    wrong-address wrong-network lower-case-answer omitted-in-bulk someone-else
    fault-hang fault-delay fault-500 fault-503 fault-503-once fault-429 fault-403 fault-reset
    fault-truncate fault-invalid-json fault-html fault-empty fault-drip
    blacklist-1 blacklist-2 blacklist-3 whitelist-1 whitelist-2 token]],
  tron = [[clean-tron low-tron generally-high-tron high-tron entity-gambling frozen-twice destroyed
    blacklist-4 blacklist-5 blacklist-6 whitelist-3 token-tron]],
  btc = "low-btc generally-high-btc",
  doge = "clean-doge low-doge generally-high-doge high-doge",
  ltc = "low-ltc generally-high-ltc",
  solana = "clean-solana low-solana generally-high-solana high-solana",
}

local versions = { tron = "\65", btc = "\0", doge = "\30", ltc = "\48" }

local function evm_address(hash)
  local digits = text.hex(hash:sub(1, 20))
  local checksum = text.hex(digest.keccak256(digits))
  return "0x"
    .. digits:gsub("()(%l)", function(position, letter)
      return checksum:find("^[89a-f]", position) and letter:upper()
    end)
end

local addresses = {
  ["clean-btc"] = "bc1qypqaqrcm8yxq3jx6gvpalkk7uhfdhty59h4gup",
  ["high-btc"] = "bc1qts3yced7fuw3g8wkttl446t02e3rd49zd8ng5u",
  ["clean-ltc"] = "ltc1q046qtjf2kp4yakhsazf25490hx6vhfgpgwxu99",
  ["high-ltc"] = "ltc1q5esrkas4fj8r7lngpxyt3wk5jhf3704drrv0et",
}

for form, list in pairs(names) do
  for _, name in ipairs(text.words(list)) do
    local hash = digest.sha256("riskscreen sandbox: " .. name)
    addresses[name] = form == "evm" and evm_address(hash)
      or versions[form] and base58.encode_check(versions[form] .. hash:sub(1, 20))
      or base58.encode(hash)
  end
end

return addresses
