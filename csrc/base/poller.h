/* Waits until descriptors are ready: with epoll on Linux, with kqueue elsewhere. A program with a loop of its own polls
 * one descriptor, rsc_poller_descriptor. RISKSCREEN_KQUEUE, defined by the build, chooses kqueue on Linux: a test by
 * hand with libkqueue.
 *
 * The caller owns the struct, which must not move while it is open, and the descriptors, which stay open until
 * rsc_poller_remove. One thread at a time may use a poller. Times are nanoseconds of CLOCK_MONOTONIC. */
#ifndef RSC_POLLER_H
#define RSC_POLLER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if !defined(__linux__) || defined(RISKSCREEN_KQUEUE)
#    define RSC_KQUEUE 1
#endif

#define RSC_NEVER UINT64_MAX

#define RSC_READABLE 1u
#define RSC_WRITABLE 2u
#define RSC_LEFT     4u /* the peer has closed the connection, or its half of it */
#define RSC_BROKEN   8u /* an error or a hang-up, reported even if nobody asked */

struct rsc_ready {
    uint64_t tag;
    uint32_t events; /* a sum of the constants above */
};

struct rsc_poller {
    bool is_open;
#if defined(RSC_KQUEUE)
    int queue;
    int signal[2];   /* a pipe, whose first end the queue watches */
    uint8_t *events; /* by descriptor: those that it was added for; 0 if it was not added */
    size_t capacity; /* of `events` */
#else
    int epoll, timerfd, eventfd;
#endif
    uint64_t armed; /* when the timer expires */
    bool embedded;  /* a host polls the descriptor */
    bool signalled; /* the descriptor is readable until a sync without `signal` */
};

/* Opens a poller in zeroed memory. Returns 0, or -1 with errno set and the poller closed. */
int rsc_poller_open(struct rsc_poller *poller);

/* Idempotent. Does not close the descriptors that were added. */
void rsc_poller_close(struct rsc_poller *poller);

/* In a forked child: forgets the parent's descriptors and closes none, so that rsc_poller_close changes nothing of the
 * parent's. */
void rsc_poller_forget(struct rsc_poller *poller);

/* Adds a descriptor: rsc_poller_wait reports the events with the tag, again and again as long as they last. RSC_LEFT
 * alone may be reported once. Returns 0, or -1 with errno set: EEXIST if the descriptor was added already. */
int rsc_poller_add(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag);

/* Changes the events of a descriptor that was added with this tag. Returns 0, or -1 with errno set. */
int rsc_poller_modify(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag);

void rsc_poller_remove(struct rsc_poller *poller, int fd);

/* Waits up to `wait_ms` (negative: without a limit) and fills `ready`, which may have two entries of one descriptor.
 * Returns the number of entries, which may be 0 before the time is up, or -1 with errno set: EINTR if a signal
 * arrived. */
int rsc_poller_wait(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms);

/* Returns a descriptor that is readable when an added descriptor is ready, and as the last rsc_poller_sync said. The
 * poller owns it. */
int rsc_poller_descriptor(struct rsc_poller *poller);

/* Makes the descriptor readable at `due`, and at once if `signal` is set. Call it after the first
 * rsc_poller_descriptor, after each rsc_poller_wait and after other changes. Does nothing if no host polls. */
void rsc_poller_sync(struct rsc_poller *poller, uint64_t due, bool signal);

#endif
