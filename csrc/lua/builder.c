#include "lua/builder.h"

#include <string.h>

#include "base/compiler.h"
#include "lua/plan.h"

/* Containers for which lua_checkstack reserves slots at once. LuaJIT doubles a stack that grows, and nginx clears the
 * stack of a coroutine before each request (`./dev bench nginx`). */
#define DEPTHS_PER_CHECK 4
#define SLOTS_FOR_CALLS  8 /* stack slots for temporary values */

#define MEMBER_BYTES_MIN  5 /* "":0, */
#define ELEMENT_BYTES_MIN 2 /* 0, */

static const char *build_object(struct rsc_builder *b, const char *p, struct rsc_shape *shape);
static const char *build_array(struct rsc_builder *b, const char *p, struct rsc_shape *shape);

/* The functions on the way of every value are always inlined: see `./dev bench decode`. */

bool rsc_builder_enter(struct rsc_builder *b, const char *p) {
    if (b->depth == b->max_depth) {
        rsc_scan_fail(&b->input, p, RSC_ERROR_LIMIT, "nested too deeply");
        return false;
    }
    int slots = (RSC_LUA_PLANS ? RSC_PLAN_KEYS_MAX : 1) + 2; /* stack slots per container */
    if (b->depth % DEPTHS_PER_CHECK == 0 && !lua_checkstack(b->L, DEPTHS_PER_CHECK * slots + SLOTS_FOR_CALLS)) {
        rsc_scan_fail(&b->input, p, RSC_ERROR_LIMIT, "nested too deeply for the Lua stack");
        return false;
    }
    b->depth++;
    return true;
}

/* Pushes the bytes, which a quote follows. The cache keeps short values that occur again: Lua 5.4 hashes each byte of a
 * new string, and p1 takes 9 % more instructions without the cache. */
RSC_ALWAYS_INLINE void push_string(struct rsc_builder *b, const char *bytes, size_t length) {
    if (length > RSC_KEY_LENGTH_MAX) {
        lua_pushlstring(b->L, bytes, length);
        return;
    }
    uint32_t hash = rsc_key_hash(bytes, length);
    struct rsc_key *value = &b->cache->values[hash % RSC_VALUES_MAX];
    int slot = RSC_LUA_CACHE_VALUES + (int)(hash % RSC_VALUES_MAX);
    if (value->size == length + 1 && rsc_key_is_at(value, bytes, b->input.end)) {
        lua_rawgeti(b->L, b->lua_cache, slot);
        return;
    }
    lua_pushlstring(b->L, bytes, length);
    if (value->hash == hash) {
        rsc_key_set(value, bytes, length);
        lua_pushvalue(b->L, -1);
        lua_rawseti(b->L, b->lua_cache, slot);
    }
    value->hash = hash;
}

RSC_ALWAYS_INLINE const char *build_string(struct rsc_builder *b, const char *p) {
    struct rsc_span span;
    p = rsc_scan_string(&b->input, p, &span);
    if (p == NULL) {
        return NULL;
    }
    if (RSC_LIKELY(!span.escaped)) {
        push_string(b, span.bytes, span.length);
    } else {
        lua_pushlstring(b->L, span.bytes, span.length);
    }
    return p;
}

RSC_ALWAYS_INLINE const char *build_number(struct rsc_builder *b, const char *p) {
    struct rsc_number number;
    const char *after = rsc_number_short(p, b->input.end, &number);
    if (after == NULL) {
        after = rsc_number_scan(b->numbers, &b->input, p, &number);
        if (after == NULL) {
            return NULL;
        }
    }
    if (number.is_integer) {
        rsc_lua_push_int64(b->L, number.integer);
    } else {
        lua_pushnumber(b->L, (lua_Number)number.real);
    }
    return after;
}

RSC_ALWAYS_INLINE const char *scan_literal(const struct rsc_builder *b, const char *p, const char *literal,
                                           size_t size) {
    if (RSC_LIKELY((size_t)(b->input.end - p) >= size && memcmp(p, literal, size) == 0)) {
        return p + size;
    }
    while (*p == *literal) {
        p++;
        literal++;
    }
    return rsc_scan_expected(&b->input, p, "one of true, false and null");
}

