/* Operations of a loop: transfers (see transfer.h), timers and watches.
 *
 * The loop owns them. The caller knows an operation by its number. A pointer is valid until the operation is cancelled
 * or taken, or the loop is closed. The thread rules are the loop's. */
#ifndef RSC_OPERATION_H
#define RSC_OPERATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/list.h"
#include "http/timers.h"

#define RSC_OPERATIONS_MAX (INT64_C(1) << 24) /* operations of a loop at a time */

struct rsc_loop;

enum rsc_operation_kind { RSC_TRANSFER, RSC_TIMER, RSC_WATCH };

enum rsc_operation_state {
    RSC_QUEUED,   /* a transfer waiting for its origin's concurrency limit */
    RSC_ACTIVE,   /* in flight, or armed */
    RSC_FINISHED, /* waiting for rsc_operation_next */
    RSC_NOTED,    /* a transfer that rsc_operation_next has returned */
};

/* The first member of every transfer and watch. A timer is this struct alone. */
struct rsc_operation {
    struct rsc_link link;   /* in the origin's queue, or the loop's finished or failing list */
    struct rsc_timer timer; /* when a timer expires or a transfer times out */
    struct rsc_loop *loop;
    int64_t number;
    enum rsc_operation_kind kind;
    enum rsc_operation_state state;
};

struct rsc_watch {
    struct rsc_operation operation;
    int fd;         /* the caller's descriptor, or a duplicate */
    bool duplicate; /* the struct owns the duplicate */
};

/* A place for an operation. The number of an operation is the place's own and a multiple of RSC_OPERATIONS_MAX, which
 * differs from that of the operations before it. */
struct rsc_place {
    struct rsc_operation *operation; /* NULL while the place is free */
    int64_t number;                  /* of the operation, or of the next one */
    size_t next_free;
};

struct rsc_places {
    struct rsc_place *table;
    size_t count, capacity, free; /* `free` is the first free place, or `count` */
};

/* Makes an operation of `size` bytes, which are zero but for the struct above. Returns NULL if memory runs out. */
void *rsc_operation_new(struct rsc_loop *loop, enum rsc_operation_kind kind, size_t size);

/* Returns the operation with this number, or NULL: it was taken or cancelled. */
struct rsc_operation *rsc_operation_find(const struct rsc_loop *loop, int64_t number);

/* Appends the operation to the finished list. */
void rsc_operation_finish(struct rsc_operation *operation);

/* Takes the oldest operation off the finished list, and returns its number, or -1. A timer ends with that, and a watch
 * goes on. A transfer keeps its outcome until it is cancelled. */
int64_t rsc_operation_next(struct rsc_loop *loop);

/* Cancels an operation in any state, and frees it. */
void rsc_operation_cancel(struct rsc_operation *operation);

/* Makes a timer of `delay` ns. Returns NULL if memory runs out. */
struct rsc_operation *rsc_timer_start(struct rsc_loop *loop, uint64_t delay);

/* Watches `fd` for `events` (RSC_READABLE | RSC_WRITABLE). The caller keeps it open until the watch is cancelled.
 * Returns NULL with the error set on a failure. */
struct rsc_operation *rsc_watch_start(struct rsc_loop *loop, int fd, uint32_t events, struct rsc_error *error);

#endif
