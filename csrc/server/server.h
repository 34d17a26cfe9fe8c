/* An HTTP/1.1 server over libmicrohttpd. The caller drives it through one descriptor.
 *
 * rsc_server_step does the I/O and queues complete requests. rsc_server_next returns them, and the caller replies at
 * any later time, or never. An exchange is a request and its reply. One thread at a time may use a server and its
 * exchanges. Outside of Linux libmicrohttpd has select(2), and closes connections whose descriptor is FD_SETSIZE
 * (1024) or higher.
 *
 * The caller owns the server and every exchange from rsc_server_next. An exchange may outlive its client and its
 * server: its input stays readable, and a reply is dropped. A client that closes or half-closes its connection before
 * the reply is complete counts as gone.
 *
 * Times are seconds; sizes are bytes. */
#ifndef RSC_SERVER_H
#define RSC_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/error.h"

#define RSC_SERVER_MAX_BODY_LIMIT    ((size_t)1 << 30) /* bytes: the largest max_body */
#define RSC_SERVER_MIN_HEADERS_LIMIT ((size_t)1 << 12) /* bytes: the smallest max_headers */
#define RSC_SERVER_MAX_HEADERS_LIMIT ((size_t)1 << 20) /* bytes: the largest max_headers */

#define RSC_REMOTE_SIZE 46 /* bytes of a numeric address, with the NUL */

#define RSC_SERVER_MAX_CONNECTIONS_LIMIT 65536
#define RSC_SERVER_MAX_IDLE_TIMEOUT      86400.0           /* seconds */
#define RSC_SERVER_MAX_INTERVAL          86400.0           /* seconds */
#define RSC_SERVER_MAX_REPLY_HEADERS     ((size_t)1 << 16) /* bytes of names and values */

struct rsc_server;
struct rsc_exchange;

struct rsc_server_options {
    const char *host;    /* name or address to listen on */
    int64_t port;        /* 0 for any free port */
    int64_t max_body;    /* a larger request body gets status 413 */
    int64_t max_headers; /* a larger request head gets status 431 or 414 */

    int64_t max_connections; /* more clients wait in the listen queue */
    double idle_timeout;     /* closes a connection without a request; rounded up to a whole second */
};

#define RSC_SERVER_REFUSALS 64 /* that are kept until rsc_server_refused takes them; more are not told */

/* A request that rsc_server_next does not return. */
struct rsc_refusal {
    unsigned status; /* 413: more than max_body; 400: two lengths of the body, or a head that libmicrohttpd refuses */
    char remote[RSC_REMOTE_SIZE];
};

struct rsc_server_stats {
    size_t connections;
    size_t waiting; /* see rsc_server_waiting */
    size_t open;    /* exchanges without a reply whose client is still connected */
};

/* Creates a server. Returns NULL with the error set if it cannot listen or memory runs out. */
struct rsc_server *rsc_server_new(const struct rsc_server_options *options, struct rsc_error *error);

/* Whether this process is a forked child, and the server is its parent's. It then ends the requests in this process,
 * and touches neither the descriptors nor the clients. Only rsc_server_free may follow. */
bool rsc_server_inherited(struct rsc_server *server);

/* Sends pending data without waiting, closes every connection and the descriptor, and frees the server. A server that
 * is inherited is freed alone. */
void rsc_server_free(struct rsc_server *server);

unsigned rsc_server_port(const struct rsc_server *server);

/* Returns a descriptor that is readable when rsc_server_step has work. The server owns it. Returns -1 with errno set on
 * a failure. */
int rsc_server_pollfd(struct rsc_server *server);

/* Returns the seconds until rsc_server_step is due even if the descriptor is not readable; negative for never. */
double rsc_server_timeout(const struct rsc_server *server);

/* Does I/O until a request waits, `seconds` pass or a signal arrives. A negative time waits without a limit. Returns
 * RSC_OK, or another value with the error set. */
int rsc_server_step(struct rsc_server *server, double seconds, struct rsc_error *error);

/* Returns the number of requests that rsc_server_next would return. */
size_t rsc_server_waiting(const struct rsc_server *server);

void rsc_server_stats(const struct rsc_server *server, struct rsc_server_stats *stats);

/* Takes a refusal. Returns whether there was one. */
bool rsc_server_refused(struct rsc_server *server, struct rsc_refusal *refusal);

/* Returns the oldest waiting request, or NULL. The caller releases it with rsc_exchange_release. */
struct rsc_exchange *rsc_server_next(struct rsc_server *server);

/* Ends a request that a forked child has inherited. Call it before a reply. */
void rsc_exchange_check_process(struct rsc_exchange *exchange);

/* Releases an exchange. Without a reply, its connection is closed. */
void rsc_exchange_release(struct rsc_exchange *exchange);

/* The request as received. */
struct rsc_exchange_input {
    char *method;                 /* NUL-terminated */
    char *target;                 /* NUL-terminated path and query, exactly as sent */
    char remote[RSC_REMOTE_SIZE]; /* NUL-terminated numeric address */
    struct rsc_buffer headers;    /* "name NUL value NUL", lower-case names, original order */
    struct rsc_buffer body;
};

/* The exchange owns it until rsc_exchange_forget_input. */
const struct rsc_exchange_input *rsc_exchange_input(const struct rsc_exchange *exchange);

/* Frees the input. Call it after copying. */
void rsc_exchange_forget_input(struct rsc_exchange *exchange);

bool rsc_exchange_replied(const struct rsc_exchange *exchange);

struct rsc_reply {
    unsigned status;                  /* 200 to 999 */
    const struct rsc_buffer *headers; /* "name NUL value NUL", already checked */
    const char *body;
    size_t body_length;

    bool truncated; /* announce the whole body, send `sent` bytes of it, then close */
    size_t sent;
    size_t piece;    /* send the body in pieces of this size; 0 for all at once */
    double interval; /* seconds between two pieces */
};

enum rsc_reply_result {
    RSC_REPLY_QUEUED,
    RSC_REPLY_CLIENT_GONE,
    RSC_REPLY_FAILED, /* out of memory; the exchange is still open */
};

/* Returns the problem with a reply's header, or NULL. The text never contains the value. */
const char *rsc_reply_header_problem(const char *name, size_t name_length, const char *value, size_t value_length);

/* Copies the reply, to be sent by a later step. The exchange must not have a reply yet. */
enum rsc_reply_result rsc_exchange_reply(struct rsc_exchange *exchange, const struct rsc_reply *reply);

/* Closes the connection with a TCP reset instead of a reply. The exchange must not have a reply yet. */
void rsc_exchange_reset(struct rsc_exchange *exchange);

/* Never replies: the connection stays open until the client or the server closes it. */
void rsc_exchange_stall(struct rsc_exchange *exchange);

#endif
