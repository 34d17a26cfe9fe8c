-- Reads a compiled list without the core, inside nginx: a short one, into an index in memory. csrc/lists/format.h
-- has the layout.
local bit = require "bit"
local index = require "riskscreen.lists.index"

local band, bxor, rshift = bit.band, bit.bxor, bit.rshift

local MAGIC = "\137RSL\r\n\26\n"
local VERSION = 1
local HEADER, RECORD_HEAD, INDEX_ENTRY = 256, 12, 16 -- bytes
local POLYNOMIAL = 0x82f63b78 -- of CRC-32C, with its bits reversed
local WORD = 4294967296 -- 2^32

local M = {
  ---Bytes of the longest list that is read without the core.
  LONGEST = 4 * 1024 * 1024,
}

-- A little-endian number at a position.
local function number_at(text, position, size)
  local value = 0
  for at = position + size - 1, position, -1 do
    value = value * 256 + text:byte(at)
  end
  return value
end

local checksums = {}
for byte = 0, 255 do
  local rest = byte
  for _ = 1, 8 do
    rest = bxor(rshift(rest, 1), band(rest, 1) * POLYNOMIAL)
  end
  checksums[byte] = rest
end

-- The checksum of a part of a text.
local function crc32c(text, from, to)
  local value = -1
  for at = from, to do
    value = bxor(rshift(value, 8), checksums[band(bxor(value, text:byte(at)), 255)])
  end
  return bit.bnot(value) % WORD
end

local function damaged(what)
  return nil, "the list is damaged: " .. what
end

-- The sizes and the facts of a header; or nil and the fault.
local function read_header(text)
  if text:sub(1, 8) ~= MAGIC then
    return nil, "it is not a compiled list"
  elseif #text < HEADER then
    return damaged "it is shorter than a header"
  end
  local version = number_at(text, 9, 4)
  if version ~= VERSION then
    return nil, ("its format has version %.0f, and this library reads version %d"):format(version, VERSION)
  elseif crc32c(text, 17, HEADER) ~= number_at(text, 13, 4) then
    return damaged "the checksum of its header is wrong"
  end
  local header = {
    size = number_at(text, 17, 8),
    entries = number_at(text, 25, 8),
    records_size = number_at(text, 33, 8),
    built_at = number_at(text, 41, 8),
    body_crc = number_at(text, 49, 4),
    title = text:sub(55, 54 + number_at(text, 53, 2)),
  }
  if header.size ~= #text then
    return damaged(("it has %.0f bytes instead of %.0f"):format(#text, header.size))
  elseif HEADER + math.ceil(header.records_size / 16) * 16 + header.entries * INDEX_ENTRY ~= header.size then
    return damaged "the sizes in its header contradict each other"
  end
  return header
end

local function read_records(text, header)
  local found, at, last = index.new(), HEADER + 1, HEADER + header.records_size
  for _ = 1, header.entries do
    if at + RECORD_HEAD - 1 > last then
      return damaged "a record lies outside"
    end
    local scope, address, note = text:byte(at), text:byte(at + 1), number_at(text, at + 2, 2)
    local from = at + RECORD_HEAD
    if from + scope + address + note - 1 > last then
      return damaged "a record ends outside"
    end
    local place = { scope = text:sub(from, from + scope - 1) }
    place.address = text:sub(from + scope, from + scope + address - 1)
    from = from + scope + address
    found:add(place, text:sub(from, from + note - 1), number_at(text, at + 4, 8))
    at = from + note
  end
  if at ~= last + 1 then
    return damaged "it has more records than entries"
  end
  return found
end

---@param text string the whole file
---@return riskscreen.ListIndex|nil found
---@return table|string facts with `entries`, `built_at`, `size` and `title`; or the fault
function M.read(text)
  local header, fault = read_header(text)
  if not header then
    return nil, fault
  elseif crc32c(text, HEADER + 1, #text) ~= header.body_crc then
    return damaged "its checksum is wrong"
  end
  local found, problem = read_records(text, header)
  return found, found and header or problem
end

return M
