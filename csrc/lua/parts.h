/* The parts of riskscreen.core. Each function sets the functions of its file in the module table at the top of the
 * stack. */
#ifndef RSC_LUA_PARTS_H
#define RSC_LUA_PARTS_H

#include "base/text.h"
#include "lua/compat.h"

/* null, empty_array_mt, decode and decoder */
void rsc_decoder_register(lua_State *L);

/* Decodes a text with the decoder at `decoder_index`, whose type the caller has checked. Returns how many values it
 * pushed: one, or nil, a message and the 1-based position of the fault (see json/scan.h). A text over max_size has its
 * fault at byte max_size + 1. NUL follows the text, whose owner the caller keeps alive: finalizers may run. */
int rsc_decoder_push(lua_State *L, int decoder_index, struct rsc_text text);

/* encode. The table has the empty_array_mt of the decoder. */
void rsc_encoder_register(lua_State *L);

/* sha256, keccak256 and hmac */
void rsc_digest_register(lua_State *L);

/* list, list_writer and list_identity */
void rsc_lists_register(lua_State *L);

/* loop and details */
void rsc_loop_register(lua_State *L);

/* redis */
void rsc_redis_register(lua_State *L);

#endif
