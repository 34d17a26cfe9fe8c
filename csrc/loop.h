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

#include "error.h"
#include "list.h"
#include "sockets.h"
#include "timers.h"

#define RSC_CONNECTIONS_MAX 100000 /* idle connections kept by one loop */
#define RSC_EVENTS_MAX      128    /* descriptors handled after one wait */
#define RSC_ADVANCE_MAX     64     /* rounds of libcurl's expired timers before other work gets a turn */

enum rsc_loop_status { RSC_ERROR_SYSTEM = 64 /* errno said it; the message has the text */ };

enum rsc_kind { RSC_TRANSFER, RSC_TIMER, RSC_WATCH };

enum rsc_state {
    RSC_NEW,
    RSC_QUEUED,   /* a transfer that waits for its origin's concurrency limit */
    RSC_ACTIVE,   /* in flight, or armed */
    RSC_FINISHED, /* waits for rsc_loop_take */
    RSC_TAKEN,
    RSC_CANCELLED,
};

/* What can finish. The first member of every transfer, timer and watch. */
struct rsc_operation {
    struct rsc_link link;   /* in the origin's queue, the loop's finished list, its doomed list or its watches */
    struct rsc_timer timer; /* when a timer fires, when a transfer's time is over */
    struct rsc_loop *loop;
    int reference; /* the binding's, untouched here */
    unsigned char kind, state;
};

struct rsc_watch {
    struct rsc_operation operation;
    struct rsc_link watches; /* among the loop's */
    int fd;                  /* the caller's, or our duplicate of it */
    bool duplicate;
};

struct rsc_loop {
    CURLM *multi;
    int epoll, timerfd, eventfd;
    struct rsc_sockets sockets;
    struct rsc_timers timers;
    struct rsc_link origins, watches;
    struct rsc_link finished; /* in the order in which they did */
    struct rsc_link doomed;   /* transfers whose socket could not be polled */
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

/* Takes it: a watch is armed again, anything else becomes RSC_TAKEN. */
void rsc_loop_take(struct rsc_operation *operation);

/* Appends it to the finished. */
void rsc_loop_finish(struct rsc_operation *operation);

/* Lets libcurl act on what is due now and gathers what that finished. Never called from inside libcurl. */
void rsc_loop_advance(struct rsc_loop *loop);

/* Makes pollfd() tell the truth again after a change that rsc_loop_step did not make. */
void rsc_loop_sync(struct rsc_loop *loop);

/* An origin was opened (+) or closed (-): how many idle connections are worth keeping follows. */
void rsc_loop_adjust(struct rsc_loop *loop, long concurrency);

/* Zeroed memory becomes an operation of this loop, in state RSC_NEW. */
void rsc_operation_init(struct rsc_operation *operation, struct rsc_loop *loop, enum rsc_kind kind);

/* Starts a timer of `delay` ns. */
int rsc_timer_start(struct rsc_operation *timer, uint64_t delay);

/* Watches `fd` for `events` (EPOLLIN | EPOLLOUT). The caller must not close it before the watch is cancelled. */
int rsc_watch_start(struct rsc_watch *watch, int fd, uint32_t events, struct rsc_error *error);

/* Timers and watches; idempotent, and harmless after the loop was closed. */
void rsc_operation_cancel(struct rsc_operation *operation);

#endif
