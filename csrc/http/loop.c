#include "http/loop.h"

#include <errno.h>
#include <stdlib.h>

#include "http/failure.h"
#include "http/libcurl.h"
#include "http/origin.h"
#include "http/transfer.h"

#define WAIT_MAX_MS      3600000       /* longest wait of the poller; the loop then waits again */
#define LOOK_AGAIN       RSC_NS_PER_MS /* a response without a request comes seldom, and may as well come just after this */
#define CONNECTIONS_KEPT 64            /* minimum of idle connections to keep */

/* libcurl's callbacks */

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *context, void *socket_context) {
    struct rsc_loop *loop = context;
    (void)socket_context;
    uint32_t events = 0;
    if (what != CURL_POLL_REMOVE) {
        events = ((what & CURL_POLL_IN) != 0 ? RSC_READABLE : 0) | ((what & CURL_POLL_OUT) != 0 ? RSC_WRITABLE : 0);
    }
    if ((events & RSC_READABLE) != 0 && rsc_sockets_clear_fresh(&loop->sockets, fd)) {
        /* While libcurl connects, it waits only for writing. */
        rsc_transfer_connected(easy);
    }
    if (rsc_sockets_want(&loop->sockets, fd, events, easy) != 0) {
        /* Returning an error would fail every transfer of the multi handle, not only this one. */
        rsc_transfer_fail_later(easy, errno);
    }
    return 0;
}

static int on_timer(CURLM *multi, long timeout_ms, void *context) {
    struct rsc_loop *loop = context;
    (void)multi;
    loop->curl_due = timeout_ms < 0 ? RSC_NEVER : rsc_now() + (uint64_t)timeout_ms * RSC_NS_PER_MS;
    return 0;
}

/* Opening and closing */

static int open_multi(struct rsc_loop *loop, struct rsc_error *error) {
    rsc_libcurl_initialize();
    loop->multi = curl_multi_init();
    if (loop->multi == NULL) {
        return rsc_error_set(error, RSC_ERROR_MEMORY, 0, "libcurl could not make a multi handle");
    }
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
    curl_multi_setopt(loop->multi, CURLMOPT_SOCKETDATA, loop);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERFUNCTION, on_timer);
    curl_multi_setopt(loop->multi, CURLMOPT_TIMERDATA, loop);
    rsc_loop_adjust(loop, 0);
    return RSC_OK;
}

int rsc_loop_open(struct rsc_loop *loop, struct rsc_error *error) {
    loop->opened = true;
    loop->forks = rsc_process_current();
    loop->curl_due = RSC_NEVER;
    rsc_link_init(&loop->origins);
    rsc_link_init(&loop->finished);
    rsc_link_init(&loop->failing);
    loop->sockets.poller = &loop->poller;
    int status = rsc_poller_open(&loop->poller) == 0 ? open_multi(loop, error)
                                                     : rsc_system_error(error, "the loop cannot wait for descriptors");
    if (status != RSC_OK) {
        rsc_loop_close(loop);
    }
    return status;
}

/* Lets go of what libcurl and the system hold for the parent. libcurl's functions do nothing with NULL. */
static void forget(struct rsc_loop *loop) {
    for (struct rsc_link *i = loop->origins.next; i != &loop->origins; i = i->next) {
        struct rsc_link *handles = &RSC_CONTAINER(i, struct rsc_origin, link)->handles;
        for (struct rsc_link *j = handles->next; j != handles; j = j->next) {
            struct rsc_handle *handle = RSC_CONTAINER(j, struct rsc_handle, handles);
            handle->easy = NULL;
            handle->shard->cache = NULL;
        }
    }
    for (size_t i = 0; i < loop->places.count; i++) {
        struct rsc_operation *operation = loop->places.table[i].operation;
        if (operation != NULL && operation->kind == RSC_WATCH) {
            ((struct rsc_watch *)operation)->duplicate = false;
        }
    }
    loop->multi = NULL;
    rsc_poller_forget(&loop->poller);
}

