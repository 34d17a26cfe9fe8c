/* What a decoder remembers of the texts it has read: their keys, the order keys come in, how large the tables under
 * each key were, and short values that come again. Knows nothing of Lua: a string is a number, and whoever builds
 * values keeps the interned string of each number.
 *
 * A string enters at its second sighting, so that keys and values seen once push nothing out. Everything has a fixed
 * size and lies in one struct, which the caller owns; a zeroed struct is an empty cache. It holds bytes of the
 * texts it saw for as long as it lives. */
#ifndef RSC_KEY_CACHE_H
#define RSC_KEY_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RSC_KEYS_MAX         256 /* keys, the unused number 0 included */
#define RSC_KEY_BUCKETS      512
#define RSC_KEY_PROBES_MAX   8    /* buckets looked at before a key counts as unknown */
#define RSC_VALUES_MAX       256  /* values */
#define RSC_SHORT_STRING_MAX 31   /* bytes of a key or a value */
#define RSC_KEYS_RELEARN     4096 /* unknown keys met by a full cache before it starts anew */

#define RSC_PLANS_MAX     32   /* plans, the unused number 0 included */
#define RSC_PLAN_KEYS_MAX 12   /* members of an object that has a plan */
#define RSC_PLAN_AFTER    8    /* objects in a row with the same keys before a shape gets a plan */
#define RSC_PLAN_PATIENCE 64   /* how much more often a plan may fail than hold, each failure counting four times */
#define RSC_PLAN_PAUSE    4096 /* objects before a shape whose plan was given up may get another */

#define RSC_SHORT_STRING_WORDS ((RSC_SHORT_STRING_MAX + 1) / 8)

/* The bytes of a short string as they stand in the text, then zeros. The length need not be kept: text has no zero
 * bytes. Words are compared and hashed whole, since branches on lengths that vary would cost more than the bytes. */
struct rsc_short_string {
    uint64_t words[RSC_SHORT_STRING_WORDS];
};

/* What is known of the containers in one place: under one key, or at the top. */
struct rsc_shape {
    uint32_t members;  /* of objects, in sixteenths: the largest, slowly forgotten */
    uint32_t elements; /* of arrays, likewise */
    uint16_t first;    /* the key that last came first in an object, or 0 */
    uint16_t plan;     /* the plan its objects are built by, or 0 */
    int32_t steady;    /* objects in a row whose keys were the expected ones */
    bool temporary;    /* of a key that is not in the cache: forgotten with the text */
};

struct rsc_key {
    struct rsc_short_string text; /* the key and its closing quote */
    struct rsc_short_string mask; /* ones where `text` has bytes */
    uint32_t hash;                /* of the key without the quote */
    uint16_t size;                /* bytes of `text`, with the quote */
    uint16_t next;                /* the key that last came after this one, or 0 */
    struct rsc_shape shape;
};

/* The keys that the objects of one shape always have, in order, none twice. Whoever builds values can make such objects
 * all at once. */
struct rsc_plan {
    uint16_t keys[RSC_PLAN_KEYS_MAX];
    uint16_t count;
    uint16_t failures; /* see RSC_PLAN_PATIENCE */
};

struct rsc_value {
    struct rsc_short_string text;
    uint32_t candidate; /* the hash that was here last without being known */
    bool is_set;
};

struct rsc_key_cache {
    struct rsc_key keys[RSC_KEYS_MAX];
    struct rsc_value values[RSC_VALUES_MAX];
    uint16_t buckets[RSC_KEY_BUCKETS]; /* key numbers by hash */
    uint32_t candidates[RSC_KEYS_MAX]; /* hashes of keys seen once */
    struct rsc_plan plans[RSC_PLANS_MAX];
    struct rsc_shape top;
    uint16_t key_count;
    uint16_t plan_count;
    uint32_t unknown; /* unknown keys since it was full */
};

/* Call before a text is read: a full cache that no longer fits the texts starts anew. */
void rsc_key_cache_begin(struct rsc_key_cache *cache);

/* The number of a key of `length` bytes, or 0. */
uint16_t rsc_key_cache_find_key(const struct rsc_key_cache *cache, const struct rsc_short_string *string, size_t length,
                                uint32_t hash);

