/* What the server's own files share: server.c (sockets, time), server_exchange.c (who owns an exchange, and its state),
 * server_request.c (reading, as libmicrohttpd calls back), server_reply.c (answering). Nothing else includes it.
 *
 * libmicrohttpd is called from its own callbacks and from server.c alone; a suspended connection is the only kind that
 * the rest may touch, and only to resume it. */
#ifndef RSC_SERVER_INTERNAL_H
#define RSC_SERVER_INTERNAL_H

#include <stdint.h>
#include <time.h>
#include <netinet/in.h>

#include <microhttpd.h>

#include "base/list.h"
#include "server/server.h"

/* Bytes of a refused body that are read and thrown away, so that the client, still sending, gets to see the 413. */
#define RSC_SERVER_MAX_DISCARD ((uint64_t)16 << 20)

#define RSC_NS_PER_SECOND INT64_C(1000000000)

enum rsc_exchange_state {
    RSC_EXCHANGE_READING,
    RSC_EXCHANGE_WAITING,  /* complete, in the queue */
    RSC_EXCHANGE_OPEN,     /* handed out */
    RSC_EXCHANGE_STALLED,  /* never to be answered */
    RSC_EXCHANGE_ANSWERED, /* has a reply, or is to be closed */
};

/* One TCP connection; lives from libmicrohttpd's "started" to its "closed". */
struct rsc_connection {
    struct rsc_server *server;
    struct MHD_Connection *handle;
    struct rsc_exchange *exchange; /* the one being read or answered */
    int fd;
    char remote[INET6_ADDRSTRLEN];
};

/* A request and its answer. Owned by its connection until the answer is sent or the client is gone, and by whoever took
 * it from the queue. */
struct rsc_exchange {
    struct rsc_link queued;            /* in server->queue */
    struct rsc_link suspended;         /* in server->suspended; only then may `connection` be touched */
    struct rsc_link unwatched;         /* in server->unwatched */
    struct rsc_link timed;             /* in server->timed */
    struct rsc_connection *connection; /* NULL once detached */
    bool held;                         /* the taker's share of the ownership */
    bool begun;                        /* the head was looked at */
    bool too_large;                    /* the body is being thrown away */
    bool head_only;                    /* the method is HEAD */
    bool counted;                      /* in server->open */
    bool watched;                      /* its socket is in the server's epoll set */
    bool gone;                         /* the client left */
    bool closing;                      /* give the connection up at the next callback */
    enum rsc_exchange_state state;

    char *method;
    char *target;
    char remote[INET6_ADDRSTRLEN];
    struct rsc_buffer headers;
    struct rsc_buffer body;
    uint64_t discarded; /* bytes of a body that is thrown away */

    unsigned status;
    struct MHD_Response *response; /* until it is given to libmicrohttpd */
    struct rsc_buffer content;     /* of a reply that is truncated or sent in pieces */
    size_t sent, piece, piece_end; /* where to stop, the size of a piece, the end of the current one */
    int64_t interval, due;         /* ns; due: when the next piece may start */
};

struct rsc_server {
    struct MHD_Daemon *daemon;
    int epoll; /* libmicrohttpd's own descriptor, `wake`, and the sockets of suspended connections */
    int wake;  /* an eventfd, readable while `woken` */
    bool woken;
    unsigned port;
    size_t max_body;
    size_t waiting, open;
    bool again;                /* libmicrohttpd has work that its descriptor does not show */
    struct rsc_link queue;     /* complete requests, oldest first */
    struct rsc_link suspended; /* every connection that is suspended */
    struct rsc_link unwatched; /* those of them not yet in the epoll set */
    struct rsc_link timed;     /* those of them between two pieces, soonest first */
};

static inline int64_t rsc_server_now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * RSC_NS_PER_SECOND + time.tv_nsec;
}

/* server.c */
void rsc_server_suspend(struct rsc_exchange *exchange);
void rsc_server_resume(struct rsc_exchange *exchange);
void rsc_server_unwatch(struct rsc_exchange *exchange);
void rsc_server_suspend_until_due(struct rsc_exchange *exchange);

/* server_request.c: what libmicrohttpd calls. */
void rsc_server_on_connection(void *server, struct MHD_Connection *handle, void **connection,
                              enum MHD_ConnectionNotificationCode code);
void *rsc_server_on_target(void *server, const char *target, struct MHD_Connection *handle);
enum MHD_Result rsc_server_on_request(void *server, struct MHD_Connection *handle, const char *url, const char *method,
                                      const char *version, const char *upload, size_t *upload_length, void **context);
void rsc_server_on_completed(void *server, struct MHD_Connection *handle, void **context,
                             enum MHD_RequestTerminationCode code);

/* server_exchange.c */
struct rsc_exchange *rsc_exchange_new(struct rsc_connection *connection, const char *target);
void rsc_exchange_enqueue(struct rsc_exchange *exchange);
void rsc_exchange_set_answered(struct rsc_exchange *exchange);

/* The client of a suspended connection has gone. */
void rsc_exchange_client_left(struct rsc_exchange *exchange);

/* Has the connection closed at its next callback, which comes soon. */
void rsc_exchange_close(struct rsc_exchange *exchange);

/* Gives the connection's share of the ownership up. */
void rsc_exchange_detach(struct rsc_exchange *exchange);

#endif
