#include "redis/connection.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <hiredis/hiredis.h>

#include "base/descriptor.h"

#define READ_SIZE      16384             /* bytes of one read */
#define READS_MAX      64                /* reads of one step */
#define COMMANDS_LIMIT ((size_t)1 << 30) /* bytes of commands that wait to be written */
#define OUT_KEPT       ((size_t)1 << 16) /* bytes of an empty buffer that is kept */

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
    (void)rsc_error_set(&connection->error, RSC_REDIS_NETWORK, 0, "%s: %s", what, strerror(number));
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
    if (connection->reader != NULL) {
        redisReaderFree(connection->reader);
        connection->reader = NULL;
    }
    while (rsc_redis_take(connection) != NULL) {
    }
    rsc_buffer_free(&connection->out);
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

static int connect_host(struct rsc_redis_connection *connection, const char *host, const char *port) {
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG | AI_NUMERICSERV};
    int status = getaddrinfo(host, port, &hints, &connection->addresses);
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
    connection->budget.limit = connection->budget.left = options->max_reply;
    rsc_buffer_init(&connection->out, COMMANDS_LIMIT);
    connection->state = RSC_REDIS_CONNECTING;
    connection->reader = rsc_redis_reader_new(&connection->budget);
    int status;
    if (connection->reader == NULL) {
        status = fail(connection, RSC_ERROR_MEMORY, "not enough memory");
    } else if (options->path != NULL) {
        status = connect_path(connection, options->path);
    } else {
        status = connect_host(connection, options->host, options->port);
    }
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
    if (out->capacity > OUT_KEPT) {
        rsc_buffer_free(out);
    } else {
        rsc_buffer_reset(out);
    }
    return RSC_OK;
}

/* Replies */

static int fail_by_reader(struct rsc_redis_connection *connection) {
    if (connection->budget.exceeded) {
        return fail(connection, RSC_REDIS_PROTOCOL, "a reply is larger than max_reply");
    } else if (connection->reader->err == REDIS_ERR_OOM) {
        return fail(connection, RSC_ERROR_MEMORY, "not enough memory for a reply");
    }
    return fail(connection, RSC_REDIS_PROTOCOL, connection->reader->errstr);
}

/* Moves complete replies from the reader's buffer to the list. */
static int parse(struct rsc_redis_connection *connection) {
    while (true) {
        void *reply = NULL;
        if (redisReaderGetReply(connection->reader, &reply) != REDIS_OK) {
            return fail_by_reader(connection);
        } else if (reply == NULL) {
            break;
        }
        struct rsc_redis_value *value = reply;
        if (connection->expected == 0) {
            /* A server that has too many clients says so before it closes the connection. */
            if (value->type == RSC_REDIS_ERROR) {
                (void)rsc_error_set(&connection->error, RSC_REDIS_NETWORK, 0, "%.*s",
                                    (int)(value->length < 200 ? value->length : 200), value->text);
            } else {
                (void)rsc_error_set(&connection->error, RSC_REDIS_PROTOCOL, 0, "a reply came without a command");
            }
            rsc_redis_value_free(value);
            return end(connection);
        }
        connection->expected--;
        connection->budget.left = connection->budget.limit;
        if (connection->last != NULL) {
            connection->last->next = value;
        } else {
            connection->first = value;
        }
        connection->last = value;
    }
    if (connection->reader->len - connection->reader->pos > connection->budget.limit) {
        connection->budget.exceeded = true;
        return fail_by_reader(connection);
    }
    return RSC_OK;
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
        if (redisReaderFeed(connection->reader, bytes, (size_t)count) != REDIS_OK) {
            return fail_by_reader(connection);
        }
        int status = parse(connection);
        if (status != RSC_OK || (size_t)count < sizeof bytes) {
            return status;
        }
    }
    return RSC_OK;
}

const struct rsc_redis_value *rsc_redis_take(struct rsc_redis_connection *connection) {
    rsc_redis_value_free(connection->taken);
    connection->taken = connection->first;
    if (connection->first != NULL) {
        connection->first = connection->first->next;
        if (connection->first == NULL) {
            connection->last = NULL;
        }
    }
    return connection->taken;
}

void rsc_redis_abandon(struct rsc_redis_connection *connection) {
    (void)fail(connection, RSC_ERROR_MEMORY, "not enough memory for a reply");
    while (rsc_redis_take(connection) != NULL) {
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
