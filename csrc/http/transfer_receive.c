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

/* Field names are case-insensitive, so they are stored in lower case. */
static void lower_name(char *line, size_t length) {
    for (size_t i = 0; i < length && line[i] != ':'; i++) {
        if (line[i] >= 'A' && line[i] <= 'Z') {
            line[i] = (char)(line[i] + ('a' - 'A'));
        }
    }
}

/* Refuses a body above the limit before it arrives. The answer to HEAD, 204 and 304 have none. */
static bool admit_length(struct rsc_transfer *transfer) {
    const struct rsc_head *head = &transfer->head;
    if (!head->complete || !head->has_length || head->status < 200 || head->status == 204 || head->status == 304 ||
        strcmp(transfer->method, "HEAD") == 0) {
        return true;
    }
    size_t length = head->length < SIZE_MAX ? (size_t)head->length : SIZE_MAX;
    return admit(transfer, 0, length, "max_body", transfer->origin->max_body);
}

static size_t on_header(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_transfer *transfer = ((struct rsc_handle *)context)->transfer;
    struct rsc_text line = {bytes, size * count};
    size_t length = line.length;
    if (transfer->head.complete && transfer->head.status >= 200) {
        return length; /* ignore trailers */
    }
    if (rsc_head_begins(line)) {
        /* After interim responses (100, 103 …) only the last response counts. */
        rsc_origin_reuse_buffer(transfer->origin, &transfer->received);
        rsc_buffer_reset(&transfer->received);
        transfer->head_size = 0;
        if (rsc_buffer_reserve(&transfer->received, transfer->origin->typical_size) != RSC_OK) {
            return 0;
        }
    }
    if (!admit(transfer, transfer->head_size, length, "max_headers", transfer->origin->max_headers) ||
        rsc_buffer_append(&transfer->received, bytes, length) != RSC_OK) {
        return 0;
    }
    lower_name(transfer->received.data + transfer->head_size, length);
    transfer->head_size += length;
    transfer->malformed = rsc_head_read(&transfer->head, line);
    return transfer->malformed == NULL && admit_length(transfer) ? length : 0;
}

/* With CURLOPT_HEADER, on_body gets a header line before libcurl keeps it and before on_header gets it. A long line
 * comes in pieces. A folded line must not get further: see origin.c. */
static bool admit_line(struct rsc_transfer *transfer, struct rsc_text piece) {
    bool begins = !transfer->in_line;
    transfer->in_line = piece.length > 0 && piece.bytes[piece.length - 1] != '\n';
    transfer->malformed = begins ? rsc_head_folded(piece) : NULL;
    return transfer->malformed == NULL;
}

static size_t on_body(char *bytes, size_t size, size_t count, void *context) {
    struct rsc_handle *handle = context;
    struct rsc_transfer *transfer = handle->transfer;
    size_t length = size * count;
    if (!transfer->head.complete || transfer->head.status < 200) {
        return admit_line(transfer, (struct rsc_text){bytes, length}) ? length : 0;
    }
    if (!admit(transfer, transfer->received.length - transfer->head_size, length, "max_body",
               transfer->origin->max_body)) {
        return 0;
    }
    if (!transfer->in_body) {
        transfer->in_body = true;
        curl_off_t announced = -1;
        (void)curl_easy_getinfo(handle->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &announced);
        if (announced > (curl_off_t)length && announced <= (curl_off_t)transfer->origin->max_body &&
            rsc_buffer_reserve(&transfer->received, (size_t)announced) != RSC_OK) {
            return 0;
        }
    }
    return rsc_buffer_append(&transfer->received, bytes, length) == RSC_OK ? length : 0;
}

/* libcurl calls this just before it sends a request, from 7.80 on. If a kept-alive connection was dead, it calls this
 * again for the same request, up to five times. Only here can a second send be stopped for every method and body size.
 * The caller decides whether to send the request again, because it counts and limits the requests. */
static int on_request(void *context, char *remote_ip, char *local_ip, int remote_port, int local_port) {
    struct rsc_handle *handle = context;
    (void)remote_ip;
    (void)local_ip;
    (void)remote_port;
    (void)local_port;
    if (handle->requested) {
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

CURLcode rsc_transfer_set_callbacks(CURL *easy, struct rsc_handle *handle) {
    struct rsc_loop *loop = handle->origin->loop;
    CURLcode codes[] = {
        curl_easy_setopt(easy, CURLOPT_PRIVATE, handle),
        curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, handle->error),
        curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header),
        curl_easy_setopt(easy, CURLOPT_HEADERDATA, handle),
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body),
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, handle),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, on_open),
        curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, loop),
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETFUNCTION, on_close),
        /* The connection may outlive the handle, so its context is the loop. */
        curl_easy_setopt(easy, CURLOPT_CLOSESOCKETDATA, loop),
    };
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (codes[i] != CURLE_OK) {
            return codes[i];
        }
    }
    (void)curl_easy_setopt(easy, RSC_CURLOPT_PREREQFUNCTION, on_request);
    (void)curl_easy_setopt(easy, RSC_CURLOPT_PREREQDATA, handle);
    return CURLE_OK;
}
