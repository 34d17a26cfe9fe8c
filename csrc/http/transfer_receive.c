/* libcurl's callbacks during a transfer: they receive the response, enforce its limits and open sockets. */
#include "http/transfer.h"

#include <string.h>

#include "http/libcurl.h"

/* Returns whether `size` more bytes stay within the limit. If not, records the limit in the transfer. */
static bool admit(struct rsc_transfer *transfer, size_t used, size_t size, const char *name, size_t limit) {
    if (size <= limit && used <= limit - size) {
        return true;
    }
    transfer->limit = name;
    transfer->limit_size = limit;
    return false;
}

/* Refuses a complete head whose body is above the limit, or is encoded as nobody asked for: libcurl would pass on a
 * body that it cannot decode. The answer to HEAD, 204 and 304 have none. */
static bool admit_body(struct rsc_transfer *transfer) {
    const struct rsc_head *head = &transfer->head;
    const struct rsc_origin *origin = transfer->origin;
    if (!head->complete) {
        return true;
    }
    if (head->http_version[0] != '1' &&
        (origin->http_1 || (origin->tls && !rsc_libcurl_spoke_http_2(transfer->handle->easy)))) {
        transfer->malformed = "the status line is of another HTTP version";
    } else if (head->status < 200 || head->status == 204 || head->status == 304 ||
               strcmp(transfer->method, "HEAD") == 0) {
        return true;
    } else if (head->encoding > (origin->compression ? RSC_ENCODING_ASKED : RSC_ENCODING_IDENTITY)) {
        transfer->malformed = "a Content-Encoding that nobody asked for";
    } else {
        size_t length = head->length < SIZE_MAX ? (size_t)head->length : SIZE_MAX;
        return !head->has_length || admit(transfer, 0, length, "max_body", origin->max_body);
    }
    return false;
}

/* Takes a piece of the head. Only a line longer than libcurl's write buffer comes in several pieces. Returns whether
 * the transfer goes on. */
static bool take_head(struct rsc_transfer *transfer, struct rsc_text piece) {
    struct rsc_buffer *received = &transfer->received;
    if (received->length == transfer->head_size && rsc_head_begins(piece)) {
        /* After interim responses (100, 103 …) only the last response counts. */
        rsc_buffer_reset(received);
        transfer->head_size = 0;
        if (rsc_buffer_reserve(received, transfer->origin->typical_size) != RSC_OK) {
            return false;
        }
    }
    if (!admit(transfer, received->length, piece.length, "max_headers", transfer->origin->max_headers) ||
        rsc_buffer_append(received, piece.bytes, piece.length) != RSC_OK) {
        return false;
    }
    if (piece.length == 0 || piece.bytes[piece.length - 1] != '\n') {
        return true;
    }
    char *line = received->data + transfer->head_size;
    transfer->malformed = rsc_head_read(&transfer->head, line, received->length - transfer->head_size);
    transfer->head_size = received->length;
    return transfer->malformed == NULL && admit_body(transfer);
}

static bool take_body(struct rsc_transfer *transfer, struct rsc_text piece) {
    struct rsc_buffer *received = &transfer->received;
    size_t used = received->length - transfer->head_size, limit = transfer->origin->max_body;
    if (!admit(transfer, used, piece.length, "max_body", limit)) {
        return false;
    }
    if (used == 0 && transfer->head.has_length && transfer->head.length <= limit &&
        rsc_buffer_reserve(received, (size_t)transfer->head.length) != RSC_OK) {
        return false;
    }
    return rsc_buffer_append(received, piece.bytes, piece.length) == RSC_OK;
}

static bool in_head(const struct rsc_transfer *transfer) {
    return !transfer->head.complete || transfer->head.status < 200;
}

static size_t on_write(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_transfer *transfer = ((struct rsc_handle *)context)->transfer;
    struct rsc_text piece = {bytes, size * count};
    bool taken = in_head(transfer) ? take_head(transfer, piece) : take_body(transfer, piece);
    return taken ? piece.length : 0;
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_transfer *transfer = ((struct rsc_handle *)context)->transfer;
    struct rsc_text piece = {bytes, size * count};
    /* Lines after the body are ignored. */
    return !in_head(transfer) || take_head(transfer, piece) ? piece.length : 0;
}

/* libcurl calls this just before it sends a request, from 7.80 on. If a kept-alive connection was dead, it calls this
 * again for the same request, up to five times. Only here can a second send be stopped for every method and body size.
 * The caller decides whether to send the request again, because it counts and limits the requests.
 *
 * This is also the last look for an answer that came unasked. Bytes that come later may be the answer. */
static int on_request(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port) {
    struct rsc_handle *handle = context;
    (void)remote_ip, (void)local_ip, (void)remote_port;
    long opened = 0;
    (void)curl_easy_getinfo(handle->easy, CURLINFO_NUM_CONNECTS, &opened);
    if (handle->requested || (opened == 0 && rsc_sockets_end_unsilent(&handle->origin->loop->sockets, local_port))) {
        handle->dead_connection = true;
        return 1; /* CURL_PREREQFUNC_ABORT */
    }
    handle->requested = true;
    return 0; /* CURL_PREREQFUNC_OK */
}

static curl_socket_t on_open(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    struct rsc_loop *loop = context;
    (void)purpose;
    return rsc_sockets_open(&loop->sockets, address->family, address->socktype, address->protocol);
}

static int on_close(void *context, curl_socket_t fd) {
    struct rsc_loop *loop = context;
    return rsc_sockets_close(&loop->sockets, fd);
}

/* Before 8.2.0, libcurl keeps a pointer to the last header of a handle's earlier transfer, which it has freed. A
 * response that begins with a folded line makes it read and write there. With CURLOPT_HEADER, on_write gets each line
 * before libcurl keeps it, and refuses a folded one. A later libcurl would pass it the lines after the body as well. */
#define UNFOLDING_FIXED 0x080200

static CURLcode set_head_callback(CURL *easy, struct rsc_handle *handle) {
    if (rsc_libcurl()->number < UNFOLDING_FIXED) {
        return curl_easy_setopt(easy, CURLOPT_HEADER, 1L);
    }
    CURLcode code = curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header);
    return code == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_HEADERDATA, handle) : code;
}

CURLcode rsc_transfer_set_callbacks(CURL *easy, struct rsc_handle *handle) {
    struct rsc_loop *loop = handle->origin->loop;
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_PRIVATE, handle),
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handle->error),
        set_head_callback(easy, handle),
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write),
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, handle),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, loop),
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close),
        /* The connection may outlive the handle, so its context is the loop. */
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop),
    };
    (void)curl_easy_setopt(easy, RSC_CURLOPT_PREREQFUNCTION, on_request);
    (void)curl_easy_setopt(easy, RSC_CURLOPT_PREREQDATA, handle);
    return rsc_libcurl_first_error(codes, sizeof codes / sizeof *codes);
}
