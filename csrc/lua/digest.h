/* The Lua functions core.sha256, core.keccak256 and core.hmac. */
#ifndef RSC_LUA_DIGEST_H
#define RSC_LUA_DIGEST_H

#include "lua/compat.h"

/* Sets the functions in the table at the top of the stack. */
void rsc_digest_register(lua_State *L);

#endif
