/* Tests of numbers that need C: comparison with strtod, and other locales. */
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <string.h>

#include "check.h"
#include "json/number.h"

struct reading {
    struct rsc_buffer scratch;
    struct rsc_error error;
    struct rsc_numbers numbers;
};

/* The inline reader must agree with the other one wherever it knows the answer. */
static void check_short(const struct rsc_input *input, const char *after, const struct rsc_number *expected) {
    struct rsc_number number;
    if (rsc_number_short(input->text, input->end, &number) == NULL) {
        return;
    }
    CHECK(rsc_number_short(input->text, input->end, &number) == after, "%s", input->text);
    CHECK(number.is_integer == expected->is_integer, "%s", input->text);
    bool equal = number.is_integer ? number.integer == expected->integer
                                   : memcmp(&number.real, &expected->real, sizeof number.real) == 0;
    CHECK(equal, "%s", input->text);
}

/* Reads all of `text` as a number. */
static bool read_number(struct reading *reading, const char *text, struct rsc_number *number) {
    size_t length = strlen(text);
    struct rsc_input input = {text, text + length, &reading->scratch, &reading->error};
    const char *after = rsc_number_scan(&reading->numbers, &input, text, number);
    CHECK(after == NULL || after == text + length, "%s", text);
    check_short(&input, after, number);
    return after != NULL;
}

static void check_real(struct reading *reading, const char *text) {
    struct rsc_number number;
    double expected = strtod(text, NULL);
    bool ok = read_number(reading, text, &number);
    CHECK(ok == !isinf(expected), "%s", text);
    if (ok) {
        double real = number.is_integer ? (double)number.integer : number.real;
        CHECK(memcmp(&real, &expected, sizeof real) == 0, "%s gave %a, not %a", text, real, expected);
    }
}

/* Compares with strtod, which is correct in the C locale. */
static void test_beside_library(struct reading *reading) {
    uint64_t state = 20260101;
    char text[128];
    for (int i = 0; i < 300000; i++) {
        uint64_t bits = random_bits(&state);
        double real;
        memcpy(&real, &bits, sizeof real);
        if (isfinite(real)) {
            snprintf(text, sizeof text, "%.*e", (int)(random_bits(&state) % 25), real);
            check_real(reading, text);
        }
        int exponent = (int)(random_bits(&state) % 700) - 350;
        snprintf(text, sizeof text, "%" PRIu64 "e%d", random_bits(&state) >> random_bits(&state) % 64, exponent);
        check_real(reading, text);
        snprintf(text, sizeof text, "%" PRIu64 ".%06u", random_bits(&state) >> random_bits(&state) % 64,
                 (unsigned)(random_bits(&state) % 1000000));
        check_real(reading, text);
    }
}

/* Numbers exactly half way between two doubles, and just above: the hardest to round. */
static void test_half_way(struct reading *reading) {
    uint64_t state = 42;
    char text[1200];
    for (int i = 0; i < 20000; i++) {
        /* A number of 54 significant bits whose last bit is set is half way. The exponents are small enough for printf
         * to print all digits. */
        uint64_t bits = (random_bits(&state) >> 10) | UINT64_C(1) << 53 | 1;
        int shift = (int)(random_bits(&state) % 60);
        long double half_way = ldexpl((long double)bits, -shift);
        int size = snprintf(text, sizeof text, "%.*Lf", shift + 1, half_way);
        CHECK(size > 0 && (size_t)size < sizeof text - 2, "%d", size);
        check_real(reading, text);
        strcat(text, "1");
        check_real(reading, text);
    }
}

/* Integers and decimals of every length, with a byte after them: the inline reader knows most of them. */
static void test_short(struct reading *reading) {
    uint64_t state = 7;
    char text[64];
    for (int i = 0; i < 200000; i++) {
        int whole = (int)(random_bits(&state) % 20) + 1;
        int places = (int)(random_bits(&state) % 20);
        int size = 0;
        text[size] = '-';
        size += (int)(random_bits(&state) % 2);
        for (int digit = 0; digit < whole + places; digit++) {
            if (digit == whole) {
                text[size++] = '.';
            }
            text[size++] = (char)('0' + random_bits(&state) % 10);
        }
        text[size] = '\0';
        struct rsc_number number;
        if (text[text[0] == '-'] == '0' && whole > 1) {
            CHECK(rsc_number_short(text, text + size, &number) == NULL, "%s has a leading zero", text);
        } else {
            check_real(reading, text);
        }
    }
}

static void test_other_locale(struct reading *reading, const char *name) {
    if (name == NULL || setlocale(LC_ALL, name) == NULL || strcmp(localeconv()->decimal_point, ",") != 0) {
        printf("no locale with a decimal comma: skipped\n");
        return;
    }
    struct rsc_number number;
    /* One number for each conversion: a quotient of doubles, of integers of 128 bits, strtod_l. */
    CHECK(read_number(reading, "1.5", &number) && number.real == 0x1.8p0, "%a", number.real);
    CHECK(read_number(reading, "123456789.123456789", &number) && number.real == 0x1.d6f34547e6b75p26, "%a",
          number.real);
    CHECK(read_number(reading, "1.00000000000000011102230246251565404236316680908203126", &number) &&
              number.real == 0x1.0000000000001p0,
          "%a", number.real);
    CHECK(reading->numbers.locale != (locale_t)0, "the last number was meant for the library");
    setlocale(LC_ALL, "C");
}

int main(int count, char **arguments) {
    struct reading reading = {0};
    rsc_buffer_init(&reading.scratch, 4096);
    test_beside_library(&reading);
    test_half_way(&reading);
    test_short(&reading);
    test_other_locale(&reading, count > 1 ? arguments[1] : NULL);
    rsc_buffer_free(&reading.scratch);
    rsc_numbers_free(&reading.numbers);
    return 0;
}
