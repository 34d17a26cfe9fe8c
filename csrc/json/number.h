/* Scans JSON numbers and converts them. Independent of the process's locale.
 *
 * An integer that fits int64 stays exact. Every other number becomes the nearest double: larger integers, -0, and
 * numbers with a fraction or an exponent. A number that rounds to infinity is an error at its first byte. */
#ifndef RSC_NUMBER_H
#define RSC_NUMBER_H

#include <float.h>
#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#if defined(__APPLE__)
#    include <xlocale.h>
#endif

#include "base/compiler.h"
#include "json/scan.h"

struct rsc_number {
    bool is_integer;
    int64_t integer; /* set if is_integer */
    double real;     /* set otherwise */
};

/* The "C" locale, created when the first number needs strtod_l. A zeroed struct is valid. The caller owns it and frees
 * it with rsc_numbers_free. One thread at a time. */
struct rsc_numbers {
    locale_t locale;
};

void rsc_numbers_free(struct rsc_numbers *numbers);

/* Reads the number at `p`, which must be '-' or a digit. Returns the byte after the number, or NULL with the error set.
 * Overwrites the input's scratch buffer. */
const char *rsc_number_scan(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                            struct rsc_number *number);

#define RSC_NUMBER_SHORT_DIGITS 18 /* decimal digits that always fit int64 */

extern const uint64_t rsc_number_powers[RSC_NUMBER_SHORT_DIGITS + 1]; /* of ten, from 10^0 */

/* Computes digits / 10^places, correctly rounded, for digits != 0 and at most RSC_NUMBER_SHORT_DIGITS places. Exists on
 * machines with integers of 128 bits. */
double rsc_number_divide(uint64_t digits, ptrdiff_t places);

/* Appends the digits at `p` to *value, which may overflow. Returns the byte after them. Eight at a time take a seventh
 * off the time of long fractions. */
static inline const char *rsc_number_digits(const char *p, const char *end, uint64_t *value) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    for (; end - p >= 8; p += 8) {
        uint64_t digits;
        memcpy(&digits, p, sizeof digits);
        digits ^= UINT64_C(0x3030303030303030);
        if ((((digits + UINT64_C(0x7676767676767676)) | digits) & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
        /* Joins neighbours: first to numbers below 100, then 10^4, then 10^8. The first digit is in the lowest byte. */
        digits = (digits * 10) + (digits >> 8);
        uint64_t outer = (digits & UINT64_C(0x000000FF000000FF)) * (100 + (UINT64_C(1000000) << 32));
        uint64_t inner = (digits >> 16 & UINT64_C(0x000000FF000000FF)) * (1 + (UINT64_C(10000) << 32));
        *value = *value * 100000000 + ((outer + inner) >> 32);
    }
#else
    (void)end;
#endif
    for (; *p >= '0' && *p <= '9'; p++) {
        *value = *value * 10 + (uint64_t)(*p - '0');
    }
    return p;
}

/* Reads a number of at most RSC_NUMBER_SHORT_DIGITS digits without an exponent, the most frequent kind. Returns the
 * byte after it, or NULL for any other number or an invalid one: rsc_number_scan handles those. */
RSC_ALWAYS_INLINE const char *rsc_number_short(const char *p, const char *end, struct rsc_number *number) {
    uint64_t value = 0;
    bool negative = *p == '-';
    const char *start = p + negative;
    p = rsc_number_digits(start, end, &value);
    ptrdiff_t count = p - start;
    if (count == 0 || count > RSC_NUMBER_SHORT_DIGITS || (*start == '0' && count > 1) || (*p | 0x20) == 'e') {
        return NULL;
    }
    if (*p != '.') {
        number->is_integer = true;
        number->integer = negative ? -(int64_t)value : (int64_t)value;
        return negative && value == 0 ? NULL : p; /* -0 is a double */
    }
    start = p + 1;
    p = rsc_number_digits(start, end, &value);
    ptrdiff_t places = p - start;
    if (places == 0 || count + places > RSC_NUMBER_SHORT_DIGITS || (*p | 0x20) == 'e') {
        return NULL;
    }
    double real;
    /* The quotient of two exact doubles is rounded correctly, unless the machine computes with wider doubles. */
    if (FLT_EVAL_METHOD == 0 && value <= UINT64_C(1) << 53) {
        real = (double)value / (double)(int64_t)rsc_number_powers[places];
    } else {
#if defined(__SIZEOF_INT128__)
        real = rsc_number_divide(value, places);
#else
        return NULL;
#endif
    }
    number->is_integer = false;
    number->real = negative ? -real : real;
    return p;
}

#endif
