/* The clocks. Any thread may read them. */
#ifndef RSC_CLOCK_H
#define RSC_CLOCK_H

#include <math.h>
#include <stdint.h>
#include <time.h>

#define RSC_NS_PER_MS 1000000u
#define RSC_NS_PER_S  1000000000u

/* Returns the time of CLOCK_MONOTONIC in ns. */
static inline uint64_t rsc_now(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now); /* cannot fail for this clock and a valid pointer */
    return (uint64_t)now.tv_sec * RSC_NS_PER_S + (uint64_t)now.tv_nsec;
}

/* Convert seconds in a range that was checked. Both round up, so that a short wait never becomes zero. */
static inline uint64_t rsc_seconds_to_ns(double seconds) {
    return (uint64_t)ceil(seconds * 1e9);
}

static inline long rsc_seconds_to_ms(double seconds) {
    return (long)ceil(seconds * 1e3);
}

/* Returns the time since 1970 in ns. Somebody may set this clock, also back. */
static inline uint64_t rsc_time(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_REALTIME, &now); /* cannot fail for this clock and a valid pointer */
    return (uint64_t)now.tv_sec * RSC_NS_PER_S + (uint64_t)now.tv_nsec;
}

#endif
