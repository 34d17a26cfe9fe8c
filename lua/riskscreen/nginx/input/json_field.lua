-- The texts in one field of a JSON body. A body is refused if two programs could read different texts there. Pure.
local json = require "riskscreen.json"
local folded = require("riskscreen.nginx.input.parameters").folded

local MAX_VALUES = 100 -- texts of one path

-- Some programs take the first of two members with one name, and some the last.
local decoder = json.decoder { duplicates = "refuse", null = "keep" }

local M = {}

-- Whether some program takes a name for the folded one. Some end a name at the first NUL. Some read "to.x" and "to[0]"
-- as paths.
local function looks_like(name, folded_name)
  local whole = folded(name:match "^%Z*")
  return whole:gsub("%.", "") == folded_name or whole:match "^[^.[]*" == folded_name
end

local function member(object, wanted)
  local count, folded_name = 0, folded(wanted)
  for name in pairs(object) do
    count = count + (looks_like(name, folded_name) and 1 or 0)
  end
  if count > 1 then
    return nil, "is repeated"
  elseif object[wanted] == nil then
    return nil, "is missing"
  end
  return object[wanted]
end

-- Adds the texts of a path to `values`; returns a problem if there is one.
local function collect(value, path, depth, values)
  local step = path[depth]
  if step == nil then
    if type(value) ~= "string" then
      return "is not a text"
    elseif #values == MAX_VALUES then
      return "is there too often"
    end
    values[#values + 1] = value
  elseif type(value) ~= "table" or json.is_array(value) ~= (step == "*") then
    return "is missing"
  elseif step == "*" then
    for _, element in ipairs(value) do
      local problem = collect(element, path, depth + 1, values)
      if problem then
        return problem
      end
    end
  else
    local found, problem = member(value, step)
    return problem or collect(found, path, depth + 1, values)
  end
end

---The texts of a path.
---@param text string
---@param path string[] names; "*" stands for every element of an array
---@return string[]|nil values at least one
---@return string|nil problem "is missing", "is repeated" …
function M.values(text, path)
  local body = decoder:decode(text)
  if body == nil then
    return nil, "is in a body that is not JSON, or repeats a name"
  end
  local values = {}
  local problem = collect(body, path, 1, values)
  if not problem and not values[1] then
    problem = "is missing"
  end
  if problem then
    return nil, problem
  end
  return values
end

return M
