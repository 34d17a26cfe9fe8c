-- Table helpers: copies, merges, lists, results that are kept. Pure.

local text = require "riskscreen.util.text"

local EXACT = 2 ^ 53 -- every whole number below is exact in a double

local M = {
  unpack = table.unpack or unpack, -- luacheck: ignore 113 143
}

---A shallow copy.
---@param original table
---@return table
function M.copy(original)
  local copy = {}
  for key, value in pairs(original) do
    copy[key] = value
  end
  return copy
end

---A new table with the fields of both; where both have a field, it is the second one's.
---@param base table
---@param over? table
---@return table
function M.merge(base, over)
  local merged = M.copy(base)
  for key, value in pairs(over or {}) do
    merged[key] = value
  end
  return merged
end

---An object that has its methods as fields, for parts that a client or a gate has once. LuaJIT finds such a method with
---a quarter of the instructions that a metatable takes (`./dev bench nginx`).
---@generic T: table
---@param methods T
---@param fields table
---@return T
function M.object(methods, fields)
  return M.merge(methods, fields)
end

---A new list with the elements of all the lists, in order.
---@param ... any[]
---@return any[]
function M.concat(...)
  local joined = {}
  for _, list in ipairs { ... } do
    for _, value in ipairs(list) do
      joined[#joined + 1] = value
    end
  end
  return joined
end

---One field of every element of a list.
---@param list table[]
---@param field string
---@return any[]
function M.pluck(list, field)
  local values = {}
  for index, element in ipairs(list) do
    values[index] = element[field]
  end
  return values
end

---The values of a list as the keys of a set.
---@param list? any[]
---@return table<any, true>
function M.set(list)
  local set = {}
  for _, value in ipairs(list or {}) do
    set[value] = true
  end
  return set
end

---Whether a text comes before another one by its bytes. The locale of the program may order texts in another way.
---@param one string
---@param other string
---@return boolean
function M.precedes(one, other)
  local collation = os.setlocale(nil, "collate")
  if collation == "C" or collation == "POSIX" or type(one) ~= "string" or type(other) ~= "string" then
    return one < other
  end
  for position = 1, math.min(#one, #other) do
    local left, right = one:byte(position), other:byte(position)
    if left ~= right then
      return left < right
    end
  end
  return #one < #other
end

-- Sorts keys or texts by their bytes.
local function sort(list)
  table.sort(list, os.setlocale(nil, "collate") ~= "C" and M.precedes or nil)
end

---The names of all the tables' fields, sorted.
---@param ... table<string, any>
---@return string[]
function M.sorted_keys(...)
  local keys = {}
  for _, map in ipairs { ... } do
    for key in pairs(map) do
      keys[#keys + 1] = key
    end
  end
  sort(keys)
  return keys
end

---Inserts an element into a list that is sorted by a field, after those with the same value.
---@param list table[]
---@param field string
---@param element table
function M.insert_sorted(list, field, element)
  local low, high, value = 1, #list + 1, element[field]
  while low < high do
    local middle = math.floor((low + high) / 2)
    if list[middle][field] > value then
      high = middle
    else
      low = middle + 1
    end
  end
  table.insert(list, low, element)
end

---A function that calls `make` once for each argument and keeps the result as long as the argument lives. Arguments are
---tables that do not change. A result must not refer to its argument: Lua 5.1 would collect neither.
---@generic T
---@param make fun(argument: table): T
---@return fun(argument: table): T
function M.memoize(make)
  local made = setmetatable({}, { __mode = "k" })
  return function(argument)
    local result = made[argument]
    if result == nil then
      result = make(argument)
      made[argument] = result
    end
    return result
  end
end

---Whether two values are the same, or tables with the same content.
---@param left any
---@param right any
---@param is_alike? fun(left: any, right: any): boolean|nil also holds for the values, and for all within them
---@return boolean
function M.equal(left, right, is_alike)
  if is_alike and not is_alike(left, right) then
    return false
  elseif type(left) ~= "table" or type(right) ~= "table" then
    return left == right
  end
  for key, value in pairs(left) do
    if not M.equal(value, right[key], is_alike) then
      return false
    end
  end
  for key in pairs(right) do
    if left[key] == nil then
      return false
    end
  end
  return true
end

-- One text for each number, in every Lua: 1 and 1.0 are one number, and so are 0 and -0.
local function number_text(value)
  if value ~= value then
    return "nan"
  elseif value % 1 == 0 and math.abs(value) < EXACT then
    return ("%.0f=%.0f"):format(value + 0, value + 0):gsub("-0", "0")
  end
  -- The first form alone shortens fractions, and the second one large integers.
  return text.number("%s=%.17g", tostring(value), value)
end

---One text for values with equal content, in any process, and another text for any other value. A function has no
---content that can be compared: it raises.
---@param value any strings, numbers, booleans, JSON's null, and tables of them
---@return string
function M.fingerprint(value)
  local kind = type(value)
  if kind == "function" or kind == "thread" then
    error("a " .. kind .. " has no fingerprint", 2)
  elseif kind ~= "table" then
    local content = kind == "number" and number_text(value) or kind == "userdata" and "null" or tostring(value)
    return ("%s:%d:%s"):format(kind, #content, content)
  end
  local fields = {}
  for key, member in pairs(value) do
    fields[#fields + 1] = M.fingerprint(key) .. M.fingerprint(member)
  end
  sort(fields)
  return "{" .. table.concat(fields) .. "}"
end

---A copy without some fields, such as secrets.
---@param fields table
---@param ... string names
---@return table
function M.without(fields, ...)
  local copy = M.copy(fields)
  for index = 1, select("#", ...) do
    copy[select(index, ...)] = nil
  end
  return copy
end

---A copy of some fields.
---@param fields table
---@param names string[]
---@return table
function M.pick(fields, names)
  local picked = {}
  for _, name in ipairs(names) do
    picked[name] = fields[name]
  end
  return picked
end

M.INHERITS = "must be a plain table: what it inherits by a metatable would be lost; copy the fields into it"

---Whether a table may show more fields than it has, by its metatable. A copy of its fields would lose them silently.
---@param value table
---@return boolean
function M.inherits(value)
  local metatable = getmetatable(value)
  if metatable == nil then
    return false
  end
  return type(metatable) ~= "table" or metatable.__index ~= nil or metatable.__pairs ~= nil
end

---A copy of a value, and of the tables in it with their metatables: the caller may change its own meanwhile.
---@param value any
---@param copies? table<table, table> those made so far
---@return any copy
---@return string|nil message why the copy would lose something
function M.deep_copy(value, copies)
  copies = copies or {}
  if type(value) ~= "table" or copies[value] then
    return copies[value] or value
  elseif M.inherits(value) then
    return nil, M.INHERITS
  end
  local copy = {}
  copies[value] = copy
  for key, member in next, value do
    local own, message = M.deep_copy(member, copies)
    if message then
      return nil, message
    end
    copy[key] = own
  end
  return setmetatable(copy, getmetatable(value))
end

---The length of a proper list, or nil. `#` and `ipairs` would end a list with a hole early, without an error. A table
---that inherits fields is none.
---@param value table
---@return integer|nil
function M.sequence_length(value)
  if M.inherits(value) then
    return nil
  end
  local count, last = 0, 0
  for key in pairs(value) do
    if type(key) ~= "number" or key < 1 or key ~= math.floor(key) then
      return nil
    end
    count = count + 1
    last = math.max(last, key)
  end
  return count == last and count or nil
end

return M
