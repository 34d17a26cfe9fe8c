#include "redis/connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/descriptor.h"

#define READ_SIZE      16384             /* bytes of one read */
#define READS_MAX      64                /* reads of one step */
#define COMMANDS_LIMIT ((size_t)1 << 30) /* bytes of commands that wait to be written */
#define KEPT           ((size_t)1 << 16) /* bytes of an empty buffer that are kept */

#if defined(MSG_NOSIGNAL)
#    define SEND_FLAGS MSG_NOSIGNAL
#else
#    define SEND_FLAGS 0
#endif

/* Failing and closing */

static void free_addresses(struct rsc_redis_connection *connection) {
    if (connection->addresses != NULL) {
        freeaddrinfo(connection->addresses);
    }
    connection->addresses = connection->try = NULL;
}

/* Ends the connection. The socket stays, because the caller's loop still watches it. */
static int end(struct rsc_redis_connection *connection) {
    connection->state = RSC_REDIS_CLOSED;
    free_addresses(connection);
    return connection->error.code;
}

static int fail(struct rsc_redis_connection *connection, int code, const char *message) {
    (void)rsc_error_set(&connection->error, code, 0, "%s", message);
    return end(connection);
}

static int fail_by_errno(struct rsc_redis_connection *connection, const char *what, int number) {
    errno = number;
    (void)rsc_system_error(&connection->error, what);
    return end(connection);
}

void rsc_redis_check_process(struct rsc_redis_connection *connection) {
    if (connection->forks != rsc_forks) {
        connection->forks = rsc_forks;
        connection->fd = -1;
        (void)fail(connection, RSC_REDIS_NETWORK, "the connection is that of the parent process");
    }
}

void rsc_redis_close(struct rsc_redis_connection *connection) {
    connection->state = RSC_REDIS_CLOSED;
    free_addresses(connection);
    rsc_descriptor_close(&connection->fd);
    connection->is_open = false;
    connection->complete = 0;
    if (!connection->lent) {
        rsc_buffer_free(&connection->in);
    }
    rsc_buffer_free(&connection->out);
}

static void empty(struct rsc_buffer *buffer) {
    if (buffer->capacity > KEPT) {
        rsc_buffer_free(buffer);
    } else {
        rsc_buffer_reset(buffer);
    }
}

/* Connecting */

/* Begins to connect. Returns 0, or the number of the failure. */
static int begin_connect(struct rsc_redis_connection *connection, const struct sockaddr *address, socklen_t size) {
    const int on = 1;
    rsc_descriptor_close(&connection->fd);
    connection->sockets++;
    connection->fd = rsc_descriptor_socket(address->sa_family, SOCK_STREAM, 0);
    if (connection->fd < 0 || rsc_descriptor_unblock(connection->fd) != 0) {
        return errno;
    }
#if !defined(MSG_NOSIGNAL)
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
#endif
    if (address->sa_family != AF_UNIX) {
        (void)setsockopt(connection->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
        (void)setsockopt(connection->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    }
    return connect(connection->fd, address, size) == 0 || errno == EINPROGRESS ? 0 : errno;
}

/* Tries the host's addresses in turn, from `try` on. `number` is the failure of the one before. */
static int connect_next(struct rsc_redis_connection *connection, int number) {
    while (connection->try != NULL) {
        struct addrinfo *address = connection->try;
        connection->try = address->ai_next;
        number = begin_connect(connection, address->ai_addr, address->ai_addrlen);
        if (number == 0) {
            return RSC_OK;
        }
    }
    return fail_by_errno(connection, "cannot connect", number);
}

static int connect_path(struct rsc_redis_connection *connection, const char *path) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t length = strlen(path);
    if (length >= sizeof address.sun_path) {
        return fail(connection, RSC_REDIS_NETWORK, "the path of the Unix socket is too long");
    }
    memcpy(address.sun_path, path, length + 1);
    int number = begin_connect(connection, (struct sockaddr *)&address, sizeof address);
    return number == 0 ? RSC_OK : fail_by_errno(connection, "cannot connect", number);
}

static int connect_host(struct rsc_redis_connection *connection, const char *host, int port) {
    char service[16];
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    (void)snprintf(service, sizeof service, "%d", port);
    int status = getaddrinfo(host, service, &hints, &connection->addresses);
    if (status != 0) {
        connection->addresses = NULL;
        return fail(connection, RSC_REDIS_NETWORK, gai_strerror(status));
    }
    connection->try = connection->addresses;
    return connect_next(connection, 0);
}

int rsc_redis_open(struct rsc_redis_connection *connection, const struct rsc_redis_options *options,
                   struct rsc_error *error) {
    connection->fd = -1;
    connection->forks = rsc_process_current();
    connection->max_reply = (size_t)options->max_reply;
    rsc_buffer_init(&connection->in, 2 * connection->max_reply + (size_t)READS_MAX * READ_SIZE);
    rsc_buffer_init(&connection->out, COMMANDS_LIMIT);
    connection->state = RSC_REDIS_CONNECTING;
    connection->is_open = true;
    int status = options->path != NULL ? connect_path(connection, options->path)
                                       : connect_host(connection, options->host, (int)options->port);
    if (status != RSC_OK) {
        *error = connection->error;
        rsc_redis_close(connection);
    }
    return status;
}

static int finish_connect(struct rsc_redis_connection *connection) {
    int number = 0;
    socklen_t size = sizeof number;
    if (getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &number, &size) != 0) {
        number = errno;
    }
    if (number != 0) {
        return connect_next(connection, number);
    }
    free_addresses(connection);
    connection->state = RSC_REDIS_OPEN;
    return RSC_OK;
}

