-- The files of LuaRocks and OPM that state the version: rockspecs and dist.ini.

local version = require "riskscreen.version"

local SUMMARY = "Screen blockchain addresses and transactions against a risk service, and never get a wrong yes"
-- Stands for the addresses of the project, which is not published yet.
local HOME = "https://example.com/riskscreen"

local DECODER = [[
rockspec_format = "3.0"
package = "riskscreen-decoder"
version = "%s-1"
source = { url = "%s" }
description = {
  summary = "The JSON decoder of riskscreen alone: strict, fast, and without libcurl",
  license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.6" }
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    LUA_INCLUDE_DIR = "$(LUA_INCDIR)",
    RISKSCREEN_INSTALL_CMOD = "$(LIBDIR)",
    RISKSCREEN_PARTS = "decoder",
  },
}
]]

local LIBRARY = [[
rockspec_format = "3.0"
package = "riskscreen"
version = "%s-1"
source = { url = "%s" }
description = {
  summary = "]] .. SUMMARY .. [[",
  license = "MIT",
}
-- The command needs argparse, which is not named here: most systems have it as a package that LuaRocks does not see.
dependencies = { "lua >= 5.1, < 5.6" }
external_dependencies = {
  CURL = { library = "curl" },
}
build = {
  type = "cmake",
  variables = {
    CMAKE_BUILD_TYPE = "Release",
    CMAKE_INSTALL_PREFIX = "$(PREFIX)",
    LUA_INCLUDE_DIR = "$(LUA_INCDIR)",
    RISKSCREEN_INSTALL_CMOD = "$(LIBDIR)",
    RISKSCREEN_INSTALL_LMOD = "$(LUADIR)",
    RISKSCREEN_INSTALL_BINDIR = "$(BINDIR)",
    RISKSCREEN_INTERPRETER = "$(LUA)",
    RISKSCREEN_PARTS = "library", -- LuaRocks builds the rock of the decoder in the same directory
  },
}
test = { type = "command", script = "spec/rock.lua" }
]]

local DIST = [[
# What opm reads. Written by tools/generate.lua.
name = riskscreen
abstract = %s
author = the riskscreen authors
is_original = yes
license = mit
repo_link = %s
lib_dir = lua
doc_dir = docs
main_module = lua/riskscreen/init.lua
version = %s
requires = luajit >= 2.1.0, ngx_http_lua >= 0.10.19
]]

local M = {}

---The files by path.
---@return table<string, string>
function M.files()
  local tarball = ("%s/riskscreen-%s.tar.gz"):format(HOME, version)
  local released = version .. "-1.rockspec"
  return {
    ["riskscreen-scm-1.rockspec"] = LIBRARY:format("scm", "git+file://."),
    ["rockspecs/riskscreen-" .. released] = LIBRARY:format(version, tarball),
    ["rockspecs/decoder/riskscreen-decoder-scm-1.rockspec"] = DECODER:format("scm", "git+file://."),
    ["rockspecs/decoder/riskscreen-decoder-" .. released] = DECODER:format(version, tarball),
    ["dist.ini"] = DIST:format(SUMMARY, HOME, version),
  }
end

return M
