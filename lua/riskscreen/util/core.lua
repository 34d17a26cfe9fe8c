-- The C core, or false where it is not compiled for this Lua. A core of another release is an error.
local optional = require "riskscreen.util.optional"
local version = require "riskscreen.version"

local core = optional "riskscreen.core"
if core and core.version ~= version then
  local message = "riskscreen.core has version %s and the Lua files have version %s: install both from one release, "
    .. "and restart nginx: a reload keeps the old core"
  error(message:format(core.version, version), 0)
end
return core or false
