rockspec_format = "3.0"
package = "riskscreen-sandbox"
version = "0.9.0-1"
source = { url = "https://example.com/riskscreen/riskscreen-0.9.0.tar.gz" }
description = {
  summary = "The simulated risk service of riskscreen, for tests and demonstrations",
  license = "MIT",
}
dependencies = { "lua >= 5.1, < 5.6", "riskscreen-library == 0.9.0" }
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
    RISKSCREEN_ROOMS = "sandbox",
  },
}
