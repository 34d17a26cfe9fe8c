#include "server/internal.h"

#include <stdlib.h>
#include <string.h>

static void destroy(struct rsc_exchange *exchange) {
    if (exchange->response != NULL) {
        MHD_destroy_response(exchange->response);
    }
    rsc_exchange_forget_input(exchange);
    rsc_buffer_free(&exchange->content);
    free(exchange);
}

static void unqueue(struct rsc_exchange *exchange) {
    if (!rsc_list_empty(&exchange->queued)) {
        rsc_list_remove(&exchange->queued);
        exchange->connection->server->waiting--;
    }
}

struct rsc_exchange *rsc_exchange_new(struct rsc_connection *connection, const char *target) {
    struct rsc_exchange *exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL || (exchange->input.target = strdup(target)) == NULL) {
        free(exchange);
        return NULL;
    }
    rsc_link_init(&exchange->queued);
    rsc_link_init(&exchange->suspended);
    rsc_link_init(&exchange->unwatched);
    rsc_link_init(&exchange->timed);
    rsc_buffer_init(&exchange->input.body, connection->server->max_body);
    rsc_buffer_init(&exchange->input.headers, RSC_SERVER_MAX_HEADERS_LIMIT);
    memcpy(exchange->input.remote, connection->remote, sizeof exchange->input.remote);
    exchange->connection = connection;
    connection->exchange = exchange;
    return exchange;
}

void rsc_exchange_enqueue(struct rsc_exchange *exchange) {
    struct rsc_server *server = exchange->connection->server;
    rsc_list_append(&server->queue, &exchange->queued);
    server->waiting++;
    exchange->state = RSC_EXCHANGE_WAITING;
}

struct rsc_exchange *rsc_server_next(struct rsc_server *server) {
    if (rsc_list_empty(&server->queue)) {
        return NULL;
    }
    struct rsc_exchange *exchange = RSC_CONTAINER(server->queue.next, struct rsc_exchange, queued);
    unqueue(exchange);
    exchange->held = true;
    exchange->state = RSC_EXCHANGE_OPEN;
    if (exchange->gone) {
        rsc_exchange_close(exchange);
    }
    return exchange;
}

void rsc_exchange_stall(struct rsc_exchange *exchange) {
    exchange->state = RSC_EXCHANGE_STALLED;
}

/* The state stays: the caller may still reply, and the reply is dropped. */
void rsc_exchange_detach(struct rsc_exchange *exchange) {
    unqueue(exchange);
    exchange->connection->exchange = NULL;
    exchange->connection = NULL;
    rsc_buffer_free(&exchange->content);
    if (!exchange->held) {
        destroy(exchange);
    }
}

void rsc_exchange_close(struct rsc_exchange *exchange) {
    exchange->closing = true;
    if (!rsc_list_empty(&exchange->suspended)) {
        rsc_server_resume(exchange);
    }
}

/* A waiting request is still delivered, because the client may not need the reply. It keeps its connection until then,
 * which bounds the number of such requests. */
void rsc_exchange_client_left(struct rsc_exchange *exchange) {
    exchange->gone = true;
    if (exchange->state == RSC_EXCHANGE_WAITING) {
        rsc_server_unwatch(exchange);
    } else {
        rsc_exchange_close(exchange);
    }
}

void rsc_exchange_check_process(struct rsc_exchange *exchange) {
    if (exchange->state == RSC_EXCHANGE_OPEN && exchange->connection != NULL) {
        (void)rsc_server_inherited(exchange->connection->server);
    }
}

void rsc_exchange_release(struct rsc_exchange *exchange) {
    rsc_exchange_check_process(exchange);
    exchange->held = false;
    if (exchange->connection == NULL) {
        destroy(exchange);
    } else if (exchange->state == RSC_EXCHANGE_OPEN) {
        exchange->state = RSC_EXCHANGE_REPLIED;
        rsc_exchange_close(exchange);
    }
}

const struct rsc_exchange_input *rsc_exchange_input(const struct rsc_exchange *exchange) {
    return &exchange->input;
}

void rsc_exchange_forget_input(struct rsc_exchange *exchange) {
    free(exchange->input.method);
    free(exchange->input.target);
    exchange->input.method = exchange->input.target = NULL;
    rsc_buffer_free(&exchange->input.headers);
    rsc_buffer_free(&exchange->input.body);
}

bool rsc_exchange_replied(const struct rsc_exchange *exchange) {
    return exchange->state != RSC_EXCHANGE_OPEN;
}
