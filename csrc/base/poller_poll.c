#include "base/poller.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/descriptor.h"
#include "base/process.h"

#if !defined(POLLRDHUP)
#    define POLLRDHUP POLLHUP /* macOS reports the end of a stream so */
#endif

#define FIRST_CAPACITY 64

/* The thread that waits while the host polls the pipe. The mutex protects the struct, and the set while it changes. */
struct waiter {
    pthread_t thread;
    pthread_mutex_t mutex;
    unsigned forks; /* rsc_forks at its start: a forked child has no such thread */
    int wake[2];    /* ends the thread's poll(2), which reads its first end */
    int ready[2];   /* the host polls the first end */
    uint64_t due;
    unsigned round; /* grows with every change: what the thread found in an earlier round is out of date */
    bool armed;     /* the thread is to make the pipe readable */
    bool readable;  /* the host's pipe holds a byte */
    bool ended;

    struct pollfd *fds; /* the thread's copy of the set, after the end of `wake` */
    size_t capacity;
};

struct rsc_poll_set {
    struct pollfd *fds;
    uint64_t *tags;
    size_t count, capacity;
    size_t *places; /* by descriptor: one more than its index in `fds`; 0 if it was not added */
    size_t place_count;
    size_t next; /* where the next wait begins to report, so that each descriptor gets its turn */
    struct waiter *waiter;
};

/* The thread */

/* Locks the waiter. Returns false if the thread does not exist in this process. */
static bool enter(struct waiter *waiter) {
    if (waiter == NULL || waiter->forks != rsc_forks) {
        return false;
    }
    (void)pthread_mutex_lock(&waiter->mutex);
    return true;
}

static void leave(struct waiter *waiter) {
    (void)pthread_mutex_unlock(&waiter->mutex);
}

static void put_byte(int fd) {
    (void)!write(fd, "", 1);
}

static void take_bytes(int fd) {
    char bytes[16];
    (void)!read(fd, bytes, sizeof bytes);
}

static void set_readable(struct waiter *waiter, bool readable) {
    if (readable && !waiter->readable) {
        put_byte(waiter->ready[1]);
    } else if (!readable && waiter->readable) {
        take_bytes(waiter->ready[0]);
    }
    waiter->readable = readable;
}

static int ms_until(uint64_t due) {
    if (due == RSC_NEVER) {
        return -1;
    }
    uint64_t now = rsc_now();
    uint64_t ms = due > now ? (due - now - 1) / RSC_NS_PER_MS + 1 : 0;
    return ms < INT_MAX ? (int)ms : INT_MAX;
}

/* Copies the set for the thread. */
static bool copy_set(struct waiter *waiter, const struct rsc_poll_set *set) {
    if (waiter->capacity <= set->count) {
        size_t capacity = set->capacity + 1;
        struct pollfd *fds = realloc(waiter->fds, capacity * sizeof *fds);
        if (fds == NULL) {
            return false;
        }
        waiter->fds = fds;
        waiter->capacity = capacity;
    }
    if (set->count > 0) {
        memcpy(waiter->fds + 1, set->fds, set->count * sizeof *set->fds);
    }
    return true;
}

/* Waits once without the mutex, for nothing but `wake` if it is not armed. Returns whether a descriptor is ready. */
static bool wait_once(struct waiter *waiter, size_t count) {
    int ms = waiter->armed ? ms_until(waiter->due) : -1;
    waiter->fds[0] = (struct pollfd){.fd = waiter->wake[0], .events = POLLIN};
    leave(waiter);
    int found = poll(waiter->fds, (nfds_t)count, ms);
    (void)pthread_mutex_lock(&waiter->mutex);
    bool woken = waiter->fds[0].revents != 0;
    if (woken) {
        take_bytes(waiter->wake[0]);
    }
    return found > (woken ? 1 : 0);
}

static void *run_waiter(void *argument) {
    struct rsc_poll_set *set = argument;
    struct waiter *waiter = set->waiter;
    (void)pthread_mutex_lock(&waiter->mutex);
    while (!waiter->ended) {
        unsigned round = waiter->round;
        /* Without memory the host steps in vain until there is some. */
        bool found = waiter->armed && !copy_set(waiter, set);
        found = found || wait_once(waiter, waiter->armed ? set->count + 1 : 1);
        if (waiter->armed && round == waiter->round && (found || rsc_now() >= waiter->due)) {
            set_readable(waiter, true);
            waiter->armed = false;
        }
    }
    leave(waiter);
    return NULL;
}

