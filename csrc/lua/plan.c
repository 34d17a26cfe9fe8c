#include "lua/plan.h"

#include <stdio.h>

/* Bytes of "return function(a0,a1) return{["key"]=a0,["key"]=a1,} end": each key takes at most 16 bytes beside its
 * name.
 */
#define SOURCE_MAX (64 + RSC_PLAN_KEYS_MAX * (RSC_SHORT_STRING_MAX + 16))

static bool is_plain_name(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        char c = bytes[i];
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return length > 0;
}

/* A function with named parameters, because LuaJIT compiles no function that takes "...". */
static size_t write_source(const struct rsc_builder *b, const struct rsc_plan *plan, char *source) {
    size_t at = (size_t)sprintf(source, "return function(a0");
    for (int i = 1; i < plan->count; i++) {
        at += (size_t)sprintf(source + at, ",a%d", i);
    }
    at += (size_t)sprintf(source + at, ") return{");
    for (int i = 0; i < plan->count; i++) {
        const struct rsc_key *key = &b->cache->keys[plan->keys[i]];
        const char *bytes = key->text;
        size_t length = key->size - 1U;
        if (!is_plain_name(bytes, length)) {
            return 0;
        }
        at += (size_t)sprintf(source + at, "[\"%.*s\"]=a%d,", (int)length, bytes, i);
    }
    return at + (size_t)sprintf(source + at, "} end");
}

bool rsc_plan_prepare(struct rsc_builder *b, uint16_t number) {
    char source[SOURCE_MAX];
    size_t length = write_source(b, &b->cache->plans[number], source);
    if (length == 0) {
        return false;
    }
    if (luaL_loadbuffer(b->L, source, length, "=riskscreen") != 0 || lua_pcall(b->L, 0, 1, 0) != 0) {
        lua_pop(b->L, 1);
        return false;
    }
    lua_rawseti(b->L, b->lua_cache, RSC_LUA_CACHE_PLANS + number);
    return true;
}

void rsc_plan_begin(struct rsc_builder *b, uint16_t number) {
    lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_PLANS + number);
}

void rsc_plan_finish(struct rsc_builder *b, uint16_t number) {
    lua_call(b->L, b->cache->plans[number].count, 1);
}

void rsc_plan_abandon(struct rsc_builder *b, uint16_t number, int count) {
    lua_State *L = b->L;
    const struct rsc_plan *plan = &b->cache->plans[number];
    int slot = lua_gettop(L) - count;
    lua_createtable(L, 0, plan->count);
    lua_replace(L, slot);
    for (int i = count - 1; i >= 0; i--) {
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
        } else {
            lua_rawgeti(L, b->lua_cache, RSC_LUA_CACHE_KEYS + plan->keys[i]);
            lua_insert(L, -2);
            lua_rawset(L, slot);
        }
    }
}
