/* Tests of the key cache: blocks of 16 bytes must give the answer of memcmp. Memory ends where it may not be read. */
#include "check.h"
#include "json/key_cache.h"

#define ROOM (2 * RSC_BLOCK_SIZE)

/* Keys of every length, in texts of every size, with one different byte at every place. */
static void test_comparison(void) {
    static struct rsc_key key;
    memset(key.text, 'a', sizeof key.text);
    for (size_t size = 0; size <= ROOM + 1; size++) {
        char *text = malloc(size + 1);
        CHECK(text != NULL, "out of memory");
        memset(text, 'a', size + 1);
        for (key.size = 1; key.size <= ROOM; key.size++) {
            bool fits = key.size <= size;
            CHECK(rsc_key_is_at(&key, text, text + size) == fits, "%u bytes in %zu", key.size, size);
            for (size_t place = 0; place < size; place++) {
                for (unsigned bit = 0; bit < 8; bit++) {
                    text[place] = (char)('a' ^ 1 << bit);
                    CHECK(rsc_key_is_at(&key, text, text + size) == (fits && place >= key.size),
                          "%u bytes in %zu, byte %zu", key.size, size, place);
                }
                text[place] = 'a';
            }
        }
        free(text);
    }
}

/* A key enters the cache at its second occurrence, whatever its length. */
static void test_learning(void) {
    static struct rsc_key_cache cache;
    char *text = malloc(RSC_KEY_LENGTH_MAX + 1);
    CHECK(text != NULL, "out of memory");
    for (size_t length = 0; length <= RSC_KEY_LENGTH_MAX; length++) {
        char *bytes = text + RSC_KEY_LENGTH_MAX - length;
        memset(bytes, 'k', length);
        bytes[length] = '"';
        for (unsigned times = 0; times < 3; times++) {
            bool is_new = true;
            uint16_t number = rsc_key_cache_find(&cache, bytes, length, &is_new);
            CHECK(number == (times > 0 ? length + 1 : 0), "%zu bytes", length);
            CHECK(is_new == (times == 1), "%zu bytes", length);
        }
        CHECK(rsc_key_is_at(&cache.keys[length + 1], bytes, bytes + length + 1), "%zu bytes", length);
    }
    free(text);
}

int main(void) {
    test_comparison();
    test_learning();
    return 0;
}
