#include "server/internal.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Connections */

static void describe_peer(struct rsc_connection *connection) {
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection->handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *peer = info == NULL ? NULL : info->client_addr;
    const void *address = NULL;
    if (peer != NULL && peer->sa_family == AF_INET) {
        address = &((const struct sockaddr_in *)(const void *)peer)->sin_addr;
    } else if (peer != NULL && peer->sa_family == AF_INET6) {
        address = &((const struct sockaddr_in6 *)(const void *)peer)->sin6_addr;
    }
    if (address == NULL || inet_ntop(peer->sa_family, address, connection->remote, sizeof connection->remote) == NULL) {
        connection->remote[0] = '\0';
    }
}

static struct rsc_connection *open_connection(struct rsc_server *server, struct MHD_Connection *handle) {
    struct rsc_connection *connection = calloc(1, sizeof *connection);
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (connection == NULL || info == NULL) {
        free(connection);
        return NULL;
    }
    connection->server = server;
    connection->handle = handle;
    connection->fd = info->connect_fd;
    describe_peer(connection);
    return connection;
}

/* If memory runs out, *connection stays NULL and rsc_server_on_request closes the connection. */
void rsc_server_on_connection(void *server, struct MHD_Connection *handle, void **connection,
                              enum MHD_ConnectionNotificationCode code) {
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *connection = open_connection(server, handle);
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (info != NULL) {
        rsc_server_forget_socket(server, info->connect_fd);
    }
    if (*connection != NULL) {
        /* In some failures libmicrohttpd closes a connection without the completed callback. */
        struct rsc_exchange *exchange = ((struct rsc_connection *)*connection)->exchange;
        if (exchange != NULL) {
            rsc_exchange_detach(exchange);
        }
        free(*connection);
        *connection = NULL;
    }
}

/* Requests */

/* Gets the original target: libmicrohttpd splits and unescapes it after this call. */
void *rsc_server_on_target(void *server, const char *target, struct MHD_Connection *handle) {
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct rsc_connection *connection = info == NULL ? NULL : info->socket_context;
    (void)server;
    return connection == NULL ? NULL : rsc_exchange_new(connection, target == NULL ? "" : target);
}

/* Replies without a body. Before the request's body is read, libmicrohttpd then closes the connection. */
static enum MHD_Result refuse(struct MHD_Connection *handle, unsigned status) {
    struct MHD_Response *response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    if (response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result queued = MHD_queue_response(handle, status, response);
    MHD_destroy_response(response);
    return queued;
}

static void note_refusal(const struct rsc_exchange *exchange, unsigned status) {
    struct rsc_server *server = exchange->connection->server;
    if (server->refusal_count < RSC_SERVER_REFUSALS) {
        struct rsc_refusal *refusal = &server->refusals[server->refusal_count++];
        refusal->status = status;
        memcpy(refusal->remote, exchange->connection->remote, sizeof refusal->remote);
    }
}

static void find_too_large(struct rsc_exchange *exchange) {
    exchange->too_large = true;
    note_refusal(exchange, MHD_HTTP_CONTENT_TOO_LARGE);
}

/* Counts what tells where the body ends. An encoding beside `chunked` counts as two, because it does not tell it. */
static enum MHD_Result count_length(void *count, enum MHD_ValueKind kind, const char *name, const char *value) {
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        *(int *)count += value != NULL && strcasecmp(value, "chunked") == 0 ? 1 : 2;
    }
    *(int *)count += strcasecmp(name, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0;
    return MHD_YES;
}

/* Checks the announced length; of two, a proxy before this server may have believed the other one. A body that is too
 * large is read and discarded before status 413. A client that sent Expect, or has more than
 * RSC_SERVER_MAX_DISCARD bytes to send, gets 413 at once and loses the connection. */
static enum MHD_Result check_head(struct rsc_exchange *exchange, struct MHD_Connection *handle) {
    const char *announced = MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    const char *expect = MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_EXPECT);
    errno = 0;
    unsigned long long length = announced == NULL ? 0 : strtoull(announced, NULL, 10);
    int lengths = 0;
    (void)MHD_get_connection_values(handle, MHD_HEADER_KIND, &count_length, &lengths);
    exchange->begun = true;
    if (lengths > 1) {
        note_refusal(exchange, MHD_HTTP_BAD_REQUEST);
        return refuse(handle, MHD_HTTP_BAD_REQUEST);
    }
    if (errno == 0 && length <= exchange->input.body.limit) {
        return MHD_YES;
    }
    find_too_large(exchange);
    if (expect != NULL || errno != 0 || length > RSC_SERVER_MAX_DISCARD) {
        return refuse(handle, MHD_HTTP_CONTENT_TOO_LARGE);
    }
    return MHD_YES;
}

