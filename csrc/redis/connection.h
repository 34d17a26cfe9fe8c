/* One connection to Redis that never blocks, except for the lookup of a host name.
 *
 * The caller polls the socket and calls rsc_redis_step when it is ready, or when rsc_redis_due says so. The socket and
 * the events to poll for may change in each step. Replies come in the order of the commands. One thread at a time may
 * use a connection. */
#ifndef RSC_REDIS_CONNECTION_H
#define RSC_REDIS_CONNECTION_H

#include <netdb.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/process.h"
#include "redis/reply.h"

enum rsc_redis_state { RSC_REDIS_CLOSED, RSC_REDIS_CONNECTING, RSC_REDIS_OPEN };

/* Codes of a connection's error. */
enum {
    RSC_REDIS_NETWORK = 100, /* no connection, or a lost one */
    RSC_REDIS_PROTOCOL,      /* the server does not speak Redis' protocol, or a reply is over the limit */
};

struct rsc_redis_options {
    const char *host; /* NULL with a path */
    int64_t port;
    const char *path;  /* of a Unix socket, or NULL */
    int64_t max_reply; /* bytes of memory that a reply may take */
};

struct rsc_redis_connection {
    enum rsc_redis_state state;
    int fd;                               /* -1 when closed */
    unsigned sockets;                     /* number of sockets so far: each address of the host gets its own */
    struct addrinfo *addresses, *try;     /* of the host, while connecting */
    bool is_open;                         /* rsc_redis_close has not been called */
    size_t max_reply;                     /* bytes */
    struct rsc_buffer in;                 /* replies */
    size_t taken;                         /* bytes of `in` whose replies were taken */
    struct rsc_redis_scan scan;           /* of `in` */
    size_t complete;                      /* replies in `in` to be taken */
    bool lent;                            /* between rsc_redis_lend and rsc_redis_take */
    struct rsc_buffer out;                /* commands to write */
    size_t written;                       /* bytes of `out` that are written */
    uint64_t queued_total, written_total; /* bytes since the beginning */
    bool blocked;                         /* the socket took no more bytes */
    size_t expected;                      /* replies that have not come */
    struct rsc_error error;               /* why the connection is closed */
    unsigned forks;                       /* rsc_forks at its opening */
};

/* Opens a connection in zeroed memory. On a failure closes it and sets the error. */
int rsc_redis_open(struct rsc_redis_connection *connection, const struct rsc_redis_options *options,
                   struct rsc_error *error);

/* Ends a connection that a forked child has inherited, and does not touch the parent's socket. Does nothing in the
 * process that opened it. Call it before every other function. */
void rsc_redis_check_process(struct rsc_redis_connection *connection);

/* Closes the connection and frees its memory. Idempotent. */
void rsc_redis_close(struct rsc_redis_connection *connection);

/* Whether to poll the socket for writing, besides reading. */
bool rsc_redis_wants_write(const struct rsc_redis_connection *connection);

/* Whether rsc_redis_step has work even if the socket is not ready. */
bool rsc_redis_due(const struct rsc_redis_connection *connection);

/* Queues the bytes of `count` commands. Returns a status of rsc_buffer_append: all of them, or none. */
int rsc_redis_send(struct rsc_redis_connection *connection, const char *commands, size_t size, size_t count);

/* Connects, reads and writes without waiting. When the connection fails, the state becomes RSC_REDIS_CLOSED, and
 * `error` says why. Complete replies stay until they are taken, and the socket until rsc_redis_close. */
void rsc_redis_step(struct rsc_redis_connection *connection);

/* Lends the bytes from the oldest complete reply on, which begins at `taken`, or returns false. They stay until
 * rsc_redis_take. If that does not come, the reply may be lost, and the next step ends the connection. */
bool rsc_redis_lend(struct rsc_redis_connection *connection, struct rsc_text *bytes);

/* Takes the reply that was lent, and that ends before the byte `end`. */
void rsc_redis_take(struct rsc_redis_connection *connection, size_t end);

#endif
