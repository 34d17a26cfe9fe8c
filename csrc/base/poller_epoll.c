#if defined(__linux__)
#    include "base/poller.h"

#    include <sys/epoll.h>
#    include <sys/eventfd.h>
#    include <sys/timerfd.h>
#    include <unistd.h>

#    include "base/clock.h"
#    include "base/descriptor.h"

#    define EVENTS_MAX 128 /* descriptors reported by one wait */

/* Tags of the poller's own descriptors. Callers use pointers and odd numbers. */
#    define TIMER_TAG  2u
#    define SIGNAL_TAG 4u

static int change(struct rsc_poller *poller, enum rsc_poller_change what, int fd, uint32_t events, uint64_t tag) {
    static const int operations[] = {
        [RSC_POLLER_ADD] = EPOLL_CTL_ADD, [RSC_POLLER_MODIFY] = EPOLL_CTL_MOD, [RSC_POLLER_REMOVE] = EPOLL_CTL_DEL};
    struct epoll_event event = {.events = ((events & RSC_READABLE) != 0 ? (uint32_t)EPOLLIN : 0u) |
                                          ((events & RSC_WRITABLE) != 0 ? (uint32_t)EPOLLOUT : 0u) |
                                          ((events & RSC_LEFT) != 0 ? (uint32_t)EPOLLRDHUP : 0u),
                                .data.u64 = tag};
    return epoll_ctl(poller->epoll, operations[what], fd, &event);
}

static int open_poller(struct rsc_poller *poller) {
    poller->timerfd = poller->eventfd = -1;
    poller->armed = RSC_NEVER;
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->timerfd = poller->epoll < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    poller->eventfd = poller->timerfd < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    return poller->eventfd < 0 || change(poller, RSC_POLLER_ADD, poller->timerfd, RSC_READABLE, TIMER_TAG) != 0 ||
                   change(poller, RSC_POLLER_ADD, poller->eventfd, RSC_READABLE, SIGNAL_TAG) != 0
               ? -1
               : 0;
}

static void close_poller(struct rsc_poller *poller) {
    rsc_descriptor_close(&poller->eventfd);
    rsc_descriptor_close(&poller->timerfd);
    rsc_descriptor_close(&poller->epoll);
}

static int wait_ready(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(poller->epoll, events, capacity < EVENTS_MAX ? capacity : EVENTS_MAX, wait_ms);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        uint64_t tag = events[i].data.u64;
        uint32_t found = events[i].events;
        if (tag == TIMER_TAG) {
            uint64_t expirations;
            (void)!read(poller->timerfd, &expirations, sizeof expirations);
            poller->armed = RSC_NEVER;
        } else if (tag != SIGNAL_TAG) {
            ready[kept++] = (struct rsc_ready){.tag = tag,
                                               .events = ((found & EPOLLIN) != 0 ? RSC_READABLE : 0) |
                                                         ((found & EPOLLOUT) != 0 ? RSC_WRITABLE : 0) |
                                                         ((found & EPOLLRDHUP) != 0 ? RSC_LEFT : 0) |
                                                         ((found & (EPOLLERR | EPOLLHUP)) != 0 ? RSC_BROKEN : 0)};
        }
    }
    return count < 0 ? -1 : kept;
}

static int descriptor(struct rsc_poller *poller) {
    poller->embedded = true;
    return poller->epoll;
}

static void sync_descriptor(struct rsc_poller *poller, uint64_t due, bool signal) {
    if (due < poller->armed) {
        /* The timer is never moved to a later time. One early wakeup costs less than a system call per request. */
        struct itimerspec when = {
            .it_value = {.tv_sec = (time_t)(due / RSC_NS_PER_S), .tv_nsec = (long)(due % RSC_NS_PER_S)}};
        if (timerfd_settime(poller->timerfd, TFD_TIMER_ABSTIME, &when, NULL) == 0) {
            poller->armed = due;
        }
    }
    if (signal != poller->signalled) {
        eventfd_t value = 1;
        poller->signalled = signal;
        (void)(signal ? eventfd_write(poller->eventfd, value) : eventfd_read(poller->eventfd, &value));
    }
}

const struct rsc_poller_kind rsc_poller_epoll = {
    .open = open_poller,
    .close = close_poller,
    .change = change,
    .wait = wait_ready,
    .descriptor = descriptor,
    .sync = sync_descriptor,
};
#else
typedef int rsc_no_epoll; /* a file must declare something */
#endif
