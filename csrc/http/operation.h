/* Operations of a loop: transfers (see transfer.h), timers and watches.
 *
 * The caller owns the structs. They must not move while they are in the loop, and must not outlive the loop's memory.
 * The thread rules are the loop's. */
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
    RSC_QUEUED,   /* a transfer waiting for its origin's concurrency limit */
    RSC_ACTIVE,   /* in flight, or armed */
    RSC_FINISHED, /* waiting for rsc_operation_take */
    RSC_TAKEN,
    RSC_CANCELLED,
};

/* The first member of every transfer and watch. A timer is this struct alone. */
struct rsc_operation {
    struct rsc_link link;   /* in the origin's queue, or the loop's finished or failing list */
    struct rsc_timer timer; /* when a timer expires or a transfer times out */
    struct rsc_loop *loop;
    int reference; /* for the Lua binding only */
    unsigned char kind, state;
};

struct rsc_watch {
    struct rsc_operation operation;
    struct rsc_link watches; /* in the loop's list */
    int fd;                  /* the caller's descriptor, or a duplicate */
    bool duplicate;          /* the struct owns the duplicate */
};

/* Appends the operation to the finished list. */
void rsc_operation_finish(struct rsc_operation *operation);

/* Removes the operation from the finished list. A watch becomes RSC_ACTIVE again, any other RSC_TAKEN. */
void rsc_operation_take(struct rsc_operation *operation);

/* Initializes zeroed memory as an operation in state RSC_NEW. */
void rsc_operation_init(struct rsc_operation *operation, struct rsc_loop *loop, enum rsc_operation_kind kind);

/* Starts a timer of `delay` ns. Returns RSC_OK, RSC_ERROR_LIMIT or RSC_ERROR_MEMORY. */
int rsc_timer_start(struct rsc_operation *timer, uint64_t delay);

/* Watches `fd` for `events` (RSC_READABLE | RSC_WRITABLE). The caller keeps it open until the watch is cancelled. */
int rsc_watch_start(struct rsc_watch *watch, int fd, uint32_t events, struct rsc_error *error);

/* Cancels a timer or a watch. Idempotent, and harmless after the loop is closed. */
void rsc_operation_cancel(struct rsc_operation *operation);

#endif