/* Reads the value at `p`, which is not white space. */
RSC_ALWAYS_INLINE const char *build_value(struct rsc_builder *b, const char *p, struct rsc_shape *shape) {
    if (p == b->input.end) {
        return rsc_scan_expected(&b->input, p, "a value"); /* even if the text has no more values left */
    }
    if (b->values_left-- == 0) {
        return rsc_scan_fail(&b->input, p, RSC_ERROR_LIMIT, "too many values");
    }
    switch (*p) {
    case '"':
        return build_string(b, p + 1);
    case '{':
        return build_object(b, p + 1, shape);
    case '[':
        return build_array(b, p + 1, shape);
    case 't':
        lua_pushboolean(b->L, true);
        return scan_literal(b, p, "true", 4);
    case 'f':
        lua_pushboolean(b->L, false);
        return scan_literal(b, p, "false", 5);
    case 'n':
        lua_pushlightuserdata(b->L, NULL);
        return scan_literal(b, p, "null", 4);
    default:
        return (*p >= '0' && *p <= '9') || *p == '-' ? build_number(b, p) : rsc_scan_expected(&b->input, p, "a value");
    }
}

/* The names of an object, to find duplicates. A name in the key cache has a bit. Any other name is in the object's
 * table, and so are dropped null members with such a name until the object ends. */
struct seen_names {
    uint64_t cached[RSC_KEYS_MAX / 64]; /* bits by key number */
    bool uncached;                      /* a name outside the cache occurred */
    bool placeholders;                  /* the table has null members to be removed */
};

/* Sets the bit of a cached name. Returns whether it was set before. */
static bool mark_seen(struct seen_names *seen, uint16_t number) {
    uint64_t bit = UINT64_C(1) << number % 64;
    bool before = (seen->cached[number / 64] & bit) != 0;
    seen->cached[number / 64] |= bit;
    return before;
}

/* Records the name at the top, which is above its object's table. Returns whether the object already has the name. A
 * name may enter the cache between two occurrences, so a cached name can be in the table too. */
static bool is_duplicate(lua_State *L, struct seen_names *seen, uint16_t number) {
    bool had_uncached = seen->uncached;
    if (number == 0) {
        seen->uncached = true;
    } else if (mark_seen(seen, number)) {
        return true;
    }
    if (!had_uncached) {
        return false;
    }
    lua_pushvalue(L, -1);
    lua_rawget(L, -3);
    bool present = !lua_isnil(L, -1);
    lua_pop(L, 1);
    return present;
}

/* Removes the null members of the table at the top. */
static void remove_placeholders(lua_State *L) {
    for (lua_pushnil(L); lua_next(L, -2) != 0; lua_pop(L, 1)) {
        if (lua_islightuserdata(L, -1)) {
            lua_pushvalue(L, -2);
            lua_pushnil(L);
            lua_rawset(L, -5);
        }
    }
}

/* Reads and pushes the key at `p`. *number becomes its number in the cache, or 0. */
static const char *push_unexpected_key(struct rsc_builder *b, const char *p, uint16_t *number) {
    struct rsc_span span;
    *number = 0;
    p = rsc_scan_string(&b->input, p, &span);
    if (p == NULL) {
        return NULL;
    }
    bool is_new = !span.escaped;
    if (span.length <= RSC_KEY_LENGTH_MAX) {
        *number = rsc_key_cache_find(b->cache, span.bytes, span.length, &is_new);
        if (*number != 0 && !is_new) {
            lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_KEYS + *number);
            return p;
        }
    }
    lua_pushlstring(b->L, span.bytes, span.length);
    if (*number != 0) {
        lua_pushvalue(b->L, -1);
        lua_rawseti(b->L, b->lua_cache, RSC_LUA_CACHE_KEYS + *number);
    }
    return p;
}

RSC_ALWAYS_INLINE const char *skip_colon(const struct rsc_builder *b, const char *p) {
    p = rsc_skip_space(p);
    if (*p != ':') {
        return rsc_scan_expected(&b->input, p, "':' after a member's name");
    }
    return rsc_skip_space(p + 1);
}

/* Reads a key and its colon and pushes the key. A key that was expected is not looked up: else p2 takes 13 % more time.
 * *link is the number of the expected key, or 0. It becomes that of the key that came. `seen` is NULL if duplicates are
 * allowed. */
