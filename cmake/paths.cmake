# Where `cmake --install` puts the files, relative to the prefix.

include(GNUInstallDirs)
# The directories in which Lua looks. Below /usr/local and other prefixes that is lib/lua on every system; below /usr,
# Debian adds the name of the machine, and others say lib64.
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
  set(cmod ${CMAKE_INSTALL_LIBDIR}/lua/${lua_version})
else()
  set(cmod lib/lua/${lua_version})
endif()
set(RISKSCREEN_INSTALL_CMOD ${cmod} CACHE STRING "Where C modules are installed")
set(RISKSCREEN_INSTALL_LMOD share/lua/${lua_version} CACHE STRING "Where Lua modules are installed")
set(RISKSCREEN_INSTALL_BINDIR ${CMAKE_INSTALL_BINDIR} CACHE STRING "Where the command is installed")
