-- Spellings, formats and checksums of addresses. No other module decides whether a text is an address, or whether two
-- texts are the same address. The service may find no risk for a misspelt address, so such a text is refused. The
-- formats are those of the networks (formats.lua); the interface publishes none.
local foreign_characters = require "riskscreen.address.foreign_characters"
local formats = require "riskscreen.address.formats"
local generations = require "riskscreen.util.generations"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

local byte, lower = string.byte, string.lower

local LONGEST = 128 -- bytes
-- Checked addresses that are remembered, and as many before them. A gate's LRU holds 10,000 by default, and a hit there
-- costs no checksum.
local REMEMBERED = 8192

local ZERO, SMALL_X, LARGE_X, THREE, FOUR = byte "0", byte "x", byte "X", byte "3", byte "4"

local EVM = formats.eth
local EVM_LENGTH = 42 -- bytes

local is_lower_hexadecimal = text.made_of("0-9a-f", "0x")

-- Two names of one chain; an answer may have either.
local aliases = { ethereum = "eth" }

-- Tokens' standards and coins that other systems write for a network.
local meant_by = { erc20 = "eth", trc20 = "tron", trx = "tron", bep20 = "bsc", bnb = "bsc" }

local networks = tables.sorted_keys(formats)
local chains = {} -- every network under its one name, the busiest first

local M = {
  ---The one name of each network, by each of its names.
  ---@type table<string, string>
  network_names = {},
}

