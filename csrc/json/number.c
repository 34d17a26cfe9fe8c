#include "json/number.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "json/powers_of_five.h"

#define RSC_NUMBER_DIGITS_MAX   19                     /* significant decimal digits that always fit uint64 */
#define RSC_NUMBER_EXPONENT_MAX INT64_C(1000000000000) /* larger exponents make no difference */

/* A scanned number: digits * 10^exponent. Holds the first nineteen significant digits. */
struct decimal {
    uint64_t digits;
    int64_t exponent;
    int significant; /* digits in `digits`, leading zeros not counted */
    bool negative;
    bool truncated;  /* more digits followed, zero or not */
    bool is_integer; /* has neither a fraction nor an exponent */
};

void rsc_numbers_free(struct rsc_numbers *numbers) {
    if (numbers->locale != (locale_t)0) {
        freelocale(numbers->locale);
        numbers->locale = (locale_t)0;
    }
}

const double rsc_number_powers[RSC_NUMBER_POWERS] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                     1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                     1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(const char *p) {
    return *p >= '0' && *p <= '9';
}

/* Adds the digits at `p` to the decimal and returns the byte after them. */
static const char *scan_digits(const char *p, struct decimal *decimal, bool fraction) {
    while (is_digit(p)) {
        if (decimal->significant < RSC_NUMBER_DIGITS_MAX) {
            decimal->digits = decimal->digits * 10 + (uint64_t)(*p - '0');
            decimal->significant += decimal->digits != 0;
            decimal->exponent -= fraction;
        } else {
            decimal->truncated = true;
            decimal->exponent += !fraction;
        }
        p++;
    }
    return p;
}

static const char *scan_exponent(const struct rsc_input *input, const char *p, struct decimal *decimal) {
    bool negative = *p == '-';
    if (*p == '-' || *p == '+') {
        p++;
    }
    if (!is_digit(p)) {
        return rsc_scan_expected(input, p, "a digit of an exponent");
    }
    int64_t exponent = 0;
    while (is_digit(p)) {
        if (exponent < RSC_NUMBER_EXPONENT_MAX) {
            exponent = exponent * 10 + (*p - '0');
        }
        p++;
    }
    decimal->exponent += negative ? -exponent : exponent;
    return p;
}

/* The grammar: -? (0 | [1-9][0-9]*) (. [0-9]+)? ([eE] [+-]? [0-9]+)? */
static const char *scan_decimal(const struct rsc_input *input, const char *p, struct decimal *decimal) {
    *decimal = (struct decimal){.negative = *p == '-', .is_integer = true};
    p += decimal->negative;
    if (!is_digit(p)) {
        return rsc_scan_expected(input, p, "a digit");
    }
    if (*p == '0') {
        p++;
        if (is_digit(p)) {
            return rsc_scan_expected(input, p, "no digit after a leading zero");
        }
    } else {
        p = scan_digits(p, decimal, false);
    }
    if (*p == '.') {
        p++;
        if (!is_digit(p)) {
            return rsc_scan_expected(input, p, "a digit of a fraction");
        }
        decimal->is_integer = false;
        p = scan_digits(p, decimal, true);
    }
    if (*p == 'e' || *p == 'E') {
        decimal->is_integer = false;
        return scan_exponent(input, p + 1, decimal);
    }
    return p;
}

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 rsc_uint128;

static double assemble(uint64_t mantissa, int64_t biased_exponent) {
    uint64_t bits = (mantissa & ~(UINT64_C(1) << 52)) | (uint64_t)biased_exponent << 52;
    double real;
    memcpy(&real, &bits, sizeof real);
    return real;
}

/* Computes the upper 128 bits of w * 5^exponent. Returns false if the bits below them could change the rounding. */
static bool multiply(uint64_t w, int64_t exponent, uint64_t *high, uint64_t *low) {
    const uint64_t *power = rsc_powers_of_five[exponent - RSC_POWER_OF_FIVE_MIN];
    rsc_uint128 product = (rsc_uint128)w * power[0];
    *high = (uint64_t)(product >> 64);
    *low = (uint64_t)product;
    if ((*high & 0x1FF) == 0x1FF) {
        uint64_t carry = (uint64_t)((rsc_uint128)w * power[1] >> 64);
        *low += carry;
        *high += *low < carry;
    }
    /* If all bits of *low are ones, the bits below could carry, unless the power of five is exact. */
    return *low != UINT64_MAX || (exponent >= -27 && exponent <= 55);
}

