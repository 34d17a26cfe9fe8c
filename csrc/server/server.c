#include "server/internal.h"

#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define RSC_SERVER_BACKLOG    511 /* connections in the kernel's listen queue */
#define RSC_SERVER_MAX_EVENTS 64  /* descriptors handled per wait */
#define RSC_SERVER_MAX_PASSES 16  /* rounds of I/O without a wait in one step */

static int64_t to_nanoseconds(double seconds) {
    double ns = seconds * (double)RSC_NS_PER_S;
    return ns >= (double)(INT64_MAX / 2) ? INT64_MAX / 2 : (int64_t)ns;
}

/* Listening */

static int listen_on(const struct addrinfo *address, unsigned *port) {
    int on = 1;
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } bound = {.v6 = {0}};
    socklen_t length = sizeof bound;
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, address->ai_protocol);
    if (fd < 0) {
        return -1;
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
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

static int open_listener(const char *host, size_t port, unsigned *bound_port, struct rsc_error *error) {
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    struct addrinfo *found = NULL;
    char service[16];
    (void)snprintf(service, sizeof service, "%zu", port);
    int status = getaddrinfo(host, service, &hints, &found);
    if (status != 0) {
        (void)rsc_error_set(error, status, 0, "could not listen on %s:%zu (%s)", host, port,
                            status == EAI_SYSTEM ? strerror(errno) : gai_strerror(status));
        return -1;
    }
    int fd = -1;
    for (const struct addrinfo *address = found; address != NULL && fd < 0; address = address->ai_next) {
        fd = listen_on(address, bound_port);
    }
    if (fd < 0) {
        (void)rsc_error_set(error, errno, 0, "could not listen on %s:%zu (%s)", host, port, strerror(errno));
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
        {MHD_OPTION_CONNECTION_TIMEOUT, idle, NULL},
        {MHD_OPTION_END, 0, NULL},
    };
    struct stat before;
    if (fstat(listener, &before) != 0) {
        (void)close(listener);
        return NULL;
    }
    errno = ENOMEM; /* libmicrohttpd may fail without setting errno */
    struct MHD_Daemon *daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, NULL, NULL, &rsc_server_on_request, server,
                         MHD_OPTION_ARRAY, items, MHD_OPTION_END);
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

static bool add_to_epoll(struct rsc_server *server, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    return epoll_ctl(server->epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

static bool open_descriptors(struct rsc_server *server) {
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    server->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    return server->epoll >= 0 && server->wake >= 0 && info != NULL && add_to_epoll(server, info->epoll_fd) &&
           add_to_epoll(server, server->wake);
}

struct rsc_server *rsc_server_new(const struct rsc_server_options *options, struct rsc_error *error) {
    struct rsc_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        (void)rsc_error_set(error, RSC_ERROR_MEMORY, 0, "not enough memory for a server");
        return NULL;
    }
    server->epoll = server->wake = -1;
    server->max_body = options->max_body;
    rsc_link_init(&server->queue);
    rsc_link_init(&server->suspended);
    rsc_link_init(&server->unwatched);
    rsc_link_init(&server->timed);
    int listener = open_listener(options->host, options->port, &server->port, error);
    if (listener < 0) {
        free(server);
        return NULL;
    }
    server->daemon = start_daemon(server, options, listener);
    if (server->daemon == NULL || !open_descriptors(server)) {
        (void)rsc_error_set(error, errno, 0, "could not start a server (%s)", strerror(errno));
        rsc_server_free(server);
        return NULL;
    }
    return server;
}

/* Suspended connections */

/* Most requests get their reply before the next step, so the socket is added to epoll only then. */
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
        (void)epoll_ctl(exchange->connection->server->epoll, EPOLL_CTL_DEL, exchange->connection->fd, NULL);
        exchange->watched = false;
    }
}

/* Makes the descriptor readable, because libmicrohttpd must run again. */
static void wake(struct rsc_server *server) {
    uint64_t one = 1;
    server->again = true;
    if (!server->woken) {
        server->woken = write(server->wake, &one, sizeof one) == (ssize_t)sizeof one;
    }
}

