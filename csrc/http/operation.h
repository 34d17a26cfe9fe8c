/* What a loop can finish: transfers (transfer.h), timers and watches.
 *
 * The structs are the caller's memory, must not move while they are in the loop, and must not outlive the loop's
 * memory. */
#ifndef RSC_OPERATION_H
#define RSC_OPERATION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "http/timers.h"

struct rsc_loop;

enum rsc_operation_kind { RSC_TRANSFER, RSC_TIMER, RSC_WATCH };

enum rsc_operation_state {
    RSC_NEW,
    RSC_QUEUED,   /* a transfer that waits for its origin's concurrency limit */
    RSC_ACTIVE,   /* in flight, or armed */
    RSC_FINISHED, /* waits for rsc_loop_take */
    RSC_TAKEN,
    RSC_CANCELLED,
};

/* What can finish. The first member of every transfer, timer and watch. */
struct rsc_operation {
    struct rsc_link link;   /* in the origin's queue, the loop's finished list, its failing list or its watches */
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

/* Appends it to the finished. */
void rsc_operation_finish(struct rsc_operation *operation);

/* Takes it out of the finished: a watch is armed again, anything else becomes RSC_TAKEN. */
void rsc_operation_take(struct rsc_operation *operation);

/* Zeroed memory becomes an operation of this loop, in state RSC_NEW. */
void rsc_operation_init(struct rsc_operation *operation, struct rsc_loop *loop, enum rsc_operation_kind kind);

/* Starts a timer of `delay` ns. */
int rsc_timer_start(struct rsc_operation *timer, uint64_t delay);

/* Watches `fd` for `events` (EPOLLIN | EPOLLOUT). The caller must not close it before the watch is cancelled. */
int rsc_watch_start(struct rsc_watch *watch, int fd, uint32_t events, struct rsc_error *error);

/* Timers and watches; idempotent, and harmless after the loop was closed. */
void rsc_operation_cancel(struct rsc_operation *operation);

#endif
