/* The decoder's Lua interface: core.null, core.empty_array_mt, core.decode and core.decoder. */
#ifndef RSC_LUA_DECODER_H
#define RSC_LUA_DECODER_H

#include "base/text.h"
#include "lua/compat.h"

/* Sets null, empty_array_mt, decode and decoder in the table at the top of the stack. */
void rsc_decoder_register(lua_State *L);

/* Decodes a text with the decoder at `decoder_index`, whose type the caller has checked. Pushes the value, or nil, a
 * message and the 1-based position of the fault (see json/scan.h). Returns how many values it pushed. A text over
 * max_size has its fault at byte max_size + 1. Raises if Lua runs out of memory.
 *
 * A NUL must follow the text. The call can run finalizers, so the caller must keep the owner of the text alive. */
int rsc_decoder_push(lua_State *L, int decoder_index, struct rsc_text text);

#endif
