-- IP addresses and networks, IPv4 and IPv6, from text. An IPv4 address counts as the IPv6 address ::ffff:a.b.c.d, which
-- an IPv6 socket shows for it. Lua 5.1 has no bit operators, so this compares hexadecimal digits.

local BITS, BITS_BEFORE_V4 = 128, 96
local LONGEST = #"0000:0000:0000:0000:0000:ffff:255.255.255.255" -- bytes; a client may choose the text
local V4 = "^" .. ("0"):rep(20) .. "ffff" -- the digits of an IPv4 address

local M = {}

-- The last two groups of an IPv4 address, or nil.
local function groups_of_v4(text)
  local a, b, c, d = text:match "^(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)%.(%d%d?%d?)$"
  for _, part in ipairs { a, b, c, d } do
    -- Some programs read "010" as octal.
    if tonumber(part) > 255 or part:find "^0%d" then
      return nil
    end
  end
  return a and ("%02x%02x:%02x%02x"):format(a, b, c, d)
end

-- The 32 digits of an address, or nil.
local function parse(text)
  if #text > LONGEST then
    return nil
  end
  local head, dotted = text:match "^(.-:?)(%d+%.[%d.]+)$"
  if head then
    text = (head == "" and "::ffff:" or head) .. (groups_of_v4(dotted) or "none")
  end
  local _, given = text:gsub("[^:]+", "")
  local groups, gaps = text:gsub("::", ":" .. ("0:"):rep(8 - given), 1)
  groups = groups:sub(text:find "^::" and 2 or 1, text:find "::$" and -2 or -1)
  local digits = {}
  for group in (groups .. ":"):gmatch "([^:]*):" do
    if not group:find "^%x%x?%x?%x?$" then
      return nil
    end
    digits[#digits + 1] = ("%04x"):format(tonumber(group, 16))
  end
  return #digits == 8 and given + gaps <= 8 and table.concat(digits) or nil
end

---@class riskscreen.Network
---@field digits string
---@field bits integer

---The network of a text such as "192.0.2.0/24", "2001:db8::/32", or of one address.
---@param text any
---@return riskscreen.Network|nil
function M.network(text)
  if type(text) ~= "string" then
    return nil
  end
  local address, length = text:match "^([^/]+)/(%d%d?%d?)$"
  address = address or text
  local digits, before = parse(address), address:find(":", 1, true) and 0 or BITS_BEFORE_V4
  local bits = before + tonumber(length or BITS - before)
  return digits and bits <= BITS and { digits = digits, bits = bits } or nil
end

local function contains(network, digits)
  if network.bits < BITS_BEFORE_V4 and digits:find(V4) then
    return false
  end
  local whole, rest = math.floor(network.bits / 4), network.bits % 4
  local function beyond(all)
    return math.floor(tonumber(all:sub(whole + 1, whole + 1), 16) / 2 ^ (4 - rest))
  end
  return digits:sub(1, whole) == network.digits:sub(1, whole)
    and (rest == 0 or beyond(digits) == beyond(network.digits))
end

---Whether an address belongs to one of several networks.
---@param networks riskscreen.Network[]
---@param text any the address
---@return boolean
function M.is_within(networks, text)
  local digits = type(text) == "string" and parse(text)
  for _, network in ipairs(digits and networks or {}) do
    if contains(network, digits) then
      return true
    end
  end
  return false
end

return M
