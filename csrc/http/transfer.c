#include "http/transfer.h"

#include <stdlib.h>
#include <string.h>

#include "http/libcurl.h"
#include "http/timers.h"

#define US_PER_S 1e6

/* Outcomes */

/* Whether part of the request may have been sent. An old libcurl does not call on_request, but counts the bytes. */
static bool may_be_sent(const struct rsc_transfer *transfer) {
    const struct rsc_handle *handle = transfer->handle;
    long size = 0;
    if (handle != NULL && !handle->requested && rsc_libcurl()->number < RSC_LIBCURL_PREREQ) {
        (void)curl_easy_getinfo(handle->easy, CURLINFO_REQUEST_SIZE, &size);
    }
    return handle != NULL && (handle->requested || size > 0);
}

static void forget(struct rsc_transfer *transfer) {
    if (transfer->failed) {
        free(transfer->outcome.failure.message);
        transfer->failed = false;
    }
}

RSC_PRINTF(4, 5)
static void fail(struct rsc_transfer *transfer, enum rsc_failure_kind kind, enum rsc_phase phase, const char *format,
                 ...) {
    char text[RSC_FAILURE_MESSAGE_MAX];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    forget(transfer);
    transfer->failed = true;
    transfer->outcome.failure =
        (struct rsc_failure){.kind = kind, .phase = phase, .sent = may_be_sent(transfer), .message = strdup(text)};
}

/* libcurl's times count from its start, and 0 means not reached. Ours count from rsc_transfer_send. */
static double since_sent(double waited, curl_off_t microseconds) {
    return microseconds > 0 ? waited + (double)microseconds / US_PER_S : 0;
}

static curl_off_t time_of(const struct rsc_handle *handle, CURLINFO info) {
    curl_off_t microseconds = 0;
    (void)curl_easy_getinfo(handle->easy, info, &microseconds);
    return microseconds;
}

/* Whether a kept-alive connection was lost before anything of a response came. An old libcurl has then tried up to five
 * more of them, and has not made a new one. */
static bool is_dead_connection(const struct rsc_transfer *transfer) {
    const struct rsc_handle *handle = transfer->handle;
    long connected = 1;
    if (rsc_libcurl()->number < RSC_LIBCURL_PREREQ && transfer->received.length == 0 && may_be_sent(transfer)) {
        (void)curl_easy_getinfo(handle->easy, CURLINFO_NUM_CONNECTS, &connected);
    }
    return handle->dead_connection || connected == 0;
}

static enum rsc_phase phase_of(const struct rsc_transfer *transfer) {
    const struct rsc_handle *handle = transfer->handle;
    if (handle == NULL) {
        return RSC_PHASE_QUEUE;
    }
    if (may_be_sent(transfer)) {
        return transfer->received.length > 0 ? RSC_PHASE_BODY : RSC_PHASE_FIRST_BYTE;
    }
    if (handle->connected) {
        return transfer->origin->tls ? RSC_PHASE_TLS : RSC_PHASE_CONNECT;
    }
    /* libcurl reports a finished lookup at once, but a finished connection only after the TLS handshake. */
    bool found = transfer->origin->local || time_of(handle, CURLINFO_NAMELOOKUP_TIME_T) > 0;
    return found ? RSC_PHASE_CONNECT : RSC_PHASE_NAME_LOOKUP;
}

/* Removes the transfer from the multi handle or the queue. The caller then finishes or ends it. */
static void detach(struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    rsc_timers_remove(&loop->timers, &transfer->operation.timer);
    rsc_list_remove(&transfer->operation.link);
    if (transfer->operation.state == RSC_QUEUED) {
        loop->queued_count--;
    } else {
        loop->transfer_count--;
        if (transfer->handle != NULL) {
            struct rsc_handle *handle = transfer->handle;
            transfer->handle = NULL;
            transfer->origin->active--;
            rsc_origin_release(handle);
        }
    }
}

