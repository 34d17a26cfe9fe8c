rockspec_format = "3.0"
package = "riskscreen-decoder"
version = "scm-1"
source = { url = "git+file://." }
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
