#include "base/poller.h"

#if defined(RSC_KQUEUE)
#    include <sys/types.h>

#    include <sys/event.h>

#    include <errno.h>
#    include <limits.h>
#    include <stdlib.h>
#    include <string.h>
#    include <time.h>

#    include "base/clock.h"
#    include "base/descriptor.h"

#    define EVENTS_MAX     128 /* events reported by one wait */
#    define FIRST_CAPACITY 64
#    define LONGEST_MS     86400000u /* of the timer: the host then wakes up early */
#    define ADDED          128u      /* in `events`: the descriptor was added, for whatever events */

/* Tags of the poller's own events. Callers use pointers and odd numbers. */
#    define TIMER_TAG  2u
#    define SIGNAL_TAG 4u

static int apply(struct rsc_poller *poller, int ident, int filter, unsigned flags, unsigned data, uint64_t tag) {
    struct kevent event;
    EV_SET(&event, (uintptr_t)ident, (short)filter, (unsigned short)flags, 0, data, (void *)(uintptr_t)tag);
    return kevent(poller->queue, &event, 1, NULL, 0, NULL);
}

int rsc_poller_open(struct rsc_poller *poller) {
    poller->signal[0] = poller->signal[1] = -1;
    poller->armed = RSC_NEVER;
    poller->queue = kqueue();
    poller->is_open = true;
    if (poller->queue < 0 || fcntl(poller->queue, F_SETFD, FD_CLOEXEC) != 0 ||
        rsc_descriptor_pipe(poller->signal) != 0 ||
        apply(poller, poller->signal[0], EVFILT_READ, EV_ADD, 0, SIGNAL_TAG) != 0) {
        int reason = errno;
        rsc_poller_close(poller);
        errno = reason;
        return -1;
    }
    return 0;
}

void rsc_poller_forget(struct rsc_poller *poller) {
    poller->queue = poller->signal[0] = poller->signal[1] = -1;
}

void rsc_poller_close(struct rsc_poller *poller) {
    if (poller->is_open) {
        rsc_descriptor_close(&poller->signal[0]);
        rsc_descriptor_close(&poller->signal[1]);
        rsc_descriptor_close(&poller->queue);
        free(poller->events);
        poller->events = NULL;
        poller->capacity = 0;
        poller->is_open = false;
    }
}

static bool reserve(struct rsc_poller *poller, int fd) {
    size_t capacity = poller->capacity > 0 ? poller->capacity : FIRST_CAPACITY;
    while (capacity <= (size_t)fd) {
        capacity *= 2;
    }
    if (capacity > poller->capacity) {
        uint8_t *events = realloc(poller->events, capacity);
        if (events == NULL) {
            return false;
        }
        memset(events + poller->capacity, 0, capacity - poller->capacity);
        poller->events = events;
        poller->capacity = capacity;
    }
    return true;
}

/* Adds, changes or removes one filter. A descriptor that is watched only for RSC_LEFT is reported when something new
 * comes: bytes that nobody reads would be reported again and again. */
static int change_filter(struct rsc_poller *poller, int fd, int filter, uint32_t events, uint64_t tag) {
    uint32_t mask = filter == EVFILT_WRITE ? RSC_WRITABLE : RSC_READABLE | RSC_LEFT;
    uint32_t wanted = events & mask;
    uint32_t before = poller->events[fd] & mask;
    if (wanted == before) {
        return 0;
    } else if (before != 0) {
        (void)apply(poller, fd, filter, EV_DELETE, 0, 0);
    }
    return wanted == 0 ? 0 : apply(poller, fd, filter, wanted == RSC_LEFT ? EV_ADD | EV_CLEAR : EV_ADD, 0, tag);
}

static int change(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    if (change_filter(poller, fd, EVFILT_READ, events, tag) != 0 ||
        change_filter(poller, fd, EVFILT_WRITE, events, tag) != 0) {
        int reason = errno;
        rsc_poller_remove(poller, fd);
        errno = reason;
        return -1;
    }
    poller->events[fd] = (uint8_t)(events | ADDED);
    return 0;
}

