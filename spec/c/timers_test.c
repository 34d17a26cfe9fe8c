/* Compares the timer heap with a plain array under random additions, removals and expirations. */
#include "check.h"
#include "base/error.h"
#include "http/timers.h"

#define TIMERS 500
#define STEPS  20000

static struct rsc_timer timers[TIMERS];

/* Returns the timer that must expire next: the earliest, and among equal ones the first added. */
static struct rsc_timer *earliest(void) {
    struct rsc_timer *found = NULL;
    for (size_t i = 0; i < TIMERS; i++) {
        struct rsc_timer *timer = &timers[i];
        if (timer->place != 0 && (found == NULL || timer->due < found->due ||
                                  (timer->due == found->due && timer->sequence < found->sequence))) {
            found = timer;
        }
    }
    return found;
}

static size_t count(void) {
    size_t added = 0;
    for (size_t i = 0; i < TIMERS; i++) {
        added += timers[i].place != 0;
    }
    return added;
}

static void check_expiry(struct rsc_timers *heap, uint64_t now) {
    struct rsc_timer *expected = earliest();
    uint64_t due = expected != NULL ? expected->due : RSC_NEVER;
    CHECK(rsc_timers_due(heap) == due, "due at %llu", (unsigned long long)due);
    struct rsc_timer *expired = rsc_timers_expire(heap, now);
    CHECK(expired == (due <= now ? expected : NULL), "now %llu", (unsigned long long)now);
    CHECK(expired == NULL || expired->place == 0, "an expired timer is in the heap");
}

int main(void) {
    struct rsc_timers heap = {0};
    uint64_t state = 1;
    CHECK(rsc_timers_expire(&heap, RSC_NEVER - 1) == NULL, "an empty heap");
    for (int step = 0; step < STEPS; step++) {
        uint64_t bits = random_bits(&state);
        struct rsc_timer *timer = &timers[(bits >> 8) % TIMERS];
        uint64_t when = (bits >> 32) % 64; /* few distinct times, so that many are equal */
        if (bits % 4 == 0) {
            check_expiry(&heap, when);
        } else if (timer->place == 0) {
            CHECK(rsc_timers_add(&heap, timer, when) == RSC_OK, "step %d", step);
        } else if (bits % 4 == 1) {
            rsc_timers_remove(&heap, timer);
            rsc_timers_remove(&heap, timer);
            CHECK(timer->place == 0, "step %d", step);
        }
        CHECK(heap.count == count(), "step %d", step);
    }
    rsc_timers_free(&heap);
    CHECK(count() == 0, "a freed heap still has timers");
    rsc_timers_free(&heap);
    return 0;
}
