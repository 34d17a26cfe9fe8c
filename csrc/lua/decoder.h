/* The decoder's Lua interface: core.null, core.empty_array_mt, core.decode and core.decoder. */
#ifndef RSC_LUA_DECODER_H
#define RSC_LUA_DECODER_H

#include <stddef.h>

#include "lua/compat.h"

/* Sets null, empty_array_mt, decode and decoder in the table at the top of the stack. */
void rsc_decoder_register(lua_State *L);

/* Raises an argument error unless the value at the index is a decoder. */
void rsc_decoder_check(lua_State *L, int index);

/* Decodes `length` bytes with the decoder at `decoder_index`, whose type the caller has checked. Pushes the value, or
 * nil, a message and the 1-based position of the fault (see json/scan.h). Returns how many values it pushed. A text
 * over max_size has its fault at byte max_size + 1. Raises if Lua runs out of memory.
 *
 * text[length] must be NUL. The call can run finalizers, so the caller must keep the owner of `text` alive. */
int rsc_decoder_push(lua_State *L, int decoder_index, const char *text, size_t length);

#endif