int rsc_poller_add(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    if (fcntl(fd, F_GETFD) < 0) {
        return -1;
    } else if (!reserve(poller, fd)) {
        errno = ENOMEM;
        return -1;
    } else if (poller->events[fd] != 0) {
        errno = EEXIST;
        return -1;
    }
    return change(poller, fd, events, tag);
}

static bool is_added(const struct rsc_poller *poller, int fd) {
    return fd >= 0 && (size_t)fd < poller->capacity && poller->events[fd] != 0;
}

int rsc_poller_modify(struct rsc_poller *poller, int fd, uint32_t events, uint64_t tag) {
    if (!is_added(poller, fd)) {
        errno = ENOENT;
        return -1;
    }
    return change(poller, fd, events, tag);
}

void rsc_poller_remove(struct rsc_poller *poller, int fd) {
    if (fd >= 0 && (size_t)fd < poller->capacity) {
        (void)apply(poller, fd, EVFILT_READ, EV_DELETE, 0, 0);
        (void)apply(poller, fd, EVFILT_WRITE, EV_DELETE, 0, 0);
        poller->events[fd] = 0;
    }
}

/* The meaning of a descriptor's event for those who have asked for `wanted`. */
static uint32_t meaning_of(const struct kevent *event, uint32_t wanted) {
    bool ended = (event->flags & EV_EOF) != 0;
    if ((event->flags & EV_ERROR) != 0) {
        return RSC_BROKEN;
    } else if (event->filter == EVFILT_WRITE) {
        return RSC_WRITABLE | (ended ? RSC_BROKEN : 0);
    }
    return (wanted & RSC_READABLE) | (ended ? wanted & RSC_LEFT : 0) | (ended && event->fflags != 0 ? RSC_BROKEN : 0);
}

int rsc_poller_wait(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms) {
    struct kevent events[EVENTS_MAX];
    struct timespec time = {.tv_sec = wait_ms / 1000, .tv_nsec = wait_ms % 1000 * 1000000L};
    int most = capacity < EVENTS_MAX ? capacity : EVENTS_MAX;
    int count = kevent(poller->queue, NULL, 0, events, most, wait_ms < 0 ? NULL : &time);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        uint64_t tag = (uintptr_t)events[i].udata;
        if (tag == TIMER_TAG) {
            poller->armed = RSC_NEVER;
        } else if (tag != SIGNAL_TAG && is_added(poller, (int)events[i].ident)) {
            uint32_t found = meaning_of(&events[i], poller->events[events[i].ident]);
            if (found != 0) {
                ready[kept++] = (struct rsc_ready){.tag = tag, .events = found};
            }
        }
    }
    return count < 0 ? -1 : kept;
}

int rsc_poller_descriptor(struct rsc_poller *poller) {
    poller->embedded = true;
    return poller->queue;
}

void rsc_poller_sync(struct rsc_poller *poller, uint64_t due, bool signal) {
    if (!poller->embedded) {
        return;
    }
    /* The timer is never moved to a later time. */
    if (due < poller->armed) {
        uint64_t now = rsc_now();
        uint64_t ms = due > now ? (due - now - 1) / RSC_NS_PER_MS + 1 : 1;
        (void)apply(poller, 1, EVFILT_TIMER, EV_DELETE, 0, 0);
        if (apply(poller, 1, EVFILT_TIMER, EV_ADD | EV_ONESHOT, ms < LONGEST_MS ? (unsigned)ms : LONGEST_MS,
                  TIMER_TAG) == 0) {
            poller->armed = due;
        }
    }
    if (signal != poller->signalled) {
        char byte = 0;
        poller->signalled = signal;
        (void)!(signal ? write(poller->signal[1], &byte, 1) : read(poller->signal[0], &byte, 1));
    }
}
#endif
