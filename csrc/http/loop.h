/* The event loop: runs transfers, timers and watched descriptors behind one descriptor.
 *
 * One thread at a time may use a loop and its objects. The caller owns the struct, which must not move, and outlives
 * its origins. rsc_loop_close releases everything that they acquire, but for the memory of the origins. Times are
 * nanoseconds of CLOCK_MONOTONIC.
 *
 * curl_multi_socket_action drives libcurl. libcurl's callbacks only record events: transfers finish and start after
 * libcurl has returned. libcurl also keeps the connections between requests, for all origins of the loop:
 * rsc_loop_adjust sets their number. */
#ifndef RSC_LOOP_H
#define RSC_LOOP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/poller.h"
#include "base/process.h"
#include "http/operation.h"
#include "http/sockets.h"
#include "http/timers.h"

#define RSC_CONNECTIONS_MAX 100000 /* idle connections in one loop */
#define RSC_EVENTS_MAX      128    /* descriptors handled per wait */
#define RSC_ADVANCE_MAX     64     /* limit of consecutive rounds of expired libcurl timers and started transfers */

struct rsc_loop {
    CURLM *multi;
    struct rsc_poller poller;
    struct rsc_sockets sockets;
    struct rsc_timers timers;
    struct rsc_places places; /* of its operations */
    struct rsc_link origins;
    struct rsc_link finished; /* operations for rsc_operation_next, oldest first */
    struct rsc_link failing;  /* transfers to be failed once libcurl has returned */
    size_t finished_count, transfer_count, queued_count, timer_count, watch_count;

    uint64_t curl_due;  /* when libcurl's own timers are due */
    uint64_t turn;      /* number of calls of curl_multi_socket_action */
    uint64_t looked_at; /* when it last asked the poller which descriptors are ready */

    long total_concurrency; /* sum over the origins */

    bool opened, closed;
    unsigned forks; /* rsc_forks at its opening */
};

/* Whether this process is a forked child, and the loop is its parent's. Only rsc_loop_close and rsc_origin_drop may
 * then be called. They close the loop, and touch neither its descriptors nor libcurl's handles, which stay allocated.
 */
static inline bool rsc_loop_inherited(const struct rsc_loop *loop) {
    return loop->forks != rsc_forks;
}

/* Opens a loop in zeroed memory. On a failure closes it and sets the error. */
int rsc_loop_open(struct rsc_loop *loop, struct rsc_error *error);

/* Closes the loop and its origins, and cancels every operation. Idempotent. */
void rsc_loop_close(struct rsc_loop *loop);

/* Returns a descriptor that from now on is readable whenever rsc_loop_step has work. The loop owns it. Returns -1 with
 * errno set on a failure. */
int rsc_loop_pollfd(struct rsc_loop *loop);

/* Returns when rsc_loop_step is due even if the descriptor is not readable: 0 for now, RSC_NEVER for never. */
uint64_t rsc_loop_due(const struct rsc_loop *loop);

/* Runs the loop until an operation finishes, `wait` ns pass, a signal arrives or no operation is left. RSC_NEVER waits
 * without a limit. After `budget` ns, RSC_NEVER for no limit, it takes up no further descriptor: the next step does.
 * Returns the number of operations for rsc_operation_next. */
size_t rsc_loop_step(struct rsc_loop *loop, uint64_t wait, uint64_t budget);

/* Runs libcurl's due timers, finishes completed transfers and starts queued ones. Must not be called from a libcurl
 * callback. */
void rsc_loop_advance(struct rsc_loop *loop);

/* Looks for connections that became ready while they rest (sockets.h), unless it has just done so. Call it before a
 * request is sent outside rsc_loop_step, with the time. */
void rsc_loop_check_rests(struct rsc_loop *loop, uint64_t now);

/* Updates the descriptor's readiness. Call it after a change outside rsc_loop_step. */
void rsc_loop_sync(struct rsc_loop *loop);

/* Adds an origin's concurrency (negative when it closes) and adjusts the number of idle connections to keep. */
void rsc_loop_adjust(struct rsc_loop *loop, long concurrency);

#endif
