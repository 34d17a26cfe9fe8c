/* An origin: one scheme, host and port, with the options that all its requests share.
 *
 * It keeps a pool of easy handles whose fixed options are set once. libcurl keeps and reuses the connections: those of
 * HTTP/1.1 in the pool's shards, others in the loop (loop.h). Transfers over its concurrency limit wait in a FIFO
 * queue. (libcurl could queue them too, but its search for a free connection is linear.) The caller and each transfer
 * have a reference to it; the loop must outlive them. The thread rules are the loop's. */
#ifndef RSC_ORIGIN_H
#define RSC_ORIGIN_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "http/head.h"
#include "http/loop.h"

#define RSC_CONCURRENCY_MAX 10000         /* transfers in flight to one origin */
#define RSC_BODY_MAX        (1024u << 20) /* bytes: the largest max_body */
#define RSC_HEADERS_MAX     (256u << 10)  /* bytes: the largest max_headers; libcurl's limit is 300 KB */
#define RSC_ORIGIN_NAME_MAX 320           /* bytes: a host name, a port, a path and a NUL */
#define RSC_METHOD_MAX      16            /* bytes, with the final NUL */

#define RSC_READ_SIZE_MIN    1024        /* bytes that libcurl reads at once; the size of most responses raises it */
#define RSC_TYPICAL_SIZE_MAX (64u << 10) /* bytes to reserve at most for a response */
#define RSC_TIMEOUT_MAX      86400       /* seconds */

enum rsc_http_version { RSC_HTTP_AUTO, RSC_HTTP_1_1, RSC_HTTP_2 };

/* rsc_origin_new copies the strings it needs. NULL means not set. */
struct rsc_origin_options {
    const char *base_url;
    int64_t concurrency;
    double connect_timeout; /* seconds */
    int64_t max_body;       /* bytes, decompressed */
    int64_t max_headers;    /* bytes */
    int http_version;       /* an enum rsc_http_version */
    bool compression;
    const char *proxy, *ca_file, *client_cert, *client_key, *unix_socket;
};

#define RSC_SHARD_HANDLES  32                            /* handles of a shard with its own connections */
#define RSC_SHARD_IDLE_MAX (UINT64_C(60) * RSC_NS_PER_S) /* ns that a shard is kept without a transfer */

/* A part of an origin's pool. Its handles share a cache of connections, unless the
 * connections can be multiplexed or libcurl is older than RSC_LIBCURL_FINDS_SHARED. For each request libcurl passes
 * over all connections of a cache, twice: a thousand in one cache cost more than the request. */
struct rsc_shard {
    struct rsc_link link; /* in the origin's list, while it has an idle handle or room for one */
    CURLSH *cache;        /* NULL for the loop's cache */
    struct rsc_handle *idle;
    size_t handle_count, active_count;
    uint64_t released_at; /* when a transfer ended last, in ns */
};

/* A pooled easy handle. It is the context of libcurl's callbacks, so that they stay set between transfers. */
struct rsc_handle {
    CURL *easy;
    struct rsc_origin *origin;
    struct rsc_shard *shard;
    struct rsc_transfer *transfer; /* NULL while idle */
    struct rsc_handle *next_idle;
    struct rsc_link handles;     /* in the origin's list */
    char method[RSC_METHOD_MAX]; /* the easy handle's current one, or empty */
    bool has_body;               /* likewise */
    struct rsc_headers *headers; /* a reference to the headers of `list` */
    struct curl_slist *list;     /* the easy handle's current headers */
    long connect_timeout;        /* ms */
    long read_size;              /* bytes */

    bool connected;       /* this transfer opened a new connection */
    bool requested;       /* the request may have been sent */
    bool dead_connection; /* a kept-alive connection was lost before anything of a response came */
    long fresh;           /* likewise: only a new connection */
    long forbid_reuse;    /* likewise */
    char error[CURL_ERROR_SIZE];
};

struct rsc_origin {
    struct rsc_loop *loop;
    size_t references;
    struct rsc_link link; /* in the loop's list */
    CURL *model;          /* has the fixed options; only duplicated, never used */
    CURLU *url;
    struct rsc_link handles;
    struct rsc_link shards; /* those with an idle handle or room for one, the one released last first */
    size_t shard_handles;   /* most handles of a shard */
    struct rsc_link queue;
    size_t idle_count;
    long active, concurrency;
    long connect_timeout; /* ms */
    size_t max_body, max_headers;
    struct rsc_headers *headers; /* a reference to those of the last request, or NULL */
    size_t typical_size;         /* bytes of the largest recent response */
    bool tls, local;             /* https; a Unix domain socket */
    bool compression;            /* compressed responses are asked for */
    bool http_1;                 /* HTTP/1 alone is spoken */
    bool proxied;                /* a proxy is connected to */
    bool direct;                 /* neither TLS nor a proxy: libcurl leaves in the system what it does not ask for */
    bool closed;
    char name[RSC_ORIGIN_NAME_MAX]; /* host:port and the path of a socket, for messages */
};

/* Makes an origin with one reference. On a failure returns NULL and sets the error: RSC_ERROR_SYNTAX for a bad
 * base_url, RSC_ERROR_RANGE for an option that this libcurl lacks, RSC_ERROR_MEMORY. */
struct rsc_origin *rsc_origin_new(struct rsc_loop *loop, const struct rsc_origin_options *options,
                                  struct rsc_error *error);

/* Drops a reference. The origin is closed and freed with the last one. */
void rsc_origin_drop(struct rsc_origin *origin);

/* For loop.c: closes an origin without transfers. Idempotent. */
void rsc_origin_close(struct rsc_origin *origin);

/* Returns the handle that was released last or a new one, or NULL if memory runs out. */
struct rsc_handle *rsc_origin_acquire(struct rsc_origin *origin);

/* Removes the handle from the multi handle, which aborts its transfer, and returns it to the pool. */
void rsc_origin_release(struct rsc_handle *handle);

/* Starts the next queued transfer unless the concurrency limit is reached. Returns whether it has started one. */
bool rsc_origin_start_next(struct rsc_origin *origin);

#endif
