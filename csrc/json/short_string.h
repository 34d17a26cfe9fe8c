/* Short strings of a text: the keys that the key cache compares and hashes. Each has its closing quote. So
 * it is never empty, and it can be compared with the bytes of a text at once. */
#ifndef RSC_SHORT_STRING_H
#define RSC_SHORT_STRING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "json/block.h"

#define RSC_SHORT_STRING_MAX  31 /* bytes without the quote */
#define RSC_SHORT_STRING_ROOM 32 /* bytes that can be read from the first byte, whatever the string's size */

/* Returns whether the first `size` bytes are equal, from 1 to RSC_SHORT_STRING_ROOM. That many can be read at both. */
static inline bool rsc_short_string_equals(const char *a, const char *b, size_t size) {
    rsc_block different = (rsc_block)(rsc_block_load(a) != rsc_block_load(b));
    if (size > RSC_BLOCK_SIZE) {
        if (rsc_block_first(different) < RSC_BLOCK_SIZE) {
            return false;
        }
        size -= RSC_BLOCK_SIZE;
        different = (rsc_block)(rsc_block_load(a + RSC_BLOCK_SIZE) != rsc_block_load(b + RSC_BLOCK_SIZE));
    }
    return (size_t)rsc_block_first(different) >= size;
}

/* Hashes the size and the first and last eight bytes. Names that differ between those alone are rare, and cost only
 * time. Eight bytes can be read. */
static inline uint32_t rsc_short_string_hash(const char *bytes, size_t size) {
    uint64_t first = 0;
    uint64_t last = 0;
    if (size >= sizeof first) {
        memcpy(&first, bytes, sizeof first);
        memcpy(&last, bytes + size - sizeof last, sizeof last);
    } else {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        memcpy(&first, bytes, sizeof first);
        first &= (UINT64_C(1) << 8 * size) - 1;
#else
        memcpy(&first, bytes, size);
#endif
    }
    uint64_t mixed = first ^ (last << 1 | last >> 63) ^ (uint64_t)size << 56;
    return (uint32_t)(mixed * UINT64_C(0x9E3779B97F4A7C15) >> 32);
}

#endif