static void finish(struct rsc_transfer *transfer) {
    detach(transfer);
    rsc_operation_finish(&transfer->operation);
}

static void note_times(struct rsc_transfer *transfer) {
    struct rsc_handle *handle = transfer->handle;
    struct rsc_response *response = &transfer->outcome.response;
    double waited = (double)(transfer->launched_at - transfer->sent_at) / RSC_NS_PER_S;
    response->name_lookup = since_sent(waited, time_of(handle, CURLINFO_NAMELOOKUP_TIME_T));
    response->connect = since_sent(waited, time_of(handle, CURLINFO_CONNECT_TIME_T));
    response->tls = since_sent(waited, time_of(handle, CURLINFO_APPCONNECT_TIME_T));
    response->first_byte = since_sent(waited, time_of(handle, CURLINFO_STARTTRANSFER_TIME_T));
    response->total = (double)(rsc_now() - transfer->sent_at) / RSC_NS_PER_S;
}

static void succeed(struct rsc_transfer *transfer) {
    if (transfer->timed) {
        note_times(transfer);
    }
    /* The next response probably has a similar size. The maximum decays slowly. */
    size_t *typical = &transfer->origin->typical_size;
    size_t size = transfer->received.length < RSC_TYPICAL_SIZE_MAX ? transfer->received.length : RSC_TYPICAL_SIZE_MAX;
    *typical = size > *typical ? size : *typical - (*typical - size) / 16;
}

static void fail_with_code(struct rsc_transfer *transfer, CURLcode code) {
    struct rsc_handle *handle = transfer->handle;
    const char *peer = transfer->origin->name;
    if (transfer->limit != NULL) {
        fail(transfer, RSC_PROTOCOL, RSC_PHASE_BODY, "the answer from %s is larger than %s (%zu bytes)", peer,
             transfer->limit, transfer->limit_size);
        return;
    }
    if (transfer->malformed != NULL) {
        fail(transfer, RSC_PROTOCOL, RSC_PHASE_BODY, "malformed answer from %s (%s)", peer, transfer->malformed);
        return;
    }
    if (is_dead_connection(transfer)) {
        fail(transfer, RSC_NETWORK, RSC_PHASE_FIRST_BYTE,
             may_be_sent(transfer)
                 ? "the connection to %s was lost before an answer came; the request was not sent again"
                 : "the connection to %s was lost, or had an answer that nobody asked for",
             peer);
        transfer->outcome.failure.dead_connection = true;
        return;
    }
    char text[128];
    const struct rsc_failure_row *row = rsc_failure_find(code, handle->error);
    /* libcurl shows the URL of a proxy that it cannot use, with its password. */
    bool hidden = handle->error[0] == '\0' || strchr(handle->error, '@') != NULL;
    const char *detail = hidden ? curl_easy_strerror(code) : handle->error;
    long number = 0;
    (void)curl_easy_getinfo(handle->easy, CURLINFO_OS_ERRNO, &number);
    const char *problem = row->problem;
    if (code == CURLE_COULDNT_CONNECT) {
        problem = transfer->origin->proxied ? "could not connect to the proxy to" : problem;
        detail = number == 0 ? detail : rsc_strerror((int)number, text, sizeof text);
    }
    enum rsc_phase phase = phase_of(transfer);
    fail(transfer, row->kind, row->kind == RSC_TLS && phase == RSC_PHASE_CONNECT ? RSC_PHASE_TLS : phase, "%s %s (%s)",
         problem, peer, detail);
}

/* Starting */