void rsc_loop_close(struct rsc_loop *loop) {
    if (!loop->opened || loop->closed) {
        return;
    }
    loop->closed = true;
    if (rsc_loop_inherited(loop)) {
        forget(loop);
    }
    for (size_t i = 0; i < loop->places.count; i++) {
        if (loop->places.table[i].operation != NULL) {
            rsc_operation_cancel(loop->places.table[i].operation);
        }
    }
    free(loop->places.table);
    loop->places = (struct rsc_places){.table = NULL};
    while (!rsc_list_empty(&loop->origins)) {
        rsc_origin_close(RSC_CONTAINER(loop->origins.next, struct rsc_origin, link));
    }
    rsc_timers_free(&loop->timers);
    if (loop->multi != NULL) {
        struct rsc_sigpipe sigpipe;
        rsc_sigpipe_hold(&sigpipe);
        (void)curl_multi_cleanup(loop->multi);
        rsc_sigpipe_release(&sigpipe);
        loop->multi = NULL;
    }
    rsc_sockets_free(&loop->sockets);
    rsc_poller_close(&loop->poller);
}

void rsc_loop_adjust(struct rsc_loop *loop, long concurrency) {
    loop->total_concurrency += concurrency;
    long kept = loop->total_concurrency > CONNECTIONS_KEPT ? loop->total_concurrency : CONNECTIONS_KEPT;
    kept = kept < RSC_CONNECTIONS_MAX ? kept : RSC_CONNECTIONS_MAX;
    if (loop->multi != NULL) {
        curl_multi_setopt(loop->multi, CURLMOPT_MAXCONNECTS, kept);
    }
}

/* The descriptor */

static uint64_t due_after(const struct rsc_loop *loop) {
    uint64_t due = rsc_timers_due(&loop->timers);
    return loop->curl_due < due ? loop->curl_due : due;
}

uint64_t rsc_loop_due(const struct rsc_loop *loop) {
    return loop->finished_count > 0 ? 0 : due_after(loop);
}

void rsc_loop_sync(struct rsc_loop *loop) {
    if (!loop->closed) {
        rsc_poller_sync(&loop->poller, due_after(loop), loop->finished_count > 0);
    }
}

int rsc_loop_pollfd(struct rsc_loop *loop) {
    int fd = rsc_poller_descriptor(&loop->poller);
    rsc_loop_sync(loop);
    return fd;
}

/* Stepping */

static void finish_completed(struct rsc_loop *loop) {
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(loop->multi, &left)) != NULL) {
        if (message->msg == CURLMSG_DONE) {
            rsc_transfer_complete(message->easy_handle, message->data.result);
        }
    }
    while (!rsc_list_empty(&loop->failing)) {
        rsc_transfer_finish_failing(RSC_CONTAINER(loop->failing.next, struct rsc_operation, link));
    }
}

static void fail_all_later(struct rsc_loop *loop) {
    for (struct rsc_link *i = loop->origins.next; i != &loop->origins; i = i->next) {
        struct rsc_link *handles = &RSC_CONTAINER(i, struct rsc_origin, link)->handles;
        for (struct rsc_link *j = handles->next; j != handles; j = j->next) {
            rsc_transfer_fail_later(RSC_CONTAINER(j, struct rsc_handle, handles)->easy, ENOMEM);
        }
    }
}

static void socket_action(struct rsc_loop *loop, curl_socket_t fd, int events) {
    int running = 0;
    struct rsc_sigpipe sigpipe;
    loop->turn++;
    rsc_sigpipe_hold(&sigpipe);
    CURLMcode code = curl_multi_socket_action(loop->multi, fd, events, &running);
    rsc_sigpipe_release(&sigpipe);
    if (code != CURLM_OK) {
        /* Most likely libcurl ran out of memory during a transfer. It does not say which, and that transfer would never
         * finish. */
        fail_all_later(loop);
    }
}

static bool start_next(struct rsc_loop *loop) {
    for (struct rsc_link *i = loop->origins.next; i != &loop->origins; i = i->next) {
        if (rsc_origin_start_next(RSC_CONTAINER(i, struct rsc_origin, link))) {
            return true;
        }
    }
    return false;
}

/* Within one call libcurl may end a transfer and start others on its connection. Before the next transfer starts,
 * rsc_transfer_complete must have looked whether more has come on the connection. So each call starts one. */
void rsc_loop_advance(struct rsc_loop *loop) {
    finish_completed(loop);
    for (int round = 0; round < RSC_ADVANCE_MAX; round++) {
        if (loop->curl_due > rsc_now() && !start_next(loop)) {
            return;
        }
        loop->curl_due = RSC_NEVER;
        socket_action(loop, CURL_SOCKET_TIMEOUT, 0);
        finish_completed(loop);
        if (loop->curl_due == RSC_NEVER && loop->transfer_count > 0) {
            /* libcurl does not announce the same time twice, even if the first wakeup was slightly early. */
            long timeout_ms = -1;
            (void)curl_multi_timeout(loop->multi, &timeout_ms);
            (void)on_timer(loop->multi, timeout_ms, loop);
        }
    }
    loop->curl_due = rsc_now(); /* the next step goes on */
}

