#include "lua/digest.h"

#include "base/keccak.h"
#include "base/sha256.h"

/* core.sha256(text) */
static int digest_sha256(lua_State *L) {
    unsigned char digest[RSC_SHA256_SIZE];
    size_t length;
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *text = lua_tolstring(L, 1, &length);
    rsc_sha256(text, length, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* core.keccak256(text) */
static int digest_keccak256(lua_State *L) {
    unsigned char digest[RSC_KECCAK256_SIZE];
    size_t length;
    luaL_checktype(L, 1, LUA_TSTRING);
    const char *text = lua_tolstring(L, 1, &length);
    rsc_keccak256(text, length, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

void rsc_digest_register(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"sha256", digest_sha256},
        {"keccak256", digest_keccak256},
        {NULL, NULL},
    };
    rsc_lua_set_functions(L, functions);
}
