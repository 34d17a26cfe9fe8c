#include "lua/plan.h"

#include <stdio.h>

#define LEARN_AFTER  8    /* consecutive equal objects before a shape gets a plan */
#define FAILURES_MAX 64   /* score at which a plan is removed: +4 per failure, -1 per success */
#define PAUSE        4096 /* equal objects until a shape that lost its plan may get another */

#define PARAMETERS "a,b,c,d,e,f,g,h,i,j,k,l" /* RSC_PLAN_KEYS_MAX */

/* Each byte of a key is an escape of four, so that no text from outside becomes source code. */
#define SOURCE_MAX (64 + RSC_PLAN_KEYS_MAX * (4 * RSC_KEY_LENGTH_MAX + 8))

/* Pushes the function, or returns false. Its parameters have names, because LuaJIT compiles no function with "...". Of
 * two members with one name, which a decoder may allow, the last one counts in a constructor too. */
static bool push_function(const struct rsc_builder *b, const uint16_t *keys, int count) {
    char source[SOURCE_MAX];
    size_t at = (size_t)sprintf(source, "return function(%.*s)return{", 2 * count - 1, PARAMETERS);
    for (int i = 0; i < count; i++) {
        const struct rsc_key *key = &b->cache->keys[keys[i]];
        at += (size_t)sprintf(source + at, "[\"");
        for (unsigned byte = 0; byte < key->size - 1U; byte++) {
            at += (size_t)sprintf(source + at, "\\%03u", (unsigned char)key->text[byte]);
        }
        at += (size_t)sprintf(source + at, "\"]=%c,", 'a' + i);
    }
    at += (size_t)sprintf(source + at, "}end");
    if (luaL_loadbuffer(b->L, source, at, "=riskscreen") != 0 || lua_pcall(b->L, 0, 1, 0) != 0) {
        lua_pop(b->L, 1);
        return false;
    }
    return true;
}

void rsc_plan_learn(struct rsc_builder *b, struct rsc_shape *shape, const uint16_t *keys, int count) {
    struct rsc_key_cache *cache = b->cache;
    if (shape->plan != 0 || cache->plan_count == RSC_PLANS_MAX - 1 || ++shape->steady < LEARN_AFTER) {
        return;
    }
    shape->steady = 0;
    if (!push_function(b, keys, count)) {
        return;
    }
    shape->plan = ++cache->plan_count;
    lua_rawseti(b->L, b->lua_cache, RSC_LUA_CACHE_PLANS + shape->plan);
    struct rsc_plan *plan = &cache->plans[shape->plan];
    *plan = (struct rsc_plan){.count = (uint16_t)count};
    memcpy(plan->keys, keys, (size_t)count * sizeof *keys);
}

void rsc_plan_rate(struct rsc_builder *b, struct rsc_shape *shape, bool matched) {
    struct rsc_plan *plan = &b->cache->plans[shape->plan];
    if (matched) {
        plan->failures = (uint16_t)(plan->failures - (plan->failures > 0));
        return;
    }
    plan->failures = (uint16_t)(plan->failures + 4);
    if (plan->failures > FAILURES_MAX) {
        shape->plan = 0;
        shape->steady = -PAUSE;
    }
}
