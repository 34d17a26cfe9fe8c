#include "json/scan.h"

#define ESCAPE_MAX 4 /* bytes of UTF-8 that an escape stands for */

static size_t position_of(const struct rsc_input *input, const char *at) {
    return (size_t)(at - input->text) + 1;
}

const char *rsc_scan_expected(const struct rsc_input *input, const char *at, const char *what) {
    size_t position = position_of(input, at);
    if (at == input->end) {
        rsc_error_set(input->error, RSC_ERROR_SYNTAX, position, "expected %s, got the end of the text at byte %zu",
                      what, position);
    } else if ((unsigned char)*at > 0x20 && (unsigned char)*at < 0x7f) {
        rsc_error_set(input->error, RSC_ERROR_SYNTAX, position, "expected %s, got '%c' at byte %zu", what, *at,
                      position);
    } else {
        rsc_error_set(input->error, RSC_ERROR_SYNTAX, position, "expected %s, got 0x%02X at byte %zu", what,
                      (unsigned char)*at, position);
    }
    return NULL;
}

const char *rsc_scan_fail(const struct rsc_input *input, const char *at, int code, const char *message) {
    size_t position = position_of(input, at);
    rsc_error_set(input->error, code, position, "%s at byte %zu", message, position);
    return NULL;
}

bool rsc_scan_utf8(const char **cursor) {
    const unsigned char *p = (const unsigned char *)*cursor;
    int left = 0; /* bytes of the sequence that are to come */
    unsigned low = 0;
    unsigned high = 0;
    while (left > 0 ? *p >= low && *p <= high : *p >= 0xC2 && *p <= 0xF4) {
        if (left > 0) {
            left--;
            low = 0x80;
            high = 0xBF;
        } else {
            left = *p < 0xE0 ? 1 : *p < 0xF0 ? 2 : 3;
            low = *p == 0xE0 ? 0xA0 : *p == 0xF0 ? 0x90 : 0x80;  /* lower would be overlong */
            high = *p == 0xED ? 0x9F : *p == 0xF4 ? 0x8F : 0xBF; /* higher: a surrogate, or above U+10FFFF */
        }
        p++;
    }
    *cursor = (const char *)p;
    return left == 0 && *p < 0x80;
}

/* Returns -1 if `c` is not a hexadecimal digit. */
static int hex_digit(char c) {
    /* Entries are the digit's value plus one, so that 0 means no digit. */
    static const signed char digits[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
        ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
        ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};
    return digits[(unsigned char)c] - 1;
}

/* Reads four digits one by one, to find the position of a fault. They must be a low surrogate exactly if
 * `low_expected`. */
static const char *scan_unit_slowly(const struct rsc_input *input, const char *p, bool low_expected, unsigned *unit) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++, p++) {
        int digit = hex_digit(*p);
        if (digit < 0) {
            return rsc_scan_expected(input, p, "a hexadecimal digit");
        }
        value = value << 4 | (unsigned)digit;
        if (low_expected && ((i == 0 && value != 0xD) || (i == 1 && value < 0xDC))) {
            return rsc_scan_expected(input, p, "a low surrogate");
        }
        if (!low_expected && i == 1 && value >= 0xDC && value <= 0xDF) {
            return rsc_scan_fail(input, p, RSC_ERROR_SYNTAX, "a low surrogate without a high one");
        }
    }
    *unit = value;
    return p;
}

/* The functions that decode an escape are always inlined: see `./dev bench decode`. */

/* Returns the value of the four hexadecimal digits at `p`, or a negative number. A loop takes twice as long. */
RSC_ALWAYS_INLINE int scan_unit(const struct rsc_input *input, const char *p) {
    if (input->end - p < 4) {
        return -1;
    }
    return hex_digit(p[0]) * 4096 | hex_digit(p[1]) * 256 | hex_digit(p[2]) * 16 | hex_digit(p[3]);
}

