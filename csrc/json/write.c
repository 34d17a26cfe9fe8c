#include "json/write.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define PIECE_MAX  1024 /* bytes of a string for which memory is reserved at a time */
#define ESCAPE_MAX 6    /* bytes of an escape */
#define WHOLE_MAX  1e14 /* "%.14g" writes whole numbers below this without an exponent */

/* The letter after the backslash; 'u' stands for four hexadecimal digits, and 0 for no escape. */
static const char escapes[256] = {
    ['\0'] = 'u', [0x01] = 'u', [0x02] = 'u',  [0x03] = 'u', [0x04] = 'u', [0x05] = 'u', [0x06] = 'u', [0x07] = 'u',
    ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n',  [0x0B] = 'u', ['\f'] = 'f', ['\r'] = 'r', [0x0E] = 'u', [0x0F] = 'u',
    [0x10] = 'u', [0x11] = 'u', [0x12] = 'u',  [0x13] = 'u', [0x14] = 'u', [0x15] = 'u', [0x16] = 'u', [0x17] = 'u',
    [0x18] = 'u', [0x19] = 'u', [0x1A] = 'u',  [0x1B] = 'u', [0x1C] = 'u', [0x1D] = 'u', [0x1E] = 'u', [0x1F] = 'u',
    ['"'] = '"',  ['/'] = '/',  ['\\'] = '\\', [0x7F] = 'u',
};

/* Returns the place after the escape. */
static char *put_escape(char *out, unsigned char byte) {
    static const char digits[] = "0123456789abcdef";
    *out++ = '\\';
    *out++ = escapes[byte];
    if (escapes[byte] == 'u') {
        *out++ = '0';
        *out++ = '0';
        *out++ = digits[byte >> 4];
        *out++ = digits[byte & 15];
    }
    return out;
}

int rsc_write_string(struct rsc_buffer *buffer, const char *bytes, size_t length) {
    const char *end = bytes + length;
    int status = rsc_buffer_append(buffer, "\"", 1);
    while (status == RSC_OK && bytes < end) {
        const char *stop = end - bytes > PIECE_MAX ? bytes + PIECE_MAX : end;
        status = rsc_buffer_reserve(buffer, (size_t)(stop - bytes) * ESCAPE_MAX);
        if (status != RSC_OK) {
            break;
        }
        char *out = buffer->data + buffer->length;
        while (bytes < stop) {
            const char *plain = bytes;
            while (bytes < stop && escapes[(unsigned char)*bytes] == 0) {
                bytes++;
            }
            memcpy(out, plain, (size_t)(bytes - plain));
            out += bytes - plain;
            if (bytes < stop) {
                out = put_escape(out, (unsigned char)*bytes++);
            }
        }
        buffer->length = (size_t)(out - buffer->data);
    }
    return status == RSC_OK ? rsc_buffer_append(buffer, "\"", 1) : status;
}

int rsc_write_integer(struct rsc_buffer *buffer, int64_t integer) {
    char text[RSC_WRITE_NUMBER_MAX];
    int length = snprintf(text, sizeof text, "%" PRId64, integer);
    return rsc_buffer_append(buffer, text, (size_t)length);
}

int rsc_write_real(struct rsc_buffer *buffer, double real) {
    if (!isfinite(real)) {
        return RSC_ERROR_RANGE;
    }
    if (fabs(real) < WHOLE_MAX && real == (double)(int64_t)real && !(real == 0 && signbit(real))) {
        return rsc_write_integer(buffer, (int64_t)real);
    }
    char text[RSC_WRITE_NUMBER_MAX];
    (void)snprintf(text, sizeof text, "%.14g", real);
    if (strtod(text, NULL) != real) {
        (void)snprintf(text, sizeof text, "%.17g", real);
    }
    /* The locale may have another decimal point, of one byte or several. */
    size_t sign = text[0] == '-';
    size_t point = sign + strspn(text + sign, "0123456789");
    size_t after = point + strcspn(text + point, "0123456789e");
    int status = rsc_buffer_append(buffer, text, point);
    if (status == RSC_OK && after > point) {
        status = rsc_buffer_append(buffer, ".", 1);
    }
    return status == RSC_OK ? rsc_buffer_append(buffer, text + after, strlen(text + after)) : status;
}
