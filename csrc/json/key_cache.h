/* What a decoder remembers of the texts it has read: their keys, the order keys come in, how large the tables under
 * each key were, and short values that come again. Knows nothing of Lua: a word is a number, and whoever builds values
 * keeps the interned string of each number.
 *
 * A word enters at its second sighting, so that keys and values seen once push nothing out. Everything has a fixed
 * size and lies in one struct, which the caller owns; a zeroed struct is an empty vocabulary. It holds bytes of the
 * texts it saw for as long as it lives. */
#ifndef RSC_VOCABULARY_H
#define RSC_VOCABULARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define RSC_KEYS_MAX        256 /* keys, the unused number 0 included */
#define RSC_KEY_BUCKETS     512
#define RSC_KEY_PROBES_MAX  8    /* buckets looked at before a key counts as unknown */
#define RSC_VALUES_MAX      256  /* values */
#define RSC_WORD_LENGTH_MAX 31   /* bytes of a key or a value */
#define RSC_KEYS_RELEARN    4096 /* unknown keys met by a full vocabulary before it starts anew */

#define RSC_PLANS_MAX     32   /* plans, the unused number 0 included */
#define RSC_PLAN_KEYS_MAX 12   /* members of an object that has a plan */
#define RSC_PLAN_AFTER    8    /* objects in a row with the same keys before a shape gets a plan */
#define RSC_PLAN_PATIENCE 64   /* how much more often a plan may fail than hold, each failure counting four times */
#define RSC_PLAN_PAUSE    4096 /* objects before a shape whose plan was given up may get another */

#define RSC_WORD_PIECES ((RSC_WORD_LENGTH_MAX + 1) / 8)

/* The bytes of a short string as they stand in the text, then zeros. The length need not be kept: text has no zero
 * bytes. Words are compared and hashed whole, since branches on lengths that vary would cost more than the bytes. */
struct rsc_word {
    uint64_t pieces[RSC_WORD_PIECES];
};

/* What is known of the containers in one place: under one key, or at the top. */
struct rsc_shape {
    uint32_t members;  /* of objects, in sixteenths: the largest, slowly forgotten */
    uint32_t elements; /* of arrays, likewise */
    uint16_t first;    /* the key that last came first in an object, or 0 */
    uint16_t plan;     /* the plan its objects are built by, or 0 */
    int32_t steady;    /* objects in a row whose keys were the expected ones */
    bool temporary;    /* of a key that is not in the vocabulary: forgotten with the text */
};

struct rsc_key {
    struct rsc_word text; /* the key and its closing quote */
    struct rsc_word mask; /* ones where `text` has bytes */
    uint32_t hash;        /* of the key without the quote */
    uint16_t size;        /* bytes of `text`, with the quote */
    uint16_t next;        /* the key that last came after this one, or 0 */
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
    struct rsc_word text;
    uint32_t candidate; /* the hash that was here last without being known */
    bool is_set;
};

struct rsc_vocabulary {
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

/* Call before a text is read: a full vocabulary that no longer fits the texts starts anew. */
void rsc_vocabulary_begin(struct rsc_vocabulary *vocabulary);

/* The number of a key of `length` bytes, or 0. */
uint16_t rsc_vocabulary_key(const struct rsc_vocabulary *vocabulary, const struct rsc_word *word, size_t length,
                            uint32_t hash);

/* Notes a key that rsc_vocabulary_key did not know. Returns its new number, or 0 while it is not taken in. */
uint16_t rsc_vocabulary_learn_key(struct rsc_vocabulary *vocabulary, const struct rsc_word *word, size_t length,
                                  uint32_t hash);

/* Notes a value that rsc_vocabulary_value did not know. True when it was taken in, at the number of its hash. */
bool rsc_vocabulary_learn_value(struct rsc_vocabulary *vocabulary, const struct rsc_word *word, uint32_t hash);

/* The word of the `length` bytes at `p`, at most RSC_WORD_LENGTH_MAX; the text ends at `end`. */
static inline struct rsc_word rsc_word_at(const char *p, size_t length, const char *end) {
    static const unsigned char ones_then_zeros[2 * sizeof(struct rsc_word)] = {
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
        0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF};
    struct rsc_word word = {{0}};
    struct rsc_word mask;
    if ((size_t)(end - p) < sizeof word) {
        memcpy(word.pieces, p, length);
        return word;
    }
    memcpy(word.pieces, p, sizeof word);
    memcpy(mask.pieces, ones_then_zeros + sizeof mask - length, sizeof mask);
    for (int i = 0; i < RSC_WORD_PIECES; i++) {
        word.pieces[i] &= mask.pieces[i];
    }
    return word;
}

static inline bool rsc_word_equals(const struct rsc_word *a, const struct rsc_word *b) {
    uint64_t different = 0;
    for (int i = 0; i < RSC_WORD_PIECES; i++) {
        different |= a->pieces[i] ^ b->pieces[i];
    }
    return different == 0;
}

static inline uint32_t rsc_word_hash(const struct rsc_word *word) {
    uint64_t a = word->pieces[0] ^ (word->pieces[2] << 29 | word->pieces[2] >> 35);
    uint64_t b = word->pieces[1] ^ (word->pieces[3] << 29 | word->pieces[3] >> 35);
    uint64_t hash = (a ^ b >> 32) * UINT64_C(0x9E3779B97F4A7C15) + b * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)((hash ^ hash >> 32) * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

/* Notes an object's keys, all of them the expected ones. Returns the number of a new plan for the shape when it is time
 * for one, otherwise 0; the plan is used once rsc_shape's `plan` is set to it. */
uint16_t rsc_vocabulary_learn_plan(struct rsc_vocabulary *vocabulary, struct rsc_shape *shape, const uint16_t *keys,
                                   size_t count);

/* Notes whether an object went by its shape's plan, and gives the plan up when it fails too often. */
void rsc_vocabulary_judge_plan(struct rsc_vocabulary *vocabulary, struct rsc_shape *shape, bool held);

static inline unsigned rsc_vocabulary_value_number(uint32_t hash) {
    return hash % RSC_VALUES_MAX;
}

/* Whether the value is known, at the number of its hash. */
static inline bool rsc_vocabulary_value(const struct rsc_vocabulary *vocabulary, const struct rsc_word *word,
                                        uint32_t hash) {
    const struct rsc_value *value = &vocabulary->values[rsc_vocabulary_value_number(hash)];
    return value->is_set && rsc_word_equals(&value->text, word);
}

/* Whether the text at `p` begins with this key and its closing quote. */
static inline bool rsc_key_is_at(const struct rsc_key *key, const char *p, const char *end) {
    if ((size_t)(end - p) < sizeof key->text) {
        return (size_t)(end - p) >= key->size && memcmp(key->text.pieces, p, key->size) == 0;
    }
    uint64_t different = 0;
    for (int i = 0; i < RSC_WORD_PIECES; i++) {
        uint64_t piece;
        memcpy(&piece, p + 8 * i, sizeof piece);
        different |= (piece & key->mask.pieces[i]) ^ key->text.pieces[i];
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
