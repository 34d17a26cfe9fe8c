# find_package(riskscreen [COMPONENTS lua5.4]) defines riskscreen::riskscreen, the static library, and the Lua modules
# riskscreen::core, riskscreen::system and others, whose files a program can ship.
#
# The component is lua5.4, lua5.5, lua5.3, lua5.1 or luajit. Without one it is the first of these that is installed. A target of
# a Lua of your own goes into RISKSCREEN_LUA_TARGET.

set(_riskscreen_luas ${riskscreen_FIND_COMPONENTS})
if(NOT _riskscreen_luas)
  foreach(_riskscreen_lua lua5.4 lua5.5 lua5.3 lua5.1 luajit)
    if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/riskscreen-${_riskscreen_lua}.cmake)
      list(APPEND _riskscreen_luas ${_riskscreen_lua})
    endif()
  endforeach()
endif()
list(GET _riskscreen_luas 0 _riskscreen_lua)
list(LENGTH riskscreen_FIND_COMPONENTS _riskscreen_count)
if(_riskscreen_count GREATER 1)
  set(riskscreen_FOUND FALSE)
  set(riskscreen_NOT_FOUND_MESSAGE "a program has one Lua, so one component (got '${riskscreen_FIND_COMPONENTS}')")
elseif(NOT EXISTS ${CMAKE_CURRENT_LIST_DIR}/riskscreen-${_riskscreen_lua}.cmake)
  set(riskscreen_FOUND FALSE)
  set(riskscreen_NOT_FOUND_MESSAGE "riskscreen is not installed for '${_riskscreen_lua}'")
elseif(NOT TARGET riskscreen::riskscreen)
  include(${CMAKE_CURRENT_LIST_DIR}/riskscreen-${_riskscreen_lua}.cmake)
  foreach(_riskscreen_target riskscreen ${riskscreen_modules})
    add_library(riskscreen::${_riskscreen_target} ALIAS riskscreen::${_riskscreen_target}-${_riskscreen_lua})
  endforeach()
endif()
