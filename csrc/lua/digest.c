#include "lua/parts.h"

#include "base/keccak.h"
#include "base/sha256.h"
#include "lua/binding.h"

#define HMAC_TYPE "riskscreen.Hmac"

static int push_digest(lua_State *L, void (*function)(const void *bytes, size_t length, unsigned char *digest)) {
    unsigned char digest[RSC_SHA256_SIZE];
    struct rsc_text text = rsc_lua_check_text(L, 1);
    function(text.bytes, text.length, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* core.sha256(text) */
static int digest_sha256(lua_State *L) {
    return push_digest(L, rsc_sha256);
}

/* core.keccak256(text): its digests have the size of SHA-256's. */
static int digest_keccak256(lua_State *L) {
    return push_digest(L, rsc_keccak256);
}

/* core.hmac(key): HMAC-SHA-256 with a key. */
static int digest_hmac(lua_State *L) {
    struct rsc_text key = rsc_lua_check_text(L, 1);
    struct rsc_hmac *hmac = rsc_lua_new_object(L, sizeof *hmac, HMAC_TYPE);
    rsc_hmac_init(hmac, key.bytes, key.length);
    return 1;
}

/* hmac:code(...): the 32 bytes of the code of texts in a row. */
static int hmac_code(lua_State *L) {
    const struct rsc_hmac *hmac = rsc_lua_check_self(L, HMAC_TYPE);
    struct rsc_sha256 hash = hmac->inner;
    unsigned char code[RSC_SHA256_SIZE];
    for (int index = 2; index <= lua_gettop(L); index++) {
        size_t length;
        const char *text = luaL_checklstring(L, index, &length);
        rsc_sha256_add(&hash, text, length);
    }
    rsc_hmac_end(hmac, &hash, code);
    lua_pushlstring(L, (const char *)code, sizeof code);
    return 1;
}

void rsc_digest_register(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"sha256", digest_sha256},
        {"keccak256", digest_keccak256},
        {"hmac", digest_hmac},
        {NULL, NULL},
    };
    static const luaL_Reg hmac_methods[] = {{"code", hmac_code}, {NULL, NULL}};
    rsc_lua_new_type(L, HMAC_TYPE, hmac_methods, NULL);
    rsc_lua_set_functions(L, functions);
}