/* Locates the fault after a `\u`. */
static const char *fail_unicode(const struct rsc_input *input, const char *p) {
    unsigned high;
    unsigned low;
    p = scan_unit_slowly(input, p, false, &high);
    if (p == NULL) {
        return NULL;
    }
    for (int i = 0; i < 2; i++, p++) {
        if (*p != "\\u"[i]) {
            return rsc_scan_expected(input, p, "the low surrogate of a pair");
        }
    }
    return scan_unit_slowly(input, p, true, &low);
}

/* Writes the code point and returns the byte after it. */
RSC_ALWAYS_INLINE char *encode_utf8(unsigned code_point, char *out) {
    if (code_point < 0x80) {
        *out++ = (char)code_point;
        return out;
    }
    if (code_point < 0x800) {
        *out++ = (char)(0xC0 | code_point >> 6);
    } else {
        if (code_point < 0x10000) {
            *out++ = (char)(0xE0 | code_point >> 12);
        } else {
            *out++ = (char)(0xF0 | code_point >> 18);
            *out++ = (char)(0x80 | (code_point >> 12 & 0x3F));
        }
        *out++ = (char)(0x80 | (code_point >> 6 & 0x3F));
    }
    *out++ = (char)(0x80 | (code_point & 0x3F));
    return out;
}

/* Reads the digits after `\u`, and a second escape for a surrogate pair. Writes 1 to 4 bytes of UTF-8 and moves *out
 * past them. */
RSC_ALWAYS_INLINE const char *scan_unicode(const struct rsc_input *input, const char *p, char **out) {
    int unit = scan_unit(input, p);
    if (unit >= 0 && (unit < 0xD800 || unit > 0xDFFF)) {
        *out = encode_utf8((unsigned)unit, *out);
        return p + 4;
    }
    if (unit >= 0xD800 && unit <= 0xDBFF && p[4] == '\\' && p[5] == 'u') {
        int low = scan_unit(input, p + 6);
        if (low >= 0xDC00 && low <= 0xDFFF) {
            *out = encode_utf8((unsigned)(0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00)), *out);
            return p + 10;
        }
    }
    return fail_unicode(input, p);
}

/* Reads the escape whose backslash is at `p`. Writes 1 to 4 bytes, moves *out past them, and returns the byte after the
 * escape. First compares a byte of the text and only then reads a table: a wrong prediction is noticed sooner. */
