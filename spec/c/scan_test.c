/* Tests of the scanner that need C. Memory ends with the NUL after a text. The portable code path, UTF-8 sequences
 * and buffers at their limit are tested too. */
#include <string.h>

#include "check.h"
#include "json/scan.h"

/* Copies to an allocation that ends with the NUL, so that a sanitizer finds a read past it. */
static char *exact_copy(const char *bytes, size_t size) {
    char *copy = malloc(size + 1);
    CHECK(copy != NULL, "out of memory");
    memcpy(copy, bytes, size);
    copy[size] = '\0';
    return copy;
}

/* Every byte value at every place of texts of up to 50 bytes. */
static void test_plain_runs(void) {
    char text[50];
    for (size_t size = 0; size <= sizeof text; size++) {
        for (size_t place = 0; place <= size; place++) {
            for (int byte = 0; byte < 256 && (place < size || byte == 0); byte++) {
                memset(text, 'a' + (int)(place % 26), sizeof text);
                if (place < size) {
                    text[place] = (char)byte;
                }
                bool plain = place == size || (byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\');
                size_t expected = plain ? size : place;
                char *copy = exact_copy(text, size);
                CHECK(rsc_scan_plain(copy, copy + size) == copy + expected, "%d at %zu of %zu", byte, place, size);
                free(copy);
            }
        }
    }
}

/* Returns the code point of a valid sequence, or -1, straight from RFC 3629. */
static long decode_utf8(const unsigned char *bytes, size_t size) {
    static const long least[] = {0, 0, 0x80, 0x800, 0x10000};
    long code = size == 2 && bytes[0] >> 5 == 0x6    ? bytes[0] & 0x1F
                : size == 3 && bytes[0] >> 4 == 0xE  ? bytes[0] & 0x0F
                : size == 4 && bytes[0] >> 3 == 0x1E ? bytes[0] & 0x07
                                                     : -1;
    for (size_t i = 1; i < size && code >= 0; i++) {
        code = bytes[i] >> 6 == 2 ? code << 6 | (bytes[i] & 0x3F) : -1;
    }
    return code < least[size] || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF) ? -1 : code;
}

/* The number i has three digits in the base `count`, one for each byte after the first. Returns the least size of a
 * sequence that has all digits but zeros: shorter ones came with smaller numbers. */
static size_t shortest(size_t i, size_t count, size_t least) {
    size_t size = i >= count * count ? 4 : i >= count ? 3 : i > 0 ? 2 : 1;
    return size > least ? size : least;
}

/* Sequences of two, three and four bytes: every first byte, and other bytes around every boundary. */
static void test_utf8(void) {
    static const unsigned char others[] = {0x00, 0x22, 0x41, 0x7F, 0x80, 0x81, 0x8F, 0x90, 0x91, 0x9F,
                                           0xA0, 0xA1, 0xBE, 0xBF, 0xC0, 0xC2, 0xE0, 0xF4, 0xFF};
    const size_t count = sizeof others;
    for (unsigned lead = 0x80; lead < 0x100; lead++) {
        for (size_t i = 0; i < count * count * count; i++) {
            unsigned char bytes[4] = {(unsigned char)lead, others[i % count], others[i / count % count],
                                      others[i / count / count]};
            for (size_t size = shortest(i, count, 2); size <= 4; size++) {
                char *copy = exact_copy((char *)bytes, size);
                const char *p = copy;
                bool whole = rsc_scan_utf8(&p) && p == copy + size;
                /* Four bytes can also be two sequences of two. */
                bool pair = size == 4 && decode_utf8(bytes, 2) >= 0 && decode_utf8(bytes + 2, 2) >= 0;
                CHECK(whole == (pair || decode_utf8(bytes, size) >= 0), "%02X %02X %02X %02X, %zu bytes", bytes[0],
                      bytes[1], bytes[2], bytes[3], size);
                free(copy);
            }
        }
    }
}

/* Returns whether a string with the bytes after `before` others is valid. Enough follows for blocks of 16 bytes. */
static bool is_valid_within(const unsigned char *bytes, size_t size, size_t before) {
    char text[64] = "\xC3\xA9";
    struct rsc_error error;
    struct rsc_span span;
    memset(text + 2, 'a', 48);
    memcpy(text + before, bytes, size);
    text[50] = '"';
    struct rsc_input input = {text, text + 51, NULL, &error};
    const char *after = rsc_scan_string(&input, text, &span);
    CHECK(after == NULL || after == input.end, "the string ends too early");
    return after != NULL;
}