for _, network in ipairs(networks) do
  M.network_names[network] = aliases[network] or network
  if not aliases[network] then
    table.insert(chains, network == "eth" and 1 or #chains + 1, network)
  end
end

-- Canonical addresses by format and text, for texts that have passed a check.
local memories = {}
for _, level in ipairs { "checksum", "format" } do
  memories[level] = tables.memoize(function()
    return generations.new(REMEMBERED)
  end)
end

-- The canonical address of a text, or nil and the message of the first form that the text begins like.
local function read(format, address, checked)
  local first_message
  for _, form in ipairs(format.forms) do
    if address:find(form.beginning) then
      local canonical, message = form.read(address, checked)
      if canonical then
        return canonical
      end
      first_message = first_message or message
    end
  end
  return nil, first_message
end

local function begins_like_hexadecimal(address)
  local first, second = byte(address, 1, 2)
  return first == ZERO and (second == SMALL_X or second == LARGE_X)
end

-- How texts begin that have another canonical spelling, and the format that knows it. `3…` is old on Litecoin only.
local by_prefix = { BC1 = formats.btc, LTC = formats.ltc, io1 = formats.iotex, IO1 = formats.iotex }

local function rewriting_format(address, network)
  local first = byte(address)
  if first == FOUR and (network == "tron" or network == nil) then
    return formats.tron
  elseif first == THREE and network == "ltc" then
    return formats.ltc
  end
  local format = by_prefix[address:sub(1, 3)]
  local of_network = formats[network or false]
  return (of_network == nil or of_network == format) and format or nil
end

---The canonical spelling of an address: the same for every spelling of one address. A text that is no address stays as
---it is, except that 0x texts get lower case.
---@param address string
---@param network? string
---@return string canonical
---@return boolean is_hexadecimal
function M.normalize(address, network)
  text.expect("address", address, "string")
  if begins_like_hexadecimal(address) and is_lower_hexadecimal(lower(address)) then
    return lower(address), true
  end
  local format = rewriting_format(address, network)
  if not format or #address > LONGEST then
    return address, false
  end
  local memory = memories.checksum(format)
  local canonical = memory:get(address)
  if not canonical then
    canonical = read(format, address, true)
    if not canonical then
      return address, false
    end
    memory:set(address, canonical)
  end
  return canonical, begins_like_hexadecimal(canonical)
end

---The one name of a network, for comparisons. A name that is not known stays as it is.
---@param network any
---@return any
function M.canonical_network(network)
  return aliases[network or false] or network
end

---The network whose addresses those of a network look like: itself, or what the option `extend` says of an added one;
---nil where their form is not known.
---@param network any
---@param extend? { network?: table<string, string|true> }
---@return any
function M.alike(network, extend)
  local like = extend and extend.network and network ~= nil and extend.network[network] or network
  return like ~= true and like or nil
end

---The key of a network and an address: the same for every spelling. Caches, lists and stores use it.
---@param address any
---@param network any
---@param level? "checksum"|"format" how the address is checked; without it, any text has a key
---@return string|nil key nil if the service cannot know the address or the network
---@return string address canonical
---@return string network canonical
function M.key(address, network, level)
  local canonical_network = network and M.network_names[network]
  if type(address) ~= "string" or address == "" or #address > LONGEST or not canonical_network then
    return nil, "", ""
  end
  local canonical = not level and M.normalize(address, network) or level and M.validate(address, network, level)
  if not canonical then
    return nil, "", ""
  end
  return canonical_network .. ":" .. canonical, canonical, canonical_network
end

---The keys of an address on a network, or on all networks, and its different canonical spellings there.
---@param address any
---@param network? any without it, all networks
---@return string[]|nil spellings nil if the service cannot know the address or the network
---@return string[] keys
function M.keys(address, network)
  local keys, spellings, seen = {}, {}, {}
  for _, name in ipairs(network and { network } or chains) do
    local key, canonical = M.key(address, name)
    if not key then
      return nil, keys
    elseif not seen[canonical] then
      seen[canonical] = true
      spellings[#spellings + 1] = canonical
    end
    keys[#keys + 1] = key
  end
  return spellings, keys
end

---Every canonical spelling that a text may have, however it is checked: for what must miss none, such as a purge. A
---wrong checksum hides a spelling from `keys`.
---@param address any
---@param network? any without it, all networks
---@return string[]|nil spellings nil if the service cannot know the address or the network
function M.all_spellings(address, network)
  local spellings = M.keys(address, network)
  local seen = tables.set(spellings or {})
  for _, name in ipairs(spellings and (network and { network } or chains) or {}) do
    local key, canonical = M.key(address, name, "format")
    if key and not seen[canonical] then
      seen[canonical] = true
      spellings[#spellings + 1] = canonical
    end
  end
  return spellings
end

-- "looks like a tron address", where the text is valid on other networks.
local function other_network(address, network)
  local names, seen = {}, {}
  for _, other in ipairs(M.networks_of(address)) do
    for _, form in ipairs(formats[other].forms) do
      if address:find(form.beginning) and not seen[form.name] then
        seen[form.name] = true
        names[#names + 1] = form.name
      end
    end
  end
  if names[1] then
    return ("it looks like %s address, and the network is %s"):format(table.concat(names, " or "), network)
  end
end

---The hint at the network that a text is probably meant for.
---@param written any
---@param candidates string[] names of networks
---@return string hint "" for none
function M.did_you_mean(written, candidates)
  local meant = type(written) == "string" and meant_by[text.lower(written)]
  for _, candidate in ipairs(candidates) do
    if candidate == meant then
      return ("; did you mean '%s'?"):format(meant)
    end
  end
  return text.did_you_mean(written, candidates)
end

---A sentence for a person: why a text is no address of a network. Nil for an address.
---@param address any
---@param network string
---@return string|nil
function M.explain(address, network)
  local format = formats[network or false]
  if not format then
    local hint = M.did_you_mean(network, networks)
    return ("the network must be one that the service knows (got %s%s)"):format(text.show(network), hint)
  elseif type(address) ~= "string" then
    return ("the address must be a text (got %s)"):format(text.kind(address))
  elseif #address > LONGEST then
    return ("it is %s long, and the longest address has %d"):format(text.count(#address, "byte"), LONGEST)
  end
  local canonical, message = read(format, address, true)
  if canonical then
    return nil
  end
  return foreign_characters.explain(address)
    or other_network(address, network)
    or message
    or ("addresses of %s begin with %s"):format(network, format.beginning)
end

local function message_of(address, network)
  local message = M.explain(address, network)
  if not formats[network or false] then
    return message, "network"
  elseif type(address) ~= "string" then
    return message, "address"
  end
  return ("%s is not an address of the network %s: %s"):format(text.show(address), network, message), "address"
end

-- The same for a network whose form is not known: the text must be an address of some network.
local function validate_anywhere(address, network, level)
  if type(address) ~= "string" or address == "" then
    return nil, ("the address must be a text (got %s)"):format(text.show(address)), "address"
  elseif level ~= false and not M.networks_of(address, level)[1] then
    local message = "%s is not an address of any network; address_check = false accepts any text on %s"
    return nil, message:format(text.show(address), network), "address"
  end
  return (M.normalize(address))
end

---The canonical spelling of a text that is an address of a network.
---@param address any
---@param network any
---@param level? "checksum"|"format"|false by default "checksum"; false accepts any text
---@param added? table<string, string|true> networks that the operator has added, perhaps with one of the same form
---@return string|nil canonical
---@return string|nil message
---@return "address"|"network"|nil field
function M.validate(address, network, level, added)
  local like = added and network ~= nil and added[network]
  if like == true then
    return validate_anywhere(address, network, level)
  end
  network = like or network
  local format = formats[network or false]
  local memory = memories[level == nil and "checksum" or level]
  -- Nearly every address is a 0x text in lower case: it is canonical, and has no checksum.
  if
    memory
    and format == EVM
    and type(address) == "string"
    and #address == EVM_LENGTH
    and is_lower_hexadecimal(address)
  then
    return address
  end
  if not memory and level ~= false then
    error(("level must be 'checksum', 'format' or false (got %s)"):format(text.show(level)), 2)
  elseif not format or type(address) ~= "string" or #address > LONGEST then
    return nil, message_of(address, network)
  elseif not memory then
    return (M.normalize(address, network))
  end
  local known = memory(format)
  local canonical = known:get(address)
  if canonical then
    return canonical
  end
  canonical = read(format, address, level ~= "format")
  if not canonical then
    return nil, message_of(address, network)
  end
  known:set(address, canonical)
  return canonical
end

---Whether the addresses of a network are 0x texts.
---@param network any
---@return boolean
function M.is_evm(network)
  return formats[network or false] == EVM
end

-- The canonical addresses of a text by the formats that it has.
local function readings(address, level)
  local found = {}
  for _, network in ipairs(type(address) == "string" and #address <= LONGEST and networks or {}) do
    local format = formats[network]
    if found[format] == nil then
      found[format] = read(format, address, level ~= "format") or false
    end
  end
  return found
end

---The networks on which a text is an address, in alphabetical order.
---@param address any
---@param level? "checksum"|"format" by default "checksum"
---@return string[]
function M.networks_of(address, level)
  local list, found = {}, readings(address, level)
  for _, network in ipairs(networks) do
    list[#list + 1] = found[formats[network]] and network or nil
  end
  return list
end

---The canonical spellings of a text on all networks where it is an address. A script address of Bitcoin, for example,
---is also one of Litecoin, and has another spelling there.
---@param address any
---@param level? "checksum"|"format" by default "checksum"
---@return string[]
function M.spellings(address, level)
  if type(address) == "string" and begins_like_hexadecimal(address) then
    -- No other form begins so: Base58 has no zero, and iotex spells these addresses as the other networks do.
    return { (read(EVM, address, level ~= "format")) }
  end
  local list, seen, found = {}, {}, readings(address, level)
  for _, network in ipairs(networks) do
    local canonical = found[formats[network]]
    if canonical and not seen[canonical] then
      seen[canonical] = true
      list[#list + 1] = canonical
    end
  end
  return list
end

return M
