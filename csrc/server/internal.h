/* Declarations for the files of this folder only.
 *
 * Only server.c and libmicrohttpd's callbacks call libmicrohttpd. Other code may touch a connection only while it is
 * suspended, and only to resume it. */
#ifndef RSC_SERVER_INTERNAL_H
#define RSC_SERVER_INTERNAL_H

#include <stdint.h>
#include <netinet/in.h>
#include <sys/select.h>

#include <microhttpd.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/poller.h"
#include "base/process.h"
#include "server/server.h"

/* Bytes of a body over max_body to read and discard. A client that is still sending would miss status 413 otherwise. */
#define RSC_SERVER_MAX_DISCARD ((uint64_t)16 << 20)

enum rsc_exchange_state {
    RSC_EXCHANGE_READING,
    RSC_EXCHANGE_WAITING, /* complete, in the queue */
    RSC_EXCHANGE_OPEN,    /* returned by rsc_server_next */
    RSC_EXCHANGE_STALLED, /* never gets a reply */
    RSC_EXCHANGE_REPLIED, /* has a reply, or is to be closed */
};

/* One TCP connection. libmicrohttpd's connection callback creates and frees it. */
struct rsc_connection {
    struct rsc_server *server;
    struct MHD_Connection *handle;
    struct rsc_exchange *exchange; /* the current exchange, or NULL */
    int fd;
    char remote[RSC_REMOTE_SIZE];
};

/* A request and its reply. It has two owners, and the last one frees it. Its connection owns it until the reply is sent
 * or the client is gone. The caller of rsc_server_next owns it until rsc_exchange_release. */
struct rsc_exchange {
    struct rsc_link queued;            /* in server->queue */
    struct rsc_link suspended;         /* in server->suspended */
    struct rsc_link unwatched;         /* in server->unwatched */
    struct rsc_link timed;             /* in server->timed */
    struct rsc_connection *connection; /* NULL once detached */

    enum rsc_exchange_state state;
    bool held;      /* owned by the caller of rsc_server_next */
    bool begun;     /* the head was checked */
    bool too_large; /* the body is being discarded */
    bool head_only; /* the method is HEAD */

    bool watched; /* its socket is in the server's poller */
    bool gone;    /* the client left */
    bool closing; /* close the connection at the next callback */

    struct rsc_exchange_input input;
    uint64_t discarded; /* bytes of a discarded body */

    unsigned status;
    struct MHD_Response *response; /* until libmicrohttpd takes it */
    struct rsc_buffer content;     /* the body of a reply that is truncated or sent in pieces */

    size_t sent, piece, piece_end; /* bytes to send, bytes of a piece, end of the current piece */
    int64_t interval, due;         /* ns between pieces; when the next piece may start */
};

struct rsc_server {
    struct MHD_Daemon *daemon;
    struct rsc_poller poller;   /* watches libmicrohttpd's descriptors and the sockets of suspended connections */
    bool uses_epoll;            /* libmicrohttpd has one descriptor for all that it waits for */
    uint8_t events[FD_SETSIZE]; /* else: the events for which the poller watches each of its descriptors */
    int last;                   /* the highest of them, or -1 */
    bool sends;                 /* one of them is to be written */
    bool woken;                 /* the poller's descriptor is readable, because libmicrohttpd must run again */
    unsigned port;
    int listener; /* libmicrohttpd owns it */
    size_t max_body, max_connections;
    size_t waiting;
    bool again; /* libmicrohttpd has work but its descriptor is not readable */

    struct rsc_link queue;     /* complete requests, oldest first */
    struct rsc_link suspended; /* exchanges of suspended connections */
    struct rsc_link unwatched; /* suspended, but not yet in the poller */
    struct rsc_link timed;     /* suspended between two pieces, earliest first */
    unsigned forks;            /* rsc_forks at its start */

    struct rsc_refusal refusals[RSC_SERVER_REFUSALS];
    size_t refusal_count;
};

/* server.c: suspend and resume an exchange's connection. */
void rsc_server_suspend(struct rsc_exchange *exchange);
void rsc_server_resume(struct rsc_exchange *exchange);
void rsc_server_unwatch(struct rsc_exchange *exchange);
void rsc_server_suspend_until_due(struct rsc_exchange *exchange);

/* server.c: stops watching a socket that libmicrohttpd is about to close. */
void rsc_server_forget_socket(struct rsc_server *server, int fd);

/* request.c: libmicrohttpd's callbacks. */
void rsc_server_on_connection(void *server, struct MHD_Connection *handle, void **connection,
                              enum MHD_ConnectionNotificationCode code);
void *rsc_server_on_target(void *server, const char *target, struct MHD_Connection *handle);
enum MHD_Result rsc_server_on_request(void *server, struct MHD_Connection *handle, const char *url, const char *method,
                                      const char *version, const char *upload, size_t *upload_length, void **context);
void rsc_server_on_completed(void *server, struct MHD_Connection *handle, void **context,
                             enum MHD_RequestTerminationCode code);

/* exchange.c */

/* Creates the connection's current exchange. Returns NULL if memory runs out. */
struct rsc_exchange *rsc_exchange_new(struct rsc_connection *connection, const char *target);

/* Queues a complete request for rsc_server_next. */
void rsc_exchange_enqueue(struct rsc_exchange *exchange);

/* Handles a client that left while its connection was suspended. */
void rsc_exchange_client_left(struct rsc_exchange *exchange);

/* Closes the connection at its next callback, which comes soon. */
void rsc_exchange_close(struct rsc_exchange *exchange);

/* Ends the connection's ownership of the exchange. */
void rsc_exchange_detach(struct rsc_exchange *exchange);

#endif
