/* Tests of short strings: blocks of 16 bytes must give the answer of memcmp. Memory ends where it may not be read. */
#include <string.h>

#include "check.h"
#include "json/short_string.h"

static char *allocate_room(void) {
    char *room = malloc(RSC_SHORT_STRING_ROOM);
    CHECK(room != NULL, "out of memory");
    memset(room, 'a', RSC_SHORT_STRING_ROOM);
    return room;
}

/* Every size, with one different byte at every place, in the string and after it. */
static void test_equality(void) {
    char *a = allocate_room();
    char *b = allocate_room();
    for (size_t size = 1; size <= RSC_SHORT_STRING_ROOM; size++) {
        CHECK(rsc_short_string_equals(a, b, size), "%zu bytes", size);
        for (size_t place = 0; place < RSC_SHORT_STRING_ROOM; place++) {
            for (unsigned bit = 0; bit < 8; bit++) {
                b[place] = (char)('a' ^ 1 << bit);
                CHECK(rsc_short_string_equals(a, b, size) == (place >= size), "%zu bytes, byte %zu", size, place);
            }
            b[place] = 'a';
        }
    }
    free(a);
    free(b);
}

/* The hash covers the first and last eight bytes, and nothing after the string. */
static void test_hash(void) {
    char *room = allocate_room();
    for (size_t size = 1; size <= RSC_SHORT_STRING_ROOM; size++) {
        uint32_t hash = rsc_short_string_hash(room, size);
        for (size_t place = 0; place < RSC_SHORT_STRING_ROOM; place++) {
            room[place] = 'b';
            bool covered = place < size && (place < 8 || place + 8 >= size);
            CHECK((rsc_short_string_hash(room, size) != hash) == covered, "%zu bytes, byte %zu", size, place);
            room[place] = 'a';
        }
        CHECK(size == 1 || rsc_short_string_hash(room, size - 1) != hash, "%zu bytes", size);
    }
    free(room);
}

int main(void) {
    test_equality();
    test_hash();
    return 0;
}
