/* The Lua binding of compiled lists: core.list, core.list_writer and core.list_identity. */
#ifndef RSC_LUA_LISTS_H
#define RSC_LUA_LISTS_H

#include "lua/compat.h"

/* Adds the functions to the table at the top of the stack. */
void rsc_lists_register(lua_State *L);

#endif
