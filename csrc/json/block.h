/* Blocks of 16 bytes, examined at once. They are vectors of the compiler: operators work on each byte, and a comparison
 * gives 0xFF for each byte where it holds. With RSC_PORTABLE, tests cover the code for other processors. */
#ifndef RSC_BLOCK_H
#define RSC_BLOCK_H

#include <stdint.h>
#include <string.h>

#if defined(__SSE2__) && !defined(RSC_PORTABLE)
#    include <emmintrin.h>
#    define RSC_BLOCK_SSE2 1
#endif

/* Without SSE, gcc warns of vectors as arguments. No other program calls these functions. */
#pragma GCC diagnostic ignored "-Wpsabi"

#define RSC_BLOCK_SIZE 16

typedef uint8_t rsc_block __attribute__((vector_size(RSC_BLOCK_SIZE)));

static inline rsc_block rsc_block_load(const char *p) {
    rsc_block block;
    memcpy(&block, p, sizeof block);
    return block;
}

/* Returns a - b where a is greater, and else 0. */
static inline rsc_block rsc_block_excess(rsc_block a, rsc_block b) {
#if defined(RSC_BLOCK_SSE2)
    return (rsc_block)_mm_subs_epu8((__m128i)a, (__m128i)b); /* half the time of long texts in many languages */
#else
    return (rsc_block)(a > b) & (a - b);
#endif
}

/* Returns how many bytes of a comparison are 0 before the first other one: RSC_BLOCK_SIZE if all are. */
static inline int rsc_block_first(rsc_block block) {
#if defined(RSC_BLOCK_SSE2)
    return __builtin_ctz((unsigned)_mm_movemask_epi8((__m128i)block) | 1U << RSC_BLOCK_SIZE);
#else
    /* Half of each byte, in the order of the bytes. */
    typedef uint16_t pairs __attribute__((vector_size(RSC_BLOCK_SIZE)));
    typedef uint8_t halves __attribute__((vector_size(RSC_BLOCK_SIZE / 2)));
    halves narrow = __builtin_convertvector((pairs)block / 16, halves); /* GCC warns of a shift */
    uint64_t mask;
    memcpy(&mask, &narrow, sizeof mask);
    if (mask == 0) {
        return RSC_BLOCK_SIZE;
    }
    return (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? __builtin_ctzll(mask) : __builtin_clzll(mask)) / 4;
#endif
}

/* Returns how many bytes come before the first difference: RSC_BLOCK_SIZE if there is none. */
static inline int rsc_block_same(const char *a, const char *b) {
    return rsc_block_first((rsc_block)(rsc_block_load(a) != rsc_block_load(b)));
}

/* Returns how many bytes come before a quote, a backslash, a control character or a byte outside ASCII. */
static inline int rsc_block_plain(rsc_block block) {
    typedef int8_t bytes __attribute__((vector_size(RSC_BLOCK_SIZE))); /* bytes outside ASCII are below 0 */
    return rsc_block_first((rsc_block)(block == '"') | (rsc_block)(block == '\\') | (rsc_block)((bytes)block < 0x20));
}

#endif
