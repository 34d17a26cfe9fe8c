/* An HTTP/1.1 server over libmicrohttpd, driven from outside: one epoll descriptor, no threads, no callbacks.
 *
 * rsc_server_step does the I/O and queues complete requests; rsc_server_next hands them out; they are answered at any
 * later point, or never. A server and its requests belong to one thread. Linux only, because of epoll.
 *
 * Lifetimes are independent: a request outlives its client and its server. What it read stays readable and an answer to
 * it goes nowhere. A client that closes, or half closes, its connection before it has the whole answer counts as gone.
 *
 * Times are seconds as double at this interface; sizes are bytes. */
#ifndef RSC_SERVER_H
#define RSC_SERVER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"

#define RSC_SERVER_MAX_BODY_LIMIT        ((size_t)1 << 30) /* bytes: the largest max_body */
#define RSC_SERVER_MIN_HEADERS_LIMIT     ((size_t)1 << 12) /* bytes: the smallest max_headers */
#define RSC_SERVER_MAX_HEADERS_LIMIT     ((size_t)1 << 20) /* bytes: the largest max_headers */
#define RSC_SERVER_MAX_CONNECTIONS_LIMIT 65536             /* the largest max_connections */
#define RSC_SERVER_MAX_IDLE_TIMEOUT      86400.0           /* seconds: the largest idle_timeout */
#define RSC_SERVER_MAX_INTERVAL          86400.0           /* seconds: the longest wait between two pieces */
#define RSC_SERVER_MAX_REPLY_HEADERS     ((size_t)1 << 16) /* bytes of header names and values in one answer */

struct rsc_server;
struct rsc_exchange;

struct rsc_server_options {
    const char *host;       /* a name or an address to listen on */
    size_t port;            /* 0 takes a free one */
    size_t max_body;        /* a larger request body is answered 413 and not kept */
    size_t max_headers;     /* memory for a request's head and for an answer's; larger heads are answered 431 or 414 */
    size_t max_connections; /* further clients wait in the listen queue */
    double idle_timeout; /* until a silent connection that owes us a request is closed; rounded up to a whole second */
};

struct rsc_server_stats {
    size_t connections;
    size_t waiting; /* as rsc_server_waiting says */
    size_t open;    /* requests without an answer whose client is there: the waiting, the handed out, the stalled */
};

/* NULL with `error` filled when the address cannot be had or memory is short. */
struct rsc_server *rsc_server_new(const struct rsc_server_options *options, struct rsc_error *error);

/* Sends what can be sent without waiting, closes every connection and the descriptor, frees the server. */
void rsc_server_free(struct rsc_server *server);

unsigned rsc_server_port(const struct rsc_server *server);

/* Readable when step has something to do; the server's own, for polling only. */
int rsc_server_pollfd(const struct rsc_server *server);

/* Seconds until step must be called even if the descriptor stays silent; negative: not needed. */
double rsc_server_timeout(const struct rsc_server *server);

/* Does I/O until a request waits, `seconds` have passed (negative: no limit) or a signal has arrived. */
int rsc_server_step(struct rsc_server *server, double seconds, struct rsc_error *error);

/* How many requests rsc_server_next would hand out. */
size_t rsc_server_waiting(const struct rsc_server *server);

void rsc_server_stats(const struct rsc_server *server, struct rsc_server_stats *stats);

/* The oldest waiting request, or NULL. The caller owns it and gives it back with rsc_exchange_release. */
struct rsc_exchange *rsc_server_next(struct rsc_server *server);

/* A request without an answer is closed with its connection. */
void rsc_exchange_release(struct rsc_exchange *exchange);

/* What the client sent, owned by the request until rsc_exchange_forget_input. */
struct rsc_exchange_input {
    const char *method;         /* NUL-terminated */
    const char *target;         /* NUL-terminated, exactly as sent: path and query */
    const char *remote;         /* NUL-terminated numeric address */
    struct rsc_buffer *headers; /* "name NUL value NUL", names in lower case, in the order of arrival */
    struct rsc_buffer *body;
};

void rsc_exchange_input(struct rsc_exchange *exchange, struct rsc_exchange_input *input);

/* Frees the input, for callers that have copied it. */
void rsc_exchange_forget_input(struct rsc_exchange *exchange);

bool rsc_exchange_answered(const struct rsc_exchange *exchange);

struct rsc_reply {
    unsigned status;                  /* 200 to 999 */
    const struct rsc_buffer *headers; /* "name NUL value NUL"; checked by rsc_reply_header_problem */
    const char *body;
    size_t body_length;
    bool truncated; /* announce the whole body, send `sent` bytes of it, close */
    size_t sent;
    size_t piece; /* bytes sent at a time, `interval` seconds apart; 0: no pieces */
    double interval;
};

enum rsc_reply_result {
    RSC_REPLY_QUEUED,
    RSC_REPLY_CLIENT_GONE,
    RSC_REPLY_FAILED, /* memory; the request is still open */
};

/* What is wrong with a header of an answer, or NULL. Never quotes the value. */
const char *rsc_reply_header_problem(const char *name, size_t name_length, const char *value, size_t value_length);

/* The reply is copied; the request must not have been answered. A later step sends it. */
enum rsc_reply_result rsc_exchange_reply(struct rsc_exchange *exchange, const struct rsc_reply *reply);

/* Closes the connection with a TCP reset, nothing sent. The request must not have been answered. */
void rsc_exchange_reset(struct rsc_exchange *exchange);

/* Leaves the request without an answer: its connection stays until the client or the server goes. */
void rsc_exchange_stall(struct rsc_exchange *exchange);

#endif
