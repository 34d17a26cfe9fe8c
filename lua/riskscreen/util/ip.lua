-- IP addresses and networks, IPv4 and IPv6, from text. Lua 5.1 has no bit operators, so this uses arithmetic.

local M = {}

local function parse_v4(text)
  local a, b, c, d = text:match "^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)$"
  if not a then
    return nil
  end
  local bytes = { tonumber(a), tonumber(b), tonumber(c), tonumber(d) }
  for i, part in ipairs { a, b, c, d } do
    -- Some programs read "010" as octal.
    if bytes[i] > 255 or part:find "^0%d" then
      return nil
    end
  end
  return bytes
end

-- Appends the groups of one side of a "::" as bytes.
local function parse_groups(text, bytes)
  local count = #bytes
  if text == "" then
    return true
  end
  for group in (text .. ":"):gmatch "([^:]*):" do
    if not group:find "^%x%x?%x?%x?$" then
      return false
    end
    local value = tonumber(group, 16)
    bytes[count + 1], bytes[count + 2] = math.floor(value / 256), value % 256
    count = count + 2
  end
  return count <= 16
end

-- Replaces the dotted end of "::ffff:192.0.2.1" by two groups.
local function without_dots(text)
  local head, dotted = text:match "^(.*:)(%d+%.%d+%.%d+%.%d+)$"
  if not head then
    return text
  end
  local bytes = parse_v4(dotted)
  return bytes and ("%s%x:%x"):format(head, bytes[1] * 256 + bytes[2], bytes[3] * 256 + bytes[4])
end

local function parse_v6(text)
  text = without_dots(text)
  if not text or not text:find(":", 1, true) or text:find ":::" then
    return nil
  end
  local left, right = text:match "^(.-)::(.*)$"
  if right and right:find("::", 1, true) then
    return nil
  end
  local bytes, tail = {}, {}
  if not parse_groups(left or text, bytes) or not parse_groups(right or "", tail) then
    return nil
  elseif right and #bytes + #tail > 14 or not right and #bytes ~= 16 then
    return nil
  end
  for _ = 1, 16 - #bytes - #tail do
    bytes[#bytes + 1] = 0
  end
  for _, byte in ipairs(tail) do
    bytes[#bytes + 1] = byte
  end
  return bytes
end

-- An IPv6 socket shows an IPv4 client as ::ffff:a.b.c.d; the result is the IPv4 address.
local function unmapped(bytes)
  for i = 1, 12 do
    if bytes[i] ~= (i > 10 and 255 or 0) then
      return bytes
    end
  end
  return { bytes[13], bytes[14], bytes[15], bytes[16] }
end

-- The bytes of an address: 4 or 16.
local function parse(text)
  local bytes = parse_v4(text) or parse_v6(text)
  return bytes and #bytes == 16 and unmapped(bytes) or bytes
end

---@class riskscreen.Network
---@field bytes integer[] 4 or 16
---@field bits integer

---The network of a text such as "192.0.2.0/24", "2001:db8::/32", or of one address.
---@param text any
---@return riskscreen.Network|nil
function M.network(text)
  if type(text) ~= "string" then
    return nil
  end
  local address, length = text:match "^([^/]+)/(%d%d?%d?)$"
  local bytes = parse_v4(address or text) or parse_v6(address or text)
  if not bytes then
    return nil
  end
  local bits = length and tonumber(length) or #bytes * 8
  if bits > #bytes * 8 then
    return nil
  elseif #bytes == 16 and bits >= 96 and #unmapped(bytes) == 4 then
    return { bytes = unmapped(bytes), bits = bits - 96 }
  end
  return { bytes = bytes, bits = bits }
end

local function contains(network, bytes)
  if #network.bytes ~= #bytes then
    return false
  end
  local whole = math.floor(network.bits / 8)
  for i = 1, whole do
    if network.bytes[i] ~= bytes[i] then
      return false
    end
  end
  local rest = network.bits % 8
  local size = 2 ^ (8 - rest)
  return rest == 0 or math.floor(network.bytes[whole + 1] / size) == math.floor(bytes[whole + 1] / size)
end

---Whether an address belongs to one of several networks.
---@param networks riskscreen.Network[]
---@param text any the address
---@return boolean
function M.is_within(networks, text)
  local bytes = type(text) == "string" and parse(text)
  for _, network in ipairs(bytes and networks or {}) do
    if contains(network, bytes) then
      return true
    end
  end
  return false
end

return M