RSC_ALWAYS_INLINE const char *build_key(struct rsc_builder *b, const char *p, struct seen_names *seen, uint16_t *link) {
    if (*p != '"') {
        return rsc_scan_expected(&b->input, p, "a member's name");
    }
    const char *start = p++;
    const struct rsc_key *expected = &b->cache->keys[*link];
    if (*link != 0 && rsc_key_is_at(expected, p, b->input.end)) {
        p += expected->size;
        lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_KEYS + *link);
    } else {
        p = push_unexpected_key(b, p, link);
        if (p == NULL) {
            return NULL;
        }
    }
    if (seen != NULL && is_duplicate(b->L, seen, *link)) {
        return rsc_scan_fail(&b->input, start, RSC_ERROR_SYNTAX, "duplicate name");
    }
    return skip_colon(b, p);
}

/* Reads the value of a null member whose key is at the top, and drops the member. `number` is that of its key. */
static const char *build_dropped_member(struct rsc_builder *b, const char *p, struct seen_names *seen,
                                        uint16_t number) {
    struct rsc_shape none = {.steady = INT32_MIN}; /* null has no shape */
    p = build_value(b, p, &none);
    if (p == NULL) {
        return NULL;
    }
    if (seen == NULL) {
        lua_pop(b->L, 1);
        lua_pushnil(b->L);
        lua_rawset(b->L, -3); /* of two members with one name, the last one counts */
    } else if (number == 0) {
        lua_rawset(b->L, -3);
        seen->placeholders = true;
    } else {
        lua_pop(b->L, 2);
    }
    return p;
}

/* Moves past the comma or the closing brace after a member. *closed becomes whether it was the brace. */
RSC_ALWAYS_INLINE const char *skip_comma(const struct rsc_builder *b, const char *p, bool *closed) {
    p = rsc_skip_space(p);
    *closed = *p == '}';
    if (*closed) {
        return p + 1;
    }
    if (*p != ',') {
        return rsc_scan_expected(&b->input, p, "',' or '}' after a member");
    }
    return rsc_skip_space(p + 1);
}

/* Replaces a plan's function and its first `count` values by a table of those members. */
static void abandon_plan(const struct rsc_builder *b, const struct rsc_plan *plan, int count) {
    int slot = lua_gettop(b->L) - count;
    lua_createtable(b->L, 0, plan->count);
    lua_replace(b->L, slot);
    for (int i = 0; i < count; i++) {
        lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_KEYS + plan->keys[i]);
        lua_pushvalue(b->L, slot + 1 + i);
        lua_rawset(b->L, slot);
    }
    lua_settop(b->L, slot);
}

/* Reads the object's members from `p` for as long as they follow the shape's plan, and pushes the object. Afterwards
 * *closed says whether the object is complete, and *link is the expected key. */
static const char *build_planned(struct rsc_builder *b, const char *p, struct seen_names *seen, struct rsc_shape *shape,
                                 bool *closed, uint16_t **link) {
    const struct rsc_plan *plan = &b->cache->plans[shape->plan];
    int count = 0;
    lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_PLANS + shape->plan);
    for (; !*closed && count < plan->count; count++) {
        struct rsc_key *key = &b->cache->keys[plan->keys[count]];
        if (*p != '"' || !rsc_key_is_at(key, p + 1, b->input.end)) {
            break;
        }
        p = skip_colon(b, p + 1 + key->size);
        bool dropped = p != NULL && !b->keep_null && *p == 'n';
        p = p != NULL ? build_value(b, p, &key->shape) : NULL;
        p = p != NULL ? skip_comma(b, p, closed) : NULL;
        if (p == NULL) {
            return NULL;
        }
        if (dropped) {
            lua_pop(b->L, 1);
            lua_pushnil(b->L);
        }
    }
    bool matched = *closed && count == plan->count;
    if (matched) {
        lua_call(b->L, count, 1);
    } else {
        abandon_plan(b, plan, count);
    }
    for (int i = 0; !matched && i < count; i++) {
        *link = &b->cache->keys[plan->keys[i]].next;
        if (seen != NULL) {
            (void)mark_seen(seen, plan->keys[i]);
        }
    }
    rsc_plan_rate(b, shape, matched);
    return p;
}

/* Reads an object's members one by one into the table at the top. *link is the expected key of the first one. Returns
 * the byte after the closing brace. */
