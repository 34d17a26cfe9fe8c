/* Scans JSON numbers and converts them. Independent of the process's locale.
 *
 * An integer that fits int64 stays exact. Every other number becomes the nearest double: larger integers, -0, and
 * numbers with a fraction or an exponent. A number that rounds to infinity is an error at its first byte. */
#ifndef RSC_NUMBER_H
#define RSC_NUMBER_H

#include <locale.h>
#include <stdbool.h>
#include <stdint.h>
#if defined(__APPLE__)
#    include <xlocale.h>
#endif

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

/* Reads an unsigned integer of at most RSC_NUMBER_SHORT_DIGITS digits, the most frequent kind. Returns the byte after
 * it, or NULL for any other number or an invalid one: rsc_number_scan handles those. */
static inline const char *rsc_number_short(const char *p, const char *end, int64_t *integer) {
    const char *start = p;
    int64_t value = 0;
    while (p < end && *p >= '0' && *p <= '9') {
        value = (int64_t)((uint64_t)value * 10 + (uint64_t)(*p - '0'));
        p++;
    }
    if (p - start > RSC_NUMBER_SHORT_DIGITS || p == start || (*start == '0' && p - start > 1)) {
        return NULL;
    }
    if (p < end && (*p == '.' || *p == 'e' || *p == 'E')) {
        return NULL;
    }
    *integer = value;
    return p;
}

/* Computes digits * 10^exponent, correctly rounded, for digits != 0. Returns false in the rare cases that the algorithm
 * cannot decide; *real is then undefined. Overflow gives infinity. Public for its tests only. */
bool rsc_number_lemire(uint64_t digits, int64_t exponent, double *real);

#endif
