/* The loop: transfers, timers and watched descriptors that finish, behind one epoll descriptor.
 *
 * A loop and all that belongs to it is used by one thread at a time. The structs are the caller's memory and must not
 * move; what they acquire is released by rsc_loop_close. Operations point at their loop, so a loop's memory must
 * outlive theirs (closing it does not matter: closed loops detach what was in flight). Times are nanoseconds of
 * CLOCK_MONOTONIC.
 *
 * libcurl is driven by curl_multi_socket_action. No function here is called back by libcurl except the static ones in
 * loop.c, which only take notes: a transfer finishes, and the next one starts, after libcurl has returned. */
#ifndef RSC_LOOP_H
#define RSC_LOOP_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "http/operation.h"
#include "http/sockets.h"
#include "http/timers.h"

#define RSC_CONNECTIONS_MAX 100000 /* idle connections kept by one loop */
#define RSC_EVENTS_MAX      128    /* descriptors handled after one wait */
#define RSC_ADVANCE_MAX     64     /* rounds of libcurl's expired timers before other work gets a turn */

struct rsc_loop {
    CURLM *multi;
    int epoll, timerfd, eventfd;
    struct rsc_sockets sockets;
    struct rsc_timers timers;
    struct rsc_link origins, watches;
    struct rsc_link finished; /* in the order in which they did */
    struct rsc_link failing;  /* transfers whose socket could not be polled */
    size_t finished_count, transfer_count, queued_count, timer_count, watch_count;
    uint64_t curl_due;      /* when libcurl wants to be called for its own timers */
    uint64_t armed;         /* what the timerfd is set to */
    long connections;       /* the option: idle connections kept; 0 when it follows the origins' concurrency */
    long total_concurrency; /* of the origins */
    bool opened, closed;
    bool embedded;  /* somebody polls our descriptor, so the timerfd and the eventfd must be kept up */
    bool signalled; /* the eventfd is readable */
};

/* `loop` is zeroed memory. On a failure it is closed. */
int rsc_loop_open(struct rsc_loop *loop, long max_connections, struct rsc_error *error);

/* Idempotent. Origins are closed; transfers, timers and watches that were not taken become RSC_CANCELLED. */
void rsc_loop_close(struct rsc_loop *loop);

/* The epoll descriptor; from then on it is readable whenever rsc_loop_step has something to do. */
int rsc_loop_pollfd(struct rsc_loop *loop);

/* When rsc_loop_step next has something to do that no descriptor announces; 0 for at once, RSC_NEVER for not at all. */
uint64_t rsc_loop_due(const struct rsc_loop *loop);

/* Works until something has finished, `wait` ns are over (RSC_NEVER: no limit), a signal came or nothing is left that
 * could finish. The count of finished operations that wait to be taken. */
size_t rsc_loop_step(struct rsc_loop *loop, uint64_t wait);

/* The finished operation that is next to be taken, or NULL. */
struct rsc_operation *rsc_loop_first(struct rsc_loop *loop);

/* Lets libcurl act on what is due now and gathers what that finished. Never called from inside libcurl. */
void rsc_loop_advance(struct rsc_loop *loop);

/* Makes pollfd() tell the truth again after a change that rsc_loop_step did not make. */
void rsc_loop_sync(struct rsc_loop *loop);

/* An origin was opened (+) or closed (-): how many idle connections are worth keeping follows. */
void rsc_loop_adjust(struct rsc_loop *loop, long concurrency);

#endif