RSC_ALWAYS_INLINE const char *scan_escape(const struct rsc_input *input, const char *p, char **out) {
    static const char meanings[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    if (p[1] == 'u') {
        return scan_unicode(input, p + 2, out);
    }
    char meaning = meanings[(unsigned char)p[1]];
    *(*out)++ = meaning;
    return RSC_LIKELY(meaning != '\0') ? p + 2 : rsc_scan_expected(input, p + 1, "an escape character");
}

/* Returns a block with a byte other than 0 at each fault: a byte that cannot follow those before it; see rsc_scan_utf8.
 * `back1` to `back3` are the blocks that begin one to three bytes earlier. */
RSC_ALWAYS_INLINE rsc_block utf8_faults(rsc_block block, rsc_block back1, rsc_block back2, rsc_block back3) {
    const rsc_block zero = {0};
    rsc_block leads = rsc_block_excess(back1, zero + 0xBF) | rsc_block_excess(back2, zero + 0xDF) |
                      rsc_block_excess(back3, zero + 0xEF);
    rsc_block starts = (rsc_block)(leads == 0);
    rsc_block continues = (rsc_block)((block & 0xC0) == 0x80);
    rsc_block low = ((rsc_block)(back1 == 0xE0) & 0xA0) | ((rsc_block)(back1 == 0xF0) & 0x90);
    rsc_block high = ((rsc_block)(back1 == 0xED) & (0xFF ^ 0x9F)) | ((rsc_block)(back1 == 0xF4) & (0xFF ^ 0x8F));
    return (rsc_block)(starts == continues) | rsc_block_excess(low, block) | rsc_block_excess(block, ~high) |
           (rsc_block)((block & 0xFE) == 0xC0) | rsc_block_excess(block, zero + 0xF4);
}

/* Moves over blocks of plain bytes and valid UTF-8 from `start`, the first byte of a character. Stops at a quote, a
 * backslash or a control character. Also stops before a fault and near the end of the text, at the first byte of a
 * character: rsc_scan_utf8 locates the fault. Without it, long texts in many languages take three times as long. */
static const char *skip_text(const struct rsc_input *input, const char *start) {
    const char *p = start;
    if (p - input->text < 3) {
        return p;
    }
    for (; input->end - p >= RSC_BLOCK_SIZE; p += RSC_BLOCK_SIZE) {
        rsc_block block = rsc_block_load(p);
        rsc_block wrong = utf8_faults(block, rsc_block_load(p - 1), rsc_block_load(p - 2), rsc_block_load(p - 3));
        rsc_block faults = (rsc_block)(wrong != 0);
        rsc_block stops = (rsc_block)(block == '"') | (rsc_block)(block == '\\') | (rsc_block)(block < 0x20);
        int first = rsc_block_first(faults | stops);
        if (first < RSC_BLOCK_SIZE) {
            if (first < rsc_block_first(faults)) {
                return p + first;
            }
            break;
        }
    }
    /* The last character before `p` may be incomplete. */
    while (p > start && ((unsigned char)*--p & 0xC0) == 0x80) {
    }
    return p;
}

/* Moves over plain bytes and valid UTF-8. Returns the next quote or backslash, or NULL with the error set. */
static const char *scan_run(const struct rsc_input *input, const char *p) {
    for (;;) {
        p = rsc_scan_plain(p, input->end);
        if (*p == '"' || *p == '\\') {
            return p;
        }
        if ((unsigned char)*p < 0x20) {
            return rsc_scan_expected(input, p,
                                     p == input->end ? "the closing quote of a string"
                                                     : "an escape in place of a control character");
        }
        p = skip_text(input, p);
        if (!rsc_scan_utf8(&p)) {
            return rsc_scan_expected(input, p, "well-formed UTF-8");
        }
    }
}

/* Decodes the escapes from `p` on while they fit the scratch buffer. */
static const char *scan_escapes(const struct rsc_input *input, const char *p) {
    struct rsc_buffer *scratch = input->scratch;
    char *out = scratch->data + scratch->length;
    const char *out_end = scratch->data + scratch->capacity;
    while (p != NULL && *p == '\\' && out_end - out >= ESCAPE_MAX) {
        p = scan_escape(input, p, &out);
    }
    scratch->length = (size_t)(out - scratch->data);
    return p;
}

/* Reads the string from `start`, whose first escape is at `p`. */
static const char *scan_escaped(const struct rsc_input *input, const char *start, const char *p,
                                struct rsc_span *span) {
    struct rsc_buffer *scratch = input->scratch;
    const char *run = start;
    rsc_buffer_reset(scratch);
    for (;;) {
        size_t plain = (size_t)(p - run);
        int status = rsc_buffer_reserve(scratch, plain + RSC_SCAN_ROOM);
        if (status != RSC_OK) {
            return rsc_scan_fail(input, start, status,
                                 status == RSC_ERROR_LIMIT ? "a string is too long" : "not enough memory for a string");
        }
        memcpy(scratch->data + scratch->length, run, plain);
        scratch->length += plain;
        if (*p == '"') {
            *span = (struct rsc_span){scratch->data, scratch->length, true};
            return p + 1;
        }
        run = scan_escapes(input, p);
        p = run != NULL ? scan_run(input, run) : NULL;
        if (p == NULL) {
            return NULL;
        }
    }
}

const char *rsc_scan_string_from(const struct rsc_input *input, const char *start, const char *p,
                                 struct rsc_span *span) {
    p = scan_run(input, p);
    if (p == NULL) {
        return NULL;
    }
    if (*p == '\\') {
        return scan_escaped(input, start, p, span);
    }
    *span = (struct rsc_span){start, (size_t)(p - start), false};
    return p + 1;
}

const char *rsc_scan_space(const char *p) {
    while (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t') {
        p++;
    }
    return p;
}
