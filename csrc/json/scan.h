/* JSON strings: finding their end, checking their UTF-8, undoing their escapes. Knows nothing of Lua.
 *
 * Positions. A fault is reported at the 1-based index of the first byte that cannot continue a valid text: the bytes
 * before it are the beginning of some valid text, and with it they are not. A text that ends too early has its fault at
 * its length + 1. (So a lone low surrogate is at fault in its second hexadecimal digit, an overlong form in the byte
 * that makes it overlong.) */
#ifndef RSC_SCAN_H
#define RSC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/buffer.h"
#include "base/error.h"

#if defined(__SSE2__)
#    include <emmintrin.h>
#elif defined(__ARM_NEON) && defined(__aarch64__)
#    include <arm_neon.h>
#endif

#define RSC_SCAN_ROOM 128 /* bytes: how much larger than the text the scratch buffer's limit must be */

/* The text being read and what reading needs. Owns nothing; everything it points to must outlive its use. */
struct rsc_input {
    const char *text;           /* first byte */
    const char *end;            /* one past the last; never read */
    struct rsc_buffer *scratch; /* where strings are unescaped; its contents last until the next string or number */
    struct rsc_error *error;    /* filled on a failure */
};

/* Bytes of a string: in the text when it had no escapes, otherwise in the scratch buffer. */
struct rsc_span {
    const char *bytes;
    size_t length;
    bool escaped;
};

/* Reads the string whose first byte after the opening quote is `p`. Returns the byte after the closing quote, or NULL
 * with the error set. */
const char *rsc_scan_string(const struct rsc_input *input, const char *p, struct rsc_span *span);

/* Moves *p over sequences that start with a byte >= 0x80. True when it stopped at an ASCII byte or the end, false when
 * it stopped at a byte (or the end) where a sequence is broken. */
bool rsc_scan_utf8(const char **p, const char *end);

/* Sets a syntax error at `at`: "expected <what>, got <the byte there>". Returns NULL. */
const char *rsc_scan_expected(const struct rsc_input *input, const char *at, const char *what);

/* Sets an error with its own message at `at`. Returns NULL. */
const char *rsc_scan_fail(const struct rsc_input *input, const char *at, int code, const char *message);

static inline bool rsc_scan_is_plain(char c) {
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* The portable way, and the tail of the others: eight bytes at a time, then one. */
static inline const char *rsc_scan_plain_words(const char *p, const char *end) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = ones * 0x80;
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        uint64_t quote = word ^ (ones * '"');
        uint64_t backslash = word ^ (ones * '\\');
        /* Each term has its high bit set in a byte that is zero (or below 0x20), and perhaps in bytes above that one.
         */
        uint64_t found = ((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | (word - ones * 0x20) | word;
        if ((found & highs) != 0) {
            break;
        }
        p += 8;
    }
    while (p < end && rsc_scan_is_plain(*p)) {
        p++;
    }
    return p;
}

/* The first byte at or after `p` that is not plain: a quote, a backslash, a control character, or >= 0x80. */
static inline const char *rsc_scan_plain(const char *p, const char *end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* The comparison is signed, so it finds the bytes >= 0x80 as well as those below 0x20. */
        __m128i found = _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(block, quote), _mm_cmpeq_epi8(block, backslash)),
                                     _mm_cmplt_epi8(block, space));
        int mask = _mm_movemask_epi8(found);
        if (mask != 0) {
            return p + __builtin_ctz((unsigned)mask);
        }
        p += 16;
    }
#elif defined(__ARM_NEON) && defined(__aarch64__)
    while (end - p >= 16) {
        uint8x16_t block = vld1q_u8((const uint8_t *)p);
        uint8x16_t found = vorrq_u8(vceqq_u8(block, vdupq_n_u8('"')), vceqq_u8(block, vdupq_n_u8('\\')));
        found = vorrq_u8(found, vcltq_s8(vreinterpretq_s8_u8(block), vdupq_n_s8(0x20)));
        uint8x8_t nibbles = vshrn_n_u16(vreinterpretq_u16_u8(found), 4);
        uint64_t mask = vget_lane_u64(vreinterpret_u64_u8(nibbles), 0);
        if (mask != 0) {
            return p + (__builtin_ctzll(mask) >> 2);
        }
        p += 16;
    }
#endif
    return rsc_scan_plain_words(p, end);
}

static inline bool rsc_scan_is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* The first byte at or after `p` that is not white space. */
static inline const char *rsc_scan_space(const char *p, const char *end) {
    while (p < end && rsc_scan_is_space(*p)) {
        p++;
    }
    return p;
}

#endif
