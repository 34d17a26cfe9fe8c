rockspec_format = "3.0"
package = "riskscreen-command"
version = "scm-1"
source = { url = "git+file://." }
description = {
  summary = "The command of riskscreen, for shells, scripts and files of addresses",
  license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.6", "riskscreen-library == scm", "riskscreen-sandbox == scm", "riskscreen-durable == scm" }
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
    RISKSCREEN_PARTS = "library", -- LuaRocks builds all rocks in the same directory
    RISKSCREEN_ROOMS = "command",
  },
}
