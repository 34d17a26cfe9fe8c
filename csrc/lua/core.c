#include "lua/compat.h"

#include "lua/decoder.h"
#include "lua/digest.h"
#include "lua/lists.h"
#include "lua/loop.h"
#include "http/libcurl.h"
#include "riskscreen.h"

static int core_now(lua_State *L) {
    lua_pushnumber(L, (lua_Number)rsc_now() / 1e9);
    return 1;
}

int luaopen_riskscreen_core(lua_State *L) {
    lua_createtable(L, 0, 13);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, rsc_libcurl()->version);
    lua_setfield(L, -2, "curl_version");
    lua_pushcfunction(L, core_now);
    lua_setfield(L, -2, "now");
    rsc_decoder_register(L);
    rsc_digest_register(L);
    rsc_lists_register(L);
    rsc_loop_register(L);
    return 1;
}
