#include "redis/reply.h"

#include <errno.h>
#include <stdlib.h>

#define DIGITS_MAX 20 /* of an integer of 64 bits, with its sign */

/* Finds the line at `at`, without its end. */
static int find_line(struct rsc_text bytes, size_t at, struct rsc_text *line) {
    size_t size = bytes.length - at < RSC_REDIS_LINE_MAX ? bytes.length - at : RSC_REDIS_LINE_MAX;
    line->bytes = bytes.bytes + at;
    const char *newline = size > 0 ? memchr(line->bytes, '\n', size) : NULL;
    if (newline == NULL) {
        return size < RSC_REDIS_LINE_MAX ? RSC_REDIS_INCOMPLETE : RSC_REDIS_MALFORMED;
    }
    line->length = (size_t)(newline - line->bytes);
    if (line->length < 2 || newline[-1] != '\r') {
        return RSC_REDIS_MALFORMED;
    }
    line->length--;
    return RSC_OK;
}

static bool read_number(struct rsc_text text, int64_t *number) {
    char digits[DIGITS_MAX + 1] = {0};
    if (text.length == 0 || text.length > DIGITS_MAX) {
        return false;
    }
    memcpy(digits, text.bytes, text.length);
    size_t sign = digits[0] == '-';
    if (strspn(digits + sign, "0123456789") != text.length - sign || text.length == sign) {
        return false;
    }
    errno = 0;
    *number = strtoll(digits, NULL, 10);
    return errno == 0;
}

/* Reads the text of `size` bytes at *at. */
static int read_text(struct rsc_text bytes, size_t *at, int64_t size, struct rsc_text *text) {
    *text = (struct rsc_text){bytes.bytes + *at, (size_t)size};
    if (bytes.length - *at < 2 || bytes.length - *at - 2 < text->length) {
        return RSC_REDIS_INCOMPLETE;
    }
    *at += text->length + 2;
    return memcmp(text->bytes + text->length, "\r\n", 2) == 0 ? RSC_OK : RSC_REDIS_MALFORMED;
}

int rsc_redis_read(struct rsc_text bytes, size_t *at, struct rsc_redis_value *value) {
    struct rsc_text line;
    int status = find_line(bytes, *at, &line);
    *value = (struct rsc_redis_value){.type = RSC_REDIS_NIL};
    if (status != RSC_OK) {
        return status;
    }
    struct rsc_text rest = {line.bytes + 1, line.length - 1};
    size_t behind = *at + line.length + 2;
    char kind = *line.bytes;
    if (kind == '+' || kind == '-') {
        value->type = kind == '+' ? RSC_REDIS_TEXT : RSC_REDIS_ERROR;
        value->text = rest;
    } else if ((kind != ':' && kind != '$' && kind != '*') || !read_number(rest, &value->number) ||
               (kind != ':' && value->number < -1)) {
        return RSC_REDIS_MALFORMED;
    } else if (kind == ':') {
        value->type = RSC_REDIS_INTEGER;
    } else if (value->number >= 0) {
        value->type = kind == '$' ? RSC_REDIS_TEXT : RSC_REDIS_ARRAY;
        status = kind == '$' ? read_text(bytes, &behind, value->number, &value->text) : RSC_OK;
    }
    *at = status == RSC_OK ? behind : *at;
    return status;
}

/* Whether a value stays within the limit. The end of its text may not have come. */
static bool admit(const struct rsc_redis_scan *scan, const struct rsc_redis_value *value, size_t limit) {
    size_t left = limit - scan->size;
    return left >= RSC_REDIS_VALUE && value->text.length <= left - RSC_REDIS_VALUE &&
           (value->type != RSC_REDIS_ARRAY || (uint64_t)value->number <= left / RSC_REDIS_VALUE);
}

int rsc_redis_find_end(struct rsc_redis_scan *scan, struct rsc_text bytes, size_t limit) {
    struct rsc_redis_value value;
    do {
        int status = rsc_redis_read(bytes, &scan->at, &value);
        if (!admit(scan, &value, limit)) {
            return RSC_ERROR_LIMIT;
        } else if (status != RSC_OK) {
            return status;
        }
        scan->size += RSC_REDIS_VALUE + value.text.length;
        if (value.type == RSC_REDIS_ARRAY && value.number > 0) {
            if (scan->depth == RSC_REDIS_DEPTH_MAX) {
                return RSC_REDIS_MALFORMED;
            }
            scan->left[++scan->depth] = value.number;
        } else {
            while (scan->depth > 0 && --scan->left[scan->depth] == 0) {
                scan->depth--;
            }
        }
    } while (scan->depth > 0);
    scan->start = scan->at;
    scan->size = 0;
    return RSC_OK;
}
