/* Shared by the C tests: an assertion, a repeatable random generator and a count of open descriptors. */
#ifndef RSC_CHECK_H
#define RSC_CHECK_H

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Exits with the place and a message if the condition is false. */
#define CHECK(condition, ...)                                                                                          \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition);                                            \
            fprintf(stderr, __VA_ARGS__);                                                                              \
            fprintf(stderr, "\n");                                                                                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

/* splitmix64 */
static inline uint64_t random_bits(uint64_t *state) {
    uint64_t bits = *state += UINT64_C(0x9E3779B97F4A7C15);
    bits = (bits ^ bits >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    bits = (bits ^ bits >> 27) * UINT64_C(0x94D049BB133111EB);
    return bits ^ bits >> 31;
}

/* Returns the number of open descriptors of the process. */
static inline int count_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    CHECK(directory != NULL, "no /proc/self/fd");
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

#endif
