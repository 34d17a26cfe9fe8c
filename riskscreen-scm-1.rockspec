rockspec_format = "3.0"
package = "riskscreen"
version = "scm-1"
source = { url = "git+file://." }
description = {
  summary = "Screen blockchain addresses and transactions against a risk service, and never get a wrong yes",
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
