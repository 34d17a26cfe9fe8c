/* Registers libcurl's sockets with the loop's poller.
 *
 * libcurl adds and removes its interest in a connection at every request. To save two system calls each time, a
 * socket that this loop opened stays registered until it is closed. It is removed earlier only if it becomes ready
 * while libcurl has no interest. Descriptors that libcurl opens itself (for its resolver) are registered and removed
 * exactly as libcurl asks, because nothing reports their closing.
 *
 * `struct rsc_sockets` owns its table, which is indexed by descriptor. It borrows the poller. One thread at a time. */
#ifndef RSC_SOCKETS_H
#define RSC_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/poller.h"

struct rsc_socket {
    uint32_t registered; /* RSC_READABLE | RSC_WRITABLE as registered with the poller; 0 if not registered */
    uint32_t wanted;     /* RSC_READABLE | RSC_WRITABLE as libcurl wants */

    void *user;      /* of the last rsc_sockets_want */
    uint64_t rested; /* the turn of the last rsc_sockets_rest; 0 for none */
    int port;        /* its own, once it has rested; 0 for a Unix domain socket */
    int last_here;   /* not of this socket: the last to rest of those whose port belongs to this place */

    bool fresh;   /* opened, and rsc_sockets_clear_fresh not called yet */
    bool ours;    /* opened by rsc_sockets_open, so rsc_sockets_close will be called */
    bool resting; /* see rsc_sockets_rest */
};

struct rsc_sockets {
    struct rsc_poller *poller;
    struct rsc_socket *table;
    size_t capacity; /* entries, bounded by the process's limit of descriptors */
    size_t resting_count;
};

/* The poller's tag of a socket. It is odd, which tells it from a pointer. */
#define RSC_SOCKET_TAG(fd)     (((uint64_t)(fd) << 1) | 1u)
#define RSC_SOCKET_TAGGED(tag) (((tag)&1u) != 0)
#define RSC_SOCKET_FD(tag)     ((int)((tag) >> 1))

/* Opens a socket for libcurl. Returns -1 with errno set on a failure. */
int rsc_sockets_open(struct rsc_sockets *sockets, int family, int type, int protocol);

/* Closes a socket and returns the result of close(2). */
int rsc_sockets_close(struct rsc_sockets *sockets, int fd);

/* Sets the events (RSC_READABLE | RSC_WRITABLE, or 0) that libcurl wants for its `user`. Returns 0, or -1 with errno
 * set. */
int rsc_sockets_want(struct rsc_sockets *sockets, int fd, uint32_t events, void *user);

/* Returns the user that waits for this socket through libcurl, or NULL. */
void *rsc_sockets_user(const struct rsc_sockets *sockets, int fd);

/* Lets a connection rest, unless libcurl waits for it: its peer may send nothing before the next request. If it sends
 * something anyway, the connection is ended. `turn` counts the calls of libcurl, from 1. */
void rsc_sockets_rest(struct rsc_sockets *sockets, int fd, uint64_t turn);

/* Whether a connection has been let rest since libcurl's call `turn`. */
bool rsc_sockets_has_rested(const struct rsc_sockets *sockets, int fd, uint64_t turn);

/* Whether nothing waits in the system to be read from a connection, and neither end has closed it. */
bool rsc_sockets_silent(int fd);

/* Ends a connection, so that libcurl closes it and does not use it again. Before 8.0, libcurl would use one with unread
 * bytes. */
void rsc_sockets_end(int fd);

/* Ends the connection that rests and has this port of its own, unless it is silent. Returns whether it did. All Unix
 * domain sockets have port 0. */
bool rsc_sockets_end_unsilent(struct rsc_sockets *sockets, int port);

/* Ends a connection that rests and is ready nevertheless. Does nothing to any other. */
void rsc_sockets_check_rest(struct rsc_sockets *sockets, int fd);

/* Clears the fresh mark of a socket. Returns true on the first call for a socket of rsc_sockets_open. */
bool rsc_sockets_clear_fresh(struct rsc_sockets *sockets, int fd);

/* Returns which of the poller's `events` libcurl wants. A broken connection counts as every wanted event. */
uint32_t rsc_sockets_ready(struct rsc_sockets *sockets, int fd, uint32_t events);

void rsc_sockets_free(struct rsc_sockets *sockets);

#endif
