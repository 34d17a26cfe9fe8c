#include "http/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "http/failure.h"
#include "http/loop.h"

void rsc_operation_init(struct rsc_operation *operation, struct rsc_loop *loop, enum rsc_operation_kind kind) {
    rsc_link_init(&operation->link);
    operation->loop = loop;
    operation->kind = (unsigned char)kind;
    operation->state = RSC_NEW;
}

void rsc_operation_finish(struct rsc_operation *operation) {
    struct rsc_loop *loop = operation->loop;
    operation->state = RSC_FINISHED;
    rsc_list_remove(&operation->link);
    rsc_list_append(&loop->finished, &operation->link);
    loop->finished_count++;
}

static void unfinish(struct rsc_operation *operation) {
    rsc_list_remove(&operation->link);
    operation->loop->finished_count--;
}

void rsc_operation_take(struct rsc_operation *operation) {
    unfinish(operation);
    operation->state = operation->kind == RSC_WATCH ? RSC_ACTIVE : RSC_TAKEN;
}

int rsc_timer_start(struct rsc_operation *timer, uint64_t delay) {
    struct rsc_loop *loop = timer->loop;
    int status = rsc_timers_add(&loop->timers, &timer->timer, rsc_now() + delay);
    if (status == RSC_OK) {
        timer->state = RSC_ACTIVE;
        loop->timer_count++;
        rsc_loop_sync(loop);
    }
    return status;
}

int rsc_watch_start(struct rsc_watch *watch, int fd, uint32_t events, struct rsc_error *error) {
    struct rsc_loop *loop = watch->operation.loop;
    uint64_t tag = (uint64_t)(uintptr_t)watch;
    watch->fd = fd;
    if (rsc_poller_add(&loop->poller, fd, events, tag) != 0) {
        if (errno != EEXIST) {
            return rsc_system_error(error, "the descriptor cannot be watched");
        }
        /* A poller accepts a descriptor only once, so a second watch needs a duplicate. */
        watch->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        if (watch->fd < 0 || rsc_poller_add(&loop->poller, watch->fd, events, tag) != 0) {
            int status = rsc_system_error(error, "the descriptor cannot be watched twice");
            (void)close(watch->fd);
            return status;
        }
        watch->duplicate = true;
    }
    watch->operation.state = RSC_ACTIVE;
    rsc_list_append(&loop->watches, &watch->watches);
    loop->watch_count++;
    return RSC_OK;
}

static void cancel_watch(struct rsc_watch *watch) {
    struct rsc_loop *loop = watch->operation.loop;
    rsc_poller_remove(&loop->poller, watch->fd);
    if (watch->duplicate) {
        (void)close(watch->fd);
    }
    rsc_list_remove(&watch->watches);
    loop->watch_count--;
}

void rsc_operation_cancel(struct rsc_operation *operation) {
    struct rsc_loop *loop = operation->loop;
    if (rsc_loop_inherited(loop)) {
        rsc_loop_close(loop);
    }
    unsigned char state = operation->state;
    if (state == RSC_FINISHED) {
        unfinish(operation);
    }
    if (state != RSC_ACTIVE && state != RSC_FINISHED) {
        return;
    }
    operation->state = RSC_CANCELLED;
    if (operation->kind == RSC_WATCH) {
        cancel_watch((struct rsc_watch *)operation);
    } else if (state == RSC_ACTIVE) {
        rsc_timers_remove(&loop->timers, &operation->timer);
        loop->timer_count--;
    }
    rsc_loop_sync(loop);
}
