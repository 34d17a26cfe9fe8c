#include "lua/compat.h"

#include <stdbool.h>
#include <string.h>

#include "lua/decoder.h"
#include "lua/digest.h"
#include "lua/encoder.h"
#include "lua/lists.h"
#include "lua/loop.h"
#include "lua/query.h"
#include "http/libcurl.h"
#include "riskscreen.h"

static int core_now(lua_State *L) {
    lua_pushnumber(L, (lua_Number)rsc_now() / 1e9);
    return 1;
}

/* made_of(text, characters, from): whether the text from a byte on is not empty and has these characters alone. It
 * serves riskscreen.util.text, where patterns are slow. */
static int core_made_of(lua_State *L) {
    size_t length;
    const char *text = luaL_checklstring(L, 1, &length);
    const char *characters = luaL_checkstring(L, 2);
    lua_Integer from = luaL_optinteger(L, 3, 1);
    bool has_bytes = from >= 1 && (size_t)from <= length;
    size_t before = has_bytes ? (size_t)from - 1 : 0;
    lua_pushboolean(L, has_bytes && strspn(text + before, characters) == length - before);
    return 1;
}

int luaopen_riskscreen_core(lua_State *L) {
    luaL_checkversion(L);
    lua_createtable(L, 0, 18);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, rsc_libcurl()->version);
    lua_setfield(L, -2, "curl_version");
    lua_pushcfunction(L, core_now);
    lua_setfield(L, -2, "now");
    lua_pushcfunction(L, core_made_of);
    lua_setfield(L, -2, "made_of");
    rsc_decoder_register(L);
    rsc_encoder_register(L);
    rsc_digest_register(L);
    rsc_lists_register(L);
    rsc_loop_register(L);
    rsc_query_register(L);
    return 1;
}