static void free_waiter(struct waiter *waiter) {
    rsc_descriptor_close(&waiter->wake[0]);
    rsc_descriptor_close(&waiter->wake[1]);
    rsc_descriptor_close(&waiter->ready[0]);
    rsc_descriptor_close(&waiter->ready[1]);
    free(waiter->fds);
    free(waiter);
}

/* Starts the thread. The program's signals are for its own threads. Returns an error number. */
static int start_thread(struct rsc_poll_set *set) {
    sigset_t all;
    sigset_t before;
    (void)sigfillset(&all);
    int status = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (status == 0) {
        status = pthread_create(&set->waiter->thread, NULL, run_waiter, set);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    return status;
}

static int start_waiter(struct rsc_poll_set *set) {
    struct waiter *waiter = calloc(1, sizeof *waiter);
    if (waiter == NULL) {
        return -1;
    }
    waiter->forks = rsc_process_current();
    waiter->due = RSC_NEVER;
    waiter->wake[0] = waiter->wake[1] = waiter->ready[0] = waiter->ready[1] = -1;
    waiter->fds = malloc(sizeof *waiter->fds);
    waiter->capacity = 1;
    if (waiter->fds == NULL || rsc_descriptor_pipe(waiter->wake) != 0 || rsc_descriptor_pipe(waiter->ready) != 0) {
        free_waiter(waiter);
        return -1;
    }
    (void)pthread_mutex_init(&waiter->mutex, NULL);
    set->waiter = waiter;
    int status = start_thread(set);
    if (status != 0) {
        set->waiter = NULL;
        free_waiter(waiter);
        errno = status;
        return -1;
    }
    return 0;
}

static void end_waiter(struct waiter *waiter) {
    if (enter(waiter)) {
        waiter->ended = true;
        put_byte(waiter->wake[1]);
        leave(waiter);
        (void)pthread_join(waiter->thread, NULL);
        (void)pthread_mutex_destroy(&waiter->mutex);
    }
    if (waiter != NULL) {
        free_waiter(waiter);
    }
}

/* The set */

static int open_poller(struct rsc_poller *poller) {
    poller->set = calloc(1, sizeof *poller->set);
    return poller->set == NULL ? -1 : 0;
}

static void close_poller(struct rsc_poller *poller) {
    struct rsc_poll_set *set = poller->set;
    if (set != NULL) {
        end_waiter(set->waiter);
        free(set->fds);
        free(set->tags);
        free(set->places);
        free(set);
        poller->set = NULL;
    }
}

static bool reserve_place(struct rsc_poll_set *set, int fd) {
    size_t wanted = (size_t)fd + 1;
    if (wanted > set->place_count) {
        size_t count = set->place_count > 0 ? set->place_count : FIRST_CAPACITY;
        while (count < wanted) {
            count *= 2;
        }
        size_t *places = realloc(set->places, count * sizeof *places);
        if (places == NULL) {
            return false;
        }
        memset(places + set->place_count, 0, (count - set->place_count) * sizeof *places);
        set->places = places;
        set->place_count = count;
    }
    return true;
}

static bool reserve_entry(struct rsc_poll_set *set) {
    if (set->count < set->capacity) {
        return true;
    }
    size_t capacity = set->capacity > 0 ? set->capacity * 2 : FIRST_CAPACITY;
    uint64_t *tags = realloc(set->tags, capacity * sizeof *tags);
    if (tags == NULL) {
        return false;
    }
    set->tags = tags;
    struct pollfd *fds = realloc(set->fds, capacity * sizeof *fds);
    if (fds == NULL) {
        return false;
    }
    set->fds = fds;
    set->capacity = capacity;
    return true;
}

static short to_poll(uint32_t events) {
    return (short)(((events & RSC_READABLE) != 0 ? POLLIN : 0) | ((events & RSC_WRITABLE) != 0 ? POLLOUT : 0) |
                   ((events & RSC_LEFT) != 0 ? POLLRDHUP : 0));
}

static uint32_t from_poll(short found) {
    return ((found & POLLIN) != 0 ? RSC_READABLE : 0) | ((found & POLLOUT) != 0 ? RSC_WRITABLE : 0) |
           ((found & POLLRDHUP) != 0 ? RSC_LEFT : 0) | ((found & (POLLERR | POLLHUP | POLLNVAL)) != 0 ? RSC_BROKEN : 0);
}

static int add(struct rsc_poll_set *set, int fd, uint32_t events, uint64_t tag) {
    if (fcntl(fd, F_GETFD) < 0) {
        return -1;
    }
    if (!reserve_place(set, fd) || !reserve_entry(set)) {
        errno = ENOMEM;
        return -1;
    }
    if (set->places[fd] != 0) {
        errno = EEXIST;
        return -1;
    }
    set->fds[set->count] = (struct pollfd){.fd = fd, .events = to_poll(events)};
    set->tags[set->count] = tag;
    set->places[fd] = ++set->count;
    return 0;
}

static void remove_entry(struct rsc_poll_set *set, size_t index) {
    size_t last = --set->count;
    set->places[set->fds[index].fd] = 0;
    if (index != last) {
        set->fds[index] = set->fds[last];
        set->tags[index] = set->tags[last];
        set->places[set->fds[index].fd] = index + 1;
    }
}

static int change_set(struct rsc_poll_set *set, enum rsc_poller_change what, int fd, uint32_t events, uint64_t tag) {
    if (what == RSC_POLLER_ADD) {
        return add(set, fd, events, tag);
    }
    size_t place = fd >= 0 && (size_t)fd < set->place_count ? set->places[fd] : 0;
    if (place == 0) {
        errno = ENOENT;
        return -1;
    }
    if (what == RSC_POLLER_REMOVE) {
        remove_entry(set, place - 1);
    } else {
        set->fds[place - 1].events = to_poll(events);
        set->tags[place - 1] = tag;
    }
    return 0;
}

static int change(struct rsc_poller *poller, enum rsc_poller_change what, int fd, uint32_t events, uint64_t tag) {
    struct rsc_poll_set *set = poller->set;
    bool entered = enter(set->waiter);
    int status = change_set(set, what, fd, events, tag);
    if (entered) {
        set->waiter->round++;
        if (set->waiter->armed) {
            put_byte(set->waiter->wake[1]);
        }
        leave(set->waiter);
    }
    return status;
}

/* Waiting */

static int wait_ready(struct rsc_poller *poller, struct rsc_ready *ready, int capacity, int wait_ms) {
    struct rsc_poll_set *set = poller->set;
    if (enter(set->waiter)) {
        set->waiter->round++;
        set->waiter->armed = false;
        if (!poller->signalled) {
            set_readable(set->waiter, false);
        }
        leave(set->waiter);
    }
    int left = poll(set->fds, (nfds_t)set->count, wait_ms);
    if (left < 0) {
        return -1;
    }
    int kept = 0;
    for (size_t i = 0; i < set->count && left > 0 && kept < capacity; i++) {
        size_t at = (set->next + i) % set->count;
        if (set->fds[at].revents != 0) {
            ready[kept++] = (struct rsc_ready){.tag = set->tags[at], .events = from_poll(set->fds[at].revents)};
            left--;
            if (kept == capacity) {
                set->next = at + 1;
            }
        }
    }
    return kept;
}

static int descriptor(struct rsc_poller *poller) {
    if (poller->set->waiter == NULL && start_waiter(poller->set) != 0) {
        return -1;
    }
    poller->embedded = true;
    return poller->set->waiter->ready[0];
}

static void sync_descriptor(struct rsc_poller *poller, uint64_t due, bool signal) {
    struct waiter *waiter = poller->set->waiter;
    if (!enter(waiter)) {
        return;
    }
    if (signal || poller->signalled) {
        set_readable(waiter, signal);
    }
    poller->signalled = signal;
    bool sooner = !waiter->armed || due < waiter->due;
    waiter->due = due;
    waiter->armed = !waiter->readable;
    if (waiter->armed && sooner) {
        put_byte(waiter->wake[1]);
    }
    leave(waiter);
}

const struct rsc_poller_kind rsc_poller_poll = {
    .open = open_poller,
    .close = close_poller,
    .change = change,
    .wait = wait_ready,
    .descriptor = descriptor,
    .sync = sync_descriptor,
};
