-- Builders of option entries. Every option table is made of these, so that an entry always has its unit and its limits.

local tables = require "riskscreen.util.tables"

local LONGEST_WAIT = 86400 -- seconds
local SHORTEST_WAIT = 0.001 -- seconds
local MAX_CONCURRENCY = 1024
local SHORTEST_KEY = 16 -- bytes of a key that signs

local M = {
  LONGEST_WAIT = LONGEST_WAIT,
  SHORTEST_WAIT = SHORTEST_WAIT,
  ---After "is required": why an option may be missing that programs take from the environment.
  NO_VARIABLE = " (got nil; if it comes from os.getenv, is the environment variable set?)",
}

---@class riskscreen.Option
---@field name string
---@field type string a Lua type, "integer" or "any"; several are joined by "|"
---@field default? any
---@field required? boolean
---@field remedy? string after "is required"
---@field minimum? number
---@field maximum? number
---@field unit? string of the number
---@field values? any[] the only values it may have
---@field fields? riskscreen.Option[] the entries of a table's fields
---@field entry? riskscreen.Option of each value of a list, or of a table by names
---@field is_list? boolean with `entry`
---@field hides_names? boolean of a table by names: they may be secrets, and no message shows them
---@field check? fun(value: any): any, string? the checked copy, or nil and a message; it gets the checked fields or
---entries
---@field doc string

---A number within limits.
---@param name string
---@param unit string
---@param default number|nil
---@param minimum number
---@param maximum number
---@param doc string
---@return riskscreen.Option
function M.number(name, unit, default, minimum, maximum, doc)
  local option = { name = name, type = "number", default = default, unit = unit, doc = doc }
  option.minimum, option.maximum = minimum, maximum
  return option
end

---A whole number within limits.
---@param name string
---@param unit string
---@param default integer|nil
---@param minimum integer
---@param maximum integer
---@param doc string
---@return riskscreen.Option
function M.count(name, unit, default, minimum, maximum, doc)
  local option = M.number(name, unit, default, minimum, maximum, doc)
  option.type = "integer"
  return option
end

---A number of things that are done at the same time.
---@param unit string
---@param default integer|nil
---@param doc string
---@return riskscreen.Option
function M.concurrency(unit, default, doc)
  return M.count("concurrency", unit, default, 1, MAX_CONCURRENCY, doc)
end

---Seconds: from a millisecond to a day, where no other limits are given.
---@param name string
---@param default number|nil
---@param doc string
---@param minimum? number
---@param maximum? number
---@return riskscreen.Option
function M.seconds(name, default, doc, minimum, maximum)
  return M.number(name, "seconds", default, minimum or SHORTEST_WAIT, maximum or LONGEST_WAIT, doc)
end

---One of several texts.
---@param name string
---@param values string[]
---@param default string|nil
---@param doc string
---@return riskscreen.Option
function M.choice(name, values, default, doc)
  return { name = name, type = "string", values = values, default = default, doc = doc }
end

---@param name string
---@param default boolean
---@param doc string
---@return riskscreen.Option
function M.flag(name, default, doc)
  return { name = name, type = "boolean", default = default, doc = doc }
end

---A function of the operator's whose result or failure counts: the code that calls it handles both.
---@param name string
---@param doc string
---@param default? function
---@return riskscreen.Option
function M.callback(name, doc, default)
  return { name = name, type = "function", default = default, doc = doc }
end

---A function of the operator's that is only told something: its failure changes nothing.
---@param name string
---@param doc string
---@param default? function
---@return riskscreen.Option
function M.notice(name, doc, default)
  return M.checked(name, "function", function(value)
    return require("riskscreen.util.guard").notice(name, value)
  end, doc, default)
end

---A clock of the operator's. Where it fails, the time is that of `instead`.
---@param doc string
---@param instead fun(): number
---@param default? fun(): number
---@return riskscreen.Option
function M.clock(doc, instead, default)
  return M.checked("clock", "function", function(value)
    return require("riskscreen.util.guard").number("clock", value, instead)
  end, doc, default)
end

---A table with options of its own.
---@param name string
---@param fields riskscreen.Option[]
---@param doc string
---@param default? table its own fields get their defaults
---@return riskscreen.Option
function M.group(name, fields, doc, default)
  return { name = name, type = "table", fields = fields, default = default, doc = doc }
end

---A table of values that have one entry, by names.
---@param name string
---@param entry riskscreen.Option
---@param doc string
---@param default? table
---@param check? fun(value: table): any, string? of the checked entries together
---@return riskscreen.Option
function M.map(name, entry, doc, default, check)
  return { name = name, type = "table", entry = entry, doc = doc, default = default, check = check }
