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

#define RSC_KEYS_MAX         256 /* keys, the unused number 0 included */
#define RSC_KEY_BUCKETS      512
#define RSC_KEY_PROBES_MAX   8    /* buckets looked at before a key counts as unknown */
#define RSC_KEY_LENGTH_MAX   39   /* bytes */
#define RSC_VALUES_MAX       256  /* values */
#define RSC_VALUE_LENGTH_MAX 31   /* bytes */
#define RSC_KEYS_RELEARN     4096 /* unknown keys met by a full vocabulary before it starts anew */

/* What is known of the containers in one place: under one key, or at the top. */
struct rsc_shape {
    uint32_t members;  /* of objects, in sixteenths: the largest, slowly forgotten */
    uint32_t elements; /* of arrays, likewise */
    uint16_t first;    /* the key that last came first in an object, or 0 */
};

#define RSC_KEY_WORDS ((RSC_KEY_LENGTH_MAX + 1) / 8)

struct rsc_key {
    uint64_t text[RSC_KEY_WORDS]; /* the key and its closing quote, then zeros */
    uint64_t last_mask;           /* the bytes that count in the last word of `text` */
    uint32_t hash;
    uint16_t size; /* bytes of `text`, with the quote */
    uint16_t next; /* the key that last came after this one, or 0 */
    struct rsc_shape shape;
};

struct rsc_value {
    char text[RSC_VALUE_LENGTH_MAX];
    uint8_t length;
    uint32_t hash;
    uint32_t candidate; /* the hash that was here last without being known */
};

struct rsc_vocabulary {
    struct rsc_key keys[RSC_KEYS_MAX];
    struct rsc_value values[RSC_VALUES_MAX];
    uint16_t buckets[RSC_KEY_BUCKETS]; /* key numbers by hash */
    uint32_t candidates[RSC_KEYS_MAX]; /* hashes of keys seen once */
    struct rsc_shape top;
    uint16_t key_count;
    uint32_t unknown; /* unknown keys since it was full */
};

/* Call before a text is read: a full vocabulary that no longer fits the texts starts anew. */
void rsc_vocabulary_begin(struct rsc_vocabulary *vocabulary);

uint32_t rsc_vocabulary_hash(const char *bytes, size_t length);

/* The number of a key (its bytes as they stand between the quotes, without escapes), or 0. */
uint16_t rsc_vocabulary_key(const struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash);

/* Notes a key that rsc_vocabulary_key did not know. Returns its new number, or 0 while it is not taken in. */
uint16_t rsc_vocabulary_learn_key(struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash);

/* Notes a value that rsc_vocabulary_value did not know. True when it was taken in, at the number of its hash. */
bool rsc_vocabulary_learn_value(struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash);

static inline unsigned rsc_vocabulary_value_number(uint32_t hash) {
    return hash % RSC_VALUES_MAX;
}

/* Whether the value is known, at the number of its hash. */
static inline bool rsc_vocabulary_value(const struct rsc_vocabulary *vocabulary, const char *bytes, size_t length,
                                        uint32_t hash) {
    const struct rsc_value *value = &vocabulary->values[rsc_vocabulary_value_number(hash)];
    return value->hash == hash && value->length == length && memcmp(value->text, bytes, length) == 0;
}

/* Whether the text at `p` begins with this key and its closing quote. */
static inline bool rsc_key_is_at(const struct rsc_key *key, const char *p, const char *end) {
    if ((size_t)(end - p) < sizeof key->text) {
        return (size_t)(end - p) >= key->size && memcmp(key->text, p, key->size) == 0;
    }
    const uint64_t *text = key->text;
    uint64_t word;
    for (unsigned left = key->size; left > 8; left -= 8, text++, p += 8) {
        memcpy(&word, p, sizeof word);
        if (word != *text) {
            return false;
        }
    }
    memcpy(&word, p, sizeof word);
    return ((word ^ *text) & key->last_mask) == 0;
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
