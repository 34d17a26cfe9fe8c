#include "http/sockets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/descriptor.h"

#define RSC_SOCKETS_FIRST_CAPACITY 64   /* entries */
#define DISCARDED_MAX              16   /* reads of DISCARDED_SIZE, after which a peer has sent more than a mistake */
#define DISCARDED_SIZE             4096 /* bytes */

static struct rsc_socket *entry_of(struct rsc_sockets *sockets, int fd) {
    size_t index = (size_t)fd;
    if (index >= sockets->capacity) {
        size_t capacity = sockets->capacity > 0 ? sockets->capacity : RSC_SOCKETS_FIRST_CAPACITY;
        while (capacity <= index) {
            capacity *= 2;
        }
        struct rsc_socket *table = realloc(sockets->table, capacity * sizeof *table);
        if (table == NULL) {
            errno = ENOMEM;
            return NULL;
        }
        memset(table + sockets->capacity, 0, (capacity - sockets->capacity) * sizeof *table);
        sockets->table = table;
        sockets->capacity = capacity;
    }
    return &sockets->table[index];
}

static void set_resting(struct rsc_sockets *sockets, struct rsc_socket *entry, bool resting) {
    sockets->resting_count += resting;
    sockets->resting_count -= entry->resting;
    entry->resting = resting;
}

static void unregister(struct rsc_sockets *sockets, int fd, struct rsc_socket *entry) {
    if (entry->registered != 0) {
        rsc_poller_remove(sockets->poller, fd);
        entry->registered = 0;
    }
}

static int register_for(struct rsc_sockets *sockets, int fd, struct rsc_socket *entry, uint32_t events) {
    if (entry->registered == events) {
        return 0;
    }
    int status = entry->registered != 0 ? rsc_poller_modify(sockets->poller, fd, events, RSC_SOCKET_TAG(fd))
                                        : rsc_poller_add(sockets->poller, fd, events, RSC_SOCKET_TAG(fd));
    if (status == 0) {
        entry->registered = events;
    }
    return status;
}

int rsc_sockets_open(struct rsc_sockets *sockets, int family, int type, int protocol) {
    int fd = rsc_descriptor_socket(family, type, protocol);
    if (fd < 0) {
        return -1;
    }
    struct rsc_socket *entry = entry_of(sockets, fd);
    if (entry == NULL) {
        (void)close(fd);
        errno = ENOMEM;
        return -1;
    }
    unregister(sockets, fd, entry); /* libcurl 7.88 tells nobody when it closes a socket that never connected */
    *entry = (struct rsc_socket){.ours = true, .fresh = true};
    return fd;
}

int rsc_sockets_close(struct rsc_sockets *sockets, int fd) {
    if ((size_t)fd < sockets->capacity) {
        /* If a forked child still holds the connection, epoll would report it even after close. */
        unregister(sockets, fd, &sockets->table[fd]);
        set_resting(sockets, &sockets->table[fd], false);
        sockets->table[fd] = (struct rsc_socket){0};
    }
    return close(fd);
}

int rsc_sockets_want(struct rsc_sockets *sockets, int fd, uint32_t events, void *user) {
    struct rsc_socket *entry = entry_of(sockets, fd);
    if (entry == NULL) {
        return -1;
    }
    entry->wanted = events;
    entry->user = user;
    if (events == 0) {
        if (!entry->ours) {
            unregister(sockets, fd, entry);
        }
        return 0;
    }
    set_resting(sockets, entry, false);
    return register_for(sockets, fd, entry, events);
}

void *rsc_sockets_user(const struct rsc_sockets *sockets, int fd) {
    return (size_t)fd < sockets->capacity && sockets->table[fd].wanted != 0 ? sockets->table[fd].user : NULL;
}

