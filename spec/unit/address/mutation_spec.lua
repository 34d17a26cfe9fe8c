-- Addresses that were changed by accident or on purpose: none that the rules of its network refuse may become `allow`.
local addresses = require "riskscreen.sandbox.scenario_addresses"
local digest = require "riskscreen.address.digest"
local enums = require "riskscreen.interface.enums"
local json = require "riskscreen.json"
local random = require "spec.support.random"
local recorder = require "spec.support.recorder"
local riskscreen = require "riskscreen"

local SEED = 20260101
local MUTATIONS = 10000
local BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"

-- Addresses of each kind, in the spelling that their networks print.
local samples = {
  evm = {},
  io1 = { "io1mflp9m6hcgm2qcghchsdqj3z3eccrnekx9p0ms" },
  tron = {},
  tron_hexadecimal = { "41a614f803b6fd780986a42c78ec9c7f77e6ded13c" },
  btc = {
    "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa",
    "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy",
    "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0",
  },
  ltc = { "3MSvaVbVFFLML86rt5eqgA9SvW23upaXdY", "MTf4tP1TCNBn8dNkyxeBVoPrFCcVzxJvvh" },
  doge = {},
  solana = { "11111111111111111111111111111111" },
}

local kind_of_suffix = { eth = "evm", tron = "tron", btc = "btc", ltc = "ltc", doge = "doge", solana = "solana" }
for _, level in ipairs { "clean", "low", "generally-high", "high" } do
  for suffix, kind in pairs(kind_of_suffix) do
    table.insert(samples[kind], addresses[level .. "-" .. suffix])
  end
end

local kinds_of = {
  tron = { "tron", "tron_hexadecimal" },
  btc = { "btc" },
  ltc = { "ltc" },
  doge = { "doge" },
  solana = { "solana" },
  iotex = { "evm", "io1" },
}

-- The rules of the networks, written apart from the library and without its tables.

local function is_eip55(address)
  local digits = address:sub(3)
  local hash = digest.keccak256(digits:lower()):gsub(".", function(byte)
    return ("%02x"):format(byte:byte())
  end)
  local printed = digits:lower():gsub("()(%a)", function(index, letter)
    return hash:sub(index, index) >= "8" and letter:upper() or letter
  end)
  return digits == printed
end

local rules = {}

function rules.evm(address)
  if not address:find("^0[xX]" .. ("%x"):rep(40) .. "$") then
    return false
  end
  local digits = address:sub(3)
  return digits == digits:lower() or digits == digits:upper() or is_eip55(address)
end

function rules.tron_hexadecimal(address)
  return address:find("^41" .. ("%x"):rep(40) .. "$") ~= nil
end

-- The number of bytes of a Base58 text, found by long multiplication.
function rules.solana(address)
  local bytes = {}
  for digit in address:gmatch "." do
    local value = BASE58:find(digit, 1, true)
    if not value then
      return false
    end
    local carry = value - 1
    for index = 1, #bytes do
      local sum = bytes[index] * 58 + carry
      bytes[index], carry = sum % 256, math.floor(sum / 256)
    end
    while carry > 0 do
      bytes[#bytes + 1], carry = carry % 256, math.floor(carry / 256)
    end
  end
  return #bytes + #address:match "^1*" == 32
end

-- A changed text has a right checksum by accident in one of some 10^9 cases: only the samples are right.
for _, kind in ipairs { "tron", "btc", "ltc", "doge", "io1" } do
  rules[kind] = function(address)
    for _, sample in ipairs(samples[kind]) do
      local has_one_case = sample:find "^bc1" or sample:find "^ltc1" or sample:find "^io1"
      if address == sample or (has_one_case and address == sample:upper()) then
        return true
      end
    end
    return false
  end
end

local function is_address(address, network)
  for _, kind in ipairs(kinds_of[network] or { "evm" }) do
    if rules[kind](address) then
      return true
    end
  end
  return false
end

local homoglyphs = { "\208\176", "\208\181", "\206\191", "\239\188\145", "\217\161" }
local additions = { "\239\187\191", "\194\160", "\226\128\139", " ", "\t", "\r", "\0", '"', "'", ",eth", "ethereum:" }

local function mutations_with(draw)
  local function character()
    local code = draw.integer(62)
    return ("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"):sub(code, code)
  end

  local function at(address, length, replacement)
    local position = draw.integer(#address)
    return address:sub(1, position - 1) .. replacement .. address:sub(position + length)
  end

  return {
    function(address)
      return at(address, 0, character())
    end,
    function(address)
      return at(address, 1, "")
    end,
    function(address)
      return at(address, 1, character())
    end,
    function(address)
      local position = draw.integer(#address - 1)
      local one, other = address:sub(position, position), address:sub(position + 1, position + 1)
      return address:sub(1, position - 1) .. other .. one .. address:sub(position + 2)
    end,
    function(address)
      return at(address, 1, draw.pick(homoglyphs))
    end,
    function(address)
      local position = draw.integer(#address)
      local letter = address:sub(position, position)
      letter = letter:lower() == letter and letter:upper() or letter:lower()
      return address:sub(1, position - 1) .. letter .. address:sub(position + 1)
    end,
    string.upper,
    string.lower,
    function(address)
      return draw.pick(additions) .. address
    end,
    function(address)
      return address .. draw.pick(additions)
    end,
  }
end

-- A service without any risk: the answer repeats what was asked.
local function harmless(request)
  local address, network = request.target:match "address=([^&]*)&network=([^&]*)"
  local data = { address = address, network = network, whitelist = false, risks = json.empty_array() }
  return recorder.reply(200, { success = true, code = 1, msg = "SUCCESS", data = data })
end

describe("a changed address", function()
  it("never becomes allow if its network's rules refuse it", function()
    local draw = random.new(SEED)
    local mutations = mutations_with(draw)
    local client = riskscreen.new { access_key = "test-key", transport = harmless }
    local counts = { allow = 0, unknown = 0 }
    for _ = 1, MUTATIONS do
      local network = draw.pick(enums.values.network)
      local original = draw.pick(samples[draw.pick(kinds_of[network] or { "evm" })])
      local address = draw.pick(mutations)(original)
      if draw.integer(8) == 1 then
        address = draw.pick(mutations)(address)
      end
      local expected = is_address(address, network) and "allow" or "unknown"
      local action = client:screen({ address = address, network = network }).action
      if action ~= expected then
        error(("%s (%s): %q, changed from %s"):format(action, network, address, original))
      end
      counts[action] = counts[action] + 1
    end
    assert.is_true(counts.allow > MUTATIONS / 20 and counts.unknown > MUTATIONS / 2)
  end)
end)
