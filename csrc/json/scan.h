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
#include "base/compiler.h"
#include "base/error.h"
#include "json/block.h"

#define RSC_SCAN_ROOM 128 /* bytes by which the scratch buffer's limit must exceed the text's length */

/* A text and the memory for scanning it. Owns nothing: the caller keeps everything alive during the scan. A NUL follows
 * the text, so that no scan needs to look for the end: NUL continues no string, number, literal or white space. */
struct rsc_input {
    const char *text;           /* first byte */
    const char *end;            /* the NUL after the last byte */
    struct rsc_buffer *scratch; /* holds an unescaped string until the next string or number */
    struct rsc_error *error;    /* set on a failure */
};

/* The bytes of a string. They lie in the text, or in the scratch buffer if the string had escapes. */
struct rsc_span {
    const char *bytes;
    size_t length;
    bool escaped;
};

/* Reads the rest of the string that begins at `start`. Its bytes before `p` are plain. Returns the byte after the
 * closing quote, or NULL with the error set. */
const char *rsc_scan_string_from(const struct rsc_input *input, const char *start, const char *p,
                                 struct rsc_span *span);

/* Moves *p over UTF-8 sequences of two or more bytes. Returns false if it stops within a sequence that is invalid or
 * incomplete. NUL follows the text. */
bool rsc_scan_utf8(const char **p);

/* Sets the syntax error "expected <what>, got <the byte>" at `at`. Returns NULL. */
const char *rsc_scan_expected(const struct rsc_input *input, const char *at, const char *what);

/* Sets an error with the given message at `at`. Returns NULL. */
const char *rsc_scan_fail(const struct rsc_input *input, const char *at, int code, const char *message);

/* Returns the first byte at or after `p` that is a quote, a backslash, a control character or not ASCII. That can be
 * the NUL at `end`. */
static inline const char *rsc_scan_plain(const char *p, const char *end) {
    for (; end - p >= RSC_BLOCK_SIZE; p += RSC_BLOCK_SIZE) {
        int plain = rsc_block_plain(rsc_block_load(p));
        if (plain < RSC_BLOCK_SIZE) {
            return p + plain;
        }
    }
    while ((signed char)*p >= 0x20 && *p != '"' && *p != '\\') {
        p++;
    }
    return p;
}

/* Reads the string whose opening quote is just before `p`. Returns the byte after the closing quote, or NULL with the
 * error set. */
RSC_ALWAYS_INLINE const char *rsc_scan_string(const struct rsc_input *input, const char *p, struct rsc_span *span) {
    const char *after = rsc_scan_plain(p, input->end);
    if (RSC_LIKELY(*after == '"')) {
        *span = (struct rsc_span){p, (size_t)(after - p), false};
        return after + 1;
    }
    return rsc_scan_string_from(input, p, after, span);
}

/* Returns the first byte at or after `p` that is not white space. */
const char *rsc_scan_space(const char *p);

/* The same, for a text that nearly never has white space there. */
RSC_ALWAYS_INLINE const char *rsc_skip_space(const char *p) {
    return RSC_LIKELY((unsigned char)*p > ' ') ? p : rsc_scan_space(p);
}

#endif
