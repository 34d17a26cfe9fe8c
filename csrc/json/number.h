/* JSON numbers: scanning and conversion. Knows nothing of Lua, and nothing of the process's locale.
 *
 * An integer that fits int64 is exact; a larger one, a number with a fraction or an exponent, and -0 are doubles,
 * correctly rounded to nearest. A number that rounds to infinity is an error at its first byte. */
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

/* The "C" locale for the rare numbers that go to strtod_l. A zeroed struct is valid; it is filled when first needed and
 * owned by the caller until rsc_numbers_free. */
struct rsc_numbers {
    locale_t locale;
};

void rsc_numbers_free(struct rsc_numbers *numbers);

/* Reads the number at `p`, which is '-' or a digit. Returns the byte after it, or NULL with the error set. Uses the
 * input's scratch buffer. */
const char *rsc_number_scan(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                            struct rsc_number *number);

#define RSC_NUMBER_SHORT_DIGITS 18 /* decimal digits that always fit int64 */

/* The usual case, inline: an unsigned integer of at most RSC_NUMBER_SHORT_DIGITS digits. Returns the byte after it, or
 * NULL when the number at `p` is of another kind (it may even be malformed) and is for rsc_number_scan. */
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

/* Correctly rounded digits * 10^exponent, digits != 0. False when this method cannot tell (very rare); *real may then
 * be anything. Overflow gives infinity. Visible for its tests. */
bool rsc_number_lemire(uint64_t digits, int64_t exponent, double *real);

#endif
