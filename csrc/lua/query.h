/* The Lua binding of the reader of queries: core.query_reader and core.query_read. */
#ifndef RSC_LUA_QUERY_H
#define RSC_LUA_QUERY_H

#include "lua/compat.h"

/* Adds them to the table at the top of the stack. */
void rsc_query_register(lua_State *L);

#endif