/* The sequences of test_utf8 at places around the end of a block, where no shorter sequence hides in them. */
static void test_utf8_in_blocks(void) {
    static const unsigned char others[] = {0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC2, 0xE0, 0xF4, 0xFF};
    const size_t count = sizeof others;
    for (unsigned lead = 0x80; lead < 0x100; lead++) {
        for (size_t i = 0; i < count * count * count; i++) {
            unsigned char bytes[4] = {(unsigned char)lead, others[i % count], others[i / count % count],
                                      others[i / count / count]};
            for (size_t size = shortest(i, count, 1); size <= 4; size++) {
                bool valid = decode_utf8(bytes, size) >= 0 ||
                             (size == 4 && decode_utf8(bytes, 2) >= 0 && decode_utf8(bytes + 2, 2) >= 0);
                for (size_t before = 2; before < 17; before += before == 2 ? 10 : 1) {
                    CHECK(is_valid_within(bytes, size, before) == valid, "%02X %02X %02X %02X, %zu bytes after %zu",
                          bytes[0], bytes[1], bytes[2], bytes[3], size, before);
                }
            }
        }
    }
}

/* Every code point, raw and escaped. */
static void test_every_code_point(void) {
    struct rsc_buffer scratch;
    struct rsc_error error;
    struct rsc_span raw;
    struct rsc_span escaped;
    char text[32];
    rsc_buffer_init(&scratch, sizeof text + RSC_SCAN_ROOM);
    for (unsigned code = 0; code <= 0x10FFFF; code++) {
        int size;
        if (code < 0x10000) {
            size = snprintf(text, sizeof text, "\\u%04x\"", code);
        } else {
            unsigned above = code - 0x10000;
            size = snprintf(text, sizeof text, "\\u%04X\\u%04X\"", 0xD800 | above >> 10, 0xDC00 | (above & 0x3FF));
        }
        struct rsc_input input = {text, text + size, &scratch, &error};
        bool surrogate = code >= 0xD800 && code <= 0xDFFF;
        const char *after = rsc_scan_string(&input, text, &escaped);
        CHECK((after == NULL) == surrogate, "U+%04X", code);
        if (surrogate || code < 0x80) {
            continue;
        }
        CHECK(decode_utf8((const unsigned char *)escaped.bytes, escaped.length) == (long)code, "U+%04X", code);
        memcpy(text, escaped.bytes, escaped.length);
        memcpy(text + escaped.length, "\"", sizeof "\"");
        input.end = text + escaped.length + 1;
        CHECK(rsc_scan_string(&input, text, &raw) == input.end && raw.length == escaped.length, "U+%04X", code);
    }
    rsc_buffer_free(&scratch);
}

/* Returns whether the bytes are the beginning of a sequence. The last byte of each range of second bytes, or the first
 * one, is also a valid third and fourth byte. */
static bool begins_sequence(const unsigned char *bytes, size_t given) {
    for (size_t size = given < 2 ? 2 : given; size <= 4; size++) {
        for (unsigned choice = 0; choice < 8; choice++) {
            unsigned char whole[4] = {0};
            memcpy(whole, bytes, given);
            for (size_t i = given; i < size; i++) {
                whole[i] = (choice >> (i - given) & 1) != 0 ? 0xBF : 0x80;
            }
            if (decode_utf8(whole, size) >= 0) {
                return true;
            }
        }
    }
    return false;
}

/* Moves over a character. Returns false with *p at the byte that no character of a string can have there. */
static bool pass_character(const unsigned char **p, const unsigned char *end) {
    const unsigned char *start = *p;
    if (*start >= 0x20 && *start < 0x80) {
        ++*p;
        return true;
    }
    size_t size = 0;
    while (start + size < end && begins_sequence(start, size + 1)) {
        size++;
        if (size > 1 && decode_utf8(start, size) >= 0) {
            *p += size;
            return true;
        }
    }
    *p += size;
    return false;
}

static unsigned random_below(unsigned bound) {
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return (unsigned)((uint64_t)state * bound >> 32);
}

