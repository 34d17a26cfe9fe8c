#include "server/internal.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/descriptor.h"

#define RSC_SERVER_BACKLOG    511 /* connections in the kernel's listen queue */
#define RSC_SERVER_MAX_EVENTS 64  /* descriptors handled per wait */
#define LONGEST_WAIT          1e9 /* seconds; a longer one has no end */
#define RSC_SERVER_MAX_PASSES 16  /* rounds of I/O without a wait in one step */

/* Listening */

static int listen_on(const struct addrinfo *address, unsigned *port) {
    int on = 1;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t length = sizeof bound;
    int fd = rsc_descriptor_socket(address->ai_family, address->ai_socktype, address->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    if (rsc_descriptor_unblock(fd) == 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        bind(fd, address->ai_addr, address->ai_addrlen) == 0 && listen(fd, RSC_SERVER_BACKLOG) == 0 &&
        getsockname(fd, &bound.any, &length) == 0) {
        *port = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
        return fd;
    }
    int reason = errno;
    (void)close(fd);
    errno = reason;
    return -1;
}

static int open_listener(const char *host, int port, unsigned *bound_port, struct rsc_error *error) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[16];
    (void)snprintf(service, sizeof service, "%d", port);
    int status = getaddrinfo(host, service, &hints, &found);
    if (status != 0) {
        (void)rsc_error_set(error, status, 0, "could not listen on %s:%d (%s)", host, port,
                            status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = found; address != NULL && fd < 0; address = address->ai_next) {
        fd = listen_on(address, bound_port);
    }
    if (fd < 0) {
        (void)rsc_error_set(error, errno, 0, "could not listen on %s:%d (%s)", host, port, strerror(errno));
    }
    freeaddrinfo(found);
    return fd;
}

/* After a failed start, libmicrohttpd has closed the listener in some cases but not in others. */
static void close_if_still(int fd, const struct stat *before) {
    struct stat now;
    if (fstat(fd, &now) == 0 && now.st_dev == before->st_dev && now.st_ino == before->st_ino) {
        (void)close(fd);
    }
}

/* Takes ownership of `listener`, even on a failure. */
static struct MHD_Daemon *start_daemon(struct rsc_server *server, const struct rsc_server_options *options,
                                       int listener) {
    unsigned idle = (unsigned)options->idle_timeout;
    idle += (double)idle < options->idle_timeout;
    struct MHD_OptionItem items[] = {
        {MHD_OPTION_LISTEN_SOCKET, listener, NULL},
        {MHD_OPTION_NOTIFY_CONNECTION, (intptr_t)&rsc_server_on_connection, server},
        {MHD_OPTION_URI_LOG_CALLBACK, (intptr_t)&rsc_server_on_target, server},
        {MHD_OPTION_NOTIFY_COMPLETED, (intptr_t)&rsc_server_on_completed, server},
        {MHD_OPTION_CONNECTION_MEMORY_LIMIT, (intptr_t)options->max_headers, NULL},
        {MHD_OPTION_CONNECTION_LIMIT, (intptr_t)options->max_connections, NULL},
        {MHD_OPTION_CONNECTION_TIMEOUT, (intptr_t)idle, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct stat before;
    if ((!server->uses_epoll && listener >= FD_SETSIZE) || fstat(listener, &before) != 0) {
        (void)close(listener);
        errno = EMFILE;
        return NULL;
    }
    errno = ENOMEM; /* libmicrohttpd may fail without setting errno */
    struct MHD_Daemon *daemon =
        MHD_start_daemon((server->uses_epoll ? MHD_USE_EPOLL : 0) | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL,
                         &rsc_server_on_request, server, MHD_OPTION_ARRAY, items, MHD_OPTION_END);
    if (daemon == NULL) {
        int reason = errno;
        close_if_still(listener, &before);
        errno = reason;
    }
    return daemon;
}

static size_t count_connections(const struct rsc_server *server) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return info == NULL ? 0 : info->num_connections;
}

/* The poller's tag of a descriptor of libmicrohttpd's. It is odd, which tells it from a pointer. */
static uint64_t tag_of(int fd) {
    return ((uint64_t)fd << 1) | 1;
}

/* Watches a descriptor of libmicrohttpd's for these events alone. Returns whether that is so. */
static bool watch_for(struct rsc_server *server, int fd, uint8_t events) {
    uint8_t before = server->events[fd];
    int status = 0;
    if (events == 0 && before != 0) {
        rsc_poller_remove(&server->poller, fd);
    } else if (events != before) {
        status = before == 0 ? rsc_poller_add(&server->poller, fd, events, tag_of(fd))
                             : rsc_poller_modify(&server->poller, fd, events, tag_of(fd));
    }
    server->events[fd] = status == 0 ? events : before;
    return status == 0;
}

/* Without epoll, libmicrohttpd says after each run which descriptors it waits for. At its connection limit it would
 * accept clients and close them, so these stay in the listen queue. */
static bool watch_daemon(struct rsc_server *server) {
    fd_set readable, writable, exceptional; /* libmicrohttpd requires the last, too */
    MHD_socket last = -1;
    bool watched = true;
    server->sends = false;
    FD_ZERO(&readable);
    FD_ZERO(&writable);
    FD_ZERO(&exceptional);
    (void)MHD_get_fdset(server->daemon, &readable, &writable, &exceptional, &last);
    if (count_connections(server) >= server->max_connections) {
        FD_CLR(server->listener, &readable);
    }
    for (int fd = 0; fd <= last || fd <= server->last; fd++) {
        uint32_t events = (FD_ISSET(fd, &readable) ? RSC_READABLE : 0) | (FD_ISSET(fd, &writable) ? RSC_WRITABLE : 0);
        watched = watch_for(server, fd, (uint8_t)events) && watched;
        server->sends = server->sends || (events & RSC_WRITABLE) != 0;
    }
    server->last = last;
    return watched;
}

void rsc_server_forget_socket(struct rsc_server *server, int fd) {
    if (!server->uses_epoll) {
        (void)watch_for(server, fd, 0);
    }
}

/* On Linux the environment variable RISKSCREEN_SELECT chooses the way of other systems, for the tests. */
static bool uses_epoll(void) {
#if defined(__linux__)
    return getenv("RISKSCREEN_SELECT") == NULL;
#else
    return false;
#endif
}

static bool watch_first(struct rsc_server *server) {
    if (!server->uses_epoll) {
        return watch_daemon(server);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    return info != NULL && rsc_poller_add(&server->poller, info->epoll_fd, RSC_READABLE, tag_of(info->epoll_fd)) == 0;
}

struct rsc_server *rsc_server_new(const struct rsc_server_options *options, struct rsc_error *error) {
    struct rsc_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        (void)rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory for a server");
        return NULL;
    }
    server->last = -1;
    server->forks = rsc_process_current();
    server->max_body = (size_t)options->max_body;
    server->max_connections = (size_t)options->max_connections;
    rsc_link_init(&server->queue);
    rsc_link_init(&server->suspended);
    rsc_link_init(&server->unwatched);
    rsc_link_init(&server->timed);
    int listener = open_listener(options->host, (int)options->port, &server->port, error);
    if (listener < 0) {
        free(server);
        return NULL;
    }
    int status = rsc_poller_open(&server->poller);
    server->uses_epoll = uses_epoll();
    server->listener = listener;
    if (status != 0) {
        rsc_descriptor_close(&listener);
    } else {
        server->daemon = start_daemon(server, options, listener);
    }
    if (server->daemon == NULL || !watch_first(server)) {
        (void)rsc_error_set(error, errno, 0, "could not start a server (%s)", strerror(errno));
        rsc_server_free(server);
        return NULL;
    }
    return server;
}

/* Suspended connections */

/* Most requests get their reply before the next step, so the socket is added to the poller only then. */
void rsc_server_suspend(struct rsc_exchange *exchange) {
    MHD_suspend_connection(exchange->connection->handle);
    rsc_list_append(&exchange->connection->server->suspended, &exchange->suspended);
    rsc_list_append(&exchange->connection->server->unwatched, &exchange->unwatched);
}

void rsc_server_suspend_until_due(struct rsc_exchange *exchange) {
    struct rsc_link *list = &exchange->connection->server->timed;
    struct rsc_link *place = list->previous;
    while (place != list && RSC_CONTAINER(place, struct rsc_exchange, timed)->due > exchange->due) {
        place = place->previous;
    }
    rsc_list_append(place->next, &exchange->timed);
    rsc_server_suspend(exchange);
}

void rsc_server_unwatch(struct rsc_exchange *exchange) {
    rsc_list_remove(&exchange->unwatched);
    if (exchange->watched) {
        rsc_poller_remove(&exchange->connection->server->poller, exchange->connection->fd);
        exchange->watched = false;
    }
}

/* Makes the descriptor readable, because libmicrohttpd must run again. */
static void wake(struct rsc_server *server) {
    server->again = true;
    if (!server->woken) {
        server->woken = true;
        rsc_poller_sync(&server->poller, RSC_NEVER, true);
    }
}

void rsc_server_resume(struct rsc_exchange *exchange) {
    rsc_server_unwatch(exchange);
    rsc_list_remove(&exchange->suspended);
    rsc_list_remove(&exchange->timed);
    MHD_resume_connection(exchange->connection->handle);
    wake(exchange->connection->server);
}

/* libmicrohttpd ignores suspended connections, so the server itself watches for clients that leave. */
static void watch_suspended(struct rsc_server *server) {
    while (!rsc_list_empty(&server->unwatched)) {
        struct rsc_exchange *exchange = RSC_CONTAINER(server->unwatched.next, struct rsc_exchange, unwatched);
        rsc_list_remove(&exchange->unwatched);
        exchange->watched =
            rsc_poller_add(&server->poller, exchange->connection->fd, RSC_LEFT, (uint64_t)(uintptr_t)exchange) == 0;
    }
}

static void resume_due(struct rsc_server *server) {
    if (rsc_list_empty(&server->timed)) {
        return;
    }
    int64_t now = (int64_t)rsc_now();
    while (!rsc_list_empty(&server->timed) &&
           RSC_CONTAINER(server->timed.next, struct rsc_exchange, timed)->due <= now) {
        rsc_server_resume(RSC_CONTAINER(server->timed.next, struct rsc_exchange, timed));
    }
}

/* Stepping */

/* Returns the nanoseconds until libmicrohttpd or a piece is due, or INT64_MAX. */
static int64_t time_left(const struct rsc_server *server) {
    MHD_UNSIGNED_LONG_LONG ms;
    int64_t left = INT64_MAX;
    if (server->again) {
        return 0;
    }
    if (MHD_get_timeout(server->daemon, &ms) == MHD_YES) {
        left = ms > INT_MAX ? INT_MAX * INT64_C(1000000) : (int64_t)ms * 1000000;
    }
    if (!rsc_list_empty(&server->timed)) {
        int64_t due = RSC_CONTAINER(server->timed.next, struct rsc_exchange, timed)->due - (int64_t)rsc_now();
        left = due < left ? due : left;
    }
    return left < 0 ? 0 : left;
}

double rsc_server_timeout(const struct rsc_server *server) {
    if (server->waiting > 0 || !rsc_list_empty(&server->unwatched)) {
        return 0;
    }
    int64_t left = time_left(server);
    return left == INT64_MAX ? -1 : (double)left / (double)RSC_NS_PER_S;
}

/* Lets libmicrohttpd work on the descriptors that are ready. */
static void run_daemon(struct rsc_server *server, const struct rsc_ready *ready, int count) {
    size_t before = count_connections(server);
    if (server->uses_epoll) {
        (void)MHD_run(server->daemon);
    } else {
        fd_set sets[3];
        FD_ZERO(&sets[0]);
        FD_ZERO(&sets[1]);
        FD_ZERO(&sets[2]);
        for (int i = 0; i < count; i++) {
            int fd = (int)(ready[i].tag >> 1);
            if (ready[i].tag == tag_of(fd) && (ready[i].events & (RSC_READABLE | RSC_BROKEN)) != 0) {
                FD_SET(fd, &sets[0]);
            }
            if (ready[i].tag == tag_of(fd) && (ready[i].events & (RSC_WRITABLE | RSC_BROKEN)) != 0) {
                FD_SET(fd, &sets[1]);
            }
        }
        (void)MHD_run_from_select(server->daemon, &sets[0], &sets[1], &sets[2]);
        (void)watch_daemon(server); /* a descriptor that memory is too short for is added after the next run */
    }
    /* At its connection limit libmicrohttpd stops listening. It starts again only in the next run. */
    server->again = count_connections(server) < before;
}

/* Waits up to `wait` ns for an event, then does all I/O that is possible without waiting. Returns the number of ready
 * descriptors, or -1 with errno set. */
static int run_once(struct rsc_server *server, int64_t wait) {
    struct rsc_ready ready[RSC_SERVER_MAX_EVENTS];
    resume_due(server);
    watch_suspended(server);
    int64_t left = time_left(server);
    left = wait < left ? wait : left;
    int ms = left > INT_MAX * INT64_C(1000000) ? INT_MAX : (int)((left + 999999) / 1000000);
    if (left == INT64_MAX) {
        ms = -1;
    }
    int count = rsc_poller_wait(&server->poller, ready, RSC_SERVER_MAX_EVENTS, ms);
    for (int i = 0; i < count; i++) {
        if ((ready[i].tag & 1) == 0) {
            rsc_exchange_client_left((struct rsc_exchange *)(uintptr_t)ready[i].tag);
        }
    }
    resume_due(server);
    int reason = errno;
    server->woken = false;
    run_daemon(server, ready, count);
    rsc_poller_sync(&server->poller, RSC_NEVER, server->woken);
    errno = reason;
    return count;
}

int rsc_server_step(struct rsc_server *server, double seconds, struct rsc_error *error) {
    int64_t deadline =
        seconds < 0 || seconds > LONGEST_WAIT ? INT64_MAX : (int64_t)(rsc_now() + rsc_seconds_to_ns(seconds));
    for (int pass = 1;; pass++) {
        int64_t wait = 0;
        if (server->waiting == 0) {
            wait = deadline == INT64_MAX ? INT64_MAX : deadline - (int64_t)rsc_now();
        }
        bool flushes = !server->uses_epoll && server->again;
        int ready = run_once(server, wait < 0 ? 0 : wait);
        if (ready < 0) {
            return errno == EINTR ? RSC_OK : rsc_error_set(error, errno, 0, "could not wait (%s)", strerror(errno));
        }
        /* Further rounds send pending replies in this step. Their number is limited, so that busy clients cannot keep
         * the step from returning. Without epoll, libmicrohttpd takes a reply in one round and sends it in the next. */
        if (pass < RSC_SERVER_MAX_PASSES &&
            (time_left(server) == 0 || ((ready > 0 || flushes) && server->waiting == 0))) {
            continue;
        }
        if (server->waiting > 0 || (int64_t)rsc_now() >= deadline) {
            return RSC_OK;
        }
    }
}

bool rsc_server_inherited(struct rsc_server *server) {
    if (server->forks == rsc_forks) {
        return false;
    }
    while (!rsc_list_empty(&server->suspended)) {
        struct rsc_exchange *exchange = RSC_CONTAINER(server->suspended.next, struct rsc_exchange, suspended);
        rsc_list_remove(&exchange->suspended);
        rsc_list_remove(&exchange->unwatched);
        rsc_list_remove(&exchange->timed);
        rsc_exchange_detach(exchange);
    }
    server->daemon = NULL;
    rsc_poller_forget(&server->poller);
    return true;
}

void rsc_server_free(struct rsc_server *server) {
    (void)rsc_server_inherited(server);
    if (server->daemon != NULL) {
        for (int pass = 0; pass < RSC_SERVER_MAX_PASSES && (time_left(server) == 0 || server->sends); pass++) {
            (void)run_once(server, 0);
        }
        while (!rsc_list_empty(&server->suspended)) {
            rsc_server_resume(RSC_CONTAINER(server->suspended.next, struct rsc_exchange, suspended));
        }
        MHD_stop_daemon(server->daemon);
    }
    rsc_poller_close(&server->poller);
    free(server);
}

/* State */

unsigned rsc_server_port(const struct rsc_server *server) {
    return server->port;
}

int rsc_server_pollfd(struct rsc_server *server) {
    int fd = rsc_poller_descriptor(&server->poller);
    rsc_poller_sync(&server->poller, RSC_NEVER, server->woken);
    return fd;
}

size_t rsc_server_waiting(const struct rsc_server *server) {
    return server->waiting;
}

bool rsc_server_refused(struct rsc_server *server, struct rsc_refusal *refusal) {
    if (server->refusal_count == 0) {
        return false;
    }
    *refusal = server->refusals[--server->refusal_count];
    return true;
}

void rsc_server_stats(const struct rsc_server *server, struct rsc_server_stats *stats) {
    stats->connections = count_connections(server);
    stats->waiting = server->waiting;
    stats->open = 0;
    for (const struct rsc_link *i = server->suspended.next; i != &server->suspended; i = i->next) {
        stats->open += RSC_CONTAINER(i, struct rsc_exchange, suspended)->state != RSC_EXCHANGE_REPLIED;
    }
}
