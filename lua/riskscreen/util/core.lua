-- The C core, or false where it is not compiled for this Lua. A core of another release is an error.
local version = require "riskscreen.version"

local found, core = pcall(require, "riskscreen.core")
if found and core.version ~= version then
  local message = "riskscreen.core has version %s and the Lua files have version %s: install both from one release, "
    .. "and restart nginx: a reload keeps the old core"
  error(message:format(core.version, version), 0)
end
return found and core
