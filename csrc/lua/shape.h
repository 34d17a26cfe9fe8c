/* Shapes of decoded values: core.shape. */
#ifndef RSC_LUA_SHAPE_H
#define RSC_LUA_SHAPE_H

#include "lua/compat.h"

/* Adds the function to the table at the top, which has empty_array_mt already. */
void rsc_shape_register(lua_State *L);

#endif
