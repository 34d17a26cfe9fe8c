/* Blocks of 16 bytes, examined at once with SSE2 or NEON. RSC_BLOCK_SIZE is not defined elsewhere, or if RSC_PORTABLE
 * is. Then the portable code beside each use of a block does all the work. */
#ifndef RSC_BLOCK_H
#define RSC_BLOCK_H

#include <stdint.h>

#if defined(RSC_PORTABLE)
#elif defined(__SSE2__)
#    include <emmintrin.h>
#    define RSC_BLOCK_SIZE 16
#    define RSC_BLOCK_BITS 1 /* bits of a mask for each byte */
typedef __m128i rsc_block;

static inline rsc_block rsc_block_load(const char *p) {
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static inline void rsc_block_store(char *p, rsc_block block) {
    _mm_storeu_si128((__m128i *)(void *)p, block);
}

/* Returns a block of equal bytes. Blocks also have the operators &, | and ^. */
static inline rsc_block rsc_block_of(unsigned char byte) {
    return _mm_set1_epi8((char)byte);
}

/* Returns 0xFF where the bytes are equal, and else 0. */
static inline rsc_block rsc_block_equal(rsc_block a, rsc_block b) {
    return _mm_cmpeq_epi8(a, b);
}

/* Returns a - b where a is greater, and else 0. */
static inline rsc_block rsc_block_excess(rsc_block a, rsc_block b) {
    return _mm_subs_epu8(a, b);
}

/* In a mask, the lowest bits belong to the first byte. */
static inline uint64_t rsc_block_mask(rsc_block bytes) {
    return (unsigned)_mm_movemask_epi8(bytes);
}

/* Returns a mask of the bytes that differ. */
static inline uint64_t rsc_block_differences(rsc_block a, rsc_block b) {
    return rsc_block_mask(_mm_cmpeq_epi8(a, b)) ^ 0xFFFF;
}

/* Returns a mask of the quotes, backslashes, control characters and bytes outside ASCII. */
static inline uint64_t rsc_block_special(rsc_block block) {
    rsc_block quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    rsc_block backslash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
    /* The comparison is signed, so bytes >= 0x80 also count as below 0x20. */
    rsc_block control = _mm_cmplt_epi8(block, _mm_set1_epi8(0x20));
    return rsc_block_mask(_mm_or_si128(_mm_or_si128(quote, backslash), control));
}
#elif defined(__ARM_NEON) && defined(__aarch64__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#    include <arm_neon.h>
#    define RSC_BLOCK_SIZE 16
#    define RSC_BLOCK_BITS 4 /* bits of a mask for each byte */
typedef uint8x16_t rsc_block;

static inline rsc_block rsc_block_load(const char *p) {
    return vld1q_u8((const uint8_t *)p);
}

static inline void rsc_block_store(char *p, rsc_block block) {
    vst1q_u8((uint8_t *)p, block);
}

/* Returns a block of equal bytes. Blocks also have the operators &, | and ^. */
static inline rsc_block rsc_block_of(unsigned char byte) {
    return vdupq_n_u8(byte);
}

/* Returns 0xFF where the bytes are equal, and else 0. */
static inline rsc_block rsc_block_equal(rsc_block a, rsc_block b) {
    return vceqq_u8(a, b);
}

/* Returns a - b where a is greater, and else 0. */
static inline rsc_block rsc_block_excess(rsc_block a, rsc_block b) {
    return vqsubq_u8(a, b);
}

/* In a mask, the lowest bits belong to the first byte. */
static inline uint64_t rsc_block_mask(rsc_block bytes) {
    uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(bytes), 4);
    return vget_lane_u64(vreinterpret_u64_u8(nibbles), 0);
}

/* Returns a mask of the bytes that differ. */
static inline uint64_t rsc_block_differences(rsc_block a, rsc_block b) {
    return ~rsc_block_mask(vceqq_u8(a, b));
}

/* Returns a mask of the quotes, backslashes, control characters and bytes outside ASCII. */
static inline uint64_t rsc_block_special(rsc_block block) {
    rsc_block found = vorrq_u8(vceqq_u8(block, vdupq_n_u8('"')), vceqq_u8(block, vdupq_n_u8('\\')));
    /* The comparison is signed, so bytes >= 0x80 also count as below 0x20. */
    return rsc_block_mask(vorrq_u8(found, vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20))));
}
#endif

#if defined(RSC_BLOCK_SIZE)
/* Returns a mask of the quotes, backslashes and control characters. */
static inline uint64_t rsc_block_stops(rsc_block block) {
    return rsc_block_mask(rsc_block_equal(block, rsc_block_of('"')) | rsc_block_equal(block, rsc_block_of('\\')) |
                          rsc_block_equal(rsc_block_excess(block, rsc_block_of(0x1F)), rsc_block_of(0)));
}
#endif

#endif
