#include "http/sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/descriptor.h"

#define RSC_SOCKETS_FIRST_CAPACITY 64 /* entries */

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

static void unregister(struct rsc_sockets *sockets, int fd, struct rsc_socket *entry) {
    if (entry->registered != 0) {
        rsc_poller_remove(sockets->poller, fd);
        entry->registered = 0;
    }
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
    *entry = (struct rsc_socket){.ours = true, .fresh = true};
    return fd;
}

int rsc_sockets_close(struct rsc_sockets *sockets, int fd) {
    if ((size_t)fd < sockets->capacity) {
        /* If a forked child still holds the connection, epoll would report it even after close. */
        unregister(sockets, fd, &sockets->table[fd]);
        sockets->table[fd] = (struct rsc_socket){0};
    }
    return close(fd);
}

int rsc_sockets_want(struct rsc_sockets *sockets, int fd, uint32_t events) {
    struct rsc_socket *entry = entry_of(sockets, fd);
    if (entry == NULL) {
        return -1;
    }
    entry->wanted = events;
    if (events == 0) {
        if (!entry->ours) {
            unregister(sockets, fd, entry);
        }
        return 0;
    }
    if (entry->registered == events) {
        return 0;
    }
    int status = entry->registered != 0 ? rsc_poller_modify(sockets->poller, fd, events, RSC_SOCKET_TAG(fd))
                                        : rsc_poller_add(sockets->poller, fd, events, RSC_SOCKET_TAG(fd));
    if (status != 0) {
        return -1;
    }
    entry->registered = events;
    return 0;
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
