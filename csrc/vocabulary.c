#include "vocabulary.h"

void rsc_vocabulary_begin(struct rsc_vocabulary *vocabulary) {
    if (vocabulary->unknown > RSC_KEYS_RELEARN) {
        *vocabulary = (struct rsc_vocabulary){0};
    }
}

/* The first and last eight bytes and the length: enough to tell words apart, and never a walk over each byte. */
uint32_t rsc_vocabulary_hash(const char *bytes, size_t length) {
    uint64_t head = 0;
    uint64_t tail = 0;
    if (length >= 8) {
        memcpy(&head, bytes, 8);
        memcpy(&tail, bytes + length - 8, 8);
    } else if (length >= 4) {
        uint32_t half;
        memcpy(&half, bytes, 4);
        head = half;
        memcpy(&half, bytes + length - 4, 4);
        tail = half;
    } else if (length > 0) {
        head = (uint64_t)(unsigned char)bytes[0] << 16 | (uint64_t)(unsigned char)bytes[length / 2] << 8 |
               (unsigned char)bytes[length - 1];
    }
    uint64_t hash = (head ^ length) * UINT64_C(0x9E3779B97F4A7C15);
    hash = (hash ^ hash >> 32 ^ tail) * UINT64_C(0xD6E8FEB86659FD93);
    return (uint32_t)(hash >> 32);
}

uint16_t rsc_vocabulary_key(const struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash) {
    for (unsigned probe = 0; probe < RSC_KEY_PROBES_MAX; probe++) {
        uint16_t number = vocabulary->buckets[(hash + probe) % RSC_KEY_BUCKETS];
        if (number == 0) {
            return 0;
        }
        const struct rsc_key *key = &vocabulary->keys[number];
        if (key->hash == hash && key->size == length + 1 && memcmp(key->text, bytes, length) == 0) {
            return number;
        }
    }
    return 0;
}

/* A free bucket for the hash, or NULL. */
static uint16_t *free_bucket(struct rsc_vocabulary *vocabulary, uint32_t hash) {
    for (unsigned probe = 0; probe < RSC_KEY_PROBES_MAX; probe++) {
        uint16_t *bucket = &vocabulary->buckets[(hash + probe) % RSC_KEY_BUCKETS];
        if (*bucket == 0) {
            return bucket;
        }
    }
    return NULL;
}

static void set_key(struct rsc_key *key, const char *bytes, size_t length, uint32_t hash) {
    char text[RSC_KEY_LENGTH_MAX + 1] = {0};
    memcpy(text, bytes, length);
    text[length] = '"';
    *key = (struct rsc_key){.hash = hash, .size = (uint16_t)(length + 1)};
    memcpy(key->text, text, sizeof text);
    memset(&key->last_mask, 0xFF, length % 8 + 1);
}

uint16_t rsc_vocabulary_learn_key(struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash) {
    if (length > RSC_KEY_LENGTH_MAX) {
        return 0;
    }
    if (vocabulary->key_count == RSC_KEYS_MAX - 1) {
        vocabulary->unknown++;
        return 0;
    }
    uint32_t *candidate = &vocabulary->candidates[hash % RSC_KEYS_MAX];
    if (*candidate != hash) {
        *candidate = hash;
        return 0;
    }
    uint16_t *bucket = free_bucket(vocabulary, hash);
    if (bucket == NULL) {
        return 0;
    }
    *bucket = ++vocabulary->key_count;
    set_key(&vocabulary->keys[*bucket], bytes, length, hash);
    return *bucket;
}

bool rsc_vocabulary_learn_value(struct rsc_vocabulary *vocabulary, const char *bytes, size_t length, uint32_t hash) {
    struct rsc_value *value = &vocabulary->values[rsc_vocabulary_value_number(hash)];
    if (value->candidate != hash) {
        value->candidate = hash;
        return false;
    }
    memcpy(value->text, bytes, length);
    value->length = (uint8_t)length;
    value->hash = hash;
    return true;
}
