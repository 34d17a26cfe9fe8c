#include "http/head.h"

#include <string.h>
#include <strings.h>

#define DIGITS_MAX 15 /* digits of a length; more is above every limit */

static const char not_a_length[] = "Content-Length is not a length";
static const char two_lengths[] = "Content-Length contradicts itself";
static const char both_framings[] = "both Content-Length and Transfer-Encoding";
static const char other_encoding[] = "a Transfer-Encoding other than chunked";
static const char bad_status[] = "the status line is malformed";
static const char upgrade[] = "an upgrade that nobody asked for";
static const char bad_line[] = "a header line is malformed";

static const char http_1_0[] = "1.0";

static bool is_digit(char byte) {
    return byte >= '0' && byte <= '9';
}

static bool has_control_byte(struct rsc_text text) {
    if (rsc_text_printable(text, ' ')) {
        return false;
    }
    for (size_t i = 0; i < text.length; i++) {
        struct rsc_text byte = {text.bytes + i, 1};
        if (text.bytes[i] != '\t' && !rsc_text_printable(byte, ' ')) {
            return true;
        }
    }
    return false;
}

static bool is_word(struct rsc_text text, const char *word) {
    return text.length == strlen(word) && strncasecmp(text.bytes, word, text.length) == 0;
}

/* The status line */

bool rsc_head_begins(struct rsc_text line) {
    return line.length > 5 && memcmp(line.bytes, "HTTP/", 5) == 0;
}

static const char *read_status(struct rsc_head *head, struct rsc_text line) {
    static const char *const versions[] = {"1.1", http_1_0, "2", "3"};
    memset(head, 0, sizeof *head);
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        size_t size = strlen(versions[i]), at = 5 + size + 1; /* where the status begins */
        const char *digits = line.bytes + at;
        if (line.length < at + 3 || memcmp(line.bytes + 5, versions[i], size) != 0 || digits[-1] != ' ') {
            continue;
        }
        bool ends = line.length == at + 3 || digits[3] == ' ';
        if (digits[0] < '1' || digits[0] > '9' || !is_digit(digits[1]) || !is_digit(digits[2]) || !ends ||
            has_control_byte(line)) {
            return bad_status;
        }
        head->status = (digits[0] - '0') * 100 + (digits[1] - '0') * 10 + (digits[2] - '0');
        head->http_version = versions[i];
        return head->status == 101 ? upgrade : NULL;
    }
    return bad_status;
}

/* Fields */

/* Reads one element of the list that Content-Length may be. */
static const char *read_length(struct rsc_head *head, struct rsc_text text) {
    uint64_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (!is_digit(text.bytes[i])) {
            return not_a_length;
        }
        length = i < DIGITS_MAX ? length * 10 + (uint64_t)(text.bytes[i] - '0') : RSC_HEAD_LENGTH_HUGE;
    }
    if (text.length == 0) {
        return not_a_length;
    }
    if (head->has_length && (length != head->length || text.length != head->digits)) {
        return two_lengths;
    }
    head->has_length = true;
    head->length = length;
    head->digits = text.length;
    return NULL;
}

static const char *read_lengths(struct rsc_head *head, struct rsc_text value) {
    const char *fault = NULL;
    bool more = true;
    while (more && fault == NULL) {
        const char *comma = value.length > 0 ? memchr(value.bytes, ',', value.length) : NULL;
        size_t size = comma != NULL ? (size_t)(comma - value.bytes) : value.length;
        fault = read_length(head, rsc_text_trim((struct rsc_text){value.bytes, size}));
        more = comma != NULL;
        value.bytes += size + (more ? 1 : 0);
        value.length -= size + (more ? 1 : 0);
    }
    return fault;
}

static const char *read_field(struct rsc_head *head, char *line, size_t length) {
    size_t colon = 0;
    for (char byte; colon < length && (byte = rsc_token_byte(line[colon])) != ' '; colon++) {
        line[colon] = byte;
    }
    if (colon == 0 || colon == length || line[colon] != ':') {
        return bad_line;
    }
    struct rsc_text name = {line, colon};
    struct rsc_text value = rsc_text_trim((struct rsc_text){line + colon + 1, length - colon - 1});
    if (has_control_byte(value)) {
        return bad_line;
    }
    const char *fault = NULL;
    if (is_word(name, "content-length")) {
        fault = read_lengths(head, value);
    } else if (is_word(name, "transfer-encoding")) {
        fault = head->chunked || head->http_version == http_1_0 || !is_word(value, "chunked") ? other_encoding : NULL;
        head->chunked = true;
    } else if (is_word(name, "content-encoding")) {
        head->encoding = head->encoding != RSC_ENCODING_NONE ? RSC_ENCODING_OTHER
                         : is_word(value, "identity")        ? RSC_ENCODING_IDENTITY
                         : is_word(value, RSC_ENCODING)      ? RSC_ENCODING_ASKED
                                                             : RSC_ENCODING_OTHER;
    }
    if (fault == NULL && head->chunked && head->has_length) {
        return both_framings;
    }
    return fault;
}

const char *rsc_head_read(struct rsc_head *head, char *line, size_t length) {
    if (length < 2 || line[length - 2] != '\r' || line[length - 1] != '\n') {
        return bad_line;
    }
    struct rsc_text text = {line, length - 2};
    if (rsc_head_begins(text)) {
        /* A second one within a head: libcurl 7.74 would let it count instead of the first. */
        return head->http_version != NULL && !head->complete ? bad_status : read_status(head, text);
    }
    if (text.length == 0) {
        head->complete = true;
        return NULL;
    }
    return read_field(head, line, text.length);
}
