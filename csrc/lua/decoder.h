/* The decoder as Lua sees it: core.null, core.empty_array_mt, core.decode and core.decoder. */
#ifndef RSC_LUA_DECODER_H
#define RSC_LUA_DECODER_H

#include <stddef.h>

#include "compat.h"

/* Sets null, empty_array_mt, decode and decoder in the table at the top of the stack. */
void rsc_decoder_register(lua_State *L);

/* Raises an argument error unless the value at the index is a decoder. */
void rsc_decoder_check(lua_State *L, int index);

/* Decodes `length` bytes with the decoder at `decoder_index` (of whose type the caller is sure). Pushes the value, or
 * nil, a message and the 1-based position of the fault (see csrc/json/scan.h; a text over the size limit is at fault in
 * its first byte too many), and returns how many it pushed. May raise when Lua is out of memory.
 *
 * `text` need not end with NUL. It must stay where it is during the call, and the call can run finalizers: hold
 * whatever owns it. */
int rsc_decoder_push(lua_State *L, int decoder_index, const char *text, size_t length);

#endif
