#include "json/key_cache.h"

void rsc_key_cache_begin(struct rsc_key_cache *cache) {
    if (cache->unknown > RSC_KEYS_RELEARN) {
        *cache = (struct rsc_key_cache){0};
    }
}

uint16_t rsc_key_cache_find_key(const struct rsc_key_cache *cache, const char *bytes, size_t size, uint32_t hash) {
    for (unsigned probe = 0; probe < RSC_KEY_PROBES_MAX; probe++) {
        uint16_t number = cache->buckets[(hash + probe) % RSC_KEY_BUCKETS];
        if (number == 0) {
            return 0;
        }
        const struct rsc_key *key = &cache->keys[number];
        if (key->hash == hash && key->size == size && rsc_short_string_equals(key->text, bytes, size)) {
            return number;
        }
    }
    return 0;
}

/* Returns a free bucket for the hash, or NULL. */
static uint16_t *free_bucket(struct rsc_key_cache *cache, uint32_t hash) {
    for (unsigned probe = 0; probe < RSC_KEY_PROBES_MAX; probe++) {
        uint16_t *bucket = &cache->buckets[(hash + probe) % RSC_KEY_BUCKETS];
        if (*bucket == 0) {
            return bucket;
        }
    }
    return NULL;
}

uint16_t rsc_key_cache_learn_key(struct rsc_key_cache *cache, const char *bytes, size_t size, uint32_t hash) {
    if (cache->key_count == RSC_KEYS_MAX - 1) {
        cache->unknown++;
        return 0;
    }
    uint32_t *candidate = &cache->candidates[hash % RSC_KEYS_MAX];
    if (*candidate != hash) {
        *candidate = hash;
        return 0;
    }
    uint16_t *bucket = free_bucket(cache, hash);
    if (bucket == NULL) {
        return 0;
    }
    *bucket = ++cache->key_count;
    struct rsc_key *key = &cache->keys[*bucket];
    *key = (struct rsc_key){.hash = hash, .size = (uint16_t)size};
    memcpy(key->text, bytes, size);
    return *bucket;
}
