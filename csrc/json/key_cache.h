/* The key cache: what a decoder learns from the texts it reads. It holds their keys, the order of the keys, and the
 * sizes of the tables under each key. Independent of Lua: each key has a number, and the caller keeps the Lua string
 * for that number.
 *
 * A key enters the cache the second time it occurs, so that unique keys do not fill it. The caller owns the struct,
 * which has a fixed size. A zeroed struct is an empty cache. It keeps bytes of the texts until it is freed. One thread
 * at a time. */
#ifndef RSC_KEY_CACHE_H
#define RSC_KEY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/block.h"

#define RSC_KEYS_MAX       256  /* keys; number 0 stands for every other key */
#define RSC_KEY_BUCKETS    512  /* more than keys, so that some stay free */
#define RSC_KEY_LENGTH_MAX 31   /* bytes */
#define RSC_KEYS_RELEARN   4096 /* unknown keys after which a full cache is of no more use */

#define RSC_VALUES_MAX 256 /* short string values */

#define RSC_PLANS_MAX     32 /* plans; number 0 is unused */
#define RSC_PLAN_KEYS_MAX 12 /* members of an object with a plan */

/* The usual size and layout of the objects and arrays under one key, or at the top level. */
struct rsc_shape {
    uint32_t members;  /* size of the largest recent object, in sixteenths of a member */
    uint32_t elements; /* size of the largest recent array, in sixteenths of an element */

    uint16_t first; /* the first key of the last object, or 0 */
    uint16_t plan;  /* the plan of its objects, or 0 */

    int32_t steady; /* consecutive objects whose keys were all expected; see plan.h */
};

struct rsc_key {
    char text[2 * RSC_BLOCK_SIZE]; /* with the closing quote */
    uint32_t hash;
    uint16_t size; /* with the closing quote */
    uint16_t next; /* the key that last followed this one, or 0 */
    struct rsc_shape shape;
};

/* A plan: the keys of a shape whose objects have the same keys in the same order. See plan.h. */
struct rsc_plan {
    uint16_t keys[RSC_PLAN_KEYS_MAX];
    uint16_t count;
    uint16_t failures; /* a score */
};

struct rsc_key_cache {
    struct rsc_key keys[RSC_KEYS_MAX];
    uint16_t buckets[RSC_KEY_BUCKETS];     /* key numbers by hash */
    uint32_t candidates[RSC_KEYS_MAX];     /* hashes of keys that occurred once */
    struct rsc_key values[RSC_VALUES_MAX]; /* by hash; the caller keeps the values that came twice in a row */
    struct rsc_plan plans[RSC_PLANS_MAX];
    struct rsc_shape top;
    uint16_t key_count;
    uint16_t plan_count;
    uint32_t unknown; /* unknown keys since the cache was full */
};

/* Hashes the length and the first and last eight bytes. Strings that differ between those alone are rare, and cost only
 * time. */
static inline uint32_t rsc_key_hash(const char *bytes, size_t length) {
    uint64_t first = 0;
    uint64_t last = 0;
    if (length >= sizeof first) {
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + length - sizeof last, sizeof last);
    } else {
        memcpy(&first, bytes, length);
    }
    uint64_t mixed = first ^ (last << 1 | last >> 63) ^ (uint64_t)(length + 1) << 56;
    return (uint32_t)(mixed * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Sets the text of a key: `length` bytes, at most RSC_KEY_LENGTH_MAX, and the quote after them. */
static inline void rsc_key_set(struct rsc_key *key, const char *bytes, size_t length) {
    key->size = (uint16_t)(length + 1);
    memcpy(key->text, bytes, length + 1);
}

/* Returns the number of a key, or 0. The key has `length` bytes, at most RSC_KEY_LENGTH_MAX. If *is_new is true, a key
 * that is not in the cache is recorded. Then a quote must follow it, and a text must not have to escape its bytes.
 * Afterwards *is_new is whether the key has entered the cache. */
uint16_t rsc_key_cache_find(struct rsc_key_cache *cache, const char *bytes, size_t length, bool *is_new);

/* Returns whether the text at `p` begins with this key and its closing quote. */
static inline bool rsc_key_is_at(const struct rsc_key *key, const char *p, const char *end) {
    if (end - p < 2 * RSC_BLOCK_SIZE) {
        return end - p >= key->size && memcmp(key->text, p, key->size) == 0;
    }
    int same = rsc_block_same(key->text, p);
    if (same == RSC_BLOCK_SIZE && key->size > RSC_BLOCK_SIZE) {
        same += rsc_block_same(key->text + RSC_BLOCK_SIZE, p + RSC_BLOCK_SIZE);
    }
    return same >= key->size;
}

/* Updates a shape's size with one more container. Sixteenths let the maximum decay slowly in integers. */
static inline uint32_t rsc_shape_learn(uint32_t sixteenths, size_t size) {
    uint32_t seen = size < UINT32_MAX / 16 ? (uint32_t)size * 16 : UINT32_MAX;
    return seen >= sixteenths ? seen : sixteenths - (sixteenths - seen) / 16 - 1;
}

/* Returns the expected size, limited to the items that fit `bytes` of text at `each` bytes per item. */
static inline int rsc_shape_expect(uint32_t sixteenths, size_t bytes, size_t each) {
    size_t expected = (sixteenths + 15) / 16;
    size_t most = bytes / each + 1;
    return (int)(expected < most ? expected : most);
}

#endif
