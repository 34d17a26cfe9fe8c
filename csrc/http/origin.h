/* An origin: one scheme, host and port, with the options every request to it shares.
 *
 * It keeps a pool of easy handles whose fixed options are set once, and a FIFO of the transfers above its concurrency
 * limit: libcurl's search for a reusable connection is linear in a host's connections, so waiting is done here.
 * The struct is the caller's memory, must not move, and must outlive its transfers' (closing it cancels them). */
#ifndef RSC_ORIGIN_H
#define RSC_ORIGIN_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "http/loop.h"

#define RSC_CONCURRENCY_MAX   10000         /* transfers in flight to one origin */
#define RSC_BODY_MAX          (1024u << 20) /* bytes: the most max_body may be */
#define RSC_HEADERS_MAX       (256u << 10)  /* bytes: the most max_headers may be (libcurl stops at 300 KB) */
#define RSC_ORIGIN_NAME_MAX   320           /* bytes: a host name, a port and a NUL */
#define RSC_METHOD_MAX        16            /* bytes, with the final NUL */
#define RSC_TYPICAL_SIZE_MAX  (64u << 10)   /* bytes reserved for an answer whose size is not known yet */
#define RSC_SPARE_BUFFERS_MAX 64            /* buffers kept by one origin */
#define RSC_SPARE_SIZE_MAX    (64u << 10)   /* bytes; a larger one is freed instead */
#define RSC_TIMEOUT_MAX       86400         /* seconds */

enum rsc_http_version { RSC_HTTP_AUTO, RSC_HTTP_1_1, RSC_HTTP_2 };

/* Strings are borrowed for the duration of rsc_origin_open; NULL stands for "not set". */
struct rsc_origin_options {
    const char *base_url;
    long concurrency;
    long connect_timeout; /* ms */
    size_t max_body;      /* bytes, decompressed */
    size_t max_headers;   /* bytes */
    enum rsc_http_version http_version;
    bool compression;
    const char *proxy, *ca_file, *client_cert, *client_key, *unix_socket, *user_agent;
};

enum rsc_method_kind { RSC_METHOD_UNSET, RSC_METHOD_GET, RSC_METHOD_HEAD, RSC_METHOD_POST };

/* A pooled easy handle. libcurl's callbacks get it, so that they need not be set again for each transfer. */
struct rsc_handle {
    CURL *easy;
    struct rsc_origin *origin;
    struct rsc_transfer *transfer; /* NULL while it is idle */
    struct rsc_handle *next_idle;
    struct rsc_link handles;          /* among the origin's */
    enum rsc_method_kind method_kind; /* what the easy handle's method options are set to … */
    char custom[RSC_METHOD_MAX];
    long connect_timeout; /* ms */
    bool connected;       /* a connection was made for this transfer; one that is reused does not count */
    bool requested;       /* the request was given to a connection at least once */
    bool replay_refused;  /* … and would have been given to a second one */
    char error[CURL_ERROR_SIZE];
};

struct rsc_origin {
    struct rsc_loop *loop;
    struct rsc_link link; /* among the loop's */
    CURL *model;          /* carries the fixed options; never performed, only duplicated */
    CURLU *url;
    struct rsc_link handles;
    struct rsc_handle *idle;
    struct rsc_link queue;
    size_t idle_count;
    long active, concurrency;
    long connect_timeout; /* ms */
    size_t max_body, max_headers;
    struct rsc_buffer spare[RSC_SPARE_BUFFERS_MAX]; /* of closed transfers, for the next ones */
    size_t spare_count;
    size_t typical_size; /* bytes; what answers have needed lately */
    bool tls, local;     /* https; a Unix-domain socket */
    bool closed;
    char name[RSC_ORIGIN_NAME_MAX]; /* host:port, for people */
};

/* `origin` is zeroed memory. RSC_ERROR_SYNTAX for a bad base_url, RSC_ERROR_RANGE for an option this libcurl cannot do.
 */
int rsc_origin_open(struct rsc_origin *origin, struct rsc_loop *loop, const struct rsc_origin_options *options,
                    struct rsc_error *error);

/* Idempotent; its transfers are cancelled. */
void rsc_origin_close(struct rsc_origin *origin);

/* An idle handle, or a new one; NULL when memory runs out. */
struct rsc_handle *rsc_origin_acquire(struct rsc_origin *origin);

/* Takes it out of the multi handle (what was still in flight is aborted) and back into the pool. */
void rsc_origin_release(struct rsc_handle *handle);

/* Gives an empty buffer the memory of a spare one, if there is one. */
void rsc_origin_reuse_buffer(struct rsc_origin *origin, struct rsc_buffer *buffer);

/* Takes the buffer's memory, to lend it again or to free it. */
void rsc_origin_recycle_buffer(struct rsc_origin *origin, struct rsc_buffer *buffer);

/* Starts queued transfers while the limit allows. */
void rsc_origin_start_queued(struct rsc_origin *origin);

#endif
