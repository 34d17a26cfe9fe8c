#include "json/scan.h"

#define ESCAPE_SIZE_MAX 4 /* bytes of one decoded escape */

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

/* Returns the length of the sequence that starts with `lead`, or 0, and the valid range of its second byte. */
static int utf8_shape(unsigned char lead, unsigned char *low, unsigned char *high) {
    *low = 0x80;
    *high = 0xBF;
    if (lead < 0xC2 || lead > 0xF4) {
        return 0;
    }
    if (lead < 0xE0) {
        return 2;
    }
    if (lead < 0xF0) {
        *low = lead == 0xE0 ? 0xA0 : 0x80;  /* lower would be overlong */
        *high = lead == 0xED ? 0x9F : 0xBF; /* higher would be a surrogate */
        return 3;
    }
    *low = lead == 0xF0 ? 0x90 : 0x80;  /* lower would be overlong */
    *high = lead == 0xF4 ? 0x8F : 0xBF; /* higher would exceed U+10FFFF */
    return 4;
}

bool rsc_scan_utf8(const char **cursor) {
    const char *p = *cursor;
    while ((unsigned char)*p >= 0x80) {
        unsigned char low;
        unsigned char high;
        int size = utf8_shape((unsigned char)*p, &low, &high);
        if (size == 0) {
            *cursor = p;
            return false;
        }
        for (int i = 1; i < size; i++) {
            if ((unsigned char)p[i] < low || (unsigned char)p[i] > high) {
                *cursor = p + i;
                return false;
            }
            low = 0x80;
            high = 0xBF;
        }
        p += size;
    }
    *cursor = p;
    return true;
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

/* Reads the four hexadecimal digits at `p` into *unit. Returns the byte after them, or NULL with the error set. */
static const char *scan_unit(const struct rsc_input *input, const char *p, unsigned *unit) {
    if (input->end - p >= 4) {
        int value = hex_digit(p[0]) * 4096 | hex_digit(p[1]) * 256 | hex_digit(p[2]) * 16 | hex_digit(p[3]);
        /* hex_digit returns -1 for a bad digit, which makes the value negative. */
        if (value >= 0 && (value < 0xDC00 || value > 0xDFFF)) {
            *unit = (unsigned)value;
            return p + 4;
        }
    }
    return scan_unit_slowly(input, p, false, unit);
}

static size_t encode_utf8(unsigned code_point, char *out) {
    if (code_point < 0x80) {
        out[0] = (char)code_point;
        return 1;
    }
    if (code_point < 0x800) {
        out[0] = (char)(0xC0 | code_point >> 6);
        out[1] = (char)(0x80 | (code_point & 0x3F));
        return 2;
    }
    if (code_point < 0x10000) {
        out[0] = (char)(0xE0 | code_point >> 12);
        out[1] = (char)(0x80 | (code_point >> 6 & 0x3F));
        out[2] = (char)(0x80 | (code_point & 0x3F));
        return 3;
    }
    out[0] = (char)(0xF0 | code_point >> 18);
    out[1] = (char)(0x80 | (code_point >> 12 & 0x3F));
    out[2] = (char)(0x80 | (code_point >> 6 & 0x3F));
    out[3] = (char)(0x80 | (code_point & 0x3F));
    return 4;
}

/* Reads the digits after `\u`, and a second escape for a surrogate pair. Writes 1 to 4 bytes of UTF-8. */
static const char *scan_unicode(const struct rsc_input *input, const char *p, char *out, size_t *size) {
    unsigned code_point;
    p = scan_unit(input, p, &code_point);
    if (p == NULL) {
        return NULL;
    }
    if (code_point >= 0xD800 && code_point <= 0xDBFF) {
        for (int i = 0; i < 2; i++, p++) {
            if (*p != "\\u"[i]) {
                return rsc_scan_expected(input, p, "the low surrogate of a pair");
            }
        }
        unsigned low;
        p = scan_unit_slowly(input, p, true, &low);
        if (p == NULL) {
            return NULL;
        }
        code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
    }
    *size = encode_utf8(code_point, out);
    return p;
}

/* Reads the escape whose backslash is at `p`, writes its 1 to 4 bytes, and returns the byte after it. */
static const char *scan_escape(const struct rsc_input *input, const char *p, char *out, size_t *size) {
    static const char meanings[256] = {
        ['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
    p++;
    char meaning = meanings[(unsigned char)*p];
    if (meaning != '\0') {
        *out = meaning;
        *size = 1;
        return p + 1;
    }
    if (*p == 'u') {
        return scan_unicode(input, p + 1, out, size);
    }
    return rsc_scan_expected(input, p, "an escape character");
}

#if defined(__SSE2__) && !defined(RSC_PORTABLE)
/* Returns a mask of the bytes of the block that are outside ASCII and, as unsigned numbers, above `bound`. */
static unsigned above(rsc_block block, unsigned char bound, unsigned high) {
    return (unsigned)_mm_movemask_epi8(_mm_cmpgt_epi8(block, _mm_set1_epi8((char)bound))) & high;
}

static unsigned equal(rsc_block block, unsigned char byte) {
    return (unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(block, _mm_set1_epi8((char)byte)));
}

/* Returns a mask of the leads and second bytes that no sequence can have; see utf8_shape. */
static unsigned forbidden(rsc_block block, unsigned high, unsigned leads_of_three) {
    unsigned found = equal(block, 0xC0) | equal(block, 0xC1);
    if (leads_of_three != 0) {
        unsigned from_90 = above(block, 0x8F, high);
        unsigned from_a0 = above(block, 0x9F, high);
        found |= above(block, 0xF4, high);
        found |= (equal(block, 0xE0) << 1 & ~from_a0) | (equal(block, 0xED) << 1 & from_a0);
        found |= (equal(block, 0xF0) << 1 & ~from_90) | (equal(block, 0xF4) << 1 & from_90);
    }
    return found;
}

/* Moves over blocks of plain bytes and valid UTF-8, from and to a boundary between characters. Stops before a block
 * with a fault, which only rsc_scan_utf8 locates, and at a quote, a backslash or a control character. */
static const char *skip_text(const char *p, const char *end) {
    while (end - p >= RSC_BLOCK_SIZE) {
        rsc_block block = rsc_block_load(p);
        unsigned high = (unsigned)_mm_movemask_epi8(block);
        unsigned stops = (unsigned)rsc_block_special(block) & ~high;
        unsigned leads = above(block, 0xBF, high);
        unsigned leads_of_three = above(block, 0xDF, high);
        unsigned leads_of_four = above(block, 0xEF, high);
        unsigned expected = leads << 1 | leads_of_three << 2 | leads_of_four << 3;
        unsigned wrong = (expected ^ (high & ~leads)) | forbidden(block, high, leads_of_three);
        int size = RSC_BLOCK_SIZE;
        if (stops != 0) {
            size = __builtin_ctz(stops);
        } else if (expected >> RSC_BLOCK_SIZE != 0) {
            size = 31 - __builtin_clz(leads); /* the last character ends in the next block */
        }
        wrong &= (2U << size) - 1; /* no sequence may be open after `size` bytes */
        if (wrong != 0) {
            return p;
        }
        p += size;
        if (stops != 0) {
            return p;
        }
    }
    return p;
}
#else
static const char *skip_text(const char *p, const char *end) {
    (void)end;
    return p;
}
#endif

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
        p = skip_text(p, input->end);
        if (!rsc_scan_utf8(&p)) {
            return rsc_scan_expected(input, p, "well-formed UTF-8");
        }
    }
}

static const char *scratch_failed(const struct rsc_input *input, const char *at, int status) {
    const char *message = status == RSC_ERROR_LIMIT ? "a string is too long" : "not enough memory for a string";
    return rsc_scan_fail(input, at, status, message);
}

/* Decodes consecutive escapes while they fit RSC_SCAN_ROOM bytes, which the caller has reserved. */
static const char *scan_escapes(const struct rsc_input *input, const char *p) {
    struct rsc_buffer *scratch = input->scratch;
    char *out = scratch->data + scratch->length;
    const char *out_end = out + RSC_SCAN_ROOM;
    while (*p == '\\' && out_end - out >= ESCAPE_SIZE_MAX) {
        size_t size = 0;
        p = scan_escape(input, p, out, &size);
        if (p == NULL) {
            return NULL;
        }
        out += size;
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
            return scratch_failed(input, start, status);
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

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

const char *rsc_scan_space(const char *p) {
    while (is_space(*p)) {
        p++;
    }
    return p;
}
