/* Builds Lua values straight from JSON text: the grammar of values, arrays and objects, and the tables made of them. */
#ifndef RSC_LUA_BUILDER_H
#define RSC_LUA_BUILDER_H

#include "compat.h"

#include "json/number.h"
#include "json/scan.h"
#include "json/key_cache.h"

/* Slots of the table of strings that goes with a cache. */
#define RSC_LUA_CACHE_WORKSPACE   1 /* keeps the memory of the cache alive */
#define RSC_LUA_CACHE_EMPTY_ARRAY 2 /* the metatable of empty arrays */
#define RSC_LUA_CACHE_KEYS        2 /* key number n is at this + n */
#define RSC_LUA_CACHE_VALUES      (RSC_LUA_CACHE_KEYS + RSC_KEYS_MAX)
#define RSC_LUA_CACHE_PLANS       (RSC_LUA_CACHE_VALUES + RSC_VALUES_MAX) /* plan number n's function is at this + n */
#define RSC_LUA_CACHE_SIZE        (RSC_LUA_CACHE_PLANS + RSC_PLANS_MAX)

struct rsc_builder {
    lua_State *L;
    struct rsc_input input;
    struct rsc_numbers *numbers;
    struct rsc_key_cache *cache;
    int lua_cache;      /* stack index of the table of strings */
    int max_depth;      /* arrays and objects within each other */
    int depth;          /* 0 to begin with */
    size_t values_left; /* how many more values the text may have */
    bool keep_null;     /* null members of objects are kept as core.null; otherwise they are left out */
};

/* Reads the whole text and pushes its value. False with the error set on a failure, and then the stack may hold
 * anything above its former top. May raise when Lua is out of memory; the cache must then not be used again. */
bool rsc_builder_run(struct rsc_builder *builder);

#endif
