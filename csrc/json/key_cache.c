#include "json/key_cache.h"

/* Returns the key's bucket, or the free one for it. */
static uint16_t *bucket_of(struct rsc_key_cache *cache, const char *bytes, size_t length, uint32_t hash) {
    for (uint32_t at = hash;; at++) {
        uint16_t *bucket = &cache->buckets[at % RSC_KEY_BUCKETS];
        const struct rsc_key *key = &cache->keys[*bucket];
        if (*bucket == 0 || (key->hash == hash && key->size == length + 1 && memcmp(key->text, bytes, length) == 0)) {
            return bucket;
        }
    }
}

/* Returns whether a key that is not in the cache may enter it. */
static bool is_due(struct rsc_key_cache *cache, uint32_t hash) {
    if (cache->key_count == RSC_KEYS_MAX - 1) {
        cache->unknown++;
        return false;
    }
    uint32_t *candidate = &cache->candidates[hash % RSC_KEYS_MAX];
    bool is_second = *candidate == hash;
    *candidate = hash;
    return is_second;
}

uint16_t rsc_key_cache_find(struct rsc_key_cache *cache, const char *bytes, size_t length, bool *is_new) {
    uint32_t hash = rsc_key_hash(bytes, length);
    uint16_t *bucket = bucket_of(cache, bytes, length, hash);
    *is_new = *bucket == 0 && *is_new && is_due(cache, hash);
    if (*is_new) {
        *bucket = ++cache->key_count;
        struct rsc_key *key = &cache->keys[*bucket];
        key->hash = hash;
        rsc_key_set(key, bytes, length);
    }
    return *bucket;
}