end

---A list of values that have one entry.
---@param name string
---@param entry riskscreen.Option
---@param doc string
---@param default? table
---@param check? fun(value: table): any, string? of the checked entries together
---@return riskscreen.Option
function M.list(name, entry, doc, default, check)
  local option = M.map(name, entry, doc, default, check)
  option.is_list = true
  return option
end

---A table of options that a module lists, which is loaded when they are given.
---@param name string
---@param module string
---@param doc string
---@return riskscreen.Option
function M.late_group(name, module, doc)
  return setmetatable({ name = name, type = "table", doc = doc }, {
    __index = function(_, key)
      return key == "fields" and require(module).options or nil
    end,
  })
end

---A table of options, with `true` for the defaults and `false` for off.
---@param name string
---@param fields riskscreen.Option[]
---@param default boolean|nil
---@param doc string
---@return riskscreen.Option
function M.switch(name, fields, default, doc)
  return { name = name, type = "table|boolean", fields = fields, default = default, doc = doc }
end

---A value that a function checks.
---@param name string
---@param kind string the Lua type
---@param check fun(value: any): any, string?
---@param doc string
---@param default? any
---@return riskscreen.Option
function M.checked(name, kind, check, doc, default)
  return { name = name, type = kind, check = check, default = default, doc = doc }
end

---A table of names and values that a function checks.
---@param name string
---@param check fun(value: table): any, string?
---@param doc string
---@param default? table
---@return riskscreen.Option
function M.dictionary(name, check, doc, default)
  return M.checked(name, "table", function(value)
    if tables.inherits(value) then
      return nil, tables.INHERITS
    end
    return check(value)
  end, doc, default)
end

---A text of a form.
---@param name string
---@param form { pattern: string, message: string } one of `forms`
---@param doc string
---@param default? string
---@return riskscreen.Option
function M.text(name, form, doc, default)
  return M.checked(name, "string", function(value)
    if type(value) == "string" and not value:find(form.pattern) then
      return nil, form.message
    end
    return value
  end, doc, default)
end

M.forms = {
  word = { pattern = "^[%w_-]+$", message = "must be of letters, digits, '_' and '-'" },
  name = { pattern = "^[%w_.-]+$", message = "must be of letters, digits, '_', '.' and '-'" },
  file = { pattern = "^[^%z\1-\31\127]+$", message = "must be the name of a file" },
  -- For nginx: the directive working_directory gives workers another directory than the master has.
  absolute = { pattern = "^/[^%z\1-\31\127]*$", message = "must be a path that begins with '/'" },
  not_empty = { pattern = ".", message = "must not be empty" },
  -- So many bytes, or more.
  key = { pattern = ("."):rep(SHORTEST_KEY), message = ("must have at least %d bytes"):format(SHORTEST_KEY) },
}

---The checked copy of a list. A text stands for a list of it.
---@param value table|string
---@param wanted string the name of its items, for messages
---@param check fun(item: any): any the checked item, or true for the item itself; nil or false refuses it
---@param fewest? integer items
---@param most? integer items
---@return any[]|nil checked
---@return string|nil message an item may hold a secret and is not shown
function M.list_of(value, wanted, check, fewest, most)
  local is_text = type(value) == "string"
  value = is_text and { value } or value
  local count, list = tables.sequence_length(value), {}
  if not count then
    return nil, "must be a list of " .. wanted
  elseif count < (fewest or 0) or count > (most or count) then
    return nil, ("must be a list of %s, %s %d"):format(wanted, most and "at most" or "at least", most or fewest)
  end
  for index, item in ipairs(value) do
    local checked = check(item)
    if not checked then
      return nil,
        ("must be a list of %s; %s is not such a value"):format(wanted, is_text and "the text" or "entry " .. index)
    end
    list[index] = checked == true and item or checked
  end
  return list
end

---An object that the library makes, told by the name of its class.
---@param name string
---@param class string
---@param maker string
---@param doc string
---@return riskscreen.Option
function M.object(name, class, maker, doc)
  return M.checked(name, "table", function(value)
    local metatable = getmetatable(value)
    if type(metatable) ~= "table" or metatable.__name ~= class then
      return nil, "must be made by " .. maker
    end
    return value
  end, doc)
end

---The same entry, required.
---@param option riskscreen.Option
---@param remedy? string
---@return riskscreen.Option
function M.required(option, remedy)
  option.required, option.remedy = true, remedy
  return option
end

return M
