/* core.encode: Lua values as JSON text. */
#ifndef RSC_LUA_ENCODER_H
#define RSC_LUA_ENCODER_H

#include "lua/compat.h"

/* Adds `encode` to the module table at the top of the stack, which has the `empty_array_mt` of the decoder. */
void rsc_encoder_register(lua_State *L);

#endif
