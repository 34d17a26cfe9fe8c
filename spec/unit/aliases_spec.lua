-- Enumerations that annotations write by hand have the values of their tables.
local errors = require "riskscreen.errors"
local lookups = require "riskscreen.policy.lookups"
local tables = require "riskscreen.util.tables"

-- The values of an alias, in order.
local function values_of(path, alias)
  local file = assert(io.open(path))
  local values, is_inside = {}, false
  for line in file:lines() do
    if line:find("^%-%-%-@alias " .. alias:gsub("%.", "%%.") .. "%f[^%w.]") then
      is_inside = true
    elseif is_inside and not line:find "^%-%-%-|" then
      break
    end
    for value in (is_inside and line or ""):gmatch '"([^"]*)"' do
      values[#values + 1] = value
    end
  end
  file:close()
  table.sort(values)
  return values
end

local function sorted(list)
  local copy = tables.copy(list)
  table.sort(copy)
  return copy
end

describe("an alias has the values of its table", function()
  local cases = {
    ["riskscreen.ErrorKind"] = { "lua/riskscreen/errors.lua", tables.pluck(errors.kinds, "kind") },
    ["riskscreen.LookupName"] = { "lua/riskscreen/policy/lookups.lua", lookups.names },
    ["riskscreen.Action"] = { "lua/riskscreen/policy/decision.lua", { "allow", "review", "block", "unknown" } },
  }
  for alias, case in pairs(cases) do
    it(alias, function()
      assert.same(sorted(case[2]), values_of(case[1], alias))
      assert.same(sorted(case[2]), values_of("types/riskscreen.lua", alias))
    end)
  end
end)
