# What `cmake --install` installs, besides the C modules. Several Luas can share a prefix: their files have names of their
# own, or are the same for all.

# Each room is a component. What a Lua loads besides the command is in four of them: ./dev install.
foreach(room ${RISKSCREEN_ROOMS})
  foreach(name ${room_${room}})
    if(IS_DIRECTORY ${PROJECT_SOURCE_DIR}/lua/riskscreen/${name})
      install(DIRECTORY lua/riskscreen/${name} DESTINATION ${RISKSCREEN_INSTALL_LMOD}/riskscreen COMPONENT ${room}
        FILES_MATCHING PATTERN "*.lua" PATTERN "report/page/*")
    else()
      install(FILES lua/riskscreen/${name}.lua DESTINATION ${RISKSCREEN_INSTALL_LMOD}/riskscreen COMPONENT ${room})
    endif()
  endforeach()
endforeach()

if("command" IN_LIST RISKSCREEN_ROOMS)
  install(FILES docs/riskscreen.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command)

  # Files that name the prefix, which `cmake --install --prefix` may change, are made when they are installed.
  set(variables PROJECT_SOURCE_DIR PROJECT_BINARY_DIR CMAKE_INSTALL_DATADIR RISKSCREEN_INSTALL_BINDIR RISKSCREEN_INSTALL_LMOD RISKSCREEN_INSTALL_CMOD
    CMAKE_INSTALL_LIBDIR interpreter lua_name)
  set(settings "")
  foreach(variable ${variables})
    string(APPEND settings "set(${variable} [==[${${variable}}]==])\n")
  endforeach()
  install(CODE "${settings}include([==[${PROJECT_SOURCE_DIR}/cmake/install_command.cmake]==])" COMPONENT command)
endif()

if(RISKSCREEN_STATIC)
  install(TARGETS riskscreen EXPORT riskscreen ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(FILES csrc/riskscreen.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})

  list(JOIN riskscreen_packages ", " packages)
  if(RISKSCREEN_LUA_PKG_MODULE_NAME)
    string(PREPEND packages "${RISKSCREEN_LUA_PKG_MODULE_NAME}, ")
  endif()
  configure_file(cmake/riskscreen.pc.in riskscreen-${lua_name}.pc @ONLY)
  install(CODE "${settings}include([==[${PROJECT_SOURCE_DIR}/cmake/install_pkgconfig.cmake]==])")

  include(CMakePackageConfigHelpers)
  set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/riskscreen)
  install(EXPORT riskscreen NAMESPACE riskscreen:: FILE riskscreen-${lua_name}-targets.cmake
    DESTINATION ${package_dir})
  configure_file(cmake/riskscreen-lua.cmake.in riskscreen-${lua_name}.cmake @ONLY)
  write_basic_package_version_file(riskscreenConfigVersion.cmake COMPATIBILITY SameMinorVersion)
  install(FILES cmake/riskscreenConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/riskscreen-${lua_name}.cmake
    ${CMAKE_CURRENT_BINARY_DIR}/riskscreenConfigVersion.cmake DESTINATION ${package_dir})
endif()

if(is_top_level)
  add_custom_target(uninstall
    COMMAND ${CMAKE_COMMAND} -Dlua_name=${lua_name} "-Dinterpreter=${interpreter}" -P ${PROJECT_SOURCE_DIR}/cmake/uninstall.cmake
    WORKING_DIRECTORY ${PROJECT_BINARY_DIR} VERBATIM)
endif()
