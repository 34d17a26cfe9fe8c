/* What a program that links riskscreen statically calls. */
#ifndef RISKSCREEN_H
#define RISKSCREEN_H

#include <lua.h>

#define RISKSCREEN_API __attribute__((visibility("default")))

RISKSCREEN_API int luaopen_riskscreen_core(lua_State *L);
RISKSCREEN_API int luaopen_riskscreen_server(lua_State *L);

#endif
