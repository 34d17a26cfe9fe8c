#include "http/timers.h"

#include <stdlib.h>

#include "base/error.h"

#define RSC_TIMERS_FIRST_CAPACITY 64 /* timers */

static bool before(const struct rsc_timer *a, const struct rsc_timer *b) {
    return a->due != b->due ? a->due < b->due : a->sequence < b->sequence;
}

static void put(struct rsc_timers *timers, size_t index, struct rsc_timer *timer) {
    timers->heap[index] = timer;
    timer->place = index + 1;
}

static void sift_up(struct rsc_timers *timers, size_t index, struct rsc_timer *timer) {
    while (index > 0) {
        size_t parent = (index - 1) / 2;
        if (!before(timer, timers->heap[parent])) {
            break;
        }
        put(timers, index, timers->heap[parent]);
        index = parent;
    }
    put(timers, index, timer);
}

static void sift_down(struct rsc_timers *timers, size_t index, struct rsc_timer *timer) {
    for (;;) {
        size_t child = 2 * index + 1;
        if (child >= timers->count) {
            break;
        }
        if (child + 1 < timers->count && before(timers->heap[child + 1], timers->heap[child])) {
            child++;
        }
        if (!before(timers->heap[child], timer)) {
            break;
        }
        put(timers, index, timers->heap[child]);
        index = child;
    }
    put(timers, index, timer);
}

static int grow(struct rsc_timers *timers) {
    size_t capacity = timers->capacity > 0 ? timers->capacity * 2 : RSC_TIMERS_FIRST_CAPACITY;
    if (capacity > RSC_TIMERS_MAX) {
        return RSC_ERROR_LIMIT;
    }
    /* The heap holds pointers, so this is their size. */
    struct rsc_timer **heap = realloc(timers->heap, capacity * sizeof *heap); /* NOLINT(bugprone-sizeof-expression) */
    if (heap == NULL) {
        return RSC_ERROR_MEMORY;
    }
    timers->heap = heap;
    timers->capacity = capacity;
    return RSC_OK;
}

int rsc_timers_add(struct rsc_timers *timers, struct rsc_timer *timer, uint64_t due) {
    if (timers->count == timers->capacity) {
        int status = grow(timers);
        if (status != RSC_OK) {
            return status;
        }
    }
    timer->due = due;
    timer->sequence = timers->sequence++;
    sift_up(timers, timers->count++, timer);
    return RSC_OK;
}

void rsc_timers_remove(struct rsc_timers *timers, struct rsc_timer *timer) {
    if (timer->place == 0) {
        return;
    }
    size_t index = timer->place - 1;
    struct rsc_timer *last = timers->heap[--timers->count];
    timer->place = 0;
    if (last == timer) {
        return;
    }
    if (index > 0 && before(last, timers->heap[(index - 1) / 2])) {
        sift_up(timers, index, last);
    } else {
        sift_down(timers, index, last);
    }
}

struct rsc_timer *rsc_timers_expire(struct rsc_timers *timers, uint64_t now) {
    if (timers->count == 0 || timers->heap[0]->due > now) {
        return NULL;
    }
    struct rsc_timer *timer = timers->heap[0];
    rsc_timers_remove(timers, timer);
    return timer;
}

void rsc_timers_free(struct rsc_timers *timers) {
    while (timers->count > 0) {
        timers->heap[--timers->count]->place = 0;
    }
    free(timers->heap);
    timers->heap = NULL;
    timers->capacity = 0;
}
