#include "lua/compat.h"

#include <limits.h>
#include <stdbool.h>
#include <string.h>

#include "base/clock.h"
#include "lua/parts.h"
#include "http/libcurl.h"
#include "riskscreen.h"

static int core_now(lua_State *L) {
    lua_pushnumber(L, (lua_Number)rsc_now() / 1e9);
    return 1;
}

static int core_time(lua_State *L) {
    lua_pushnumber(L, (lua_Number)rsc_time() / 1e9);
    return 1;
}

/* The function of core.made_of. Its upvalues are the beginning, and for each byte whether it is one of the
 * characters. */
static int is_made(lua_State *L) {
    const bool *is_character = lua_touserdata(L, lua_upvalueindex(1));
    size_t length, before;
    const char *text = luaL_checklstring(L, 1, &length);
    const char *beginning = lua_tolstring(L, lua_upvalueindex(2), &before);
    bool made = length > before && memcmp(text, beginning, before) == 0;
    for (size_t i = before; made && i < length; i++) {
        made = is_character[(unsigned char)text[i]];
    }
    lua_pushboolean(L, made);
    return 1;
}

/* core.made_of(characters, beginning): a function that tells whether a text has, after the beginning, these characters
 * alone, and at least one. It serves riskscreen.util.text, where patterns are slow. */
static int core_made_of(lua_State *L) {
    size_t length;
    const char *characters = luaL_checklstring(L, 1, &length);
    luaL_checktype(L, 2, LUA_TSTRING);
    bool *is_character = lua_newuserdata(L, UCHAR_MAX + 1);
    memset(is_character, 0, UCHAR_MAX + 1);
    for (size_t i = 0; i < length; i++) {
        is_character[(unsigned char)characters[i]] = true;
    }
    lua_pushvalue(L, 2);
    lua_pushcclosure(L, is_made, 2);
    return 1;
}

int luaopen_riskscreen_core(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"now", core_now}, {"time", core_time}, {"made_of", core_made_of}, {NULL, NULL}};
    luaL_checkversion(L);
    lua_createtable(L, 0, 20);
    lua_pushliteral(L, RISKSCREEN_VERSION);
    lua_setfield(L, -2, "version");
    lua_pushstring(L, rsc_libcurl()->version);
    lua_setfield(L, -2, "curl_version");
    rsc_lua_set_functions(L, functions);
    rsc_decoder_register(L);
    rsc_encoder_register(L);
    rsc_digest_register(L);
    rsc_lists_register(L);
    rsc_loop_register(L);
    rsc_redis_register(L);
    return 1;
}
