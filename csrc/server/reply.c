#include "server/internal.h"

#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "base/text.h"

#define RSC_SERVER_MAX_BLOCK ((size_t)1 << 14) /* bytes per callback of a body that is truncated or sent in pieces */

static bool equals_ignoring_case(const char *text, size_t length, const char *expected) {
    return length == strlen(expected) && strncasecmp(text, expected, length) == 0;
}

static bool is_token(const char *text, size_t length) {
    size_t i = 0;
    while (i < length && rsc_token_byte(text[i]) != ' ') {
        i++;
    }
    return length > 0 && i == length;
}

const char *rsc_reply_header_problem(const char *name, size_t name_length, const char *value, size_t value_length) {
    if (!is_token(name, name_length)) {
        return "the name must be letters, digits and -._~!#$%&'*+^`|";
    }
    for (size_t i = 0; i < value_length; i++) {
        if (value[i] == '\r' || value[i] == '\n' || value[i] == '\0') {
            return "the value must not contain CR, LF or NUL";
        }
    }
    if (equals_ignoring_case(name, name_length, MHD_HTTP_HEADER_CONTENT_LENGTH) ||
        equals_ignoring_case(name, name_length, MHD_HTTP_HEADER_TRANSFER_ENCODING)) {
        return "the server sets it";
    }
    if (equals_ignoring_case(name, name_length, MHD_HTTP_HEADER_CONNECTION) &&
        !equals_ignoring_case(value, value_length, "close") &&
        !equals_ignoring_case(value, value_length, "keep-alive")) {
        return "the value must be close or keep-alive";
    }
    return NULL;
}

static bool add_header(struct MHD_Response *response, const char *name, const char *value) {
    if (strcasecmp(name, MHD_HTTP_HEADER_CONNECTION) == 0 && strcasecmp(value, "keep-alive") == 0) {
        return true; /* the default; libmicrohttpd rejects it as a header */
    }
    /* libmicrohttpd rejects an empty value. A blank means the same, since blanks around a value do not count. */
    return MHD_add_response_header(response, name, value[0] == '\0' ? " " : value) == MHD_YES;
}

static bool add_headers(struct MHD_Response *response, const struct rsc_buffer *headers) {
    for (size_t at = 0; at < headers->length;) {
        const char *name = headers->data + at;
        const char *value = name + strlen(name) + 1;
        if (!add_header(response, name, value)) {
            return false;
        }
        at = (size_t)(value + strlen(value) + 1 - headers->data);
    }
    return true;
}

/* libmicrohttpd reads the body of a truncated or slow reply from here, but not for HEAD requests. */
static ssize_t read_content(void *context, uint64_t position, char *out, size_t room) {
    struct rsc_exchange *exchange = context;
    if (exchange->closing || position >= exchange->sent) {
        return MHD_CONTENT_READER_END_WITH_ERROR; /* close the connection */
    }
    size_t from = (size_t)position;
    if (from >= exchange->piece_end) {
        int64_t now = (int64_t)rsc_now();
        if (now < exchange->due) {
            rsc_server_suspend_until_due(exchange);
            return 0;
        }
        exchange->due = now + exchange->interval;
        exchange->piece_end = exchange->piece < exchange->sent - from ? from + exchange->piece : exchange->sent;
    }
    size_t size = exchange->piece_end - from;
    size = size < room ? size : room;
    memcpy(out, exchange->content.data + from, size);
    return (ssize_t)size;
}

static struct MHD_Response *create_staged(struct rsc_exchange *exchange, const struct rsc_reply *reply) {
    rsc_buffer_init(&exchange->content, reply->body_length);
    if (rsc_buffer_append(&exchange->content, reply->body, reply->body_length) != RSC_OK) {
        return NULL;
    }
    exchange->sent = reply->truncated ? reply->sent : reply->body_length;
    exchange->piece = reply->piece > 0 ? reply->piece : reply->body_length;
    exchange->interval = (int64_t)(reply->interval * (double)RSC_NS_PER_S);
    size_t block = exchange->piece < RSC_SERVER_MAX_BLOCK ? exchange->piece : RSC_SERVER_MAX_BLOCK;
    return MHD_create_response_from_callback(reply->body_length, block, &read_content, exchange, NULL);
}

static struct MHD_Response *create_response(struct rsc_exchange *exchange, const struct rsc_reply *reply) {
    struct MHD_Response *response;
    if (reply->body_length > 0 && (reply->truncated || reply->piece > 0)) {
        response = create_staged(exchange, reply);
    } else {
        /* MHD_RESPMEM_MUST_COPY only reads the buffer, although the parameter is not const. */
        void *body = (void *)(uintptr_t)reply->body;
        response = MHD_create_response_from_buffer(reply->body_length, body, MHD_RESPMEM_MUST_COPY);
    }
    if (response == NULL) {
        return NULL;
    }
    /* Where the client cannot notice the truncation, a Connection header must announce the close. */
    bool is_noticed = reply->sent != reply->body_length && reply->status != MHD_HTTP_NO_CONTENT &&
                      reply->status != MHD_HTTP_NOT_MODIFIED && !exchange->head_only;
    if ((reply->truncated && !is_noticed && !add_header(response, MHD_HTTP_HEADER_CONNECTION, "close")) ||
        !add_headers(response, reply->headers)) {
        MHD_destroy_response(response);
        return NULL;
    }
    return response;
}

static bool client_connected(const struct rsc_exchange *exchange) {
    return exchange->connection != NULL && !exchange->closing;
}

enum rsc_reply_result rsc_exchange_reply(struct rsc_exchange *exchange, const struct rsc_reply *reply) {
    if (!client_connected(exchange)) {
        exchange->state = RSC_EXCHANGE_REPLIED;
        return RSC_REPLY_CLIENT_GONE;
    }
    exchange->response = create_response(exchange, reply);
    if (exchange->response == NULL) {
        rsc_buffer_free(&exchange->content);
        return RSC_REPLY_FAILED;
    }
    exchange->status = reply->status;
    exchange->state = RSC_EXCHANGE_REPLIED;
    rsc_server_resume(exchange);
    return RSC_REPLY_QUEUED;
}

/* The linger option alone is not enough, because libmicrohttpd shuts the socket down before it closes it. Connecting to
 * AF_UNSPEC dissolves the association and sends the reset. */
void rsc_exchange_reset(struct rsc_exchange *exchange) {
    exchange->state = RSC_EXCHANGE_REPLIED;
    if (client_connected(exchange)) {
        struct linger linger = {.l_onoff = 1, .l_linger = 0};
        struct sockaddr nobody = {.sa_family = AF_UNSPEC};
        (void)setsockopt(exchange->connection->fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
        (void)connect(exchange->connection->fd, &nobody, sizeof nobody);
        rsc_exchange_close(exchange);
    }
}