void rsc_transfer_launch(struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    struct rsc_origin *origin = transfer->origin;
    if (transfer->operation.state == RSC_QUEUED) {
        loop->queued_count--;
        rsc_list_remove(&transfer->operation.link);
    }
    transfer->operation.state = RSC_ACTIVE;
    transfer->launched_at = rsc_now();
    loop->transfer_count++;
    struct rsc_handle *handle = rsc_origin_acquire(origin);
    CURLcode code = CURLE_OUT_OF_MEMORY;
    if (handle != NULL) {
        handle->connected = handle->requested = handle->dead_connection = false;
        handle->error[0] = '\0';
        handle->transfer = transfer;
        transfer->handle = handle;
        origin->active++;
        code = rsc_transfer_apply(handle, transfer);
        if (code == CURLE_OK && curl_multi_add_handle(loop->multi, handle->easy) == CURLM_OK) {
            return;
        }
    }
    fail(transfer, RSC_NETWORK, RSC_PHASE_QUEUE, "the request to %s could not be started (%s)", origin->name,
         curl_easy_strerror(code == CURLE_OK ? CURLE_OUT_OF_MEMORY : code));
    finish(transfer);
}

int rsc_transfer_send(struct rsc_origin *origin, const struct rsc_request *request, struct rsc_transfer **made) {
    struct rsc_loop *loop = origin->loop;
    int status = RSC_OK;
    struct rsc_transfer *transfer = *made = rsc_transfer_new(origin, request, &status);
    if (transfer == NULL) {
        return status;
    }
    transfer->sent_at = rsc_now();
    transfer->operation.state = RSC_QUEUED;
    loop->queued_count++;
    rsc_list_append(&origin->queue, &transfer->operation.link);
    if (rsc_timers_add(&loop->timers, &transfer->operation.timer, transfer->sent_at + transfer->timeout) != RSC_OK) {
        rsc_operation_cancel(&transfer->operation);
        return RSC_ERROR_MEMORY;
    }
    rsc_loop_check_rests(loop, transfer->sent_at);
    rsc_loop_advance(loop);
    rsc_loop_sync(loop);
    return RSC_OK;
}

/* Ending */

static struct rsc_transfer *transfer_of(CURL *easy) {
    struct rsc_handle *handle = NULL;
    (void)curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&handle);
    return handle != NULL ? handle->transfer : NULL;
}

void rsc_transfer_connected(CURL *easy) {
    struct rsc_transfer *transfer = transfer_of(easy);
    if (transfer != NULL) {
        transfer->handle->connected = true;
    }
}

/* Whether libcurl has nothing to read from the connection of a response. The TLS library may hold bytes that libcurl
 * has not asked for: only a read shows that. With CURLOPT_CONNECT_ONLY, libcurl reads for its user. */
static bool is_read_empty(CURL *easy) {
    char byte;
    size_t size = 0;
    struct rsc_sigpipe sigpipe;
    rsc_sigpipe_hold(&sigpipe);
    (void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 1L);
    bool empty = curl_easy_recv(easy, &byte, sizeof byte, &size) == CURLE_AGAIN;
    (void)curl_easy_setopt(easy, CURLOPT_CONNECT_ONLY, 0L);
    rsc_sigpipe_release(&sigpipe);
    return empty;
}

/* Whether nothing has come on a connection after a response, as far as libcurl does not look for itself. The transfer
 * `next` has taken the connection already, or is NULL. */
static bool is_silent(const struct rsc_transfer *transfer, curl_socket_t fd, const struct rsc_transfer *next) {
    if (next != NULL && next->received.length > 0) {
        return false;
    }
    if (transfer->origin->direct) {
        /* The system is asked with a tenth of the instructions of a read (./dev bench http). */
        return rsc_libcurl()->number >= RSC_LIBCURL_CHECKS_INPUT || rsc_sockets_silent(fd);
    }
    return next == NULL && is_read_empty(transfer->handle->easy);
}

/* Ends the connection of an HTTP/1 response if more bytes have come on it, else lets it rest. They would become the
 * next response. At its timers libcurl may end a transfer and let the next one take the connection within one call.
 * Returns false if this transfer was that next one, and ended in the same call as well: nobody had looked. */
