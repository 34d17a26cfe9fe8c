-- Arbitrary Lua values from bytes, and the bytes of a value (for seeds). Every byte string is valid, and a small change
-- to it changes the value a little, so that a fuzzer makes progress.
local core = require "riskscreen.core"
local enums = require "riskscreen.interface.enums"

local MAX_DEPTH = 8 -- tables inside tables

local words = {
  "riskLevel",
  "riskType",
  "riskSource",
  "risks",
  "address",
  "network",
  "whitelist",
  "contract",
  "entity",
  "entityCategory",
  "entityCategoryCode",
  "opponents",
  "dir",
  "amount",
  "symbol",
  "frozenBalance",
  "destroyedBalance",
  "contractAddress",
  "chain",
  "txTime",
  "type",
  "event",
  "rules",
  "extend",
  "provider",
  "absent_entity",
  "not_offered",
  "lifting",
  "action",
  "name",
  "error",
  "level",
  "source",
  "no_risk",
  "unrecognised",
  "category",
  "frozen",
  "counterparty",
  "direction",
  "share",
  "unknown",
  "none",
  "allow",
  "review",
  "block",
  "exchange",
  "0xabc",
  "12.5",
  "0",
  "USDT",
  "other",
  "",
}
for _, name in ipairs { "risk_level", "risk_type", "risk_source", "direction" } do
  for _, value in ipairs(enums.values[name]) do
    words[#words + 1] = value
  end
end
for _, kind in ipairs { "network", "timeout", "server", "api", "protocol" } do
  words[#words + 1] = kind
end
assert(#words <= 256)

local word_number = {}
for number, word in ipairs(words) do
  word_number[word] = number - 1
end

local numbers = { 0, 1, -1, 0.5, -0.0, 1e300, 2 ^ 53, 1 / 0, -1 / 0, 0 / 0, 1e-6, 100 }

local tags = { "none", "yes", "no", "null", "byte", "number", "word", "text", "list", "object", "table", "empty" }
local tag_number = {}
for number, tag in ipairs(tags) do
  tag_number[tag] = number - 1
end

local Reader = {}
Reader.__index = Reader

---The next byte; 0 past the end.
function Reader:byte()
  local byte = self.bytes:byte(self.at)
  self.at = self.at + 1
  return byte or 0
end

local readers = {}

function readers.none() end

function readers.yes()
  return true
end

function readers.no()
  return false
end

function readers.null()
  return core.null
end

function readers.byte(reader)
  return reader:byte()
end

function readers.number(reader)
  return numbers[reader:byte() % #numbers + 1]
end

function readers.word(reader)
  return words[reader:byte() % #words + 1]
end

function readers.text(reader)
  local length = reader:byte() % 32
  local text = reader.bytes:sub(reader.at, reader.at + length - 1)
  reader.at = reader.at + length
  return text
end

function readers.list(reader, depth)
  local list = {}
  for i = 1, reader:byte() % 16 do
    list[i] = reader:value(depth + 1)
  end
  return list
end

function readers.object(reader, depth)
  local object = {}
  for _ = 1, reader:byte() % 16 do
    object[readers.word(reader)] = reader:value(depth + 1)
  end
  return object
end

-- Any key but those that Lua refuses.
function readers.table(reader, depth)
  local result = {}
  for _ = 1, reader:byte() % 8 do
    local key, value = reader:value(depth + 1), reader:value(depth + 1)
    if key ~= nil and key == key then
      result[key] = value
    end
  end
  return result
end

function readers.empty()
  return setmetatable({}, core.empty_array_mt)
end

---The next value.
function Reader:value(depth)
  depth = depth or 0
  if depth > MAX_DEPTH or self.at > #self.bytes then
    return nil
  end
  return readers[tags[self:byte() % #tags + 1]](self, depth)
end

local M = {}

---@param bytes string
function M.reader(bytes)
  return setmetatable({ bytes = bytes, at = 1 }, Reader)
end

local function tagged(tag, ...)
  return string.char(tag_number[tag], ...)
end

---The bytes that are read as the value, which holds only what JSON can.
---@param value any
---@return string
function M.write(value)
  if value == nil then
    return tagged "none"
  elseif type(value) == "boolean" then
    return tagged(value and "yes" or "no")
  elseif type(value) == "number" then
    return tagged("byte", math.floor(value) % 256)
  elseif type(value) == "string" then
    return word_number[value] and tagged("word", word_number[value]) or tagged("text", #value % 32) .. value
  end
  local parts = {}
  if value[1] ~= nil or next(value) == nil then
    for i, element in ipairs(value) do
      parts[i] = M.write(element)
    end
    return tagged("list", #parts) .. table.concat(parts)
  end
  for name, member in pairs(value) do
    if word_number[name] then
      parts[#parts + 1] = string.char(word_number[name]) .. M.write(member)
    end
  end
  table.sort(parts)
  return tagged("object", #parts) .. table.concat(parts)
end

return M