static void clear_wake(struct rsc_server *server) {
    uint64_t count;
    if (server->woken) {
        server->woken = read(server->wake, &count, sizeof count) < 0;
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
        struct epoll_event event = {.events = EPOLLRDHUP, .data.ptr = exchange};
        rsc_list_remove(&exchange->unwatched);
        exchange->watched = epoll_ctl(server->epoll, EPOLL_CTL_ADD, exchange->connection->fd, &event) == 0;
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

static void run_daemon(struct rsc_server *server) {
    size_t before = count_connections(server);
    (void)MHD_run(server->daemon);
    /* At its connection limit libmicrohttpd stops listening. It starts again only in the next run. */
    server->again = count_connections(server) < before;
}

/* Waits up to `wait` ns for an event, then does all I/O that is possible without waiting. Returns the number of ready
 * descriptors, or -1 with errno set. */
static int run_once(struct rsc_server *server, int64_t wait) {
    struct epoll_event events[RSC_SERVER_MAX_EVENTS];
    resume_due(server);
    watch_suspended(server);
    int64_t left = time_left(server);
    left = wait < left ? wait : left;
    int ms = left > INT_MAX * INT64_C(1000000) ? INT_MAX : (int)((left + 999999) / 1000000);
    if (left == INT64_MAX) {
        ms = -1;
    }
    int ready = epoll_wait(server->epoll, events, RSC_SERVER_MAX_EVENTS, ms);
    for (int i = 0; i < ready; i++) {
        if (events[i].data.ptr != NULL) {
            rsc_exchange_client_left(events[i].data.ptr);
        }
    }
    resume_due(server);
    int reason = errno;
    clear_wake(server);
    run_daemon(server);
    errno = reason;
    return ready;
}

int rsc_server_step(struct rsc_server *server, double seconds, struct rsc_error *error) {
    int64_t deadline = seconds < 0 ? INT64_MAX : (int64_t)rsc_now() + to_nanoseconds(seconds);
    for (int pass = 1;; pass++) {
        int64_t wait = 0;
        if (server->waiting == 0) {
            wait = deadline == INT64_MAX ? INT64_MAX : deadline - (int64_t)rsc_now();
        }
        int ready = run_once(server, wait < 0 ? 0 : wait);
        if (ready < 0) {
            return errno == EINTR ? RSC_OK : rsc_error_set(error, errno, 0, "could not wait (%s)", strerror(errno));
        }
        /* Further rounds send pending replies in this step. Their number is limited, so that busy clients cannot keep
         * the step from returning. */
        if (pass < RSC_SERVER_MAX_PASSES && (time_left(server) == 0 || (ready > 0 && server->waiting == 0))) {
            continue;
        }
        if (server->waiting > 0 || (int64_t)rsc_now() >= deadline) {
            return RSC_OK;
        }
    }
}

void rsc_server_free(struct rsc_server *server) {
    if (server->daemon != NULL) {
        for (int pass = 0; pass < RSC_SERVER_MAX_PASSES && time_left(server) == 0; pass++) {
            run_daemon(server);
        }
        while (!rsc_list_empty(&server->suspended)) {
            rsc_server_resume(RSC_CONTAINER(server->suspended.next, struct rsc_exchange, suspended));
        }
        MHD_stop_daemon(server->daemon);
    }
    if (server->wake >= 0) {
        (void)close(server->wake);
    }
    if (server->epoll >= 0) {
        (void)close(server->epoll);
    }
    free(server);
}

/* State */

unsigned rsc_server_port(const struct rsc_server *server) {
    return server->port;
}

int rsc_server_pollfd(const struct rsc_server *server) {
    return server->epoll;
}

size_t rsc_server_waiting(const struct rsc_server *server) {
    return server->waiting;
}

void rsc_server_stats(const struct rsc_server *server, struct rsc_server_stats *stats) {
    stats->connections = count_connections(server);
    stats->waiting = server->waiting;
    stats->open = server->open;
}
