/* The interface for programs that embed Lua and link libriskscreen.a (CMake option RISKSCREEN_STATIC).
 *
 * Such a program also links libcurl, libmicrohttpd if the server was built, and libhiredis if it was found. Several Lua
 * states may use the library at once, each on its own thread. */
#ifndef RISKSCREEN_H
#define RISKSCREEN_H

#define RISKSCREEN_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* Inside extern "C", as in lua.hpp: lua.h itself has no C++ linkage guard. */
#include <lua.h>

RISKSCREEN_API int luaopen_riskscreen_core(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_system(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_server(lua_State *L);  /* absent if the library was built without libmicrohttpd */
RISKSCREEN_API int luaopen_riskscreen_hiredis(lua_State *L); /* absent if the library was built without libhiredis */

/* Registers every module of the library in package.preload, so that `require "riskscreen"` needs no file on disk. Call
 * it once for each Lua state, after opening the standard libraries. Raises if Lua runs out of memory. */
RISKSCREEN_API void riskscreen_preload(lua_State *L);

#ifdef __cplusplus
}
#endif

#endif
