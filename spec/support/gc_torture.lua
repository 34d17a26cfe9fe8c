-- A helper for busted (--helper). The garbage collector steps before and after every call into the C modules. So an
-- object without an anchor is freed before it is used.
local core = require "riskscreen.core"
local server = require "riskscreen.server"

local function tortured(fn)
  local function after(ok, ...)
    collectgarbage "step"
    if not ok then
      -- Misuse is reported at the caller's line, as if the caller had called the C function itself.
      error((...), 2) -- `after` replaces the wrapper on the stack
    end
    return ...
  end
  return function(...)
    collectgarbage "step"
    return after(pcall(fn, ...))
  end
end

local function torture(functions)
  for name, fn in pairs(functions) do
    if type(fn) == "function" then
      functions[name] = tortured(fn)
    end
  end
end

torture(core)
torture(server)
for name, metatable in pairs(debug.getregistry()) do
  if type(name) == "string" and name:find "^riskscreen%." and type(metatable) == "table" then
    if type(metatable.__index) == "table" then
      torture(metatable.__index)
    elseif metatable.__index then
      metatable.__index = tortured(metatable.__index)
    end
  end
end
