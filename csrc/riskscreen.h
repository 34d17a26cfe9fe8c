/* What a program that links riskscreen statically (libriskscreen.a, CMake's RISKSCREEN_STATIC) calls. It links libcurl
 * too, and libmicrohttpd where the server was built; lua-cjson must be there for `require`. */
#ifndef RISKSCREEN_H
#define RISKSCREEN_H

#include <lua.h>

#define RISKSCREEN_API __attribute__((visibility("default")))

RISKSCREEN_API int luaopen_riskscreen_core(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_server(lua_State *L); /* only where libmicrohttpd was found */

/* Registers all of the library in package.preload: `require "riskscreen"` then needs no file on disk. Call it once for
 * each Lua state, after its standard libraries were opened. Raises when Lua is out of memory. */
RISKSCREEN_API void riskscreen_preload(lua_State *L);

#endif
