/* The Lua functions core.sha256 and core.keccak256. */
#ifndef RSC_LUA_DIGEST_H
#define RSC_LUA_DIGEST_H

#include "lua/compat.h"

/* Sets sha256 and keccak256 in the table at the top of the stack. */
void rsc_digest_register(lua_State *L);

#endif
