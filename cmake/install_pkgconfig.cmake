# Run by `cmake --install`: installs the file of pkg-config with the prefix in it.

set(name riskscreen-${lua_name}.pc)
file(READ ${PROJECT_BINARY_DIR}/${name} text)
string(REPLACE "PREFIX" "${CMAKE_INSTALL_PREFIX}" text "${text}")
file(WRITE ${PROJECT_BINARY_DIR}/install/${name} "${text}")
file(INSTALL DESTINATION ${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/pkgconfig
  TYPE FILE FILES ${PROJECT_BINARY_DIR}/install/${name})
