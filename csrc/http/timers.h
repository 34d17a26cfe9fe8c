/* Timers in a binary heap: the earliest first, equal ones in the order of rsc_timers_add.
 *
 * The caller owns the timers, which must not move while they are in the heap. `struct rsc_timers` owns the heap's array
 * until rsc_timers_free. Times are nanoseconds of CLOCK_MONOTONIC. One thread at a time. */
#ifndef RSC_TIMERS_H
#define RSC_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/poller.h"

#define RSC_TIMERS_MAX (1u << 24) /* timers in one heap */

struct rsc_timer {
    uint64_t due;      /* ns */
    uint64_t sequence; /* orders timers with the same due time */
    size_t place;      /* 1-based index in the heap; 0 outside a heap */
};

struct rsc_timers {
    struct rsc_timer **heap;
    size_t count, capacity;
    uint64_t sequence;
};

/* Adds a timer that is in no heap. Returns RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY. */
int rsc_timers_add(struct rsc_timers *timers, struct rsc_timer *timer, uint64_t due);

/* Removes a timer. Harmless if it is in no heap. */
void rsc_timers_remove(struct rsc_timers *timers, struct rsc_timer *timer);

/* Removes and returns the earliest timer if it is due at `now`, else returns NULL. */
struct rsc_timer *rsc_timers_expire(struct rsc_timers *timers, uint64_t now);

/* Returns when the earliest timer is due, or RSC_NEVER. */
static inline uint64_t rsc_timers_due(const struct rsc_timers *timers) {
    return timers->count > 0 ? timers->heap[0]->due : RSC_NEVER;
}

/* Removes every timer and frees the array. Idempotent. */
void rsc_timers_free(struct rsc_timers *timers);

#endif