/* Eisel and Lemire, "Number Parsing at a Gigabyte per Second" (2021), section 5 onwards. */
bool rsc_number_lemire(uint64_t digits, int64_t exponent, double *real) {
    if (exponent < RSC_POWER_OF_FIVE_MIN) {
        *real = 0;
        return true;
    }
    if (exponent > RSC_POWER_OF_FIVE_MAX) {
        *real = (double)INFINITY;
        return true;
    }
    int zeros = __builtin_clzll(digits);
    uint64_t high;
    uint64_t low;
    if (!multiply(digits << zeros, exponent, &high, &low)) {
        return false;
    }
    int upper = (int)(high >> 63);
    uint64_t mantissa = high >> (upper + 9);
    /* 217706 / 2^16 is slightly above log2(10). It gives the exact floor(log2(10^q)) for every q of the table. */
    int64_t binary = ((217706 * exponent) >> 16) + 63 + upper - zeros + 1023;
    if (binary <= 0) {
        if (binary <= -63) {
            *real = 0;
            return true;
        }
        mantissa >>= 1 - binary;
        mantissa = (mantissa + (mantissa & 1)) >> 1;
        *real = assemble(mantissa, (int64_t)(mantissa >> 52));
        return true;
    }
    /* Round to even exactly half way between two doubles, which is possible only for these exponents. */
    if (low <= 1 && exponent >= -4 && exponent <= 23 && (mantissa & 3) == 1 && mantissa << (upper + 9) == high) {
        mantissa &= ~UINT64_C(1);
    }
    mantissa = (mantissa + (mantissa & 1)) >> 1;
    if (mantissa >> 53 != 0) {
        mantissa >>= 1;
        binary++;
    }
    *real = binary >= 0x7FF ? (double)INFINITY : assemble(mantissa, binary);
    return true;
}
#else
bool rsc_number_lemire(uint64_t digits, int64_t exponent, double *real) {
    (void)digits;
    (void)exponent;
    (void)real;
    return false;
}
#endif

/* Truncated digits matter only if digits + 1 would give another double. Then this returns false. */
static bool convert_decimal(const struct decimal *decimal, double *real) {
    if (decimal->digits == 0) {
        *real = 0;
        return true;
    }
    if (!decimal->truncated && rsc_number_is_exact(decimal->digits, decimal->exponent)) {
        *real = decimal->exponent < 0 ? (double)decimal->digits / rsc_number_powers[-decimal->exponent]
                                      : (double)decimal->digits * rsc_number_powers[decimal->exponent];
        return true;
    }
    if (!rsc_number_lemire(decimal->digits, decimal->exponent, real)) {
        return false;
    }
    double above;
    return !decimal->truncated || (rsc_number_lemire(decimal->digits + 1, decimal->exponent, &above) && above <= *real);
}

/* Converts the text from `p` to `after`, without its sign, with strtod in the "C" locale. */
static int convert_with_library(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                                const char *after, double *real) {
    if (numbers->locale == (locale_t)0) {
        numbers->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
        if (numbers->locale == (locale_t)0) {
            return RSC_ERROR_MEMORY;
        }
    }
    rsc_buffer_reset(input->scratch);
    int status = rsc_buffer_append(input->scratch, p, (size_t)(after - p));
    if (status == RSC_OK) {
        status = rsc_buffer_append(input->scratch, "", 1);
    }
    if (status == RSC_OK) {
        *real = strtod_l(input->scratch->data, NULL, numbers->locale);
    }
    return status;
}

const char *rsc_number_scan(struct rsc_numbers *numbers, const struct rsc_input *input, const char *p,
                            struct rsc_number *number) {
    struct decimal decimal;
    const char *start = p;
    p = scan_decimal(input, p, &decimal);
    if (p == NULL) {
        return NULL;
    }
    uint64_t magnitude_max = (uint64_t)INT64_MAX + decimal.negative;
    bool is_zero = decimal.digits == 0;
    if (decimal.is_integer && !decimal.truncated && decimal.digits <= magnitude_max && !(is_zero && decimal.negative)) {
        uint64_t bits = decimal.negative ? 0 - decimal.digits : decimal.digits;
        *number = (struct rsc_number){.is_integer = true};
        memcpy(&number->integer, &bits, sizeof bits);
        return p;
    }
    double real;
    if (!convert_decimal(&decimal, &real)) {
        int status = convert_with_library(numbers, input, start + decimal.negative, p, &real);
        if (status != RSC_OK) {
            return rsc_scan_fail(input, start, status, "not enough memory for a number");
        }
    }
    if (isinf(real)) {
        return rsc_scan_fail(input, start, RSC_ERROR_RANGE, "a number is out of range");
    }
    *number = (struct rsc_number){.real = decimal.negative ? -real : real};
    return p;
}
