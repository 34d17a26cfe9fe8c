#include "base/poller.h"

#if !defined(RSC_KQUEUE)
#    include <errno.h>
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

static int change(struct rsc_poller *poller, int operation, int fd, uint32_t events, uint64_t tag) {
    struct epoll_event event = {.events = ((events & RSC_READABLE) != 0 ? (uint32_t)EPOLLIN : 0u) |
                                          ((events & RSC_WRITABLE) != 0 ? (uint32_t)EPOLLOUT : 0u) |
                                          ((events & RSC_LEFT) != 0 ? (uint32_t)EPOLLRDHUP : 0u),
                                .data.u64 = tag};
    return epoll_ctl(poller->epoll, operation, fd, &event);
}

int rsc_poller_add(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    return change(poller, EPOLL_CTL_ADD, fd, events, tag);
}

int rsc_poller_modify(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    return change(poller, EPOLL_CTL_MOD, fd, events, tag);
}

void rsc_poller_remove(struct rsc_poller *poller, int fd) {
    (void)change(poller, EPOLL_CTL_DEL, fd, 0, 0);
}

int rsc_poller_open(struct rsc_poller *poller) {
    poller->is_open = true;
    poller->timerfd = poller->eventfd = -1;
    poller->armed = RSC_NEVER;
    poller->epoll = epoll_create1(EPOLL_CLOEXEC);
    poller->timerfd = poller->epoll < 0 ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    poller->eventfd = poller->timerfd < 0 ? -1 : eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (poller->eventfd < 0 || rsc_poller_add(poller, poller->timerfd, RSC_READABLE, TIMER_TAG) != 0 ||
        rsc_poller_add(poller, poller->eventfd, RSC_READABLE, SIGNAL_TAG) != 0) {
        int reason = errno;
        rsc_poller_close(poller);
        errno = reason;
        return -1;
    }
    return 0;
}

void rsc_poller_forget(struct rsc_poller *poller) {
    poller->epoll = poller->timerfd = poller->eventfd = -1;
}

void rsc_poller_close(struct rsc_poller *poller) {
    if (poller->is_open) {
        rsc_descriptor_close(&poller->eventfd);
        rsc_descriptor_close(&poller->timerfd);
        rsc_descriptor_close(&poller->epoll);
        poller->is_open = false;
    }
}

int rsc_poller_wait(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms) {
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

int rsc_poller_descriptor(struct rsc_poller *poller) {
    poller->embedded = true;
    return poller->epoll;
}

void rsc_poller_sync(struct rsc_poller *poller, uint64_t due, bool signal) {
    if (!poller->embedded) {
        return;
    }
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
#endif
