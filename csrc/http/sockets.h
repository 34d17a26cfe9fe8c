/* epoll's interest in libcurl's sockets.
 *
 * libcurl announces and withdraws its interest in a connection at every request. To spare two epoll_ctl calls each
 * time, a socket that this loop opened stays registered until it is closed; it is dropped early only when it becomes
 * ready while nobody wants it. Descriptors that libcurl opens itself (its resolver's) are registered and dropped as it
 * says, because their closing is not announced.
 *
 * The table is malloc's, indexed by descriptor, and belongs to `struct rsc_sockets`; the epoll descriptor is borrowed.
 */
#ifndef RSC_SOCKETS_H
#define RSC_SOCKETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct rsc_socket {
    uint32_t registered; /* the EPOLLIN | EPOLLOUT epoll knows of; 0 when it does not have the descriptor */
    uint32_t wanted;     /* what libcurl waits for */
    bool fresh;          /* rsc_sockets_clear_fresh has not been asked yet */
    bool ours;           /* opened by rsc_sockets_open, so its closing will be announced */
};

struct rsc_sockets {
    int epoll;
    struct rsc_socket *table;
    size_t capacity; /* entries; never above the process's limit of descriptors */
};

/* What epoll_event.data.u64 holds for a socket: odd, so that it is never a pointer. */
#define RSC_SOCKET_TAG(fd)     (((uint64_t)(fd) << 1) | 1u)
#define RSC_SOCKET_TAGGED(tag) (((tag)&1u) != 0)
#define RSC_SOCKET_FD(tag)     ((int)((tag) >> 1))

/* A new socket for libcurl; -1 with errno set on a failure. */
int rsc_sockets_open(struct rsc_sockets *sockets, int family, int type, int protocol);

/* Closes it; the result of close(2). */
int rsc_sockets_close(struct rsc_sockets *sockets, int fd);

/* libcurl now waits for `events` (EPOLLIN | EPOLLOUT, 0 for nothing). 0, or -1 with errno set. */
int rsc_sockets_want(struct rsc_sockets *sockets, int fd, uint32_t events);

/* Whether the socket is one that rsc_sockets_open made and this is the first question about it. */
bool rsc_sockets_clear_fresh(struct rsc_sockets *sockets, int fd);

/* epoll reported `events`: the part of them that libcurl waits for. An error or a hang-up is all of what it waits for.
 */
uint32_t rsc_sockets_ready(struct rsc_sockets *sockets, int fd, uint32_t events);

void rsc_sockets_free(struct rsc_sockets *sockets);

#endif