static enum MHD_Result take_body(struct rsc_exchange *exchange, const char *bytes, size_t *length) {
    size_t size = *length;
    *length = 0;
    if (!exchange->too_large) {
        int status = rsc_buffer_append(&exchange->input.body, bytes, size);
        if (status != RSC_ERROR_LIMIT) {
            return status == RSC_OK ? MHD_YES : MHD_NO;
        }
        find_too_large(exchange);
        rsc_buffer_free(&exchange->input.body);
    }
    exchange->discarded += size;
    return exchange->discarded <= RSC_SERVER_MAX_DISCARD ? MHD_YES : MHD_NO;
}

struct header_copy {
    struct rsc_buffer *headers;
    int status;
};

static enum MHD_Result copy_header(void *context, enum MHD_ValueKind kind, const char *name, size_t name_length,
                                   const char *value, size_t value_length) {
    struct header_copy *copy = context;
    struct rsc_buffer *headers = copy->headers;
    (void)kind;
    value_length = value == NULL ? 0 : strnlen(value, value_length);
    while (value_length > 0 && (value[value_length - 1] == ' ' || value[value_length - 1] == '\t')) {
        value_length--; /* libmicrohttpd removes only leading blanks */
    }
    copy->status = rsc_buffer_reserve(headers, name_length + value_length + 2);
    if (copy->status != RSC_OK) {
        return MHD_NO;
    }
    char *out = headers->data + headers->length;
    for (size_t i = 0; i < name_length; i++) {
        out[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] + ('a' - 'A') : name[i]);
    }
    out[name_length] = '\0';
    if (value_length > 0) {
        memcpy(out + name_length + 1, value, value_length);
    }
    out[name_length + 1 + value_length] = '\0';
    headers->length += name_length + value_length + 2;
    return MHD_YES;
}

static enum MHD_Result complete(struct rsc_exchange *exchange, struct MHD_Connection *handle, const char *method) {
    if (exchange->too_large) {
        return refuse(handle, MHD_HTTP_CONTENT_TOO_LARGE);
    }
    exchange->input.method = strdup(method);
    if (exchange->input.method == NULL) {
        return MHD_NO;
    }
    exchange->head_only = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0;
    struct header_copy copy = {.headers = &exchange->input.headers, .status = RSC_OK};
    (void)MHD_get_connection_values_n(handle, MHD_HEADER_KIND, &copy_header, &copy);
    if (copy.status != RSC_OK) {
        return MHD_NO;
    }
    rsc_exchange_enqueue(exchange);
    rsc_server_suspend(exchange);
    return MHD_YES;
}

/* libmicrohttpd calls this with the head, with each part of the body, and at the end. It calls again after the
 * connection is resumed, to get the reply. MHD_NO closes the connection; out of memory does so too. */
enum MHD_Result rsc_server_on_request(void *server, struct MHD_Connection *handle, const char *url, const char *method,
                                      const char *version, const char *upload, size_t *upload_length, void **context) {
    struct rsc_exchange *exchange = *context;
    (void)server, (void)url, (void)version;
    if (exchange == NULL || exchange->closing) {
        return MHD_NO;
    }
    if (!exchange->begun) {
        return check_head(exchange, handle);
    }
    if (*upload_length > 0) {
        return take_body(exchange, upload, upload_length);
    }
    if (exchange->state == RSC_EXCHANGE_READING) {
        return complete(exchange, handle, method);
    }
    if (exchange->response == NULL) {
        return MHD_NO;
    }
    enum MHD_Result queued = MHD_queue_response(handle, exchange->status, exchange->response);
    MHD_destroy_response(exchange->response);
    exchange->response = NULL;
    return queued;
}

void rsc_server_on_completed(void *server, struct MHD_Connection *handle, void **context,
                             enum MHD_RequestTerminationCode code) {
    (void)server, (void)handle, (void)code;
    struct rsc_exchange *exchange = *context;
    if (exchange != NULL) {
        if (!exchange->begun && exchange->connection != NULL) {
            note_refusal(exchange, MHD_HTTP_BAD_REQUEST); /* libmicrohttpd has refused the head */
        }
        rsc_exchange_detach(exchange);
        *context = NULL;
    }
}
