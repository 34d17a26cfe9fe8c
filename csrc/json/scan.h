/* Scans JSON strings: finds their end, checks their UTF-8, decodes their escapes.
 *
 * The position of a fault is the 1-based index of the first byte that cannot continue a valid text. The bytes before it
 * begin some valid text; with it they do not. A text that ends too early has its fault at length + 1. For example, a
 * lone low surrogate has its fault in its second hexadecimal digit. */
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

#define RSC_SCAN_ROOM 128 /* bytes by which the scratch buffer's limit must exceed the text's length */

/* A text and the memory for scanning it. Owns nothing: the caller keeps everything alive during the scan. */
struct rsc_input {
    const char *text;           /* first byte */
    const char *end;            /* one past the last byte */
    struct rsc_buffer *scratch; /* holds an unescaped string until the next string or number */
    struct rsc_error *error;    /* set on a failure */
};

/* The bytes of a string. They lie in the text, or in the scratch buffer if the string had escapes. */
struct rsc_span {
    const char *bytes;
    size_t length;
    bool escaped;
};

/* Reads the string whose opening quote is just before `p`. Returns the byte after the closing quote, or NULL with the
 * error set. */
const char *rsc_scan_string(const struct rsc_input *input, const char *p, struct rsc_span *span);

/* Moves *p over UTF-8 sequences of two or more bytes. Returns false if it stops within a sequence that is invalid or
 * incomplete. */
bool rsc_scan_utf8(const char **p, const char *end);

/* Sets the syntax error "expected <what>, got <the byte>" at `at`. Returns NULL. */
const char *rsc_scan_expected(const struct rsc_input *input, const char *at, const char *what);

/* Sets an error with the given message at `at`. Returns NULL. */
const char *rsc_scan_fail(const struct rsc_input *input, const char *at, int code, const char *message);

static inline bool rsc_scan_is_plain(char c) {
    return (unsigned char)c >= 0x20 && (unsigned char)c < 0x80 && c != '"' && c != '\\';
}

/* Portable version of rsc_scan_plain: eight bytes at a time, then one at a time. Also handles the tail of the others.
 */
static inline const char *rsc_scan_plain_words(const char *p, const char *end) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    const uint64_t highs = ones * 0x80;
    while (end - p >= 8) {
        uint64_t word;
        memcpy(&word, p, sizeof word);
        uint64_t quote = word ^ (ones * '"');
        uint64_t backslash = word ^ (ones * '\\');
        /* Each term sets the high bit of a matching byte, and perhaps of the bytes above it. */
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

/* Returns the first byte at or after `p` that is a quote, a backslash, a control character or not ASCII. */
static inline const char *rsc_scan_plain(const char *p, const char *end) {
#if defined(__SSE2__)
    const __m128i quote = _mm_set1_epi8('"');
    const __m128i backslash = _mm_set1_epi8('\\');
    const __m128i space = _mm_set1_epi8(0x20);
    while (end - p >= 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)p);
        /* The comparison is signed, so bytes >= 0x80 also count as below 0x20. */
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

/* Returns the first byte at or after `p` that is not white space. */
static inline const char *rsc_scan_space(const char *p, const char *end) {
    while (p < end && rsc_scan_is_space(*p)) {
        p++;
    }
    return p;
}

#endif