/* Notes a key that rsc_key_cache_find_key did not know. Returns its new number, or 0 while it is not taken in. */
uint16_t rsc_key_cache_learn_key(struct rsc_key_cache *cache, const struct rsc_short_string *string, size_t length,
                                 uint32_t hash);

/* Notes a value that rsc_key_cache_has_value did not know. True when it was taken in, at the number of its hash. */
bool rsc_key_cache_learn_value(struct rsc_key_cache *cache, const struct rsc_short_string *string, uint32_t hash);

/* The string of the `length` bytes at `p`, at most RSC_SHORT_STRING_MAX; the text ends at `end`. */
static inline struct rsc_short_string rsc_short_string_at(const char *p, size_t length, const char *end) {
    static const unsigned char ones_then_zeros[2 * sizeof(struct rsc_short_string)] = {
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct rsc_short_string string = {{0}};
    struct rsc_short_string mask;
    if ((size_t)(end - p) < sizeof string) {
        memcpy(string.words, p, length);
        return string;
    }
    memcpy(string.words, p, sizeof string);
    memcpy(mask.words, ones_then_zeros + sizeof mask - length, sizeof mask);
    for (int i = 0; i < RSC_SHORT_STRING_WORDS; i++) {
        string.words[i] &= mask.words[i];
    }
    return string;
}

static inline bool rsc_short_string_equals(const struct rsc_short_string *a, const struct rsc_short_string *b) {
    uint64_t different = 0;
    for (int i = 0; i < RSC_SHORT_STRING_WORDS; i++) {
        different |= a->words[i] ^ b->words[i];
    }
    return different == 0;
}

static inline uint32_t rsc_short_string_hash(const struct rsc_short_string *string) {
    uint64_t a = string->words[0] ^ (string->words[2] << 29 | string->words[2] >> 35);
    uint64_t b = string->words[1] ^ (string->words[3] << 29 | string->words[3] >> 35);
    uint64_t hash = (a ^ b >> 32) * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Notes an object's keys, all of them the expected ones. Returns the number of a new plan for the shape when it is time
 * for one, otherwise 0; the plan is used once rsc_shape's `plan` is set to it. */
uint16_t rsc_key_cache_learn_plan(struct rsc_key_cache *cache, struct rsc_shape *shape, const uint16_t *keys,
                                  size_t count);

/* Notes whether an object went by its shape's plan, and gives the plan up when it fails too often. */
void rsc_key_cache_rate_plan(struct rsc_key_cache *cache, struct rsc_shape *shape, bool held);

static inline unsigned rsc_key_cache_value_number(uint32_t hash) {
    return hash % RSC_VALUES_MAX;
}

/* Whether the value is known, at the number of its hash. */
static inline bool rsc_key_cache_has_value(const struct rsc_key_cache *cache, const struct rsc_short_string *string,
                                           uint32_t hash) {
    const struct rsc_value *value = &cache->values[rsc_key_cache_value_number(hash)];
    return value->is_set && rsc_short_string_equals(&value->text, string);
}

/* Whether the text at `p` begins with this key and its closing quote. */
static inline bool rsc_key_is_at(const struct rsc_key *key, const char *p, const char *end) {
    if ((size_t)(end - p) < sizeof key->text) {
        return (size_t)(end - p) >= key->size && memcmp(key->text.words, p, key->size) == 0;
    }
    uint64_t different = 0;
    for (int i = 0; i < RSC_SHORT_STRING_WORDS; i++) {
        uint64_t word;
        memcpy(&word, p + 8 * i, sizeof word);
        different |= (word & key->mask.words[i]) ^ key->text.words[i];
    }
    return different == 0;
}

/* Learns from one more size. Sizes in sixteenths let a maximum decay slowly with whole numbers. */
static inline uint32_t rsc_shape_learn(uint32_t sixteenths, size_t size) {
    uint32_t seen = size < UINT32_MAX / 16 ? (uint32_t)size * 16 : UINT32_MAX;
    return seen >= sixteenths ? seen : sixteenths - (sixteenths - seen) / 16 - 1;
}

/* The size to expect, and no more than a text of `bytes` can hold at `each` bytes an item. */
static inline int rsc_shape_expect(uint32_t sixteenths, size_t bytes, size_t each) {
    size_t expected = (sixteenths + 15) / 16;
    size_t most = bytes / each + 1;
    return (int)(expected < most ? expected : most);
}

#endif
