# Run by `cmake --install`: installs the command so that it finds the library below the prefix.

get_filename_component(directory ${RISKSCREEN_INSTALL_BINDIR} ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
set(installed $ENV{DESTDIR}${directory}/riskscreen)
file(READ ${PROJECT_BINARY_DIR}/bin/riskscreen command)
string(REGEX MATCH "^[^\n]*" first_line "${command}")

# The first Lua of a prefix runs the command. The command of another Lua has its name at the end, and takes the place of the
# first one when that is removed.
set(name riskscreen)
set(other "${first_line}")
if(EXISTS ${installed})
  file(STRINGS ${installed} other LIMIT_COUNT 1)
endif()
if(NOT other STREQUAL first_line)
  message(STATUS "Kept: ${installed} (${other})")
  set(name riskscreen-${lua_name})
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES ${directory}/riskscreen)
endif()

# Every Lua looks below /usr. A directory that is not relative to the prefix is one that a package manager sets up.
if(NOT CMAKE_INSTALL_PREFIX STREQUAL "/usr" AND NOT IS_ABSOLUTE ${RISKSCREEN_INSTALL_LMOD})
  set(lmod ${CMAKE_INSTALL_PREFIX}/${RISKSCREEN_INSTALL_LMOD})
  set(cmod ${CMAKE_INSTALL_PREFIX}/${RISKSCREEN_INSTALL_CMOD})
  string(REPLACE "\nlocal ran"
    "\npackage.path = [[${lmod}/?.lua;${lmod}/?/init.lua;]] .. package.path\npackage.cpath = [[${cmod}/?.so;]] .. package.cpath\nlocal ran"
    command "${command}")
endif()
file(WRITE ${PROJECT_BINARY_DIR}/install/${name} "${command}")
file(INSTALL DESTINATION ${directory} TYPE PROGRAM FILES ${PROJECT_BINARY_DIR}/install/${name})

# The command writes its completions. It needs argparse for that, as for everything else.
foreach(shell bash zsh fish)
  set(directory_bash bash-completion/completions)
  set(directory_zsh zsh/site-functions)
  set(directory_fish fish/vendor_completions.d)
  set(name_bash riskscreen)
  set(name_zsh _riskscreen)
  set(name_fish riskscreen.fish)
  set(file ${PROJECT_BINARY_DIR}/install/${shell}/${name_${shell}})
  get_filename_component(directory ${CMAKE_INSTALL_DATADIR}/${directory_${shell}}
    ABSOLUTE BASE_DIR ${CMAKE_INSTALL_PREFIX})
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env "LUA_PATH=${PROJECT_SOURCE_DIR}/lua/?.lua;${PROJECT_SOURCE_DIR}/lua/?/init.lua;;"
      "LUA_CPATH=${PROJECT_BINARY_DIR}/?.so;;" ${interpreter} ${PROJECT_BINARY_DIR}/bin/riskscreen completion ${shell}
    OUTPUT_VARIABLE completion RESULT_VARIABLE status ERROR_VARIABLE problem)
  if(NOT status EQUAL 0)
    message(STATUS "No completions: ${interpreter} does not run the command")
    return()
  endif()
  file(WRITE ${file} "${completion}")
  file(INSTALL DESTINATION ${directory} TYPE FILE FILES ${file})
endforeach()
