/* Descriptors that programs started by this process do not inherit. */
#ifndef RSC_DESCRIPTOR_H
#define RSC_DESCRIPTOR_H

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

/* Closes the descriptor unless it is negative, and sets it to -1. */
static inline void rsc_descriptor_close(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* Makes reads and writes return at once. Returns -1 with errno set on a failure. */
static inline int rsc_descriptor_unblock(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 ? -1 : fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

/* socket(2). Where the flag does not exist, a fork at this moment may pass the descriptor on. */
static inline int rsc_descriptor_socket(int family, int type, int protocol) {
#if defined(SOCK_CLOEXEC)
    return socket(family, type | SOCK_CLOEXEC, protocol);
#else
    int fd = socket(family, type, protocol);
    if (fd >= 0) {
        (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
    }
    return fd;
#endif
}

/* pipe(2) whose ends do not block. Returns -1 with errno set on a failure; then both are -1. */
static inline int rsc_descriptor_pipe(int ends[2]) {
    if (pipe(ends) != 0) {
        ends[0] = ends[1] = -1;
        return -1;
    }
    for (int i = 0; i < 2; i++) {
        if (fcntl(ends[i], F_SETFD, FD_CLOEXEC) != 0 || rsc_descriptor_unblock(ends[i]) != 0) {
            rsc_descriptor_close(&ends[0]);
            rsc_descriptor_close(&ends[1]);
            return -1;
        }
    }
    return 0;
}

#endif