static void expire(struct rsc_loop *loop) {
    uint64_t now = rsc_now();
    struct rsc_timer *timer;
    while ((timer = rsc_timers_expire(&loop->timers, now)) != NULL) {
        struct rsc_operation *operation = RSC_CONTAINER(timer, struct rsc_operation, timer);
        if (operation->kind == RSC_TRANSFER) {
            rsc_transfer_expire(operation);
        } else {
            loop->timer_count--;
            rsc_operation_finish(operation);
        }
    }
}

static void dispatch(struct rsc_loop *loop, const struct rsc_ready *ready) {
    if (!RSC_SOCKET_TAGGED(ready->tag)) {
        struct rsc_watch *watch = (struct rsc_watch *)(uintptr_t)ready->tag;
        if (watch->operation.state == RSC_ACTIVE) {
            rsc_operation_finish(&watch->operation);
        }
        return;
    }
    int fd = RSC_SOCKET_FD(ready->tag);
    uint32_t events = rsc_sockets_ready(&loop->sockets, fd, ready->events);
    if (events != 0) {
        socket_action(loop, fd,
                      ((events & RSC_READABLE) != 0 ? CURL_CSELECT_IN : 0) |
                          ((events & RSC_WRITABLE) != 0 ? CURL_CSELECT_OUT : 0));
    }
}

void rsc_loop_check_rests(struct rsc_loop *loop, uint64_t now) {
    if (loop->sockets.resting_count == 0 || now - loop->looked_at < LOOK_AGAIN) {
        return;
    }
    struct rsc_ready ready[RSC_EVENTS_MAX];
    int count = rsc_poller_wait(&loop->poller, ready, RSC_EVENTS_MAX, 0);
    loop->looked_at = now;
    for (int i = 0; i < count; i++) {
        if (RSC_SOCKET_TAGGED(ready[i].tag)) {
            rsc_sockets_check_rest(&loop->sockets, RSC_SOCKET_FD(ready[i].tag));
        }
    }
}

static bool idle(const struct rsc_loop *loop) {
    return loop->transfer_count + loop->queued_count + loop->timer_count + loop->watch_count == 0;
}

/* Rounds up, so that the timer is due after the wait. */
static int wait_ms(const struct rsc_loop *loop, uint64_t until) {
    uint64_t due = rsc_loop_due(loop);
    if (due < until) {
        until = due;
    }
    if (until == 0 || idle(loop)) {
        return 0;
    }
    uint64_t now = rsc_now();
    if (until <= now) {
        return 0;
    }
    uint64_t ms = (until - now - 1) / RSC_NS_PER_MS + 1;
    return ms < WAIT_MAX_MS ? (int)ms : WAIT_MAX_MS;
}

size_t rsc_loop_step(struct rsc_loop *loop, uint64_t wait, uint64_t budget) {
    struct rsc_ready ready[RSC_EVENTS_MAX];
    uint64_t now = wait > 0 || budget != RSC_NEVER ? rsc_now() : 0;
    uint64_t stop = budget < RSC_NEVER - now ? now + budget : RSC_NEVER;
    uint64_t until = wait < RSC_NEVER - now ? now + wait : RSC_NEVER;
    if (wait == 0) {
        until = 0;
    }
    do {
        int count = rsc_poller_wait(&loop->poller, ready, RSC_EVENTS_MAX, wait_ms(loop, until));
        if (count < 0) {
            break;
        }
        loop->looked_at = rsc_now();
        for (int i = 0; i < count && (stop == RSC_NEVER || i == 0 || rsc_now() < stop); i++) {
            dispatch(loop, &ready[i]);
        }
        /* Responses count before timeouts, so that a late step does not discard a response that has arrived. */
        rsc_loop_advance(loop);
        expire(loop);
        rsc_loop_advance(loop);
    } while (loop->finished_count == 0 && !idle(loop) && until > 0 && rsc_now() < until);
    rsc_loop_sync(loop);
    return loop->finished_count;
}
