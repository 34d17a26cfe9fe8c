#include "http/operation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "http/failure.h"
#include "http/transfer.h"

#define FIRST_CAPACITY 64                 /* places */
#define NUMBERS        (INT64_C(1) << 52) /* a double holds each of them */
#define NUMBERS_A_FORK (INT64_C(1) << 45) /* a child's operations have other numbers than its parent's */
#define FORKS          (NUMBERS / NUMBERS_A_FORK)

/* Places */

/* Returns a free place, or NULL if memory runs out. */
static struct rsc_place *free_place(struct rsc_loop *loop) {
    struct rsc_places *places = &loop->places;
    if (places->free == places->capacity) {
        size_t capacity = places->capacity > 0 ? 2 * places->capacity : FIRST_CAPACITY;
        struct rsc_place *table =
            capacity <= (size_t)RSC_OPERATIONS_MAX ? realloc(places->table, capacity * sizeof *table) : NULL;
        if (table == NULL) {
            return NULL;
        }
        places->table = table;
        places->capacity = capacity;
    }
    if (places->free == places->count) {
        int64_t number = loop->forks % FORKS * NUMBERS_A_FORK + (int64_t)places->count++;
        places->table[places->free] = (struct rsc_place){.number = number, .next_free = places->count};
    }
    return &places->table[places->free];
}

void *rsc_operation_new(struct rsc_loop *loop, enum rsc_operation_kind kind, size_t size) {
    struct rsc_place *place = free_place(loop);
    struct rsc_operation *operation = place != NULL ? calloc(1, size) : NULL;
    if (operation != NULL) {
        *operation = (struct rsc_operation){.loop = loop, .number = place->number, .kind = kind, .state = RSC_ACTIVE};
        rsc_link_init(&operation->link);
        place->operation = operation;
        loop->places.free = place->next_free;
    }
    return operation;
}

static void release(struct rsc_operation *operation) {
    struct rsc_places *places = &operation->loop->places;
    size_t at = (size_t)(operation->number % RSC_OPERATIONS_MAX);
    places->table[at] =
        (struct rsc_place){.number = (operation->number + RSC_OPERATIONS_MAX) % NUMBERS, .next_free = places->free};
    places->free = at;
    free(operation);
}

struct rsc_operation *rsc_operation_find(const struct rsc_loop *loop, int64_t number) {
    size_t at = (size_t)(number % RSC_OPERATIONS_MAX);
    return number >= 0 && at < loop->places.count && loop->places.table[at].number == number
               ? loop->places.table[at].operation
               : NULL;
}

/* Ending */

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

int64_t rsc_operation_next(struct rsc_loop *loop) {
    if (rsc_list_empty(&loop->finished)) {
        return -1;
    }
    struct rsc_operation *operation = RSC_CONTAINER(loop->finished.next, struct rsc_operation, link);
    int64_t number = operation->number;
    unfinish(operation);
    operation->state = operation->kind == RSC_WATCH ? RSC_ACTIVE : RSC_NOTED;
    if (operation->kind == RSC_TIMER) {
        release(operation);
    }
    rsc_loop_sync(loop);
    return number;
}

static void end_watch(struct rsc_watch *watch) {
    rsc_poller_remove(&watch->operation.loop->poller, watch->fd);
    if (watch->duplicate) {
        (void)close(watch->fd);
    }
    watch->operation.loop->watch_count--;
}

void rsc_operation_cancel(struct rsc_operation *operation) {
    struct rsc_loop *loop = operation->loop;
    bool was_under_way = operation->kind == RSC_TRANSFER && operation->state <= RSC_ACTIVE;
    if (operation->state == RSC_FINISHED) {
        unfinish(operation);
    }
    if (operation->kind == RSC_WATCH) {
        end_watch((struct rsc_watch *)operation);
    } else if (operation->kind == RSC_TRANSFER) {
        rsc_transfer_end((struct rsc_transfer *)operation);
    } else if (operation->state == RSC_ACTIVE) {
        rsc_timers_remove(&loop->timers, &operation->timer);
        loop->timer_count--;
    }
    release(operation);
    if (was_under_way && !loop->closed) {
        rsc_loop_advance(loop); /* the next one of its origin's queue may start */
    }
    rsc_loop_sync(loop);
}

/* Timers and watches */

struct rsc_operation *rsc_timer_start(struct rsc_loop *loop, uint64_t delay) {
    struct rsc_operation *timer = rsc_operation_new(loop, RSC_TIMER, sizeof *timer);
    if (timer == NULL) {
        return NULL;
    }
    if (rsc_timers_add(&loop->timers, &timer->timer, rsc_now() + delay) != RSC_OK) {
        release(timer);
        return NULL;
    }
    loop->timer_count++;
    rsc_loop_sync(loop);
    return timer;
}

struct rsc_operation *rsc_watch_start(struct rsc_loop *loop, int fd, uint32_t events, struct rsc_error *error) {
    struct rsc_watch *watch = rsc_operation_new(loop, RSC_WATCH, sizeof *watch);
    if (watch == NULL) {
        (void)rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory");
        return NULL;
    }
    loop->watch_count++;
    watch->fd = fd;
    int added = rsc_poller_add(&loop->poller, fd, events, (uint64_t)(uintptr_t)watch);
    if (added != 0 && errno == EEXIST) { /* a poller accepts a descriptor only once */
        watch->duplicate = true;
        watch->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
        added = rsc_poller_add(&loop->poller, watch->fd, events, (uint64_t)(uintptr_t)watch);
    }
    if (added != 0) {
        (void)rsc_system_error(error, "the descriptor cannot be watched");
        rsc_operation_cancel(&watch->operation);
        return NULL;
    }
    return &watch->operation;
}
