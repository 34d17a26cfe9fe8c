/* Builds Lua values from JSON text in one pass: the grammar of values, arrays and objects, and their tables. */
#ifndef RSC_LUA_BUILDER_H
#define RSC_LUA_BUILDER_H

#include "lua/compat.h"

#include "json/key_cache.h"
#include "json/number.h"
#include "json/scan.h"

/* Slots of the Lua cache, the table with the Lua values of a key cache's entries. */
#define RSC_LUA_CACHE_WORKSPACE   1 /* owns the key cache */
#define RSC_LUA_CACHE_EMPTY_ARRAY 2 /* the metatable of empty arrays */

#define RSC_LUA_CACHE_KEYS   2                                       /* key number n is at this + n */
#define RSC_LUA_CACHE_VALUES (RSC_LUA_CACHE_KEYS + RSC_KEYS_MAX)     /* likewise, from 0 */
#define RSC_LUA_CACHE_PLANS  (RSC_LUA_CACHE_VALUES + RSC_VALUES_MAX) /* likewise */
#define RSC_LUA_CACHE_SIZE   (RSC_LUA_CACHE_PLANS + RSC_PLANS_MAX)

/* The state of one decode. It owns nothing: the caller keeps everything alive until rsc_builder_run returns. */
struct rsc_builder {
    lua_State *L;
    struct rsc_input input;
    struct rsc_numbers *numbers;
    struct rsc_key_cache *cache;
    int lua_cache; /* stack index of the Lua cache */

    int max_depth;          /* arrays and objects within each other */
    int depth;              /* 0 at the start */
    size_t values_left;     /* values the text may still have */
    bool keep_null;         /* keep null members of objects */
    bool refuse_duplicates; /* a name that occurs twice in an object is an error */
};

/* Reads the whole text and pushes its value. On a failure returns false with the error set, and leaves any number of
 * values above the old top of the stack. Raises if Lua runs out of memory; the key cache is then unusable. */
bool rsc_builder_run(struct rsc_builder *builder);

/* The parts of the builder that the reader uses as well. */

/* Reads the value at `p`, which is not white space, and pushes it. Returns the byte after it, or NULL. */
const char *rsc_builder_value(struct rsc_builder *builder, const char *p);

/* Counts one more level of nesting, for the bracket at `p`. Returns whether it may be, and reserves stack slots. */
bool rsc_builder_enter(struct rsc_builder *builder, const char *p);

/* Pushes an empty array. */
void rsc_builder_empty_array(const struct rsc_builder *builder);

/* Returns the expected size of an array whose first element is at `p`. */
int rsc_builder_elements(const struct rsc_builder *builder, const char *p, const struct rsc_shape *shape);

#endif