/* Commands */

int rsc_redis_send(struct rsc_redis_connection *connection, const char *commands, size_t size, size_t count) {
    int status = rsc_buffer_append(&connection->out, commands, size);
    if (status == RSC_OK) {
        connection->queued_total += size;
        connection->expected += count;
    }
    return status;
}

static int write_commands(struct rsc_redis_connection *connection) {
    struct rsc_buffer *out = &connection->out;
    while (connection->written < out->length) {
        ssize_t count =
            send(connection->fd, out->data + connection->written, out->length - connection->written, SEND_FLAGS);
        if (count < 0 && errno == EINTR) {
            continue;
        } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            connection->blocked = true;
            return RSC_OK;
        } else if (count < 0) {
            return fail_by_errno(connection, "the connection is lost", errno);
        }
        connection->written += (size_t)count;
        connection->written_total += (size_t)count;
    }
    connection->written = 0;
    connection->blocked = false;
    empty(out);
    return RSC_OK;
}

/* Replies */

static int fail_unasked(struct rsc_redis_connection *connection, size_t at) {
    struct rsc_redis_value value;
    struct rsc_text bytes = {connection->in.data, connection->in.length};
    if (rsc_redis_read(bytes, &at, &value) != RSC_OK || value.type != RSC_REDIS_ERROR) {
        return fail(connection, RSC_REDIS_PROTOCOL, "a reply came without a command");
    }
    /* A server that has too many clients says so before it closes the connection. */
    (void)rsc_error_set(&connection->error, RSC_REDIS_NETWORK, 0, "%.*s",
                        (int)(value.text.length < 200 ? value.text.length : 200), value.text.bytes);
    return end(connection);
}

/* Counts the replies that have come completely. */
static int find_replies(struct rsc_redis_connection *connection) {
    struct rsc_text bytes = {connection->in.data, connection->in.length};
    size_t start = connection->scan.start;
    int status;
    while ((status = rsc_redis_find_end(&connection->scan, bytes, connection->max_reply)) == RSC_OK) {
        if (connection->expected == 0) {
            return fail_unasked(connection, start);
        }
        connection->expected--;
        connection->complete++;
        start = connection->scan.start;
    }
    if (status == RSC_ERROR_LIMIT) {
        return fail(connection, RSC_REDIS_PROTOCOL, "a reply is larger than max_reply");
    } else if (status == RSC_REDIS_MALFORMED) {
        return fail(connection, RSC_REDIS_PROTOCOL, "a reply is not one of RESP2");
    }
    return RSC_OK;
}

/* Adds bytes behind those of the replies that nobody has taken. */
static int feed(struct rsc_redis_connection *connection, const char *bytes, size_t size) {
    struct rsc_buffer *in = &connection->in;
    size_t taken = connection->taken;
    if (taken > 0) {
        memmove(in->data, in->data + taken, in->length - taken);
        in->length -= taken;
        connection->scan.start -= taken;
        connection->scan.at -= taken;
        connection->taken = 0;
    }
    if (rsc_buffer_append(in, bytes, size) != RSC_OK) {
        return fail(connection, RSC_ERROR_MEMORY, "not enough memory for a reply");
    }
    return find_replies(connection);
}

static int read_replies(struct rsc_redis_connection *connection) {
    char bytes[READ_SIZE];
    for (int i = 0; i < READS_MAX; i++) {
        ssize_t count = recv(connection->fd, bytes, sizeof bytes, 0);
        if (count < 0 && errno == EINTR) {
            continue;
        } else if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
            return RSC_OK;
        } else if (count < 0) {
            return fail_by_errno(connection, "the connection is lost", errno);
        } else if (count == 0) {
            return fail(connection, RSC_REDIS_NETWORK, "Redis has closed the connection");
        }
        int status = feed(connection, bytes, (size_t)count);
        if (status != RSC_OK || (size_t)count < sizeof bytes) {
            return status;
        }
    }
    return RSC_OK;
}

bool rsc_redis_lend(struct rsc_redis_connection *connection, struct rsc_text *bytes) {
    *bytes = (struct rsc_text){connection->in.data, connection->in.length};
    connection->lent = connection->complete > 0;
    return connection->lent;
}

void rsc_redis_take(struct rsc_redis_connection *connection, size_t end) {
    connection->lent = false;
    connection->taken = end;
    connection->complete--;
    if (end == connection->in.length) {
        empty(&connection->in);
        connection->taken = 0;
        connection->scan = (struct rsc_redis_scan){.start = 0};
    }
}

/* The loop */

bool rsc_redis_wants_write(const struct rsc_redis_connection *connection) {
    return connection->state == RSC_REDIS_CONNECTING || connection->blocked;
}

bool rsc_redis_due(const struct rsc_redis_connection *connection) {
    return connection->state == RSC_REDIS_OPEN && connection->out.length > 0 && !connection->blocked;
}

void rsc_redis_step(struct rsc_redis_connection *connection) {
    if (connection->lent) {
        connection->complete = 0; /* a later reply would answer the wrong command */
        (void)fail(connection, RSC_ERROR_MEMORY, "not enough memory for a reply");
    }
    if (connection->state == RSC_REDIS_CONNECTING) {
        struct pollfd socket = {.fd = connection->fd, .events = POLLOUT};
        if (poll(&socket, 1, 0) <= 0 || finish_connect(connection) != RSC_OK) {
            return;
        }
    }
    /* Reading comes first: commands are not written to a connection that Redis has closed. */
    if (connection->state == RSC_REDIS_OPEN && read_replies(connection) == RSC_OK && connection->out.length > 0) {
        (void)write_commands(connection);
    }
}