static const char *build_members(struct rsc_builder *b, const char *p, struct seen_names *seen, struct rsc_shape *shape,
                                 uint16_t *link) {
    struct rsc_shape unknown = {.steady = INT32_MIN}; /* never gets a plan */
    uint16_t keys[RSC_PLAN_KEYS_MAX];
    int count = 0;
    size_t members = 0;
    bool steady = RSC_LUA_PLANS && link == &shape->first;
    for (bool closed = false; !closed; count++) {
        uint16_t expected = *link;
        p = build_key(b, p, seen, link);
        if (p == NULL) {
            return NULL;
        }
        uint16_t number = *link;
        steady = steady && number != 0 && number == expected && count < RSC_PLAN_KEYS_MAX;
        if (steady) {
            keys[count] = number;
        }
        struct rsc_key *key = &b->cache->keys[number];
        link = &key->next;
        if (!b->keep_null && *p == 'n') {
            p = build_dropped_member(b, p, seen, number);
        } else {
            p = build_value(b, p, number != 0 ? &key->shape : &unknown);
            if (p != NULL) {
                lua_rawset(b->L, -3);
                members++;
            }
        }
        p = p != NULL ? skip_comma(b, p, &closed) : NULL;
        if (p == NULL) {
            return NULL;
        }
    }
    if (seen != NULL && seen->placeholders) {
        remove_placeholders(b->L);
    }
    shape->members = rsc_shape_learn(shape->members, members);
    if (steady) {
        rsc_plan_learn(b, shape, keys, count);
    } else if (shape->steady > 0) {
        shape->steady = 0;
    }
    return p;
}

/* Reads the object whose opening brace is just before `p`. */
static const char *build_object(struct rsc_builder *b, const char *p, struct rsc_shape *shape) {
    if (!rsc_builder_enter(b, p - 1)) {
        return NULL;
    }
    p = rsc_skip_space(p);
    bool closed = *p == '}';
    uint16_t *link = &shape->first;
    struct seen_names names = {.uncached = false};
    struct seen_names *seen = b->refuse_duplicates ? &names : NULL;
    if (closed) {
        lua_createtable(b->L, 0, 0);
        p++;
    } else if (RSC_LUA_PLANS && shape->plan != 0) {
        p = build_planned(b, p, seen, shape, &closed, &link);
    } else {
        lua_createtable(b->L, 0, rsc_shape_expect(shape->members, (size_t)(b->input.end - p), MEMBER_BYTES_MIN));
    }
    if (p != NULL && !closed) {
        p = build_members(b, p, seen, shape, link);
    }
    b->depth--;
    return p;
}

void rsc_builder_empty_array(const struct rsc_builder *b) {
    lua_createtable(b->L, 0, 0);
    lua_rawgeti(b->L, b->lua_cache, RSC_LUA_CACHE_EMPTY_ARRAY);
    lua_setmetatable(b->L, -2);
}

int rsc_builder_elements(const struct rsc_builder *b, const char *p, const struct rsc_shape *shape) {
    return rsc_shape_expect(shape->elements, (size_t)(b->input.end - p), ELEMENT_BYTES_MIN);
}

/* Reads the array whose opening bracket is just before `p`. */
static const char *build_array(struct rsc_builder *b, const char *p, struct rsc_shape *shape) {
    if (!rsc_builder_enter(b, p - 1)) {
        return NULL;
    }
    p = rsc_skip_space(p);
    if (*p == ']') {
        rsc_builder_empty_array(b);
        b->depth--;
        return p + 1;
    }
    lua_createtable(b->L, rsc_builder_elements(b, p, shape), 0);
    int count = 0;
    for (;;) {
        p = build_value(b, p, shape);
        if (p == NULL) {
            return NULL;
        }
        lua_rawseti(b->L, -2, ++count);
        p = rsc_skip_space(p);
        if (*p == ']') {
            break;
        }
        if (*p != ',') {
            return rsc_scan_expected(&b->input, p, "',' or ']' after an element");
        }
        p = rsc_skip_space(p + 1);
    }
    shape->elements = rsc_shape_learn(shape->elements, (size_t)count);
    b->depth--;
    return p + 1;
}

const char *rsc_builder_value(struct rsc_builder *b, const char *p) {
    struct rsc_shape unknown = {.steady = INT32_MIN}; /* never gets a plan */
    return build_value(b, p, &unknown);
}

bool rsc_builder_run(struct rsc_builder *b) {
    const char *p = build_value(b, rsc_skip_space(b->input.text), &b->cache->top);
    if (p == NULL) {
        return false;
    }
    p = rsc_skip_space(p);
    if (p != b->input.end) {
        rsc_scan_expected(&b->input, p, "the end of the text");
        return false;
    }
    return true;
}
