#include "json/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

const uint64_t rsc_number_powers[RSC_NUMBER_SHORT_DIGITS + 1] = {
    (uint64_t)1e0,  (uint64_t)1e1,  (uint64_t)1e2,  (uint64_t)1e3,  (uint64_t)1e4,  (uint64_t)1e5,  (uint64_t)1e6,
    (uint64_t)1e7,  (uint64_t)1e8,  (uint64_t)1e9,  (uint64_t)1e10, (uint64_t)1e11, (uint64_t)1e12, (uint64_t)1e13,
    (uint64_t)1e14, (uint64_t)1e15, (uint64_t)1e16, (uint64_t)1e17, (uint64_t)1e18};

void rsc_numbers_free(struct rsc_numbers *numbers) {
    if (numbers->locale != (locale_t)0) {
        freelocale(numbers->locale);
        numbers->locale = (locale_t)0;
    }
}

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 rsc_uint128;

/* The quotient has 62 or 63 bits, and its last one stands for all that follow. So its conversion rounds correctly. A
 * conversion from int64, and a product in place of ldexp, halve the time (`./dev bench decode`, fractions). */
double rsc_number_divide(uint64_t digits, ptrdiff_t places) {
    uint64_t divisor = rsc_number_powers[places];
    int up = __builtin_clzll(digits);
    int down = __builtin_clzll(divisor);
    rsc_uint128 dividend = (rsc_uint128)(digits << up) << 62;
    divisor <<= down;
    uint64_t quotient = (uint64_t)(dividend / divisor);
    quotient |= (rsc_uint128)quotient * divisor != dividend;
    uint64_t power_of_two = (uint64_t)(1023 + down - up - 62) << 52; /* as the bits of a double */
    double scale;
    memcpy(&scale, &power_of_two, sizeof scale);
    return (double)(int64_t)quotient * scale;
}
#endif

/* Moves over the digits at `p`. There must be one at least. */
static const char *scan_digits(const struct rsc_input *input, const char *p, const char *what) {
    if (*p < '0' || *p > '9') {
        return rsc_scan_expected(input, p, what);
    }
    while (*p >= '0' && *p <= '9') {
        p++;
    }
    return p;
}

/* The grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static const char *scan_grammar(const struct rsc_input *input, const char *p, bool *is_integer) {
    p += *p == '-';
    const char *first = p;
    p = scan_digits(input, p, "a digit");
    if (p != NULL && *first == '0' && p > first + 1) {
        return rsc_scan_expected(input, first + 1, "no digit after a leading zero");
    }
    *is_integer = true;
    if (p != NULL && *p == '.') {
        *is_integer = false;
        p = scan_digits(input, p + 1, "a digit of a fraction");
    }
    if (p != NULL && (*p == 'e' || *p == 'E')) {
        *is_integer = false;
        p++;
        p = scan_digits(input, p + (*p == '-' || *p == '+'), "a digit of an exponent");
    }
    return p;
}

/* Copies the text from `p` to `after` into the scratch buffer, where a NUL follows it, and makes the locale. */
static int prepare_library(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                           const char *after) {
    if (numbers->locale == (locale_t)0) {
        numbers->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (numbers->locale == (locale_t)0) {
            return RSC_ERROR_MEMORY;
        }
    }
    rsc_buffer_reset(input->scratch);
    return rsc_buffer_append(input->scratch, p, (size_t)(after - p));
}

const char *rsc_number_scan(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                            struct rsc_number *number) {
    bool is_integer = false;
    const char *after = scan_grammar(input, p, &is_integer);
    if (after == NULL) {
        return NULL;
    }
    int status = prepare_library(numbers, input, p, after);
    if (status != RSC_OK) {
        return rsc_scan_fail(input, p, status, "not enough memory for a number");
    }
    if (is_integer) {
        errno = 0;
        *number = (struct rsc_number){.is_integer = true, .integer = strtoll(input->scratch->data, NULL, 10)};
        if (errno == 0 && (number->integer != 0 || *p != '-')) {
            return after;
        }
    }
    *number = (struct rsc_number){.real = strtod_l(input->scratch->data, NULL, numbers->locale)};
    if (isinf(number->real)) {
        return rsc_scan_fail(input, p, RSC_ERROR_RANGE, "a number is out of range");
    }
    return after;
}
