-- Options of the library as flags of the command: names, and values from text. The limits are the option's own.

local check = require "riskscreen.options.check"
local status = require "riskscreen.cli.status"
local tables = require "riskscreen.util.tables"
local text = require "riskscreen.util.text"

---@class riskscreen.cli.Option: riskscreen.Option
---@field short? string one letter
---@field argument? string how the help names its value
---@field list? boolean several values: the flag is repeated, or its value has commas
---@field is_repeated? boolean several values: the flag and the setting are repeated, and all values count

local M = {}

---An option whose value is a text.
---@param name string
---@param argument string how the help names its value
---@param doc string
---@param short? string one letter
---@return riskscreen.cli.Option
function M.text(name, argument, doc, short)
  return { name = name, type = "string", argument = argument, short = short, doc = doc }
end

---The flag of an option: "page_size" and "pageSize" are "--page-size".
---@param name string
---@return string
function M.flag(name)
  local words = name:gsub("(%l)(%u)", "%1-%2"):gsub("[_.]", "-")
  return "--" .. words:lower()
end

local seconds_of = { s = 1, m = 60, h = 3600, d = 86400, [""] = 1 }

---A text such as "6h" or "90" as seconds.
---@param written string
---@return number|nil seconds
---@return string|nil reason
function M.duration(written)
  local number, unit = written:match "^(%d+%.?%d*)([smhd]?)$"
  if not number then
    return nil, "must be a time such as 90s, 30m, 6h or 1d"
  end
  return tonumber(number) * seconds_of[unit]
end

local function accepts(option, kind)
  return ("|" .. option.type .. "|"):find("|" .. kind .. "|", 1, true) ~= nil
end

---Whether an option's value can be written as a text.
---@param option riskscreen.cli.Option
---@return boolean
function M.is_writable(option)
  return option.list
    or accepts(option, "string")
    or accepts(option, "number")
    or accepts(option, "integer")
    or accepts(option, "boolean")
end

local switches = { ["true"] = true, yes = true, on = true, ["false"] = false, no = false, off = false }

---The value that a text stands for. A text of the wrong kind stays a text, so that the option's check refuses it.
---@param option riskscreen.cli.Option
---@param written string|boolean|string[] what is no text is a value already
---@return any
function M.value(option, written)
  if type(written) ~= "string" then
    return written
  elseif option.list then
    local list = {}
    for item in written:gmatch "[^,]+" do
      list[#list + 1] = item
    end
    return list
  elseif (accepts(option, "number") or accepts(option, "integer")) and tonumber(written) then
    return tonumber(written)
  elseif accepts(option, "boolean") and switches[written] ~= nil then
    return switches[written]
  elseif option.values and tables.set(option.values)[text.lower(written)] then
    return text.lower(written)
  end
  return written
end

---The checked values of options. A wrong value ends the command with a message that names the flag.
---@param options riskscreen.cli.Option[]
---@param values table<string, any>
---@return table checked
function M.check(options, values)
  local checked, problem = check.options(options, values)
  if not checked then
    local name = problem.field:match "^[%w_]+"
    local is_first = problem.message:sub(1, #name) == name
    status.misuse(is_first and M.flag(name) .. problem.message:sub(#name + 1) or problem.message)
  end
  return checked
end

---The values of some options among those of a verb.
---@param options riskscreen.Option[]
---@param given table<string, any>
---@return table<string, any>
function M.values(options, given)
  return tables.pick(given, tables.pluck(options, "name"))
end

---Picks options by name from a table of options.
---@param options riskscreen.Option[]
---@param names string[]
---@param changes? table<string, table> by name: what is another for the command
---@return riskscreen.Option[]
function M.pick(options, names, changes)
  local picked, by_name = {}, {}
  for _, option in ipairs(options) do
    by_name[option.name] = option
  end
  for index, name in ipairs(names) do
    local option = by_name[name] or error("there is no option " .. text.show(name), 2)
    picked[index] = tables.merge(option, changes and changes[name])
  end
  return picked
end

return M
