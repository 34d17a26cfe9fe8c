/* Timers on the monotonic clock, earliest first; those of one instant in the order they were added.
 *
 * A binary heap of pointers. The timers themselves are the caller's memory and must stay where they are while they are
 * added; the heap's array is malloc's and belongs to `struct rsc_timers` until rsc_timers_free. Times are nanoseconds
 * of CLOCK_MONOTONIC. One thread at a time. */
#ifndef RSC_TIMERS_H
#define RSC_TIMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RSC_NEVER      UINT64_MAX
#define RSC_TIMERS_MAX (1u << 24) /* timers in one heap */

struct rsc_timer {
    uint64_t due;      /* ns */
    uint64_t sequence; /* orders timers of one instant */
    size_t place;      /* 1-based index in the heap; 0 while it is in none */
};

struct rsc_timers {
    struct rsc_timer **heap;
    size_t count, capacity;
    uint64_t sequence;
};

/* Now, in ns. */
uint64_t rsc_now(void);

/* RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY. `timer` must be in no heap. */
int rsc_timers_add(struct rsc_timers *timers, struct rsc_timer *timer, uint64_t due);

/* Harmless on a timer that is in no heap. */
void rsc_timers_remove(struct rsc_timers *timers, struct rsc_timer *timer);

/* The earliest timer if it is due at `now`, taken out of the heap; NULL otherwise. */
struct rsc_timer *rsc_timers_expire(struct rsc_timers *timers, uint64_t now);

/* When the earliest is due; RSC_NEVER if there is none. */
static inline uint64_t rsc_timers_due(const struct rsc_timers *timers) {
    return timers->count > 0 ? timers->heap[0]->due : RSC_NEVER;
}

/* Takes every timer out and frees the array. */
void rsc_timers_free(struct rsc_timers *timers);

#endif
