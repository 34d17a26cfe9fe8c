/* Waits until descriptors are ready: with epoll on Linux, with poll(2) elsewhere. On Linux the environment variable
 * RISKSCREEN_POLLER=poll chooses poll(2), for the tests.
 *
 * A program with a loop of its own polls one descriptor, rsc_poller_descriptor. epoll has one. With poll(2), a thread
 * waits and makes a pipe readable. It touches nothing but the poller, and runs no code of the library's user.
 *
 * The caller owns the struct, which must not move while it is open, and the descriptors, which stay open until
 * rsc_poller_remove. One thread at a time may use a poller. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef RSC_POLLER_H
#define RSC_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#define RSC_NEVER UINT64_MAX

#define RSC_READABLE 1u
#define RSC_WRITABLE 2u
#define RSC_LEFT     4u /* the peer has closed the connection, or its half of it */
#define RSC_BROKEN   8u /* an error or a hang-up, reported even if nobody asked */

struct rsc_ready {
    uint64_t tag;
    uint32_t events; /* a sum of the constants above */
};

enum rsc_poller_change { RSC_POLLER_ADD, RSC_POLLER_MODIFY, RSC_POLLER_REMOVE };

struct rsc_poller;

/* How a poller works. Each function is described at the function below that calls it. */
struct rsc_poller_kind {
    int (*open)(struct rsc_poller *poller);
    void (*close)(struct rsc_poller *poller);
    int (*change)(struct rsc_poller *poller, enum rsc_poller_change change, int fd, uint32_t events, uint64_t tag);
    int (*wait)(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms);
    int (*descriptor)(struct rsc_poller *poller);
    void (*sync)(struct rsc_poller *poller, uint64_t due, bool signal);
};

extern const struct rsc_poller_kind rsc_poller_poll;
#if defined(__linux__)
extern const struct rsc_poller_kind rsc_poller_epoll;
#endif

struct rsc_poller {
    const struct rsc_poller_kind *kind; /* NULL if closed */

    int epoll, timerfd, eventfd; /* of rsc_poller_epoll */
    uint64_t armed;              /* when the timerfd expires */
    bool embedded;               /* a host polls the descriptor */
    bool signalled;              /* the descriptor is readable until a sync without `signal` */

    struct rsc_poll_set *set; /* of rsc_poller_poll */
};

/* Opens a poller in zeroed memory. Returns 0, or -1 with errno set and the poller closed. */
int rsc_poller_open(struct rsc_poller *poller);

/* Idempotent. Does not close the descriptors that were added. */
void rsc_poller_close(struct rsc_poller *poller);

/* In a forked child: forgets the parent's descriptors and closes none, so that rsc_poller_close changes nothing of the
 * parent's. */
void rsc_poller_forget(struct rsc_poller *poller);

static inline bool rsc_poller_uses_epoll(const struct rsc_poller *poller) {
    return poller->kind != &rsc_poller_poll;
}

/* Adds a descriptor: rsc_poller_wait reports the events with the tag, again and again as long as they last. Returns 0,
 * or -1 with errno set: EEXIST if the descriptor was added already. */
static inline int rsc_poller_add(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    return poller->kind->change(poller, RSC_POLLER_ADD, fd, events, tag);
}

/* Changes the events and the tag of a descriptor. Returns 0, or -1 with errno set. */
static inline int rsc_poller_modify(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    return poller->kind->change(poller, RSC_POLLER_MODIFY, fd, events, tag);
}

static inline void rsc_poller_remove(struct rsc_poller *poller, int fd) {
    (void)poller->kind->change(poller, RSC_POLLER_REMOVE, fd, 0, 0);
}

/* Waits up to `wait_ms` (negative: without a limit) and fills `ready`. Returns the number of entries, which may be 0
 * before the time is up, or -1 with errno set: EINTR if a signal arrived. */
static inline int rsc_poller_wait(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms) {
    return poller->kind->wait(poller, ready, capacity, wait_ms);
}

/* Returns a descriptor that is readable when an added descriptor is ready, and as the last rsc_poller_sync said. The
 * poller owns it. Returns -1 with errno set on a failure. */
static inline int rsc_poller_descriptor(struct rsc_poller *poller) {
    return poller->kind->descriptor(poller);
}

/* Makes the descriptor readable at `due`, and at once if `signal` is set. Call it after the first
 * rsc_poller_descriptor, after each rsc_poller_wait and after other changes. Does nothing if no host polls. */
static inline void rsc_poller_sync(struct rsc_poller *poller, uint64_t due, bool signal) {
    if (poller->embedded) {
        poller->kind->sync(poller, due, signal);
    }
}

#endif