/* Appends one piece of a string to the text, and its meaning. */
static void add_piece(char *text, size_t *size, char *meaning, size_t *length) {
    static const char *const pieces[][2] = {{"a", "a"},
                                            {"plain text", "plain text"},
                                            {"sixteen bytes ok", "sixteen bytes ok"},
                                            {"\\n", "\n"},
                                            {"\\\"", "\""},
                                            {"\\\\", "\\"},
                                            {"\\u0041", "A"},
                                            {"\\u00e9", "\xC3\xA9"},
                                            {"\\uD7FF", "\xED\x9F\xBF"},
                                            {"\\uE000", "\xEE\x80\x80"},
                                            {"\\ud83d\\ude00", "\xF0\x9F\x98\x80"},
                                            {"\xC3\xA9", "\xC3\xA9"},
                                            {"\xD0\xB4\xD0\xB0", "\xD0\xB4\xD0\xB0"},
                                            {"\xE4\xBA\xA4", "\xE4\xBA\xA4"},
                                            {"\xED\x9F\xBF", "\xED\x9F\xBF"},
                                            {"\xF0\x90\x80\x80", "\xF0\x90\x80\x80"},
                                            {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"}};
    const char *const *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
    memcpy(text + *size, piece[0], strlen(piece[0]));
    *size += strlen(piece[0]);
    memcpy(meaning + *length, piece[1], strlen(piece[1]));
    *length += strlen(piece[1]);
}

/* Strings of many pieces, with the meaning of each. */
static void test_random_strings(void) {
    struct rsc_buffer scratch;
    struct rsc_error error;
    rsc_buffer_init(&scratch, 4096);
    for (int round = 0; round < 30000; round++) {
        char text[512];
        char meaning[512];
        size_t size = 0;
        size_t length = 0;
        for (unsigned pieces = random_below(20); pieces > 0; pieces--) {
            add_piece(text, &size, meaning, &length);
        }
        text[size++] = '"';
        char *copy = exact_copy(text, size);
        struct rsc_input input = {copy, copy + size, &scratch, &error};
        struct rsc_span span;
        CHECK(rsc_scan_string(&input, copy, &span) == input.end, "%.*s", (int)size, text);
        CHECK(span.length == length && memcmp(span.bytes, meaning, length) == 0, "%.*s", (int)size, text);
        free(copy);
    }
    rsc_buffer_free(&scratch);
}

/* Strings of many characters with one byte changed, or cut off. The fault is where a reading by single characters finds
 * it. */
static void test_random_faults(void) {
    struct rsc_error error;
    for (int round = 0; round < 30000; round++) {
        static const char *const characters[] = {"a",
                                                 "b c",
                                                 "\xC3\xA9",
                                                 "\xE4\xBA\xA4",
                                                 "\xED\x9F\xBF",
                                                 "\xE0\xA0\x80",
                                                 "\xF0\x90\x80\x80",
                                                 "\xF4\x8F\xBF\xBF"};
        static const unsigned char bytes[] = {0x00, 0x1F, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
                                              0xC1, 0xC2, 0xDF, 0xE0, 0xED, 0xEF, 0xF0, 0xF4, 0xF5, 0xFF};
        char text[128];
        size_t size = 0;
        for (unsigned count = 1 + random_below(30); count > 0; count--) {
            const char *character = characters[random_below(sizeof characters / sizeof *characters)];
            memcpy(text + size, character, strlen(character));
            size += strlen(character);
        }
        text[random_below((unsigned)size)] = (char)bytes[random_below(sizeof bytes)];
        text[size] = '"';
        size += random_below(2);
        const unsigned char *p = (const unsigned char *)text;
        const unsigned char *end = p + size;
        bool whole = true;
        while (whole && p < end && *p != '"') {
            whole = pass_character(&p, end);
        }
        bool valid = whole && p < end;
        char *copy = exact_copy(text, size);
        struct rsc_input input = {copy, copy + size, NULL, &error};
        struct rsc_span span;
        const char *after = rsc_scan_string(&input, copy, &span);
        size_t place = (size_t)(p - (const unsigned char *)text);
        CHECK(valid ? after == input.end : after == NULL && error.position == place + 1, "round %d: byte %zu", round,
              place);
        free(copy);
    }
}

static void test_buffer_limit(void) {
    struct rsc_buffer buffer;
    rsc_buffer_init(&buffer, 1000);
    for (int i = 0; i < 1000; i++) {
        CHECK(rsc_buffer_append(&buffer, "x", 1) == RSC_OK, "byte %d", i);
    }
    CHECK(rsc_buffer_append(&buffer, "x", 1) == RSC_ERROR_LIMIT && buffer.length == 1000, "%zu", buffer.length);
    CHECK(rsc_buffer_reserve(&buffer, SIZE_MAX) == RSC_ERROR_LIMIT, "%zu", buffer.capacity);
    CHECK(buffer.capacity == 1000, "%zu", buffer.capacity);
    rsc_buffer_reset(&buffer);
    CHECK(rsc_buffer_reserve(&buffer, 1000) == RSC_OK && rsc_buffer_reserve(&buffer, 1001) == RSC_ERROR_LIMIT, "reset");
    rsc_buffer_free(&buffer);
    rsc_buffer_free(&buffer);
    CHECK(rsc_buffer_append(&buffer, "", 0) == RSC_OK && buffer.data == NULL, "nothing to append");
}

int main(void) {
    test_plain_runs();
    test_utf8();
    test_utf8_in_blocks();
    test_every_code_point();
    test_random_strings();
    test_random_faults();
    test_buffer_limit();
    return 0;
}