static bool rest(const struct rsc_transfer *transfer) {
    struct rsc_loop *loop = transfer->operation.loop;
    curl_socket_t fd = CURL_SOCKET_BAD;
    if (curl_easy_getinfo(transfer->handle->easy, CURLINFO_ACTIVESOCKET, &fd) != CURLE_OK || fd == CURL_SOCKET_BAD) {
        return true; /* libcurl has closed it */
    }
    bool looked = !rsc_sockets_has_rested(&loop->sockets, fd, loop->turn);
    CURL *next = rsc_sockets_user(&loop->sockets, fd);
    if (looked && is_silent(transfer, fd, next != NULL ? transfer_of(next) : NULL)) {
        rsc_sockets_rest(&loop->sockets, fd, loop->turn);
    } else {
        rsc_sockets_end(fd);
    }
    return looked;
}

void rsc_transfer_complete(CURL *easy, CURLcode code) {
    struct rsc_transfer *transfer = transfer_of(easy);
    if (transfer == NULL) {
        return;
    }
    if (code == CURLE_OK && !transfer->head.complete) {
        /* libcurl reports success if the connection closes within the headers. */
        fail(transfer, RSC_NETWORK, RSC_PHASE_BODY,
             "incomplete answer from %s (the connection was closed within the headers)", transfer->origin->name);
    } else if (code == CURLE_OK) {
        succeed(transfer);
        if (transfer->head.http_version[0] == '1' && !rest(transfer)) {
            fail(transfer, RSC_NETWORK, RSC_PHASE_FIRST_BYTE,
                 "an answer from %s came with the one before it, and may be of another request",
                 transfer->origin->name);
        }
    } else {
        fail_with_code(transfer, code);
    }
    finish(transfer);
}

void rsc_transfer_expire(struct rsc_operation *operation) {
    struct rsc_transfer *transfer = (struct rsc_transfer *)operation;
    static const char *const doing[] = {
        [RSC_PHASE_QUEUE] = "waiting for its turn to ask",
        [RSC_PHASE_NAME_LOOKUP] = "looking up the address of",
        [RSC_PHASE_CONNECT] = "connecting to",
        [RSC_PHASE_TLS] = "in the TLS handshake with",
        [RSC_PHASE_FIRST_BYTE] = "waiting for an answer from",
        [RSC_PHASE_BODY] = "receiving the answer from",
    };
    enum rsc_phase phase = phase_of(transfer);
    fail(transfer, RSC_TIMEOUT, phase, "timed out after %g s %s %s", (double)transfer->timeout / RSC_NS_PER_S,
         doing[phase], transfer->origin->name);
    finish(transfer);
}

void rsc_transfer_fail_later(CURL *easy, int error_number) {
    char text[128];
    struct rsc_transfer *transfer = transfer_of(easy);
    if (transfer == NULL) {
        return;
    }
    fail(transfer, RSC_NETWORK, phase_of(transfer), "the connection to %s cannot be waited for (%s)",
         transfer->origin->name, rsc_strerror(error_number, text, sizeof text));
    rsc_list_remove(&transfer->operation.link);
    rsc_list_append(&transfer->operation.loop->failing, &transfer->operation.link);
}

void rsc_transfer_finish_failing(struct rsc_operation *operation) {
    struct rsc_transfer *transfer = (struct rsc_transfer *)operation;
    transfer->outcome.failure.sent = may_be_sent(transfer);
    finish(transfer);
}

void rsc_transfer_end(struct rsc_transfer *transfer) {
    if (transfer->operation.state <= RSC_ACTIVE) {
        detach(transfer);
    }
    rsc_buffer_free(&transfer->received);
    rsc_headers_refer(&transfer->headers, NULL);
    forget(transfer);
    rsc_origin_drop(transfer->origin);
}

struct rsc_text rsc_transfer_body(const struct rsc_transfer *transfer) {
    if (transfer->received.data == NULL) {
        return (struct rsc_text){"", 0};
    }
    return (struct rsc_text){transfer->received.data + transfer->head_size,
                             transfer->received.length - transfer->head_size};
}
