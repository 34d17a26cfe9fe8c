#include "lua/parts.h"

#include "base/keccak.h"
#include "base/sha256.h"
#include "lua/binding.h"

#define HMAC_TYPE "riskscreen.Hmac"

/* core.sha256(text) */
static int digest_sha256(lua_State *L) {
    unsigned char digest[RSC_SHA256_SIZE];
    struct rsc_text text = rsc_lua_check_text(L, 1);
    rsc_sha256(text.bytes, text.length, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* core.keccak256(text) */
static int digest_keccak256(lua_State *L) {
    unsigned char digest[RSC_KECCAK256_SIZE];
    struct rsc_text text = rsc_lua_check_text(L, 1);
    rsc_keccak256(text.bytes, text.length, digest);
    lua_pushlstring(L, (const char *)digest, sizeof digest);
    return 1;
}

/* core.hmac(key): HMAC-SHA-256 with a key. */
static int digest_hmac(lua_State *L) {
    struct rsc_text key = rsc_lua_check_text(L, 1);
    struct rsc_hmac *hmac = rsc_lua_new_object(L, sizeof *hmac, HMAC_TYPE);
    rsc_hmac_init(hmac, key.bytes, key.length);
    return 1;
}

static void add_text(lua_State *L, int index, struct rsc_sha256 *hash) {
    size_t length;
    const char *text = luaL_checklstring(L, index, &length);
    rsc_sha256_add(hash, text, length);
}

/* hmac:code(...): the 32 bytes of the code of texts in a row. */
static int hmac_code(lua_State *L) {
    const struct rsc_hmac *hmac = rsc_lua_check_self(L, HMAC_TYPE);
    struct rsc_sha256 hash = hmac->inner;
    unsigned char code[RSC_SHA256_SIZE];
    for (int index = 2; index <= lua_gettop(L); index++) {
        add_text(L, index, &hash);
    }
    rsc_hmac_end(hmac, &hash, code);
    lua_pushlstring(L, (const char *)code, sizeof code);
    return 1;
}

/* Compares in constant time. */
static bool is_same_code(const unsigned char *a, const unsigned char *b) {
    unsigned char difference = 0;
    for (size_t i = 0; i < RSC_SHA256_SIZE; i++) {
        difference |= a[i] ^ b[i];
    }
    return difference == 0;
}

/* hmac:ends(sealed, before, after): whether a text ends with the code of `before`, the text without its end, and
 * `after`. */
static int hmac_ends(lua_State *L) {
    const struct rsc_hmac *hmac = rsc_lua_check_self(L, HMAC_TYPE);
    struct rsc_sha256 hash = hmac->inner;
    unsigned char code[RSC_SHA256_SIZE];
    size_t length;
    const char *sealed = luaL_checklstring(L, 2, &length);
    if (length < RSC_SHA256_SIZE) {
        lua_pushboolean(L, false);
        return 1;
    }
    size_t text_length = length - RSC_SHA256_SIZE;
    add_text(L, 3, &hash);
    rsc_sha256_add(&hash, sealed, text_length);
    add_text(L, 4, &hash);
    rsc_hmac_end(hmac, &hash, code);
    lua_pushboolean(L, is_same_code(code, (const unsigned char *)sealed + text_length));
    return 1;
}

void rsc_digest_register(lua_State *L) {
    static const luaL_Reg functions[] = {
        {"sha256", digest_sha256},
        {"keccak256", digest_keccak256},
        {"hmac", digest_hmac},
        {NULL, NULL},
    };
    static const luaL_Reg hmac_methods[] = {
        {"code", hmac_code},
        {"ends", hmac_ends},
        {NULL, NULL},
    };
    rsc_lua_new_type(L, HMAC_TYPE, hmac_methods, NULL);
    rsc_lua_set_functions(L, functions);
}