bool rsc_sockets_silent(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

/* The place of a port. The system gives out every other port. */
static struct rsc_socket *place_of(const struct rsc_sockets *sockets, int port) {
    return &sockets->table[(size_t)(port / 2) % sockets->capacity];
}

/* Notes the port of a connection that begins to rest: libcurl tells no more of the connection that it takes. */
static void note_port(struct rsc_sockets *sockets, int fd) {
    struct rsc_socket *entry = &sockets->table[fd];
    struct sockaddr_storage own = {.ss_family = AF_UNIX};
    socklen_t size = sizeof own;
    if (entry->rested == 0 && getsockname(fd, (struct sockaddr *)&own, &size) == 0) {
        entry->port = own.ss_family == AF_INET    ? ntohs(((struct sockaddr_in *)&own)->sin_port)
                      : own.ss_family == AF_INET6 ? ntohs(((struct sockaddr_in6 *)&own)->sin6_port)
                                                  : 0;
    }
    place_of(sockets, entry->port)->last_here = fd;
}

void rsc_sockets_end(int fd) {
    /* Without the unread bytes, libcurl sees the end. */
    char bytes[DISCARDED_SIZE];
    for (int i = 0; i < DISCARDED_MAX && recv(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0; i++) {
    }
    (void)shutdown(fd, SHUT_RDWR);
}

void rsc_sockets_rest(struct rsc_sockets *sockets, int fd, uint64_t turn) {
    /* libcurl may have read the response at a timer, and then have sent the next request over the same connection. */
    if ((size_t)fd >= sockets->capacity || !sockets->table[fd].ours || sockets->table[fd].wanted != 0) {
        return;
    }
    note_port(sockets, fd);
    sockets->table[fd].rested = turn;
    /* A request that never had to wait for its response has not registered the socket. */
    if (register_for(sockets, fd, &sockets->table[fd], RSC_READABLE) != 0) {
        rsc_sockets_end(fd);
        return;
    }
    set_resting(sockets, &sockets->table[fd], true);
}

bool rsc_sockets_has_rested(const struct rsc_sockets *sockets, int fd, uint64_t turn) {
    return (size_t)fd < sockets->capacity && sockets->table[fd].rested >= turn;
}

void rsc_sockets_check_rest(struct rsc_sockets *sockets, int fd) {
    if ((size_t)fd < sockets->capacity && sockets->table[fd].resting) {
        unregister(sockets, fd, &sockets->table[fd]);
        set_resting(sockets, &sockets->table[fd], false);
        rsc_sockets_end(fd);
    }
}

bool rsc_sockets_end_unsilent(struct rsc_sockets *sockets, int port) {
    if (sockets->resting_count == 0) {
        return false;
    }
    size_t first = (size_t)place_of(sockets, port)->last_here;
    bool found = port != 0 && sockets->table[first].resting && sockets->table[first].port == port;
    size_t end = found ? first + 1 : sockets->capacity;
    bool ended = false;
    for (size_t fd = found ? first : 0; fd < end; fd++) {
        if (sockets->table[fd].resting && sockets->table[fd].port == port && !rsc_sockets_silent((int)fd)) {
            rsc_sockets_check_rest(sockets, (int)fd);
            ended = true;
        }
    }
    return ended;
}

bool rsc_sockets_clear_fresh(struct rsc_sockets *sockets, int fd) {
    if ((size_t)fd >= sockets->capacity || !sockets->table[fd].fresh) {
        return false;
    }
    sockets->table[fd].fresh = false;
    return true;
}

uint32_t rsc_sockets_ready(struct rsc_sockets *sockets, int fd, uint32_t events) {
    if ((size_t)fd >= sockets->capacity) {
        return 0;
    }
    struct rsc_socket *entry = &sockets->table[fd];
    if (entry->wanted == 0) {
        /* Most often the peer closed an idle connection. If it stayed registered, it would end every wait at once. */
        rsc_sockets_check_rest(sockets, fd);
        unregister(sockets, fd, entry);
        return 0;
    }
    if ((events & RSC_BROKEN) != 0) {
        events |= entry->wanted;
    }
    return events & entry->wanted;
}

void rsc_sockets_free(struct rsc_sockets *sockets) {
    free(sockets->table);
    sockets->table = NULL;
    sockets->capacity = 0;
}
