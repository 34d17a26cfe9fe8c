/* What the server's own files share: server.c (descriptor, time, lists), server_request.c (reading, as libmicrohttpd
 * calls back), server_reply.c (answering). Nothing else includes it.
 *
 * libmicrohttpd is called from its own callbacks and from server.c alone; a suspended connection is the only kind that
 * the rest may touch, and only to resume it. */
#ifndef RSC_SERVER_INTERNAL_H
#define RSC_SERVER_INTERNAL_H

#include <stdint.h>
#include <time.h>
#include <netinet/in.h>

#include <microhttpd.h>

#include "server.h"

/* The body of a refused request that is read and thrown away, so that the client, still sending, gets to see the 413.
 */
#define RSC_SERVER_MAX_DISCARD ((uint64_t)16 << 20)

#define RSC_NS_PER_SECOND INT64_C(1000000000)

/* A member of one of the server's lists; zeroed when it is in none. */
struct rsc_link {
    struct rsc_link *previous, *next;
};

enum rsc_request_state {
    RSC_REQUEST_READING,
    RSC_REQUEST_WAITING,  /* complete, in the queue */
    RSC_REQUEST_OPEN,     /* handed out */
    RSC_REQUEST_STALLED,  /* never to be answered */
    RSC_REQUEST_ANSWERED, /* has a reply, or is to be closed */
};

/* One TCP connection; lives from libmicrohttpd's "started" to its "closed". */
struct rsc_connection {
    struct rsc_server *server;
    struct MHD_Connection *handle;
    struct rsc_request *request; /* the one being read or answered */
    int fd;
    char remote[INET6_ADDRSTRLEN];
};

/* Owned by its connection until the answer is sent or the client is gone, and by whoever took it from the queue. */
struct rsc_request {
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
    enum rsc_request_state state;

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
    int epoll;
    unsigned port;
    size_t max_body;
    size_t waiting, open;
    bool again;                /* libmicrohttpd has to run once more before its descriptor can be trusted */
    struct rsc_link queue;     /* complete requests, oldest first */
    struct rsc_link suspended; /* every connection that is suspended */
    struct rsc_link unwatched; /* those of them not yet in the epoll set */
    struct rsc_link timed;     /* those of them between two pieces, soonest first */
};

#define RSC_REQUEST_OF(link, member)                                                                                   \
    ((struct rsc_request *)(void *)((char *)(link)-offsetof(struct rsc_request, member)))

static inline int64_t rsc_server_now(void) {
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * RSC_NS_PER_SECOND + time.tv_nsec;
}

static inline void rsc_list_init(struct rsc_link *list) {
    list->previous = list->next = list;
}

static inline bool rsc_list_empty(const struct rsc_link *list) {
    return list->next == list;
}

static inline bool rsc_list_has(const struct rsc_link *link) {
    return link->next != NULL;
}

static inline void rsc_list_insert_after(struct rsc_link *place, struct rsc_link *link) {
    link->previous = place;
    link->next = place->next;
    place->next->previous = link;
    place->next = link;
}

static inline void rsc_list_append(struct rsc_link *list, struct rsc_link *link) {
    rsc_list_insert_after(list->previous, link);
}

static inline void rsc_list_remove(struct rsc_link *link) {
    if (rsc_list_has(link)) {
        link->previous->next = link->next;
        link->next->previous = link->previous;
        link->previous = link->next = NULL;
    }
}

/* server.c */
void rsc_server_suspend(struct rsc_request *request);
void rsc_server_resume(struct rsc_request *request);
void rsc_server_unwatch(struct rsc_request *request);
void rsc_server_suspend_until_due(struct rsc_request *request);

/* server_request.c: what libmicrohttpd calls. */
void rsc_server_on_connection(void *server, struct MHD_Connection *handle, void **connection,
                              enum MHD_ConnectionNotificationCode code);
void *rsc_server_on_target(void *server, const char *target, struct MHD_Connection *handle);
enum MHD_Result rsc_server_on_request(void *server, struct MHD_Connection *handle, const char *url, const char *method,
                                      const char *version, const char *upload, size_t *upload_length, void **context);
void rsc_server_on_completed(void *server, struct MHD_Connection *handle, void **context,
                             enum MHD_RequestTerminationCode code);

/* server_request.c: the life of a request. */
void rsc_request_set_state(struct rsc_request *request, enum rsc_request_state state);
void rsc_request_client_left(struct rsc_request *request);
void rsc_request_close(struct rsc_request *request);

#endif
